#include "sluice/stream/year_guess.hpp"

#include <gtest/gtest.h>

#include "sluice/stream/time_zone.hpp"

namespace sluice {
namespace {

constexpr std::uint64_t kMinutes10 = 600'000'000'000;

Nanoseconds at(const char* text) {
  return parse_time(text, TimeFormat::iso8601).value();
}

// The times of records, or "none".
std::vector<std::string> years_of(std::vector<const char*> texts, const char* today,
                                  const char* year = "", const EventClock& clock = {}) {
  const TimeReader reader = TimeReader::make("syslog", nullptr, year);
  YearGuess guess(reader, at(today), clock, ClockLimits(kMinutes10, kMinutes10));
  std::vector<std::string> all;
  std::uint64_t key = 0;
  for (const char* text : texts) {
    Nanoseconds time = reader.read(text).value();
    all.push_back(guess.complete({++key, 0}, time) ? format_time(time).substr(0, 10) : "none");
  }
  return all;
}

EventClock clock_at(const char* text) {
  EventClock clock;
  const ClockLimits limits(kMinutes10, kMinutes10);
  for (std::uint64_t key = 1; key <= 2; ++key) {
    Nanoseconds time = at(text);
    clock.read({key, 0}, time, limits);
  }
  return clock;
}

using Years = std::vector<std::string>;

TEST(YearGuess, TheFirstIsNotAfterToday) {
  EXPECT_EQ(years_of({"Nov 18 10:00:00"}, "2026-11-18T09:00"), Years{"2026-11-18"});
  EXPECT_EQ(years_of({"Nov 19 08:59:59"}, "2026-11-18T09:00"), Years{"2026-11-19"});
  EXPECT_EQ(years_of({"Nov 19 09:00:01"}, "2026-11-18T09:00"), Years{"2025-11-19"});
  EXPECT_EQ(years_of({"Jan 1 00:00:00"}, "2026-12-31T09:00"), Years{"2027-01-01"});
  EXPECT_EQ(years_of({"Dec 31 00:00:00"}, "2027-01-01"), Years{"2026-12-31"});
  EXPECT_EQ(years_of({"Feb 29 00:00:00"}, "2026-11-18"), Years{"2024-02-29"});
  EXPECT_EQ(years_of({"Feb 29 00:00:00"}, "2103-11-18"), Years{"2096-02-29"});
}

TEST(YearGuess, OrInTheYearThatIsGiven) {
  EXPECT_EQ(years_of({"Nov 18 10:00:00", "Jan 2 00:00:00"}, "2026-11-18", "2019"),
            (Years{"2019-11-18", "2020-01-02"}));
  // Whatever a state has seen.
  EXPECT_EQ(years_of({"Nov 18 10:00:00", "Nov 18 10:01:00"}, "2026-11-18", "2019",
                     clock_at("2024-11-18T10:00")),
            (Years{"2019-11-18", "2019-11-18"}));
  EXPECT_EQ(years_of({"Feb 29 00:00:00", "Mar 1 00:00:00"}, "2026-11-18", "2019"),
            (Years{"none", "2019-03-01"}));
}

TEST(YearGuess, TheOthersAreNearTheLatest) {
  EXPECT_EQ(years_of({"Dec 31 23:59:50", "Jan 1 00:00:10", "Dec 31 23:59:55", "Feb 28 23:00:00",
                      "Feb 29 00:00:00", "Mar 1 00:00:00"},
                     "2026-11-18"),
            (Years{"2025-12-31", "2026-01-01", "2025-12-31", "2026-02-28", "none", "2026-03-01"}));
  // For years, with gaps that keep every time from being believed.
  EXPECT_EQ(years_of({"Jan 5 00:00:00", "Mar 20 00:00:00", "Jun 10 00:00:00", "Aug 30 00:00:00",
                      "Nov 20 00:00:00", "Feb 10 00:00:00", "Feb 29 00:00:00"},
                     "2026-11-18", "2023"),
            (Years{"2023-01-05", "2023-03-20", "2023-06-10", "2023-08-30", "2023-11-20",
                   "2024-02-10", "2024-02-29"}));
  // Newest first.
  EXPECT_EQ(years_of({"Jan 2 00:00:00", "Dec 30 00:00:00", "Jun 1 00:00:00"}, "2026-11-18"),
            (Years{"2026-01-02", "2025-12-30", "2025-06-01"}));
}

TEST(YearGuess, AClockThatWasNeverSetMovesNoYear) {
  EXPECT_EQ(
      years_of({"Jul 2 11:59:00", "Jan 1 00:00:05", "Jul 2 12:01:00", "Jan 1 00:00:06",
                "Jan 1 00:00:07", "Jul 2 12:02:00"},
               "2026-11-18"),
      (Years{"2026-07-02", "2026-01-01", "2026-07-02", "2026-01-01", "2026-01-01", "2026-07-02"}));
}

TEST(YearGuess, AStateGoesOn) {
  EXPECT_EQ(years_of({"Jan 1 00:00:10"}, "2031-11-18", "", clock_at("2025-12-31T23:59:59")),
            Years{"2026-01-01"});
  const TimeReader reader = TimeReader::make("syslog", nullptr, "2025");
  YearGuess guess(reader, 0, {}, ClockLimits(kMinutes10, kMinutes10));
  guess.go_on(clock_at("2026-01-05"));
  Nanoseconds time = reader.read("Jan 5 00:01:00").value();
  ASSERT_TRUE(guess.complete({9, 9}, time));
  EXPECT_EQ(time, at("2026-01-05T00:01"));
}

// A record that says its year moves the others, too.
TEST(YearGuess, FullTimesAmongThem) {
  EXPECT_EQ(
      years_of({"2019-05-05T00:00:00Z", "May 5 00:00:01", "2019-12-31T00:00:00Z", "Jan 1 00:00:00"},
               "2026-11-18"),
      (Years{"2019-05-05", "2019-05-05", "2019-12-31", "2020-01-01"}));
}

TEST(YearGuess, InAZone) {
  const TimeReader reader = TimeReader::make("syslog", TimeZone::of_offset("+01:00"), "2026");
  YearGuess guess(reader, 0, {}, ClockLimits(kMinutes10, kMinutes10));
  Nanoseconds time = reader.read("Jan 1 00:30:00").value();
  ASSERT_TRUE(guess.complete({1, 0}, time));
  EXPECT_EQ(time, at("2025-12-31T23:30"));
}

}  // namespace
}  // namespace sluice
