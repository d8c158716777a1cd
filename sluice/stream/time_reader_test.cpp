#include "sluice/stream/time_reader.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <random>
#include <sstream>

#include "sluice/base/error.hpp"
#include "sluice/stream/civil_time.hpp"
#include "sluice/stream/time_zone.hpp"
#include "tests/support/counts.hpp"

namespace sluice {
namespace {

using Time = std::optional<Nanoseconds>;
using testing_support::count_of;

constexpr Nanoseconds kSecond = 1'000'000'000;
// Tue, 10 Oct 2000 13:55:36 -0700
constexpr Nanoseconds kOctober = 971'211'336 * kSecond;

TimeReader reader_of(std::string_view format, std::string_view zone = "",
                     std::string_view year = "") {
  return TimeReader::make(format, zone.empty() ? nullptr : TimeZone::of_offset(zone), year);
}

Time by_pattern(const std::string& pattern, std::string_view text, std::string_view zone = "") {
  return reader_of("strptime:" + pattern, zone).read(text);
}

// By Python: tests/support/log_times.py made the table.
TEST(TimeReader, AgreesWithAnotherCalendar) {
  std::ifstream file(SLUICE_LOG_TIMES);
  std::string format, year, text, moment;
  std::size_t lines = 0;
  while (std::getline(file, format, '\t') && std::getline(file, year, '\t') &&
         std::getline(file, text, '\t') && std::getline(file, moment)) {
    ++lines;
    Time time = reader_of(format).read(text);
    ASSERT_TRUE(time) << format << ": " << text;
    EXPECT_EQ(civil::is_yearless(*time), year != "0") << text;
    if (year != "0") time = civil::in_year(*time, std::stoi(year), nullptr);
    EXPECT_EQ(time, std::stoll(moment)) << format << ": " << text;
    if (format == "clf" || format == "rfc2822") {
      EXPECT_EQ(TimeReader().read(text), time) << text;
    }
  }
  EXPECT_GE(lines, 500);
}

TEST(TimeReader, Clf) {
  for (const char* format : {"clf", "auto"})
    for (const char* text : {"[10/Oct/2000:13:55:36 -0700]", "10/Oct/2000:13:55:36 -0700",
                             "[10/Oct/2000:13:55:36 -0700", "10/OCT/2000:20:55:36 +0000",
                             "10/oct/2000:22:55:36 +02:00", "10/Oct/2000:20:55:36.0 +00"})
      EXPECT_EQ(reader_of(format).read(text), kOctober) << text;
  EXPECT_EQ(reader_of("clf").read("10/Oct/2000:20:55:36.25 +0000"), kOctober + kSecond / 4);
  EXPECT_EQ(reader_of("clf").read("31/Dec/2016:23:59:60 +0000"), 1'483'228'800 * kSecond);
  EXPECT_EQ(reader_of("clf").read("31/Dec/2016:24:00:00 +0000"), 1'483'228'800 * kSecond);
  for (const char* text : {"[10/Oct/2000:13:55:36",
                           "10/Oct/2000:13:55:36",
                           "10/Okt/2000:13:55:36 -0700",
                           "1/Oct/2000:13:55:36 -0700",
                           "31/Sep/2000:13:55:36 -0700",
                           "00/Oct/2000:13:55:36 -0700",
                           "10/Oct/2000:25:55:36 -0700",
                           "10/Oct/2000:13:60:36 -0700",
                           "10/Oct/2000:13:55:61 -0700",
                           "10/Oct/2000:13:55:60 -0700",
                           "10/Oct/2000:24:00:01 -0700",
                           "10/Oct/0000:13:55:36 -0700",
                           "10/Oct/1824:13:55:36 -0700",
                           "10/Oct/2116:13:55:36 -0700",
                           "10/Oct/2000:13:55:36 -0700]]",
                           "[[10/Oct/2000:13:55:36 -0700]",
                           "10/Oct/2000:13:55:36  -0700",
                           "10/Oct/2000:13:55:36-0700",
                           "10/Oct/2000:13:55:36 PDT",
                           "10/Oct/2000:13:55:36. -0700",
                           "10/Oct/2000 13:55:36 -0700",
                           "[]",
                           "[",
                           "",
                           "10/Oct/20",
                           "-1/Oct/2000:13:55:36 -0700",
                           "1:/Oct/2000:13:55:36 -0700"})
    for (const char* format : {"clf", "auto"})
      EXPECT_EQ(reader_of(format).read(text), std::nullopt) << text;
  // A zone that is given is that of times without one only.
  EXPECT_EQ(reader_of("clf", "-07:00").read("[10/Oct/2000:13:55:36"), kOctober);
  EXPECT_EQ(reader_of("auto", "-07:00").read("10/Oct/2000:13:55:36"), kOctober);
  EXPECT_EQ(reader_of("clf", "+05").read("[10/Oct/2000:13:55:36 -0700]"), kOctober);
}

TEST(TimeReader, Iso8601WithWholeHours) {
  const Time ten = parse_time("2026-01-01T10:00:00Z", TimeFormat::iso8601);
  ASSERT_TRUE(ten);
  for (const char* format : {"iso8601", "auto"}) {
    for (const char* text : {"2026-01-01T10Z", "20260101T10Z", "2026-01-01T10", "2026-01-01 10",
                             "20260101T10", "2026-01-01T11+01", "2026-01-01 11 +0100"})
      EXPECT_EQ(reader_of(format).read(text), ten) << text;
    for (const char* text :
         {"2026-01-01T", "2026-01-01T1", "2026-01-01T1Z", "2026-01-01T25Z",
          "2026-01-01T10:", "2026-01-01T10:Z", "2026-01-01T10.5Z", "2026-01-01T100"})
      EXPECT_EQ(reader_of(format).read(text), std::nullopt) << text;
  }
  EXPECT_EQ(reader_of("clf").read("10/Oct/2000:13 -0700"), std::nullopt);
}

TEST(TimeReader, Rfc2822) {
  for (const char* format : {"rfc2822", "auto"})
    for (const char* text :
         {"Tue, 10 Oct 2000 13:55:36 -0700", "10 Oct 2000 13:55:36 -0700",
          "tue, 10 oct 2000 20:55:36 gmt", "Tue,10 Oct 00 20:55:36 UT", "10 Oct 2000 20:55:36 Z",
          "10  Oct 2000\t20:55:36 UTC", "10 Oct 100 15:55:36 EST", "10 Oct 2000 16:55:36 EDT",
          "10 Oct 2000 14:55:36 CST", "10 Oct 2000 15:55:36 CDT", "10 Oct 2000 13:55:36 MST",
          "10 Oct 2000 14:55:36 MDT", "10 Oct 2000 12:55:36 PST", "10 Oct 2000 13:55:36 PDT"})
      EXPECT_EQ(reader_of(format).read(text), kOctober) << text;
  EXPECT_EQ(reader_of("rfc2822").read("10 Oct 2000 13:55 -0700"), kOctober - 36 * kSecond);
  EXPECT_EQ(reader_of("rfc2822").read("1 Jan 70 00:00:00 GMT"), 0);
  EXPECT_EQ(reader_of("rfc2822").read("1 Jan 50 00:00:00 GMT"),
            parse_time("1950-01-01", TimeFormat::iso8601));
  EXPECT_EQ(reader_of("rfc2822").read("1 Jan 49 00:00:00 GMT"),
            parse_time("2049-01-01", TimeFormat::iso8601));
  for (const char* text :
       {"Wed, 10 Oct 2000 13:55:36 -0700", "Tue 10 Oct 2000 13:55:36 -0700", "Tue, 10 Oct 2000",
        "10 Oct 2000 13:55:36", "10 Oct 2000 13:55:36 ", "10 Oct 2000 13:55:36 CET",
        "10 Oct 2000 13:55:36 A", "10 Oct 2000 13:55:36 -0700 (PDT)", "10 Oct 2000 135536 -0700",
        "Tue, 31 Sep 2000 13:55:36 -0700", "010 Oct 2000 13:55:36 -0700", "10 Oct 0 13:55:36 -0700",
        "10 Oct 20000 13:55:36 -0700", "Tuesday, 10 Oct 2000 13:55:36 -0700", "Tue,", "10 "})
    for (const char* format : {"rfc2822", "auto"})
      EXPECT_EQ(reader_of(format).read(text), std::nullopt) << text;
}

TEST(TimeReader, SyslogHasNoYear) {
  const TimeReader reader = reader_of("syslog");
  EXPECT_TRUE(reader.may_lack_year());
  for (const char* text : {"Oct 10 20:55:36", "oct 10 20:55:36", "<34>Oct 10 20:55:36"}) {
    const Time time = reader.read(text);
    ASSERT_TRUE(time && civil::is_yearless(*time)) << text;
    EXPECT_EQ(civil::in_year(*time, 2000, nullptr), kOctober);
    EXPECT_EQ(civil::in_year(*time, 2001, nullptr), kOctober + 365 * 86'400 * kSecond);
    EXPECT_EQ(civil::in_year(*time, 1824, nullptr), std::nullopt);
  }
  EXPECT_EQ(reader.read("Oct 05 20:55:36"), reader.read("Oct  5 20:55:36"));
  EXPECT_EQ(reader.read("Oct 5 20:55:36"), reader.read("Oct  5 20:55:36"));
  // RFC 5424 is ISO 8601, and says all.
  EXPECT_EQ(reader.read("2000-10-10T13:55:36.000-07:00"), kOctober);
  EXPECT_EQ(reader_of("syslog", "-07:00").read("2000-10-10T13:55:36"), kOctober);
  for (const char* text :
       {"Oct 32 20:55:36", "Oct 0 20:55:36", "Feb 30 20:55:36", "Oct 10 24:00:00", "Oct 10",
        "2000-10-10", "Oct 10 20:55:36 ", "Oct 10 20:55:36 2000", "<34 Oct 10 20:55:36",
        "<>Oct 10 20:55:36", "<1234>Oct 10 20:55:36", "October 10 20:55:36", "Oct10 20:55:36",
        "Oct 10 205536", ""})
    EXPECT_EQ(reader.read(text), std::nullopt) << text;
  EXPECT_EQ(TimeReader().read("Oct 10 20:55:36"), std::nullopt);
}

TEST(TimeReader, YearsDecideOnLeapDaysAndSeconds) {
  const TimeReader reader = reader_of("syslog");
  const auto in = [&](const char* text, int year) {
    return civil::in_year(*reader.read(text), year, nullptr);
  };
  const auto iso = [](const char* text) { return parse_time(text, TimeFormat::iso8601); };
  EXPECT_EQ(in("Feb 29 10:00:00", 2024), iso("2024-02-29T10:00"));
  EXPECT_EQ(in("Feb 29 10:00:00", 2025), std::nullopt);
  EXPECT_EQ(in("Feb 29 10:00:00", 2100), std::nullopt);
  EXPECT_EQ(in("Feb 28 23:59:59.999999999", 2025), *iso("2025-03-01") - 1);
  EXPECT_EQ(in("Mar 1 00:00:00", 2025), iso("2025-03-01"));
  EXPECT_EQ(in("Dec 31 10:00:00", 2025), iso("2025-12-31T10:00"));
  EXPECT_EQ(in("Dec 31 10:00:00", 2024), iso("2024-12-31T10:00"));
  EXPECT_EQ(in("Dec 31 23:59:60", 2016), iso("2017-01-01"));
  EXPECT_EQ(in("Jun 30 23:59:60.5", 2015), *iso("2015-07-01") + kSecond / 2);
  EXPECT_EQ(in("Dec 31 23:59:60", 2017), std::nullopt);
  EXPECT_EQ(in("Dec 31 22:59:60", 2016), std::nullopt);
}

TEST(TimeReader, Patterns) {
  EXPECT_EQ(by_pattern("%d.%m.%Y %H:%M:%S,%f", "10.10.2000 20:55:36,5"), kOctober + kSecond / 2);
  EXPECT_EQ(by_pattern("%s", "971211336"), kOctober);
  EXPECT_EQ(by_pattern("%s.%f", "971211336.123456789"), kOctober + 123'456'789);
  EXPECT_EQ(by_pattern("%s.%f", "-1.5"), -3 * kSecond / 2);
  EXPECT_EQ(by_pattern("[%a %b %d %T.%f %Y]", "[Tue Oct 10 20:55:36.25 2000]"),
            kOctober + kSecond / 4);
  EXPECT_EQ(by_pattern("%A, %d %B %Y %I:%M:%S%p", "TUESDAY, 10 october 2000 08:55:36pm"), kOctober);
  EXPECT_EQ(by_pattern("%D %T %Z", "10/10/00 20:55:36 gmt"), kOctober);
  EXPECT_EQ(by_pattern("%y%j%H%M%S", "00284205536"), kOctober);
  EXPECT_EQ(by_pattern("%Y%m%d%H%M%S", "20001010205536"), kOctober);
  EXPECT_EQ(by_pattern("%F%n%T%t%z", "2000-10-10 \t 13:55:36-07:00"), kOctober);
  EXPECT_EQ(by_pattern("%FT%T%z", "2000-10-10T20:55:36Z"), kOctober);
  EXPECT_EQ(by_pattern("100%% %F %T", "100% 2000-10-10 20:55:36"), kOctober);
  EXPECT_EQ(by_pattern("%F %T", "2000-10-10 13:55:36", "-07:00"), kOctober);
  EXPECT_EQ(by_pattern("%F", "2000-10-10"), 11'240 * 86'400 * kSecond);
  EXPECT_EQ(by_pattern("%m/%d/%Y %R", "1/2/2000 3:04"), by_pattern("%F %R", "2000-01-02 03:04"));
  EXPECT_EQ(by_pattern("%b %e %Y", "Oct  5 2000"), by_pattern("%F", "2000-10-05"));
  EXPECT_EQ(by_pattern("%e%b%Y", " 5Oct2000"), by_pattern("%F", "2000-10-05"));
  EXPECT_EQ(by_pattern("%F %I%p %M", "2000-10-05 12AM 00"), by_pattern("%F", "2000-10-05"));
  EXPECT_EQ(by_pattern("%F %I%p %M", "2000-10-05 12PM 00"),
            by_pattern("%F %R", "2000-10-05 12:00"));
  EXPECT_EQ(by_pattern("%F %T", "2016-12-31 23:59:60"), 1'483'228'800 * kSecond);
  EXPECT_EQ(by_pattern("%F %T", "2016-12-31 24:00:00"), 1'483'228'800 * kSecond);
  EXPECT_EQ(by_pattern("%j %Y", "366 2000"), by_pattern("%F", "2000-12-31"));
  EXPECT_EQ(by_pattern("%y-%m-%d", "69-01-01"), by_pattern("%F", "1969-01-01"));
  EXPECT_EQ(by_pattern("%y-%m-%d", "68-01-01"), by_pattern("%F", "2068-01-01"));
}

TEST(TimeReader, PatternsRefuseWhatDoesNotMatch) {
  for (const auto& [pattern, text] : {
           std::pair("%F %T", "2000-10-10 20:55:36 "),
           std::pair("%F %T", "2000-10-10 20:55"),
           std::pair("%F %T", "2000-02-30 20:55:36"),
           std::pair("%F %T", "2000-10-10 20:55:36.5"),
           std::pair("%F %T", "2000-10-10 20:55:60"),
           std::pair("%F %T", "2000-10-10 24:00:01"),
           std::pair("%F %T", "0000-10-10 20:55:36"),
           std::pair("%a %F", "Wed 2000-10-10"),
           std::pair("%Y%m%d", "2000101"),
           std::pair("%F %I:%M %p", "2000-10-10 13:00 PM"),
           std::pair("%F %I:%M %p", "2000-10-10 0:00 AM"),
           std::pair("%Y %j", "2001 366"),
           std::pair("%Y %j", "2001 0"),
           std::pair("%s", "97121133600"),
           std::pair("%s", "9712113360"),
           std::pair("%s", ""),
           std::pair("%s", "-"),
           std::pair("%F %T%z", "2000-10-10 20:55:36"),
           std::pair("%F %T %Z", "2000-10-10 20:55:36 CET"),
           std::pair("%F %T.%f", "2000-10-10 20:55:36."),
           std::pair("%b %d %Y", "Okt 10 2000"),
           std::pair("%F", ""),
       })
    EXPECT_EQ(by_pattern(pattern, text), std::nullopt) << pattern << ": " << text;
}

TEST(TimeReader, PatternsThatDetermineNoMomentAreRefused) {
  const auto why = [](const std::string& pattern, std::string_view zone = "",
                      std::string_view year = "") -> std::string {
    try {
      reader_of("strptime:" + pattern, zone, year);
    } catch (const BadParameters& error) {
      return error.what();
    }
    return "";
  };
  for (const auto& [pattern, what] : {std::pair("", "month"),
                                      std::pair("%T", "month"),
                                      std::pair("%Y-%m", "the day"),
                                      std::pair("%m-%d %T", "the year"),
                                      std::pair("%b %d %T", "`year`"),
                                      std::pair("%j", "the year"),
                                      std::pair("%F %M", "the hour"),
                                      std::pair("%F %H", "the minute"),
                                      std::pair("%F %S", "the minute"),
                                      std::pair("%F %R.%f", "the second"),
                                      std::pair("%F %z", "time of day"),
                                      std::pair("%F %I:%M", "%p"),
                                      std::pair("%F %R %p", "%I"),
                                      std::pair("%F %y", "twice"),
                                      std::pair("%F %s", "twice"),
                                      std::pair("%F %j", "twice"),
                                      std::pair("%F %T %R", "twice"),
                                      std::pair("%F %T %z %Z", "twice"),
                                      std::pair("%F %T%", "single %"),
                                      std::pair("%F %q", "%q: there are %Y"),
                                      std::pair("%c", "%c"),
                                      std::pair("%Ey", "%E")})
    EXPECT_NE(why(pattern).find(what), std::string::npos) << pattern << ": " << why(pattern);
  EXPECT_EQ(why("%m-%d %T", "", "2025"), "");
  EXPECT_NE(why("%m-%d %T %z", "", "2025").find("`time_zone`"), std::string::npos);
  EXPECT_NE(why("%F %T", "", "2025").find("`year`"), std::string::npos);
  EXPECT_NE(why("%F %T %z", "UTC").find("`time_zone`"), std::string::npos);
  EXPECT_NE(why("%s", "UTC").find("`time_zone`"), std::string::npos);
  EXPECT_THROW(reader_of("s", "UTC"), BadParameters);
  EXPECT_THROW(reader_of("clf", "", "2025"), BadParameters);
  for (const char* year : {"25", "20255", "1824", "2116", "now", "-2025"})
    EXPECT_THROW(reader_of("syslog", "", year), BadParameters) << year;
}

TEST(TimeReader, OnlyDatesAreDays) {
  EXPECT_TRUE(reader_of("strptime:%d.%m.%Y").is_day("10.10.2000"));
  EXPECT_FALSE(reader_of("strptime:%d.%m.%Y %R").is_day("10.10.2000 10:00"));
  EXPECT_FALSE(reader_of("strptime:%s").is_day("0123456789"));
  EXPECT_FALSE(reader_of("clf").is_day("10/Oct/2000:13:55:36 -0700"));
}

TEST(TimeReader, ZonesGiveWhatTimesDoNotSay) {
  EXPECT_EQ(reader_of("iso8601", "-07:00").read("2000-10-10T13:55:36"), kOctober);
  EXPECT_EQ(reader_of("iso8601", "-07:00").read("2000-10-10T20:55:36Z"), kOctober);
  EXPECT_EQ(reader_of("auto", "-07:00").read("971211336"), kOctober);
  EXPECT_EQ(reader_of("auto", "-07:00").read("2000-10-10 13:55:36"), kOctober);
  for (const char* zone : {"UTC", "+00", "-0000", "+00:00"})
    EXPECT_EQ(reader_of("iso8601", zone).read("2000-10-10T20:55:36"), kOctober);
  for (const char* zone : {"utc", "CET", "1", "+1", "+24", "+01:60", "+01:00 ", ""})
    EXPECT_EQ(TimeZone::of_offset(zone), nullptr) << zone;
}

TEST(TimeReader, AdvisesWhatATimeLooksLike) {
  const auto advice = [](std::string_view format, std::string_view text,
                         std::string_view fields = "4") {
    return reader_of(format).advice(text, fields);
  };
  EXPECT_EQ(advice("iso8601", "[10/Oct/2000:13:55:36 -0700]"),
            "it looks like clf: give `time_format` clf");
  EXPECT_EQ(advice("clf", "2000-10-10T13:55:36Z"),
            "it looks like iso8601: give `time_format` iso8601");
  EXPECT_EQ(advice("s", "Tue, 10 Oct 2000 13:55:36 -0700"),
            "it looks like rfc2822: give `time_format` rfc2822");
  EXPECT_EQ(advice("auto", "Oct 10 13:55:36"), "it looks like syslog: give `time_format` syslog");
  EXPECT_EQ(advice("clf", "1700000000"), "it looks like s: give `time_format` s");
  EXPECT_EQ(advice("clf", "1700000000.5"), "it looks like s: give `time_format` s");
  EXPECT_EQ(advice("clf", "1700000000000"), "it looks like ms: give `time_format` ms");
  EXPECT_EQ(advice("iso8601", "1700000000000000"), "it looks like us: give `time_format` us");
  EXPECT_EQ(advice("strptime:%F", "1700000000000000000"),
            "it looks like ns: give `time_format` ns");
  for (const char* format : {"auto", "clf", "iso8601"})
    EXPECT_NE(advice(format, "[10/Oct/2000:13:55:36").find("`event_time` 4,5"), std::string::npos);
  EXPECT_NE(advice("auto", "[10/Oct/2000:13:55:36", "/t").find("give `time_zone`"),
            std::string::npos);
  EXPECT_NE(advice("auto", "Oct", "1").find("syslog and `event_time` 1,2,3"), std::string::npos);
  EXPECT_NE(advice("auto", "Tue,", "2").find("`event_time` 2,3,4,5,6,7"), std::string::npos);
  const std::string date = "it looks like a date of numbers: give `time_format` ";
  EXPECT_EQ(advice("auto", "2026/01/02 10:00:00", "2,3"), date + "'strptime:%Y/%m/%d %H:%M:%S'");
  EXPECT_EQ(advice("strptime:%d.%m.%Y %H:%M:%S", "2026/01/02 10:00:00", "2,3"),
            date + "'strptime:%Y/%m/%d %H:%M:%S'");
  EXPECT_EQ(advice("auto", "13/02/2026 10:00:00.125 +0100"),
            date + "'strptime:%d/%m/%Y %H:%M:%S.%f %z'");
  EXPECT_EQ(advice("auto", "2/13/2026 9:00 PM"), date + "'strptime:%m/%d/%Y %I:%M %p'");
  EXPECT_EQ(advice("auto", "02/01/2026 10:00:00"), date +
                                                       "'strptime:%d/%m/%Y %H:%M:%S' or "
                                                       "'strptime:%m/%d/%Y %H:%M:%S'");
  EXPECT_EQ(advice("auto", "2026/01/02", "2"),
            date +
                "'strptime:%Y/%m/%d', or, if the time of day is the next field, "
                "`event_time` 2,3 and `time_format` 'strptime:%Y/%m/%d %H:%M:%S'");
  EXPECT_EQ(advice("auto", "2026/01/02", "/t"), date + "'strptime:%Y/%m/%d'");
  for (const char* text :
       {"2026/13/02 10:00:00", "1/2/26", "2026/01/02 10:00:00 CET", "13/14/2026", "1.2.3"})
    EXPECT_EQ(advice("iso8601", text), "") << text;
  for (const char* text : {"", "soon", "5", "-", "Octopus", "/index.html", "10.1.2.3", "999999999"})
    EXPECT_EQ(advice("iso8601", text), "") << text;
}

// What is read is read again after being written in another way, and no bytes are too strange.
TEST(TimeReader, HostileBytes) {
  std::mt19937_64 random(1);
  const std::vector<std::string> seeds = {"[10/Oct/2000:13:55:36 -0700]", "Oct 10 13:55:36",
                                          "Tue, 10 Oct 2000 13:55:36 GMT", "2000-10-10T13:55:36Z",
                                          "10.10.2000 13:55:36,123 +01:00"};
  std::vector<TimeReader> readers;
  for (const char* format : {"auto", "s", "iso8601", "clf", "syslog", "rfc2822",
                             "strptime:%d.%m.%Y %H:%M:%S,%f %z", "strptime:[%e/%b/%y:%T%n%z]"})
    readers.push_back(reader_of(format));
  constexpr std::string_view kBytes = "0123456789 :/[],.+-TZOctGM\t\0\xff";
  std::size_t read = 0;
  const int rounds = count_of(2000, 20'000, 1'000'000);
  for (int round = 0; round < rounds; ++round) {
    std::string text = seeds[random() % seeds.size()];
    for (std::uint64_t changes = random() % 4; changes > 0; --changes) {
      const std::size_t at = random() % text.size();
      if (random() % 4 == 0)
        text.erase(at, 1);
      else
        text[at] = kBytes[random() % kBytes.size()];
    }
    // In a block of its own, so that a byte read behind it is seen.
    const std::vector<char> copy(text.begin(), text.end());
    for (const TimeReader& reader : readers) {
      const Time time = reader.read({copy.data(), copy.size()});
      if (!time || civil::is_yearless(*time)) continue;
      ++read;
      EXPECT_EQ(parse_time(format_time(*time), TimeFormat::iso8601), time) << text;
    }
  }
  EXPECT_GT(read, static_cast<std::size_t>(rounds) / 10);
}

const char* sample_of(TimeFormat format) {
  switch (format) {
    case TimeFormat::clf:
    case TimeFormat::strptime:
      return "10/Oct/2000:13:55:36 -0700";
    case TimeFormat::rfc2822:
      return "Tue, 10 Oct 2000 13:55:36 -0700";
    case TimeFormat::syslog:
      return "Oct 10 13:55:36";
    default:
      return "2000-10-10T13:55:36-07:00";
  }
}

}  // namespace

// Counted by tests/integration/instructions.bats, which gives the format.
[[gnu::noinline]] Nanoseconds read_a_thousand_times(const TimeReader& reader,
                                                    std::string_view text) {
  Nanoseconds sum = 0;
  for (int i = 0; i < 1000; ++i) sum += reader.read(text).value_or(0) / 1000;
  return sum;
}

namespace {

TEST(TimeReader, AThousandTimesAreRead) {
  const char* const format = std::getenv("SLUICE_TIME_FORMAT");
  const TimeReader reader = reader_of(format == nullptr ? "clf" : format);
  const std::string_view text = sample_of(reader.format());
  EXPECT_EQ(read_a_thousand_times(reader, text), *reader.read(text) / 1000 * 1000);
}

}  // namespace
}  // namespace sluice
