#include "sluice/base/checked.hpp"

#include <gtest/gtest.h>

#include <string>

namespace sluice {
namespace {

constexpr std::uint64_t kMost = ~0ULL;

TEST(Checked, WhatFitsIsTheResult) {
  EXPECT_EQ(checked_multiply(1ULL << 32, (1ULL << 32) - 1, "x"), kMost - (1ULL << 32) + 1);
  EXPECT_EQ(checked_multiply(0, kMost, "x"), 0u);
  EXPECT_EQ(checked_add(kMost - 1, 1, "x"), kMost);
}

TEST(Checked, WhatDoesNotFitIsRefusedByName) {
  try {
    checked_multiply(1ULL << 32, 1ULL << 32, "the table of filter 'bloom'");
    FAIL();
  } catch (const BadParameters& error) {
    EXPECT_EQ(std::string(error.what()),
              "the table of filter 'bloom' would not fit in 64 bits: ask for less");
  }
  EXPECT_THROW(checked_add(kMost, 1, "x"), BadParameters);
}

}  // namespace
}  // namespace sluice
