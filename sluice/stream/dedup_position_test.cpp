// A run that is cut in two anywhere gives what it gives in one.
#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <vector>

#include "sluice/base/error.hpp"
#include "sluice/filters/catalogue.hpp"
#include "sluice/stream/dedup.hpp"
#include "tests/support/text_ends.hpp"

namespace sluice {
namespace {

using testing_support::TextSink;
using testing_support::TextSource;

Judge new_judge() {
  return Judge(Hasher(HashKind::xxh3, Secret::from_seed(1)), make_filter("exact", {}));
}

struct Text {
  DedupOptions options;
  std::string text;
};

Text table(unsigned threads) {
  Text made;
  made.options.format.kind = Format::Kind::csv;
  made.options.keys = {"id"};
  made.options.threads = threads;
  made.text = "\xEF\xBB\xBFid,x\n";
  for (int i = 0; i < 3000; ++i)
    made.text += std::to_string(i * i % 1000) + (i % 5 == 0 ? ",\"a\n\"\"b\"\n" : ",c\n");
  made.text += "\xEF\xBB\xBF\"7\",no newline";
  return made;
}

// Stops where the chunk ends that is judged when `between` was called so often.
SourcePosition run_part(Dedup& dedup, TextSource& source, std::size_t calls) {
  std::optional<SourcePosition> at;
  dedup.run(source, [&] {
    if (calls-- > 0) return true;
    dedup.flush();
    at = dedup.position();
    return false;
  });
  dedup.flush();
  return at.value_or(dedup.position());
}

TEST(DedupPosition, ContinuingAnywhereMakesNoDifference) {
  for (const unsigned threads : {1u, 2u}) {
    const Text made = table(threads);
    Judge whole_judge = new_judge();
    TextSink whole_passed, whole_held;
    Dedup whole(made.options, whole_judge, whole_passed, &whole_held);
    TextSource all(made.text, 1000);
    EXPECT_TRUE(whole.run(all, [] { return true; }));
    whole.flush();
    EXPECT_EQ(whole.position().offset, made.text.size());
    EXPECT_EQ(whole.position().records, whole.counts().records);
    EXPECT_EQ(whole.position().open_bytes, std::string_view("\xEF\xBB\xBF\"7\",no newline").size());
    std::size_t inside = 0;
    for (std::size_t calls = 0; calls < 30; ++calls) {
      Judge judge = new_judge();
      TextSink passed, held;
      Dedup first(made.options, judge, passed, &held);
      TextSource source(made.text, 1000);
      run_part(first, source, calls);
      // With two threads more is judged than when `between` was asked.
      const SourcePosition at = first.position();
      EXPECT_EQ(at.records, first.counts().records);
      EXPECT_EQ(at.open_bytes > 0, at.offset == made.text.size());
      inside += at.offset > 0 && at.offset < made.text.size();
      DedupOptions options = made.options;
      options.passed_before.header = options.held_before.header = at.offset > 0;
      Dedup second(options, judge, passed, &held);
      TextSource front(made.text, 1000);
      if (at.offset > 0) second.read_header(front);
      TextSource rest(made.text.substr(at.offset), 777);
      EXPECT_TRUE(second.run(
          rest, [] { return true; }, at));
      second.flush();
      EXPECT_EQ(passed.text, whole_passed.text) << at.offset;
      EXPECT_EQ(held.text, whole_held.text) << at.offset;
      EXPECT_EQ(second.position(), whole.position());
    }
    EXPECT_GT(inside, 20u);
  }
}

// What a writer leaves that writes line by line: the quoted field goes on.
TEST(DedupPosition, ARecordThatEndsWithinQuotesIsOpen) {
  DedupOptions options;
  options.format.kind = Format::Kind::csv;
  const std::string start = "k,v\n2,y\n", open = "1,\"abc\n";
  Judge judge = new_judge();
  TextSink passed;
  Dedup dedup(options, judge, passed, nullptr);
  TextSource source(start + open, 5);
  dedup.run(source, [] { return true; });
  const SourcePosition at = dedup.position();
  EXPECT_EQ(at, (SourcePosition{start.size() + open.size(), 2, open.size()}));
  TextSource nothing("", 5);
  dedup.run(
      nothing, [] { return true; }, at);
  EXPECT_EQ(dedup.position(), at);
  TextSource more("5,x\n", 5);
  dedup.run(
      more, [] { return true; }, at);
  EXPECT_EQ(dedup.position().open_bytes, 0u);
}

TEST(DedupPosition, AMissingTerminatorIsMadeUpForOnlyIfARecordFollows) {
  for (const bool follows : {false, true}) {
    Judge judge = new_judge();
    TextSink passed;
    passed.text = "before";
    DedupOptions options;
    options.passed_before.open_end = true;
    Dedup dedup(options, judge, passed, nullptr);
    TextSource source(follows ? "after" : "", 10);
    dedup.run(source, [] { return true; });
    dedup.flush();
    EXPECT_EQ(passed.text, follows ? "before\nafter" : "before");
  }
}

TEST(DedupPosition, TheCallerIsToldBeforeAnythingIsJudgedOrWritten) {
  for (const bool sound : {true, false}) {
    Judge judge = new_judge();
    TextSink passed;
    int calls = 0;
    Text made = table(2);
    if (!sound) made.options.keys = {"no such column"};
    made.options.before_first = [&] {
      ++calls;
      EXPECT_EQ(judge.filter().stats().keys, 0u);
      EXPECT_EQ(passed.text, "");
    };
    Dedup dedup(made.options, judge, passed, nullptr);
    TextSource source(made.text, 100);
    const auto run = [&] { dedup.run(source, [] { return true; }); };
    if (sound)
      run();
    else
      EXPECT_THROW(run(), BadParameters);
    EXPECT_EQ(calls, sound ? 1 : 0);
  }
}

TEST(DedupPosition, AHeaderWaitsForTheFirstRecordOrTheEnd) {
  for (const char* record : {"7,a\n", ""}) {
    Judge judge = new_judge();
    TextSink passed;
    int calls = 0, asked = 0;
    Text made = table(1);
    made.options.before_first = [&] { ++calls; };
    Dedup dedup(made.options, judge, passed, nullptr);
    TextSource source(std::string("id,x\n") + record, 5);
    dedup.run(source, [&] {
      if (++asked > 1) return true;
      dedup.flush();
      EXPECT_EQ(calls, 0);
      EXPECT_EQ(passed.text, "");
      return true;
    });
    dedup.flush();
    EXPECT_EQ(calls, 1);
    EXPECT_EQ(passed.text, std::string("id,x\n") + record);
    EXPECT_EQ(dedup.bytes_out(), passed.text.size());
  }
}

TEST(DedupPosition, ARunThatIsRefusedHasNotBegun) {
  Judge judge = new_judge();
  TextSink passed;
  Text made = table(1);
  made.options.event_time = "x";
  made.options.days = false;
  made.options.before_first = [] { ADD_FAILURE(); };
  Dedup dedup(made.options, judge, passed, nullptr);
  TextSource source("id,x\n7,2026-01-01\n", 100);
  EXPECT_THROW(dedup.run(source, [] { return true; }), BadParameters);
  dedup.flush();
  EXPECT_EQ(passed.text, "");
}

}  // namespace
}  // namespace sluice
