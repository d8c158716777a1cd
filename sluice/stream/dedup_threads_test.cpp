// What two threads could do wrong: each test runs with one and with two.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "sluice/base/error.hpp"
#include "sluice/filters/catalogue.hpp"
#include "sluice/stream/dedup.hpp"
#include "tests/support/counts.hpp"
#include "tests/support/text_ends.hpp"

namespace sluice {
namespace {

using testing_support::count_of;
using testing_support::TextSink;
using testing_support::TextSource;

// Three in ten are there already.
std::string lines(std::size_t count) {
  std::string text;
  for (std::size_t i = 0; i < count; ++i)
    text += fmt::format("line {}\n", i % 10 < 7 ? i : i / 3 - i / 3 % 10);
  return text;
}

std::string distinct_lines(std::string_view text) {
  std::set<std::string_view> seen;
  std::string out;
  while (!text.empty()) {
    const std::size_t size = text.find('\n') + 1;
    if (size == 0) break;  // an unfinished one
    if (seen.insert(text.substr(0, size)).second) out += text.substr(0, size);
    text.remove_prefix(size);
  }
  return out;
}

class DedupThreads : public testing::TestWithParam<unsigned> {
 protected:
  Dedup& make(DedupOptions options = {}) {
    options.threads = GetParam();
    dedup_.emplace(options, judge_, passed_, &held_);
    return *dedup_;
  }

  static bool go_on() { return true; }

  Judge judge_{Hasher(HashKind::xxh3, Secret::from_seed(1)), make_filter("exact", {})};
  TextSink passed_, held_;
  std::optional<Dedup> dedup_;
};

TEST_P(DedupThreads, TheOrderIsKeptWhateverTheReads) {
  const std::string text = lines(60'000);
  for (const std::size_t size : {7'001u, 65'536u, 1u << 20}) {
    judge_.filter().clear();
    passed_.text.clear();
    TextSource source(text, size);
    Dedup& dedup = make();
    dedup.run(source, go_on);
    dedup.flush();
    EXPECT_EQ(passed_.text, distinct_lines(text)) << size;
    EXPECT_EQ(dedup.counts().bytes_in, text.size());
    EXPECT_EQ(dedup.counts().records, 60'000u);
  }
}

// More than a chunk takes in one read, and records of many reads.
TEST_P(DedupThreads, RecordsMayBeShorterOrLongerThanChunks) {
  std::string text(100'000, '\n');
  text += std::string(3'000'000, 'x') + "\n";
  for (int i = 0; i < count_of(24, 40, 40); ++i)
    text += std::string(300'000, static_cast<char>('a' + i % 20)) + "\n" + lines(3);
  text += std::string(count_of(4'000'000, 20'000'000, 20'000'000), 'y') + "\n" + lines(1000) +
          std::string(50'000, '\n');
  TextSource source(text, 1 << 18);
  Dedup& dedup = make();
  dedup.run(source, go_on);
  dedup.flush();
  EXPECT_TRUE(passed_.text == distinct_lines(text));
  EXPECT_EQ(dedup.counts().records, static_cast<std::uint64_t>(std::ranges::count(text, '\n')));
}

TEST_P(DedupThreads, BetweenSeesOutputsAndFilterInStep) {
  const std::string text = lines(30'000);
  TextSource source(text, 5'000);
  source.waits_every = 9;
  Dedup& dedup = make();
  std::uint64_t calls = 0;
  dedup.run(source, [&] {
    ++calls;
    dedup.flush();
    const DedupCounts& counts = dedup.counts();
    EXPECT_EQ(static_cast<std::uint64_t>(std::ranges::count(passed_.text, '\n')), counts.distinct);
    EXPECT_EQ(static_cast<std::uint64_t>(std::ranges::count(held_.text, '\n')), counts.duplicates);
    EXPECT_EQ(judge_.filter().stats().keys, counts.distinct);
    EXPECT_EQ(dedup.bytes_out(), passed_.text.size());
    return true;
  });
  EXPECT_GE(calls, text.size() / 5'000);
}

// What is saved between chunks must never hold a key whose record was not written, also when the
// other thread is still at writing, and when that fails.
TEST_P(DedupThreads, AFlushNowAndThenWaitsForWhatIsBeingWritten) {
  const std::string text = lines(100'000);
  for (const std::size_t most : {std::size_t{300'000}, text.size()}) {
    judge_.filter().clear();
    passed_.text.clear();
    TextSource source(text, 1 << 14);
    passed_.before_write = [&](std::size_t written) {
      std::this_thread::sleep_for(std::chrono::microseconds(100));
      if (written > most) throw IoError("cannot write", 28);
    };
    Dedup& dedup = make();
    std::uint64_t calls = 0, saved = 0;
    const auto between = [&] {
      if (++calls % 5 != 0) return true;
      dedup.flush();
      saved = dedup.counts().distinct;
      EXPECT_EQ(static_cast<std::uint64_t>(std::ranges::count(passed_.text, '\n')), saved);
      return true;
    };
    if (most < text.size())
      EXPECT_THROW(dedup.run(source, between), IoError);
    else
      dedup.run(source, between);
    EXPECT_GT(saved, 1'000u);
    EXPECT_GE(static_cast<std::uint64_t>(std::ranges::count(passed_.text, '\n')), saved);
  }
}

TEST_P(DedupThreads, AllThatIsReadGoesOutBeforeASourceThatWaits) {
  const std::string text = lines(20'000);
  TextSource source(text, 4'000);
  source.waits_every = 17;
  std::size_t waits = 0;
  source.in_wait = [&](std::string_view given) {
    ++waits;
    EXPECT_EQ(passed_.text, distinct_lines(given));
  };
  make().run(source, go_on);
  EXPECT_GE(waits, 3u);
}

// A stop leaves everything read judged, and the bytes of an unfinished record counted.
TEST_P(DedupThreads, AStopJudgesWhatWasRead) {
  const std::string text = lines(20'000);
  for (const int stop_at : {0, 1, 7, 20}) {
    judge_.filter().clear();
    passed_.text.clear();
    TextSource source(text, 5'003);
    Dedup& dedup = make();
    int calls = 0;
    dedup.run(source, [&] { return calls++ < stop_at; });
    dedup.flush();
    const DedupCounts& counts = dedup.counts();
    EXPECT_LT(counts.bytes_in, text.size());
    const std::string_view read = std::string_view(text).substr(0, counts.bytes_in);
    EXPECT_EQ(counts.records, static_cast<std::uint64_t>(std::ranges::count(read, '\n')));
    EXPECT_EQ(counts.unfinished_bytes, read.size() - (read.rfind('\n') + 1));
    EXPECT_EQ(passed_.text, distinct_lines(read));
  }
}

// What fails does so in the order of the input, once, and for the caller.
TEST_P(DedupThreads, AnInputThatFailsEndsTheRunBehindWhatWasRead) {
  const std::string text = lines(20'000);
  for (const std::size_t fail_at : {0u, 1u, 6u, 30u}) {
    judge_.filter().clear();
    passed_.text.clear();
    TextSource source(text, 5'000);
    source.before_read = [&](std::size_t reads) {
      if (reads == fail_at) throw IoError("cannot read", 5);
    };
    Dedup& dedup = make();
    EXPECT_THROW(dedup.run(source, go_on), IoError);
    dedup.flush();
    EXPECT_EQ(passed_.text, distinct_lines(std::string_view(text).substr(0, fail_at * 5'000)));
  }
}

TEST_P(DedupThreads, AnOutputThatFailsEndsTheRun) {
  const std::string text = lines(count_of(140'000, 200'000, 200'000));
  TextSource source(text, 1 << 16);
  passed_.before_write = [&](std::size_t written) {
    if (written > 500'000) throw IoError("cannot write", 28);
  };
  EXPECT_THROW(make().run(source, go_on), IoError);
  EXPECT_TRUE(distinct_lines(text).starts_with(passed_.text));
}

TEST_P(DedupThreads, WhatBetweenThrowsIsTheCallersToCatch) {
  TextSource source(lines(20'000), 5'000);
  int calls = 0;
  Dedup& dedup = make();
  EXPECT_THROW(dedup.run(source,
                         [&]() -> bool {
                           if (++calls == 20) throw std::runtime_error("enough");
                           return true;
                         }),
               std::runtime_error);
  EXPECT_EQ(calls, 20);
  // A caller who saves the filter now must not save more than was written.
  dedup.flush();
  EXPECT_EQ(static_cast<std::uint64_t>(std::ranges::count(passed_.text, '\n')),
            judge_.filter().stats().keys);
}

TEST_P(DedupThreads, ABadRecordEndsTheRunBehindWhatStandsBefore) {
  DedupOptions options;
  options.keys = {"2"};
  options.strict = true;
  const std::string before = lines(30'000), after = lines(30'000);
  TextSource source(before + "bad\n" + after, 5'000);
  Dedup& dedup = make(options);
  try {
    dedup.run(source, go_on);
    ADD_FAILURE() << "no error";
  } catch (const BadRecord& error) {
    const std::string why = "record 30,001: there is no field 2 in 'bad'";
    EXPECT_NE(std::string(error.what()).find(why), std::string::npos) << error.what();
  }
  dedup.flush();
  EXPECT_EQ(passed_.text, distinct_lines(before));
  EXPECT_EQ(dedup.counts().records, 30'000u);
}

TEST_P(DedupThreads, ATableOfManyChunksAndInputs) {
  DedupOptions options;
  options.format.kind = Format::Kind::csv;
  options.keys = {"id"};
  options.event_time = "t";
  std::string text = "t,id\n", passed = text;
  for (int i = 0; i < 20'000; ++i) {
    const std::string record = i % 50 == 49 ? std::string("no time\n")
                                            : fmt::format("{},\"{}\n\"\n", 1'700'000'000 + i, i);
    text += record;
    passed += record;
  }
  Dedup& dedup = make(options);
  for (int i = 0; i < 3; ++i) {
    TextSource source(text, 5'000);
    dedup.run(source, go_on);
  }
  dedup.flush();
  EXPECT_EQ(dedup.counts().records, 60'000u);
  EXPECT_EQ(dedup.counts().unkeyed, 1'200u);
  EXPECT_EQ(dedup.counts().duplicates, 39'200u);
  EXPECT_EQ(passed_.text.substr(0, passed.size()), passed);
  TextSource other("id,t\n", 5'000);
  EXPECT_THROW(dedup.run(other, go_on), BadRecord);
}

INSTANTIATE_TEST_SUITE_P(Threads, DedupThreads, testing::Values(1u, 2u));

}  // namespace
}  // namespace sluice
