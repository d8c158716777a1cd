#include "sluice/lab/generate.hpp"

#include <gtest/gtest.h>
#include <simdjson.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "sluice/base/error.hpp"
#include "tests/support/counts.hpp"

namespace sluice {
namespace {

struct Output {
  std::string bytes;
  GenerateCounts counts;
  std::vector<std::string_view> lines() const {
    std::vector<std::string_view> result;
    for (std::size_t at = 0; at < bytes.size();) {
      const std::size_t end = bytes.find('\n', at);
      result.push_back(std::string_view(bytes).substr(at, end - at));
      at = end + 1;
    }
    return result;
  }
};

template <class Options>
Output run(const Options& options, std::size_t buffer_bytes = 1 << 16) {
  const auto generator = make_generator(options);
  std::vector<char> buffer(std::max(buffer_bytes, generator->largest_record()));
  Output output;
  while (const std::size_t bytes = generator->fill(buffer))
    output.bytes.append(buffer.data(), bytes);
  output.counts = generator->counts();
  return output;
}

template <class Options>
std::string refusal(const Options& options) {
  try {
    make_generator(options);
    return "";
  } catch (const BadParameters& error) {
    return error.what();
  }
}

std::uint64_t fnv1a(std::string_view bytes) {
  std::uint64_t hash = 0xCBF29CE484222325ULL;
  for (const char byte : bytes) hash = (hash ^ static_cast<unsigned char>(byte)) * 0x100000001B3ULL;
  return hash;
}

void expect_share(std::uint64_t hits, std::uint64_t trials, double share) {
  const double n = static_cast<double>(trials);
  EXPECT_NEAR(static_cast<double>(hits) / n, share, 4 * std::sqrt(share * (1 - share) / n));
}

// The key of a click read independently of the generator; nothing where it has none.
struct Click {
  std::string pair;
  std::uint64_t time_ms = 0;
  double value = 0;
};
std::optional<Click> parse_click(simdjson::dom::parser& parser, std::string_view line) {
  simdjson::dom::element root;
  std::string_view user;
  std::string_view ad;
  Click click;
  if (parser.parse(line.data(), line.size()).get(root) != simdjson::SUCCESS) return std::nullopt;
  if (root["user"].get(user) != simdjson::SUCCESS) return std::nullopt;
  if (root["ad"].get(ad) != simdjson::SUCCESS) return std::nullopt;
  EXPECT_EQ(root["time"].get(click.time_ms), simdjson::SUCCESS) << line;
  EXPECT_EQ(root["value"].get(click.value), simdjson::SUCCESS) << line;
  click.pair.append(user).append(" ").append(ad);
  return click;
}

TEST(GenerateClicks, CountsAreTheTruth) {
  const std::uint64_t records = testing_support::count_of(50'000, 200'000, 200'000);
  const Output output = run(ClickOptions{.records = records, .malformed = 0.01, .seed = 42});
  simdjson::dom::parser parser;
  std::unordered_map<std::string, Click> first;
  GenerateCounts seen;
  std::uint64_t last_time_ms = 0;
  for (const std::string_view line : output.lines()) {
    ++seen.records;
    const std::optional<Click> click = parse_click(parser, line);
    if (!click) {
      ++seen.malformed;
      continue;
    }
    EXPECT_GT(click->time_ms, last_time_ms);
    last_time_ms = click->time_ms;
    const auto [original, fresh] = first.try_emplace(click->pair, *click);
    ++(fresh ? seen.distinct : seen.duplicates);
    EXPECT_EQ(original->second.value, click->value) << line;
  }
  EXPECT_EQ(seen.records, records);
  EXPECT_EQ(output.counts.records, seen.records);
  EXPECT_EQ(output.counts.distinct, seen.distinct);
  EXPECT_EQ(output.counts.duplicates, seen.duplicates);
  EXPECT_EQ(output.counts.malformed, seen.malformed);
  EXPECT_EQ(output.counts.bytes, output.bytes.size());
  expect_share(seen.malformed, seen.records, 0.01);
  expect_share(seen.duplicates, seen.records - seen.malformed, 1.0 / 3);
}

// One user who sees every ad: the permutation of ad numbers must not repeat one.
TEST(GenerateClicks, FreshPairsAreFreshEvenForOneUser) {
  const Output output =
      run(ClickOptions{.records = 50'000, .duplicates = 0, .malformed = 0, .users = 1, .seed = 3});
  simdjson::dom::parser parser;
  std::unordered_set<std::string> pairs;
  for (const std::string_view line : output.lines()) pairs.insert(parse_click(parser, line)->pair);
  EXPECT_EQ(pairs.size(), 50'000u);
  EXPECT_EQ(output.counts.distinct, 50'000u);
}

TEST(GenerateClicks, SkewMakesSomeUsersFrequent) {
  const auto most_frequent = [](double skew) {
    const Output output =
        run(ClickOptions{.records = 20'000, .malformed = 0, .skew = skew, .users = 1'000});
    std::unordered_map<std::string_view, int> clicks;
    int most = 0;
    for (const std::string_view line : output.lines())
      most = std::max(most, ++clicks[line.substr(0, line.find(','))]);
    return most;
  };
  EXPECT_LT(most_frequent(0), 80);       // all alike: 20 each
  EXPECT_GT(most_frequent(1.0), 1'800);  // the first of 1,000 has 1 / H(1000) = 13 %
}

TEST(GenerateClicks, RepeatsFavourTheRecentPast) {
  const Output output = run(ClickOptions{.records = 100'000, .malformed = 0});
  std::unordered_map<std::string_view, std::uint64_t> born;
  std::uint64_t repeats = 0;
  std::uint64_t recent = 0;
  for (const std::string_view line : output.lines()) {
    const std::string_view pair = line.substr(0, line.find(",\"time\""));
    const auto [entry, fresh] = born.try_emplace(pair, born.size());
    if (fresh) continue;
    ++repeats;
    if (born.size() - entry->second <= 1'000) ++recent;
  }
  // Uniform repeats would be this recent in about 6 % of the cases.
  EXPECT_GT(recent * 2, repeats);
}

TEST(GenerateClicks, AllRepeatsOrAllMalformedAreAllowed) {
  const Output repeats = run(ClickOptions{.records = 1'000, .duplicates = 1, .malformed = 0});
  EXPECT_EQ(repeats.counts.distinct, 1u);
  EXPECT_EQ(repeats.counts.duplicates, 999u);
  const Output malformed = run(ClickOptions{.records = 1'000, .malformed = 1});
  EXPECT_EQ(malformed.counts.malformed, 1'000u);
  simdjson::dom::parser parser;
  for (const std::string_view line : malformed.lines())
    EXPECT_FALSE(parse_click(parser, line)) << line;
}

TEST(GenerateLines, CountsAreTheTruth) {
  const Output output = run(LineOptions{.records = 200'000, .seed = 42});
  std::unordered_set<std::string_view> distinct;
  for (const std::string_view line : output.lines()) {
    EXPECT_EQ(line.size(), 40u);
    EXPECT_TRUE(line.starts_with("evt-") && line[20] == ',') << line;
    distinct.insert(line);
  }
  EXPECT_EQ(output.counts.records, 200'000u);
  EXPECT_EQ(output.counts.distinct, distinct.size());
  EXPECT_EQ(output.counts.duplicates, 200'000u - distinct.size());
  EXPECT_EQ(output.counts.malformed, 0u);
  EXPECT_EQ(output.counts.bytes, output.bytes.size());
  expect_share(output.counts.duplicates, 200'000, 0.3);
}

TEST(GenerateLines, EveryLengthIsExact) {
  for (const std::size_t length : {20u, 21u, 22u, 36u, 37u, 38u, 40u, 100u, 4'096u}) {
    const Output output = run(LineOptions{.records = 50, .duplicates = 0, .length = length});
    std::unordered_set<std::string_view> distinct;
    for (const std::string_view line : output.lines()) {
      EXPECT_EQ(line.size(), length);
      distinct.insert(line);
    }
    EXPECT_EQ(distinct.size(), 50u);
  }
}

// A change here changes what every recorded seed means, on purpose or not.
TEST(Generate, BytesOfASeedArePinned) {
  EXPECT_EQ(fnv1a(run(ClickOptions{.records = 10'000, .malformed = 0.05, .seed = 5}).bytes),
            6515333831971289962ULL);
  EXPECT_EQ(fnv1a(run(LineOptions{.records = 10'000, .seed = 5}).bytes), 13588679071901519900ULL);
}

TEST(Generate, TheBufferDoesNotMatter) {
  EXPECT_EQ(run(ClickOptions{.records = 5'000}, 0).bytes,
            run(ClickOptions{.records = 5'000}).bytes);
  EXPECT_EQ(run(LineOptions{.records = 5'000}, 0).bytes, run(LineOptions{.records = 5'000}).bytes);
}

TEST(Generate, SeedsDiffer) {
  EXPECT_NE(run(ClickOptions{.records = 10, .seed = 1}).bytes,
            run(ClickOptions{.records = 10, .seed = 2}).bytes);
  EXPECT_NE(run(LineOptions{.records = 10, .seed = 1}).bytes,
            run(LineOptions{.records = 10, .seed = 2}).bytes);
}

TEST(Generate, NoRecordsGiveNothing) {
  EXPECT_EQ(run(ClickOptions{.records = 0}).bytes, "");
  EXPECT_EQ(run(LineOptions{.records = 0}).bytes, "");
}

TEST(Generate, BadOptionsAreNamed) {
  EXPECT_TRUE(refusal(ClickOptions{.duplicates = 1.5}).starts_with("`duplicates` 1.5 "));
  EXPECT_TRUE(refusal(ClickOptions{.malformed = -0.1}).starts_with("`malformed` -0.1 "));
  EXPECT_TRUE(refusal(ClickOptions{.skew = std::nan("")}).starts_with("`skew` nan "));
  EXPECT_TRUE(refusal(ClickOptions{.skew = 4.5}).starts_with("`skew` 4.5 "));
  EXPECT_TRUE(refusal(ClickOptions{.users = 0}).starts_with("`users` 0 "));
  EXPECT_TRUE(refusal(ClickOptions{.users = 100'000'001}).starts_with("`users` "));
  EXPECT_TRUE(refusal(LineOptions{.duplicates = -1}).starts_with("`duplicates` -1 "));
  EXPECT_TRUE(refusal(LineOptions{.length = 19}).starts_with("`length` 19 "));
  EXPECT_TRUE(refusal(LineOptions{.length = kLineLengthMost + 1}).starts_with("`length` "));
}

}  // namespace
}  // namespace sluice
