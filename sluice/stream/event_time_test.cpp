#include "sluice/stream/event_time.hpp"

#include <fmt/format.h>
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

// As `date` and git print them.
TEST(EventTime, ABlankMayStandBeforeTheOffset) {
  const Nanoseconds time = 1'700'000'000 * kSecond;
  for (const char* text :
       {"2023-11-14 23:13:20 +0100", "2023-11-14 23:13:20 +01:00", "2023-11-14 23:13:20 +01",
        "2023-11-14 17:13:20 -0500", "2023-11-14 22:13:20 UTC", "2023-11-14 22:13:20 Z",
        "2023-11-14T23:13:20.000 +0100", "20231114 231320 +0100"})
    for (const TimeFormat format : {TimeFormat::automatic, TimeFormat::iso8601})
      EXPECT_EQ(parse_time(text, format), time) << text;
  EXPECT_EQ(parse_time("2023-11-14 23:13 +0100", TimeFormat::automatic), time - 20 * kSecond);
  // A blank promises an offset. Other names of zones mean different offsets to different people.
  for (const char* text :
       {"2023-11-14 22:13:20 ", "2023-11-14 22:13:20  Z", "2023-11-14 22:13:20 CET",
        "2023-11-14 22:13:20UTC", "2023-11-14 22:13:20 UTC+1", "2023-11-14 22:13:20 Z ",
        "2023-11-14 22:13:20 +1", "2023-11-14 22:13:20 +010", "2023-11-14 22:13:20 0100",
        "2023-11-14 +0100", "2023-11-14 UTC", "1700000000 +0100"})
    for (const TimeFormat format : {TimeFormat::automatic, TimeFormat::iso8601})
      EXPECT_EQ(parse_time(text, format), std::nullopt) << text;
}

TEST(EventTime, IsWrittenAsItIsRead) {
  const Nanoseconds time = 1'700'000'000 * kSecond;
  EXPECT_EQ(format_time(time), "2023-11-14T22:13:20Z");
  EXPECT_EQ(format_time(time + kSecond / 4), "2023-11-14T22:13:20.25Z");
  EXPECT_EQ(format_time(time + 1), "2023-11-14T22:13:20.000000001Z");
  EXPECT_EQ(format_time(-1), "1969-12-31T23:59:59.999999999Z");
  constexpr Nanoseconds kFar = 4'500'000'000 * kSecond + 1;  // the years 1827 and 2112
  for (const Nanoseconds each : {-kFar, Nanoseconds{0}, 951'782'400 * kSecond, kFar})
    EXPECT_EQ(parse_time(format_time(each), TimeFormat::iso8601), each) << format_time(each);
}

TEST(EventTime, BasicIso8601) {
  const Nanoseconds time = 1'700'000'000 * kSecond;
  for (const char* text : {"20231114T221320Z", "20231114T221320", "20231114 221320",
                           "20231114T231320+0100", "20231114T22:13:20Z", "2023-11-14T221320Z"})
    EXPECT_EQ(parse_time(text, TimeFormat::automatic), time) << text;
  EXPECT_EQ(parse_time("20231114T221320.5Z", TimeFormat::iso8601), time + kSecond / 2);
  EXPECT_EQ(parse_time("20231114T2213Z", TimeFormat::iso8601), time - 20 * kSecond);
  // Eight digits alone may be a number of seconds.
  EXPECT_EQ(parse_time("20000301", TimeFormat::automatic), 20'000'301 * kSecond);
  EXPECT_EQ(parse_time("20000301", TimeFormat::iso8601), 11'017 * 86'400 * kSecond);
  for (const char* text : {"2023-1114T221320Z", "202311-14T221320Z", "20231114T22:1320Z",
                           "20231114T2213:20Z", "20231114T221", "20231114T22132Z"})
    EXPECT_EQ(parse_time(text, TimeFormat::automatic), std::nullopt) << text;
}

TEST(EventTime, TheEndOfADayIsTheNext) {
  const auto next = parse_time("2024-03-01T00:00:00Z", TimeFormat::iso8601);
  for (const char* text : {"2024-02-29T24:00:00Z", "2024-02-29T24:00", "20240229T240000Z",
                           "2024-02-29T24:00:00.000Z", "2024-02-29T14:00:00-10:00"})
    EXPECT_EQ(parse_time(text, TimeFormat::automatic), next) << text;
  for (const char* text : {"2024-02-29T24:00:01Z", "2024-02-29T24:01:00Z", "2024-02-29T24:00:00.1Z",
                           "2024-02-29T25:00:00Z", "2016-12-31T24:00:60Z"})
    EXPECT_EQ(parse_time(text, TimeFormat::automatic), std::nullopt) << text;
}

TEST(EventTime, SecondSixtyIsOnlyWhereALeapSecondWas) {
  EXPECT_EQ(parse_time("2016-12-31T23:59:60Z", TimeFormat::iso8601), 1'483'228'800 * kSecond);
  EXPECT_EQ(parse_time("2016-12-31T23:59:60.5Z", TimeFormat::iso8601),
            1'483'228'800 * kSecond + kSecond / 2);
  // The same second elsewhere.
  for (const char* text : {"2017-01-01T00:59:60+01:00", "2016-12-31T18:59:60-0500"})
    EXPECT_EQ(parse_time(text, TimeFormat::iso8601), 1'483'228'800 * kSecond) << text;
  for (const char* text : {"2016-12-31T23:59:61Z", "2016-12-31T22:59:60Z", "2016-12-30T23:59:60Z",
                           "2017-12-31T23:59:60Z", "2016-06-30T23:59:60Z", "2015-12-31T23:59:60Z",
                           "2016-12-31T23:59:60+01:00", "1971-12-31T23:59:60Z"})
    EXPECT_EQ(parse_time(text, TimeFormat::iso8601), std::nullopt) << text;
  int seconds = 0;
  for (int year = 1960; year <= 2115; ++year)
    for (const char* end : {"06-30", "12-31", "03-31", "09-30"})
      seconds +=
          parse_time(fmt::format("{}-{}T23:59:60Z", year, end), TimeFormat::iso8601).has_value();
  EXPECT_EQ(seconds, 27);
}

TEST(EventTime, ADayIsToldFromATime) {
  EXPECT_TRUE(TimeReader(TimeFormat::automatic).is_day("2026-01-01"));
  EXPECT_TRUE(TimeReader(TimeFormat::iso8601).is_day("20260101"));
  for (const char* text :
       {"20260101", "2026-01-01T10:00", "1700000000", "-170000000", "1.5e-10000"})
    EXPECT_FALSE(TimeReader(TimeFormat::automatic).is_day(text)) << text;
}

TEST(EventTime, ANumberMayBeADate) {
  EXPECT_EQ(TimeReader(TimeFormat::automatic).is_unclear("20260101"), Unclear::day);
  EXPECT_EQ(TimeReader(TimeFormat::automatic).is_unclear("202601012359"), Unclear::minute);
  // No such day, no such hour, or too few digits: 1700000000 is a time of 2023.
  for (const char* text : {"20261301", "20260230", "202601012400", "202601011060", "1700000000",
                           "1700000000000", "2026-01-01", "2026010", "2026010a", ""})
    EXPECT_EQ(TimeReader(TimeFormat::automatic).is_unclear(text), Unclear::no) << text;
  for (const TimeFormat format : {TimeFormat::seconds, TimeFormat::iso8601})
    EXPECT_EQ(TimeReader(format).is_unclear("20260101"), Unclear::no);
}

TEST(EventTime, WhatIsNoneIsRefused) {
  for (const char* text :
       {"", "now", "12:00", "2023-13-01", "2023-02-29", "2023-1-1", "1e99", "1.2.3", "5 ",
        "2023-11-14T25:00:00Z", "2023-11-14T22:13:20X", "9999-01-01", "--5", "."})
    EXPECT_EQ(parse_time(text, TimeFormat::automatic), std::nullopt) << text;
  EXPECT_THROW(TimeReader::make("rfc822", nullptr, ""), BadParameters);
}

std::vector<std::optional<Nanoseconds>> times_of(const Format& format, const std::string& field,
                                                 const std::vector<std::string>& texts,
                                                 TimeFormat time_format = TimeFormat::automatic) {
  EventTimes event_times(format, field, time_format, true);
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

TEST(EventTime, MaySpanFields) {
  using Times = std::vector<std::optional<Nanoseconds>>;
  const Nanoseconds time = 1'700'000'000 * kSecond;
  EXPECT_EQ(times_of({.kind = Format::Kind::lines}, "2,3",
                     {"a 2023-11-14   22:13:20 b", "a 2023-11-14", "a 22:13:20 2023-11-14"}),
            (Times{time, std::nullopt, std::nullopt}));
  EXPECT_EQ(times_of({.kind = Format::Kind::lines}, "3,2", {"a 22:13:20 2023-11-14"}),
            (Times{time}));
  EXPECT_EQ(times_of({.kind = Format::Kind::csv, .header = false}, "1,3",
                     {"\"2023-11-14\",x,22:13:20Z", "20231114,x,\"221320\"", "2023-11-14,x,"}),
            (Times{time, time, std::nullopt}));
  EXPECT_EQ(times_of({.kind = Format::Kind::lines}, "2,3,4",
                     {"a 2023-11-14 23:13:20 +0100 b", "a 2023-11-14 22:13:20 UTC",
                      "a 2023-11-14 22:13:20", "a 2023-11-14 22:13:20 CET"}),
            (Times{time, time, std::nullopt, std::nullopt}));
  EXPECT_EQ(times_of({.kind = Format::Kind::csv, .header = false}, "1,2,3",
                     {"2023-11-14,23:13:20,+01:00", "2023-11-14,22:13:20,"}),
            (Times{time, std::nullopt}));
  // Numbers have lost their spelling: 0930 is no JSON, and 20231110 would be 2023111e1.
  EXPECT_EQ(times_of({.kind = Format::Kind::json}, "/d,/t",
                     {R"({"t":"22:13:20","d":"2023-11-14"})", R"({"t":"22:13:20","d":20231114})",
                      R"({"t":"22:13:20"})", R"({"t":"22:13:20","d":["2023-11-14"]})"}),
            (Times{time, std::nullopt, std::nullopt, std::nullopt}));
  EXPECT_EQ(times_of({.kind = Format::Kind::json}, "/t",
                     {R"({"t":20231114})", R"({"t":"20231114"})"}, TimeFormat::iso8601),
            (Times{std::nullopt, time - (22 * 3600 + 13 * 60 + 20) * kSecond}));
}

TEST(EventTime, SaysWhyThereIsNone) {
  const auto why = [](const Format& format, const std::string& field, const std::string& text) {
    EventTimes event_times(format, field, TimeFormat::automatic, false);
    const std::string padded = text + std::string(kPaddingBytes, ' ');
    return event_times.why_not({padded.data(), text.size(), text.size()});
  };
  const Format lines{.kind = Format::Kind::lines}, json{.kind = Format::Kind::json};
  EXPECT_EQ(why(lines, "2", "a 10/Oct/2000"), "field 2, '10/Oct/2000', is not a time");
  EXPECT_EQ(why(lines, "2", "a 2026-01-01"),
            "field 2, '2026-01-01', is a date without a time of day");
  EXPECT_EQ(why(lines, "2,3", "a b c"), "fields 2,3, 'b c', are not a time");
  EXPECT_EQ(why(lines, "2", "a"), "there is no field 2 in 'a'");
  EXPECT_EQ(why(lines, "2", "a 2026-01-01T10:00"), "");
  EXPECT_EQ(why({.kind = Format::Kind::csv, .header = false}, "2", "a,soon"),
            "column 2, 'soon', is not a time");
  EXPECT_EQ(why(json, "/t", R"({"t":"soon"})"), "/t, 'soon', is not a time");
  EXPECT_EQ(why(json, "/t", R"({"t":null})"), R"(/t is not a time in '{"t":null}')");
  EXPECT_EQ(why(json, "/t", "{}"), "there is no /t in '{}'");
  EXPECT_EQ(why(json, "/t", "{"), "'{' is not JSON");
}

}  // namespace
}  // namespace sluice
