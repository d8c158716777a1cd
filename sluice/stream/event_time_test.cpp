#include "sluice/stream/event_time.hpp"

#include <gtest/gtest.h>

#include "sluice/base/error.hpp"

namespace sluice {
namespace {

constexpr Nanoseconds kSecond = 1'000'000'000;

TEST(EventTime, NumbersAreToldBySize) {
  const Nanoseconds time = 1'700'000'000 * kSecond;
  for (const char* text : {"1700000000", "1700000000000", "1700000000000000", "1700000000000000000",
                           "1700000000.0", "17e8", "1.7e12"})
    EXPECT_EQ(parse_time(text, TimeFormat::automatic), time) << text;
  EXPECT_EQ(parse_time("1700000000.123456789", TimeFormat::automatic), time + 123'456'789);
  EXPECT_EQ(parse_time("0", TimeFormat::automatic), 0);
  EXPECT_EQ(parse_time("-1.5", TimeFormat::automatic), -1'500'000'000);
}

TEST(EventTime, OrByWhatIsSaid) {
  EXPECT_EQ(parse_time("1500", TimeFormat::seconds), 1500 * kSecond);
  EXPECT_EQ(parse_time("1500", TimeFormat::milliseconds), 1500 * kSecond / 1000);
  EXPECT_EQ(parse_time("1500", TimeFormat::microseconds), 1'500'000);
  EXPECT_EQ(parse_time("1500", TimeFormat::nanoseconds), 1500);
  EXPECT_EQ(parse_time("1500", TimeFormat::iso8601), std::nullopt);
  EXPECT_EQ(parse_time("2026-01-01", TimeFormat::seconds), std::nullopt);
}

TEST(EventTime, Iso8601) {
  // 1,700,000,000 s is 2023-11-14T22:13:20Z.
  const Nanoseconds time = 1'700'000'000 * kSecond;
  for (const char* text :
       {"2023-11-14T22:13:20Z", "2023-11-14 22:13:20", "2023-11-14T23:13:20+01:00",
        "2023-11-14T23:13:20+0100", "2023-11-14T23:13:20+01", "2023-11-14T12:13:20.000-10:00"})
    EXPECT_EQ(parse_time(text, TimeFormat::automatic), time) << text;
  EXPECT_EQ(parse_time("2023-11-14T22:13:20.25Z", TimeFormat::iso8601), time + kSecond / 4);
  EXPECT_EQ(parse_time("1970-01-01", TimeFormat::iso8601), 0);
  EXPECT_EQ(parse_time("1970-01-01T00:01", TimeFormat::iso8601), 60 * kSecond);
  EXPECT_EQ(parse_time("2000-03-01", TimeFormat::iso8601), 11'017 * 86'400 * kSecond);
  EXPECT_EQ(parse_time("1969-12-31T23:59:59Z", TimeFormat::iso8601), -kSecond);
}

TEST(EventTime, WhatIsNoneIsRefused) {
  for (const char* text :
       {"", "now", "12:00", "2023-13-01", "2023-02-29", "2023-1-1", "1e99", "1.2.3", "5 ",
        "2023-11-14T25:00:00Z", "2023-11-14T22:13:20X", "9999-01-01", "--5", "."})
    EXPECT_EQ(parse_time(text, TimeFormat::automatic), std::nullopt) << text;
  EXPECT_THROW(parse_time_format("--time-format", "rfc822"), BadParameters);
}

std::vector<std::optional<Nanoseconds>> times_of(const Format& format, const std::string& field,
                                                 const std::vector<std::string>& texts) {
  EventTimes event_times(format, field, TimeFormat::automatic);
  // Records must be readable past their end.
  std::vector<std::string> padded;
  std::vector<Record> records;
  for (const std::string& text : texts) padded.push_back(text + std::string(kPaddingBytes, ' '));
  for (std::size_t i = 0; i < texts.size(); ++i)
    records.push_back({padded[i].data(), texts[i].size(), texts[i].size()});
  std::vector<Nanoseconds> times(texts.size());
  std::vector<KeyStatus> status(texts.size(), KeyStatus::keyed);
  event_times.extract(records, times, status);
  std::vector<std::optional<Nanoseconds>> all;
  for (std::size_t i = 0; i < texts.size(); ++i)
    all.push_back(status[i] == KeyStatus::keyed ? std::optional(times[i]) : std::nullopt);
  return all;
}

TEST(EventTime, FromRecordsOfEveryFormat) {
  using Times = std::vector<std::optional<Nanoseconds>>;
  const Nanoseconds time = 1'700'000'000 * kSecond;
  EXPECT_EQ(
      times_of({.kind = Format::Kind::json}, "/t",
               {R"({"t":1700000000})", R"({"t":1700000000000})", R"({"t":"2023-11-14T22:13:20Z"})",
                R"({"t":"1700000000"})", R"({"t":1.7e9})", R"({"t":null})", R"({"u":1})", "{"}),
      (Times{time, time, time, time, time, std::nullopt, std::nullopt, std::nullopt}));
  EXPECT_EQ(times_of({.kind = Format::Kind::lines}, "2", {"a 1700000000 b", "a", "a b"}),
            (Times{time, std::nullopt, std::nullopt}));
  EXPECT_EQ(times_of({.kind = Format::Kind::csv, .header = false}, "1",
                     {"\"2023-11-14 22:13:20\",x", "nonsense,x"}),
            (Times{time, std::nullopt}));
}

}  // namespace
}  // namespace sluice
