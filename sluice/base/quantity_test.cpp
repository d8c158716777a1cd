#include "sluice/base/quantity.hpp"

#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <vector>

#include "sluice/base/error.hpp"

namespace sluice {
namespace {

using namespace std::chrono_literals;

// What the refusal says, or "" when the text was taken.
template <class Parse>
std::string refusal(Parse parse, std::string_view text) {
  try {
    parse("--flag", text);
    return "";
  } catch (const BadParameters& error) {
    return error.what();
  }
}

// Every refusal names the flag and the text and goes on to say what would be right.
template <class Parse>
void expect_refused(Parse parse, const std::vector<std::string>& texts) {
  for (const std::string& text : texts) {
    const std::string said = refusal(parse, text);
    EXPECT_TRUE(said.starts_with("--flag '" + text + "' ")) << text << ": " << said;
    EXPECT_NE(said.find("such as"), std::string::npos) << text << ": " << said;
  }
}

TEST(Quantity, CountsTakeDecimalUnits) {
  EXPECT_EQ(parse_count("--flag", "0"), 0u);
  EXPECT_EQ(parse_count("--flag", "1000"), 1'000u);
  EXPECT_EQ(parse_count("--flag", "10k"), 10'000u);
  EXPECT_EQ(parse_count("--flag", "1M"), 1'000'000u);
  EXPECT_EQ(parse_count("--flag", "2G"), 2'000'000'000u);
  EXPECT_EQ(parse_count("--flag", "1.5M"), 1'500'000u);
  EXPECT_EQ(parse_count("--flag", "0.001k"), 1u);
  EXPECT_EQ(parse_count("--flag", "7.000000000000000000000000000000"), 7u);
  EXPECT_EQ(parse_count("--flag", "00000000000000000000000000000000012"), 12u);
}

// All quantities read numbers alike.
TEST(Quantity, NumbersMayHaveUnderscoresAndExponents) {
  EXPECT_EQ(parse_count("--flag", "1_000_000"), 1'000'000u);
  EXPECT_EQ(parse_count("--flag", "1e6"), 1'000'000u);
  EXPECT_EQ(parse_count("--flag", "1E+6"), 1'000'000u);
  EXPECT_EQ(parse_count("--flag", "1.5e3k"), 1'500'000u);
  EXPECT_EQ(parse_count("--flag", "25e-1k"), 2'500u);
  EXPECT_EQ(parse_count("--flag", ".5k"), 500u);
  EXPECT_EQ(parse_count("--flag", "0e999999999"), 0u);
  EXPECT_EQ(parse_count("--flag", "1e19"), 10'000'000'000'000'000'000u);
  EXPECT_EQ(parse_count("--flag", "18446744073709551615e0"),
            std::numeric_limits<std::uint64_t>::max());
  EXPECT_EQ(parse_size("--flag", "1_024KiB"), 1u << 20);
  EXPECT_EQ(parse_size("--flag", "1e3"), 1'000u);
  EXPECT_EQ(parse_size("--flag", ".5MiB"), 1u << 19);
  EXPECT_EQ(parse_duration("--flag", "1e3s"), 1'000s);
  EXPECT_EQ(parse_duration("--flag", ".5m"), 30s);
  EXPECT_DOUBLE_EQ(parse_rate("--flag", "1e3/s"), 1'000);
  EXPECT_DOUBLE_EQ(parse_rate("--flag", ".5/s"), 0.5);
  EXPECT_DOUBLE_EQ(parse_rate("--flag", "1.5/m"), 1.5 / 60);
  EXPECT_DOUBLE_EQ(parse_probability("--flag", ".01"), 0.01);
  EXPECT_DOUBLE_EQ(parse_probability("--flag", "0.000_001"), 1e-6);
  EXPECT_DOUBLE_EQ(parse_probability("--flag", ".5%"), 0.005);
  EXPECT_DOUBLE_EQ(parse_share("--flag", "1_0e-1%"), 0.01);
  EXPECT_EQ(parse_duration_or_count("--flag", "1e6"), DurationOrCount(std::uint64_t{1'000'000}));
  EXPECT_EQ(parse_duration_or_count("--flag", "1_0s"), DurationOrCount(10s));
}

TEST(Quantity, WhatOnlyLooksLikeANumberIsNone) {
  const std::vector<std::string> texts = {"_1",   "1_", "1__0", "1_.5", "1._5", ".",     "1.",
                                          "1.e3", "e3", "1e",   "1e+",  "1e_3", "1e3.5", "1_e3"};
  expect_refused(parse_count, texts);
  expect_refused(parse_size, texts);
  expect_refused(parse_probability, texts);
  for (const std::string& text : texts) EXPECT_EQ(read_number(text), std::nullopt) << text;
  expect_refused(parse_count, {"1e20", "1e999999999999999999999", "1e-1", "1e-999999999999"});
  EXPECT_NE(refusal(parse_count, "1e20").find("too large"), std::string::npos);
  EXPECT_NE(refusal(parse_count, "1e-40").find("not a whole number"), std::string::npos);
}

TEST(Quantity, AnyNumberHasUnitsOfCounts) {
  EXPECT_EQ(read_number("10"), 10.0);
  EXPECT_EQ(read_number(".25"), 0.25);
  EXPECT_EQ(read_number("5.5k"), 5500.0);
  EXPECT_EQ(read_number("1_000.5"), 1000.5);
  EXPECT_EQ(read_number("1e-4"), 1e-4);
  for (const char* text : {"", "-1", "2%", "1m", "inf", "nan", "1e999"})
    EXPECT_EQ(read_number(text), std::nullopt) << text;
}

TEST(Quantity, CountsRefuseWhatIsNotOne) {
  expect_refused(parse_count, {"", " 1", "1 ", "-1", "+1", "k", "1K", "1m", "1,000", "0x10", "1.",
                               "1.k", "1.5", "0.0001k", "1MM", "nan"});
  EXPECT_NE(refusal(parse_count, "1.5").find("not a whole number"), std::string::npos);
}

TEST(Quantity, CountsKnowTheirLimit) {
  EXPECT_EQ(parse_count("--flag", "18446744073709551615"),
            std::numeric_limits<std::uint64_t>::max());
  EXPECT_EQ(parse_count("--flag", "18446744073.709551615G"),
            std::numeric_limits<std::uint64_t>::max());
  expect_refused(parse_count, {"18446744073709551616", "18446744074G", std::string(100, '9'),
                               std::string(100, '9') + "G"});
  EXPECT_NE(refusal(parse_count, "18446744073709551616").find("too large"), std::string::npos);
  EXPECT_NE(refusal(parse_rate, "1e30/s").find("is too large: give keys per second"),
            std::string::npos);
  EXPECT_NE(refusal(parse_count, std::string(60, '9')).find("too large"), std::string::npos);
  EXPECT_NE(refusal(parse_count, "0." + std::string(60, '3')).find("whole"), std::string::npos);
}

TEST(Quantity, SizesTakeBothFamiliesOfUnits) {
  EXPECT_EQ(parse_size("--flag", "4096"), 4'096u);
  EXPECT_EQ(parse_size("--flag", "12B"), 12u);
  EXPECT_EQ(parse_size("--flag", "512KiB"), 512u << 10);
  EXPECT_EQ(parse_size("--flag", "64MiB"), 64u << 20);
  EXPECT_EQ(parse_size("--flag", "1GiB"), 1u << 30);
  EXPECT_EQ(parse_size("--flag", "1.5TiB"), 3ULL << 39);
  EXPECT_EQ(parse_size("--flag", "8MB"), 8'000'000u);
  EXPECT_EQ(parse_size("--flag", "8kB"), 8'000u);
  expect_refused(parse_size, {"", "MiB", "64mib", "64 MiB", "0.3KiB", "17000000TiB", "-1", "1.M"});
}

TEST(Quantity, AnAmbiguousSizeHearsItsTwoMeanings) {
  EXPECT_EQ(refusal(parse_size, "64M"),
            "--flag '64M' could mean two sizes: say 64MiB (powers of 1024) or 64MB (powers of "
            "1000)");
  EXPECT_NE(refusal(parse_size, "2k").find("2KiB"), std::string::npos);
}

TEST(Quantity, DurationsNeedAUnit) {
  EXPECT_EQ(parse_duration("--flag", "250ns"), 250ns);
  EXPECT_EQ(parse_duration("--flag", "10us"), 10us);
  EXPECT_EQ(parse_duration("--flag", "500ms"), 500ms);
  EXPECT_EQ(parse_duration("--flag", "10s"), 10s);
  EXPECT_EQ(parse_duration("--flag", "10m"), 10min);
  EXPECT_EQ(parse_duration("--flag", "24h"), 24h);
  EXPECT_EQ(parse_duration("--flag", "7d"), 168h);
  EXPECT_EQ(parse_duration("--flag", "1.5h"), 90min);
  EXPECT_EQ(parse_duration("--flag", "9223372036854775807ns"), std::chrono::nanoseconds::max());
  expect_refused(parse_duration, {"", "10", "10M", "s", "10S", "10 s", "-1s", "0.5ns", "1h30m",
                                  "9223372036854775808ns", "106752d"});
}

TEST(Quantity, ProbabilitiesLieStrictlyBetweenZeroAndOne) {
  EXPECT_DOUBLE_EQ(parse_probability("--flag", "1e-6"), 1e-6);
  EXPECT_DOUBLE_EQ(parse_probability("--flag", "0.01"), 0.01);
  EXPECT_DOUBLE_EQ(parse_probability("--flag", "1%"), 0.01);
  EXPECT_DOUBLE_EQ(parse_probability("--flag", "0.1%"), 0.001);
  expect_refused(parse_probability, {"", "%", "0", "1", "100%", "-0.1", "+0.1", "1.5", "nan", "inf",
                                     "1e-400", "0,5", "0.5 ", "0x1p-3", "1e-6%%"});
}

TEST(Quantity, SharesIncludeTheirEnds) {
  EXPECT_EQ(parse_share("--flag", "0"), 0.0);
  EXPECT_EQ(parse_share("--flag", "1"), 1.0);
  EXPECT_EQ(parse_share("--flag", "100%"), 1.0);
  EXPECT_DOUBLE_EQ(parse_share("--flag", "30%"), 0.3);
  expect_refused(parse_share, {"", "1.01", "101%", "-0", "third"});
}

TEST(Quantity, ADurationOrACountIsToldByItsUnit) {
  EXPECT_EQ(parse_duration_or_count("--flag", "30s"), DurationOrCount(30s));
  EXPECT_EQ(parse_duration_or_count("--flag", "10m"), DurationOrCount(10min));
  EXPECT_EQ(parse_duration_or_count("--flag", "10M"), DurationOrCount(std::uint64_t{10'000'000}));
  EXPECT_EQ(parse_duration_or_count("--flag", "5000"), DurationOrCount(std::uint64_t{5'000}));
  expect_refused(parse_duration_or_count, {"", "0", "0s", "10x", "1.5", "s", "99999999999G"});
}

TEST(Quantity, CountsPrintInThousands) {
  EXPECT_EQ(format_count(0), "0");
  EXPECT_EQ(format_count(999), "999");
  EXPECT_EQ(format_count(1'000), "1,000");
  EXPECT_EQ(format_count(7'003'330), "7,003,330");
  EXPECT_EQ(format_count(std::numeric_limits<std::uint64_t>::max()), "18,446,744,073,709,551,615");
}

TEST(Quantity, SizesPrintInTheUnitThatReadsBest) {
  EXPECT_EQ(format_size(0), "0 bytes");
  EXPECT_EQ(format_size(1), "1 byte");
  EXPECT_EQ(format_size(1'023), "1023 bytes");
  EXPECT_EQ(format_size(1'024), "1 KiB");
  EXPECT_EQ(format_size(3u << 19), "1.5 MiB");
  EXPECT_EQ(format_size((1u << 20) - 1), "1 MiB");
  EXPECT_EQ(format_size(64u << 20), "64 MiB");
  EXPECT_EQ(format_size(std::numeric_limits<std::uint64_t>::max()), "16 EiB");
}

TEST(Quantity, ExactSizesAreReadBackAsTheyAre) {
  EXPECT_EQ(exact_size(12u << 20), "12MiB");
  EXPECT_EQ(exact_size(12'500'000), "12.5MB");
  EXPECT_EQ(exact_size(14'000u << 10), "14000KiB");
  EXPECT_EQ(exact_size(3u << 19), "1.5MiB");
  EXPECT_EQ(exact_size(2'097'171), "2097171");
  EXPECT_EQ(exact_size(0), "0");
  EXPECT_EQ(exact_size(1'000), "1kB");
  for (const std::uint64_t bytes :
       {std::uint64_t{1}, std::uint64_t{1023}, std::uint64_t{1} << 63, std::uint64_t{123'456'000},
        std::numeric_limits<std::uint64_t>::max()})
    EXPECT_EQ(parse_size("--flag", exact_size(bytes)), bytes);
}

TEST(Quantity, RatesAndProbabilitiesPrintFewDigits) {
  EXPECT_EQ(format_rate(0), "0/s");
  EXPECT_EQ(format_rate(12'345'678), "12.3M/s");
  EXPECT_EQ(format_rate(999.6), "1k/s");
  EXPECT_EQ(format_rate(1'500), "1.5k/s");
  EXPECT_EQ(format_rate(200'000), "200k/s");
  EXPECT_EQ(format_rate(2.5e12), "2500G/s");
  EXPECT_EQ(format_probability(9.3e-7), "9.3e-07");
  EXPECT_EQ(format_probability(1e-6), "1e-06");
  EXPECT_EQ(format_probability(0.01), "0.01");
  EXPECT_EQ(format_probability(0), "0");
}

TEST(Quantity, DurationsPrintAtMostTwoUnits) {
  EXPECT_EQ(format_duration(0ns), "0s");
  EXPECT_EQ(format_duration(250ns), "250ns");
  EXPECT_EQ(format_duration(1'500ns), "1.5us");
  EXPECT_EQ(format_duration(250ms), "250ms");
  EXPECT_EQ(format_duration(999'999us), "1s");
  EXPECT_EQ(format_duration(1'500ms), "1.5s");
  EXPECT_EQ(format_duration(59'999ms), "1m");
  EXPECT_EQ(format_duration(125s), "2m 5s");
  EXPECT_EQ(format_duration(90min), "1h 30m");
  EXPECT_EQ(format_duration(24h), "1d");
  EXPECT_EQ(format_duration(168h), "7d");
  EXPECT_EQ(format_duration(171h), "7d 3h");
  EXPECT_EQ(format_duration(-1'500ms), "-1.5s");
  EXPECT_TRUE(format_duration(std::chrono::nanoseconds::min()).starts_with("-106752d"));
}

}  // namespace
}  // namespace sluice
