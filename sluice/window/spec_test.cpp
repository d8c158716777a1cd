#include "sluice/window/spec.hpp"

#include <gtest/gtest.h>

#include "sluice/base/error.hpp"

namespace sluice {
namespace {

std::string reading(std::string_view text, bool refreshed = false) {
  return describe(parse_window("--window", text), refreshed);
}

TEST(WindowSpec, IsReadAndSaidAsMeant) {
  EXPECT_EQ(reading("1M"), "the last 1,000,000 deliveries");
  EXPECT_EQ(reading("1M", true), "the last 1,000,000 arrivals");
  EXPECT_EQ(reading("1m"), "the last 1 minute");
  EXPECT_EQ(reading("10m"), "the last 10 minutes");
  EXPECT_EQ(reading("24h"), "the last 1 day");
  EXPECT_EQ(reading("500ms"), "the last 500 milliseconds");
  EXPECT_EQ(reading("hour"), "the present hour (UTC)");
  EXPECT_EQ(reading("day"), "the present day (UTC)");
}

// A state is refused by these words, so they must not round.
TEST(WindowSpec, DifferentWindowsHaveDifferentWords) {
  EXPECT_EQ(reading("3600s"), "the last 1 hour");
  EXPECT_EQ(reading("3601s"), "the last 3,601 seconds");
  EXPECT_EQ(reading("3600001ms"), "the last 3,600,001 milliseconds");
}

TEST(WindowSpec, RefusesWhatIsNoWindow) {
  for (const char* text : {"", "10 m", "ten", "-1", "10min", "minute", "80000d"})
    EXPECT_THROW(parse_window("--window", text), BadParameters) << text;
}

TEST(WindowSpec, OtherLandmarksAreNotCalledADay) {
  EXPECT_EQ(describe({WindowSpec::Kind::landmark, 86'400'000'000'000}, false),
            "the present day (UTC)");
  EXPECT_EQ(describe({WindowSpec::Kind::landmark, 5}, false),
            "since the last whole 5 nanoseconds (UTC)");
}

}  // namespace
}  // namespace sluice
