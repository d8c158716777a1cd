#include "sluice/base/fields.hpp"

#include <gtest/gtest.h>

namespace sluice {
namespace {

std::string said(std::string_view message) {
  return in_words_of(message, [](std::string_view field) -> std::optional<std::string> {
    if (field == "fpr") return "--fpr";
    if (field == "max_ahead") return "--max-ahead";
    return {};
  });
}

TEST(Fields, EachIsSaidInTheFrontEndsWords) {
  EXPECT_EQ(said("`fpr` must be above 0: give another `fpr`, or `max_ahead`"),
            "--fpr must be above 0: give another --fpr, or --max-ahead");
  EXPECT_EQ(said("`fpr`"), "--fpr");
  EXPECT_EQ(said(""), "");
  EXPECT_EQ(said("no field"), "no field");
}

TEST(Fields, WhatIsNoFieldStaysAsItIs) {
  for (const char* text : {"`", "``", "a ` b", "key '`unknown`'", "`FPR`", "`fpr", "fpr`", "`f p`"})
    EXPECT_EQ(said(text), text);
  EXPECT_EQ(said("file 'a`b', `fpr` 2"), "file 'a`b', --fpr 2");
}

}  // namespace
}  // namespace sluice
