#include "sluice/stream/dedup.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "sluice/base/error.hpp"
#include "sluice/filters/catalogue.hpp"
#include "tests/support/text_ends.hpp"

namespace sluice {
namespace {

using testing_support::TextSink;
using testing_support::TextSource;

struct Outcome {
  std::string passed, held, error;
  DedupCounts counts;
};

using Reads = std::vector<std::size_t>;

Outcome run_once(const DedupOptions& options, const std::vector<std::string>& sources,
                 const Reads& reads) {
  Judge judge(Hasher(HashKind::xxh3, Secret::from_seed(1)), make_filter("exact", {}));
  TextSink passed, held;
  Dedup dedup(options, judge, passed, &held);
  Outcome outcome;
  try {
    for (const std::string& text : sources) {
      TextSource source(text, reads);
      dedup.run(source, [] { return true; });
    }
  } catch (const Error& error) {
    outcome.error = error.what();
  }
  dedup.flush();
  outcome.passed = passed.text;
  outcome.held = held.text;
  outcome.counts = dedup.counts();
  EXPECT_EQ(dedup.bytes_out(), passed.text.size());
  EXPECT_EQ(outcome.counts.records,
            outcome.counts.distinct + outcome.counts.duplicates + outcome.counts.unkeyed);
  return outcome;
}

// Runs all sources through one Dedup with an exact filter, by one thread and by two, which make no
// difference. `reads`: see TextSource.
Outcome run_all(DedupOptions options, const std::vector<std::string>& sources,
                const Reads& reads = {}) {
  Outcome one = run_once(options, sources, reads);
  options.threads = 2;
  const Outcome two = run_once(options, sources, reads);
  EXPECT_EQ(two.passed, one.passed);
  EXPECT_EQ(two.held, one.held);
  EXPECT_EQ(two.error, one.error);
  EXPECT_EQ(two.counts, one.counts);
  return one;
}

DedupOptions with(Format::Kind kind, std::vector<std::string> keys = {}) {
  DedupOptions options;
  options.format.kind = kind;
  options.keys = std::move(keys);
  return options;
}

// The distinct lines of all texts in order, as a person would take them; each ends as it came, but
// for a terminator where one was missing in front of another.
std::string reference_lines(const std::vector<std::string>& texts) {
  std::set<std::string> seen;
  std::string out;
  for (const std::string& text : texts) {
    std::size_t start = 0;
    while (start < text.size()) {
      const std::size_t newline = text.find('\n', start);
      const std::size_t end = std::min(newline, text.size());
      const std::string body = text.substr(start, end - start);
      if (seen.insert(body).second) {
        if (!out.empty() && out.back() != '\n') out += '\n';
        out += body;
        if (newline != std::string::npos) out += '\n';
      }
      start = end + 1;
    }
  }
  return out;
}

rc::Gen<std::string> any_text() {
  return rc::gen::container<std::string>(
      rc::gen::element('a', 'b', 'a', ',', '"', '\n', '\n', '\r', '\0', '{', '}', '1'));
}

rc::Gen<Reads> any_reads() {
  return rc::gen::container<Reads>(rc::gen::inRange<std::size_t>(0, 9));
}

class DedupOfFormat : public testing::TestWithParam<Format::Kind> {};

TEST_P(DedupOfFormat, TheSizesOfReadsMakeNoDifference) {
  const bool held = rc::check([&] {
    const auto texts = *rc::gen::container<std::vector<std::string>>(any_text());
    DedupOptions options = with(GetParam());
    options.strict = *rc::gen::arbitrary<bool>();
    options.invert = *rc::gen::arbitrary<bool>();
    options.most_record_bytes = *rc::gen::element<std::uint64_t>(3, 8, 1 << 20);
    options.format.header = *rc::gen::arbitrary<bool>();
    const Outcome whole = run_all(options, texts);
    const Outcome cut = run_all(options, texts, *any_reads());
    RC_ASSERT(cut.passed == whole.passed);
    RC_ASSERT(cut.held == whole.held);
    RC_ASSERT(cut.error == whole.error);
    RC_ASSERT(cut.counts.records == whole.counts.records);
    RC_ASSERT(cut.counts.malformed == whole.counts.malformed);
  });
  EXPECT_TRUE(held);
}

INSTANTIATE_TEST_SUITE_P(Formats, DedupOfFormat,
                         testing::Values(Format::Kind::lines, Format::Kind::nul, Format::Kind::csv,
                                         Format::Kind::tsv, Format::Kind::json));

RC_GTEST_PROP(Dedup, LinesEqualTheReferenceOverSeveralSources, ()) {
  const auto texts = *rc::gen::container<std::vector<std::string>>(any_text());
  const Outcome outcome = run_all(with(Format::Kind::lines), texts, *any_reads());
  RC_ASSERT(outcome.passed == reference_lines(texts));
  RC_ASSERT(outcome.error.empty());
}

// With every terminator there, each record is in one of the two outputs, in its order; inverting
// swaps them.
RC_GTEST_PROP(Dedup, PassedAndHeldMakeUpTheInput, ()) {
  std::string text = *any_text();
  text += '\n';
  DedupOptions options = with(Format::Kind::lines, {"1"});  // empty lines have no such field
  const Outcome outcome = run_all(options, {text}, *any_reads());
  std::string rest_passed = outcome.passed, rest_held = outcome.held;
  for (std::size_t start = 0; start < text.size();) {
    const std::size_t end = text.find('\n', start) + 1;
    const std::string record = text.substr(start, end - start);
    // Where both could be next, a record passed and the same one held are not told apart.
    std::string& from = rest_passed.starts_with(record) ? rest_passed : rest_held;
    RC_ASSERT(from.starts_with(record));
    from.erase(0, record.size());
    start = end;
  }
  RC_ASSERT(rest_passed.empty() && rest_held.empty());
  options.invert = true;
  const Outcome inverted = run_all(options, {text});
  RC_ASSERT(inverted.passed == outcome.held);
  RC_ASSERT(inverted.held == outcome.passed);
}

TEST(Dedup, UnkeyedRecordsKeepTheirPlacesInAndAcrossBatches) {
  std::string text, passed, held;
  std::set<std::size_t> seen;
  for (std::size_t i = 0; i < 3 * kBatchRecords; ++i) {
    const bool unkeyed = i % 3 == 0;
    const std::string record = unkeyed ? "unkeyed\n" : fmt::format("n{} k{}\n", i, i % 7);
    text += record;
    (unkeyed || seen.insert(i % 7).second ? passed : held) += record;
  }
  const Outcome outcome = run_all(with(Format::Kind::lines, {"2"}), {text}, {1000, 7});
  EXPECT_EQ(outcome.passed, passed);
  EXPECT_EQ(outcome.held, held);
  EXPECT_EQ(outcome.counts.unkeyed, kBatchRecords);
  EXPECT_EQ(outcome.counts.malformed, 0u);
  EXPECT_EQ(outcome.counts.distinct, 7u);
}

TEST(Dedup, StrictNamesTheRecordOfItsSource) {
  DedupOptions options = with(Format::Kind::json, {"/k"});
  options.strict = true;
  std::string many;
  for (int i = 0; i < 1500; ++i) many += fmt::format("{{\"k\":{}}}\n", i);
  const Outcome missing = run_all(options, {many, "{\"k\":1}\n{\"x\":1}\n{\"k\":-1}\n"});
  EXPECT_NE(missing.error.find("input: record 2: there is no /k in '{\"x\":1}'"), std::string::npos)
      << missing.error;
  EXPECT_EQ(missing.passed, many);
  EXPECT_EQ(missing.held, "{\"k\":1}\n");
  const Outcome malformed = run_all(options, {many + "{\"k\"\n"});
  EXPECT_NE(malformed.error.find("record 1,501: '{\"k\"' is not JSON"), std::string::npos)
      << malformed.error;
  EXPECT_EQ(malformed.passed, many);
}

TEST(Dedup, ARecordTooLongEndsTheRunAfterWhatStandsBefore) {
  DedupOptions options = with(Format::Kind::lines);
  options.most_record_bytes = 3;
  for (const Reads& reads : {Reads{}, Reads{1}, Reads{4}}) {
    const Outcome outcome = run_all(options, {"abc\nde\nabcd\nx\n"}, reads);
    EXPECT_EQ(outcome.passed, "abc\nde\n");
    EXPECT_NE(outcome.error.find("record 3 is longer than 3 bytes"), std::string::npos)
        << outcome.error;
  }
}

TEST(Dedup, TheFirstHeaderGoesToBothAndTheOthersMustEqualIt) {
  const DedupOptions options = with(Format::Kind::csv, {"id"});
  const Outcome same = run_all(options, {"", "id,n\n1,a", "id,n\r\n1,b\n2,c\n"});
  EXPECT_EQ(same.passed, "id,n\n1,a\n2,c\n");
  EXPECT_EQ(same.held, "id,n\n1,b\n");
  EXPECT_EQ(same.counts.records, 3u);
  const Outcome other = run_all(options, {"id,n\n1,a\n", "n,id\n2,b\n"});
  EXPECT_EQ(other.passed, "id,n\n1,a\n");
  EXPECT_NE(other.error.find("'n,id'"), std::string::npos) << other.error;
}

TEST(Dedup, AnEmptyHeaderIsAHeader) {
  const Outcome outcome = run_all(with(Format::Kind::csv), {"\n1\n", "\n1\n"});
  EXPECT_EQ(outcome.passed, "\n1\n");
  EXPECT_EQ(outcome.held, "\n1\n");
}

// A stop leaves everything read judged, and the bytes of an unfinished record counted.
TEST(Dedup, AStopWithinARecordDoesNotJudgeIt) {
  Judge judge(Hasher(HashKind::xxh3, Secret::from_seed(1)), make_filter("exact", {}));
  TextSink passed;
  Dedup dedup(with(Format::Kind::lines), judge, passed, nullptr);
  TextSource source("a\nb\nunfinished\nc\n", 8);
  dedup.run(source, [] { return false; });
  dedup.flush();
  EXPECT_EQ(passed.text, "a\nb\n");
  EXPECT_EQ(dedup.counts().records, 2u);
  EXPECT_EQ(dedup.counts().unfinished_bytes, 4u);
}

TEST(Dedup, WhatIsJudgedIsWrittenBeforeASourceThatWaits) {
  Judge judge(Hasher(HashKind::xxh3, Secret::from_seed(1)), make_filter("exact", {}));
  TextSink passed;
  Dedup dedup(with(Format::Kind::lines), judge, passed, nullptr);
  // Reads: four bytes at once, then one that has to be waited for.
  TextSource source("a\nb\nc\n", {4, 0});
  std::vector<std::string> seen;
  dedup.run(source, [&] {
    seen.push_back(passed.text);
    return true;
  });
  ASSERT_GE(seen.size(), 2u);
  EXPECT_EQ(seen[1], "a\nb\n");
}

// What was judged is written; then the run ends with an error that says so.
TEST(Dedup, WhenMemoryEndsAllThatWasJudgedIsWritten) {
  std::string lines;
  for (int i = 0; i < 60'000; ++i) lines += fmt::format("{}\n", i);
  for (const char* filter : {"exact", "growing"})
    for (const unsigned threads : {1u, 2u}) {
      SCOPED_TRACE(filter);
      SystemMemory memory({.budget = 200'000});
      Judge judge(Hasher(HashKind::xxh3, Secret::from_seed(1)), make_filter(filter, {}, memory));
      DedupOptions options = with(Format::Kind::lines);
      options.threads = threads;
      TextSink passed;
      Dedup dedup(options, judge, passed, nullptr);
      TextSource source(lines, 1000);
      EXPECT_THROW(dedup.run(source, [] { return true; }), NoMemory);
      dedup.flush();
      const std::uint64_t records = dedup.counts().records;
      EXPECT_GT(records, 1000u);
      EXPECT_LT(records, 60'000u);
      EXPECT_EQ(dedup.counts().distinct,
                static_cast<std::uint64_t>(std::ranges::count(passed.text, '\n')));
      EXPECT_TRUE(lines.starts_with(passed.text) || filter != std::string("exact"));
      EXPECT_EQ(judge.filter().stats().keys, dedup.counts().distinct);
    }
}

}  // namespace
}  // namespace sluice
