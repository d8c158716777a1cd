// What it costs to plan filters that are named: the server waits.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "apps/redis/host.hpp"
#include "apps/redis/making.hpp"
#include "sluice/base/error.hpp"

namespace sluice::server {
namespace {

Wanted wanted_of(const std::string& text) {
  std::vector<std::string_view> words;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find(' ', at), text.size());
    words.push_back(std::string_view(text).substr(at, end - at));
    at = end + 1;
  }
  Words rest(words, 1);
  Wanted wanted;
  while (read_option(rest, wanted)) {
  }
  rest.finish();
  return wanted;
}

std::string decision(const std::string& text, const Wanted& wanted) {
  try {
    return decide(wanted, {}, {}).plan.settings;
  } catch (const BadParameters& problem) {
    return text + ": " + problem.what();
  }
}

// tests/integration/instructions.bats counts what these two take.
[[gnu::noinline]] std::string count_a_decision(const std::string& text) {
  try {
    return decision(text, wanted_of(text));
  } catch (const BadParameters& problem) {
    return problem.what();
  }
}
[[gnu::noinline]] std::string count_it_again(const std::string& text) {
  try {
    return decision(text, wanted_of(text));
  } catch (const BadParameters& problem) {
    return problem.what();
  }
}

TEST(ServerPlanning, OfFiltersThatAreNamedIsKept) {
  const char* const given = std::getenv("SLUICE_PLAN");
  const std::string text = given != nullptr ? given : "WINDOW 10m FILTER dynamic keys 2";
  const std::string first = count_a_decision(text);
  EXPECT_FALSE(first.empty());
  EXPECT_EQ(count_it_again(text), first);
}

TEST(ServerPlanning, WhatDoesNotForgetIsNotForWindowsAndTheReverse) {
  for (const char* const filter : {"dynamic", "stable", "bloom", "reservoir", "none"})
    EXPECT_EQ(count_a_decision(std::string("WINDOW 10m FILTER ") + filter),
              fmt::format("WINDOW 10m FILTER {0}: filter '{0}' does not forget: a window needs "
                          "cohort or another window filter",
                          filter));
  for (const char* const filter : {"cohort", "timer", "apbbf", "exact-window"})
    EXPECT_EQ(count_a_decision(std::string("FILTER ") + filter),
              fmt::format("FILTER {0}: filter '{0}' is for windows, and cannot hold keys for good: "
                          "give a WINDOW",
                          filter));
}

}  // namespace
}  // namespace sluice::server
