// Records without a key or a time: which are named, and with what reason; dates in short windows; and
// byte order marks, which must not make a record one of them.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "sluice/base/error.hpp"
#include "sluice/filters/catalogue.hpp"
#include "sluice/stream/dedup.hpp"
#include "sluice/window/window.hpp"
#include "tests/support/text_ends.hpp"

namespace sluice {
namespace {

using testing_support::TextSink;
using testing_support::TextSource;

constexpr std::uint64_t kMinute = 60'000'000'000;

struct Outcome {
  std::string passed, error;
  DedupCounts counts;
  std::vector<RecordFault> faults;
};

Outcome run(const DedupOptions& options, const std::vector<std::string>& sources) {
  AnyFilter filter = options.event_time
                         ? AnyFilter(Window::make({.spec = {WindowSpec::Kind::time, 10 * kMinute},
                                                   .filter = "exact-window"}))
                         : make_filter("exact", {});
  Judge judge(Hasher(HashKind::xxh3, Secret::from_seed(1)), std::move(filter));
  TextSink passed;
  Dedup dedup(options, judge, passed, nullptr);
  Outcome outcome;
  try {
    for (const std::string& text : sources) {
      TextSource source(text, 1000);
      dedup.run(source, [] { return true; });
    }
  } catch (const BadParameters& error) {
    outcome.error = error.what();
  }
  dedup.flush();
  outcome.passed = passed.text;
  outcome.counts = dedup.counts();
  outcome.faults = dedup.faults();
  return outcome;
}

// By one thread and by two, which make no difference.
Outcome run_both(DedupOptions options, const std::vector<std::string>& sources) {
  Outcome one = run(options, sources);
  options.threads = 2;
  const Outcome two = run(options, sources);
  EXPECT_EQ(two.passed, one.passed);
  EXPECT_EQ(two.error, one.error);
  EXPECT_EQ(two.counts, one.counts);
  EXPECT_EQ(two.faults, one.faults);
  return one;
}

DedupOptions with(Format format, std::vector<std::string> keys = {}) {
  DedupOptions options;
  options.format = format;
  options.keys = std::move(keys);
  return options;
}

DedupOptions timed() {
  DedupOptions options = with({.kind = Format::Kind::lines}, {"1"});
  options.event_time = "2";
  options.days = false;
  return options;
}

TEST(DedupFaults, TheFirstThreeAreKeptWithTheirPlaces) {
  std::string many;
  for (int i = 0; i < 20'000; ++i) many += fmt::format("{{\"k\":{}}}\n", i);
  const DedupOptions options = with({.kind = Format::Kind::json}, {"/k"});
  const Outcome outcome =
      run_both(options, {many + "{\"x\":1}\n" + many, "{\"k\":1}\n{\"k\"\nnull\n[]\n"});
  const std::vector<RecordFault> want = {{"input", 20'001, "there is no /k in '{\"x\":1}'"},
                                         {"input", 2, "'{\"k\"' is not JSON"},
                                         {"input", 3, "there is no /k in 'null'"}};
  EXPECT_EQ(outcome.faults, want);
  EXPECT_EQ(outcome.counts.unkeyed, 4u);
}

TEST(DedupFaults, EveryFormatSaysWhy) {
  const auto why = [](const DedupOptions& options, const std::string& text) {
    const Outcome outcome = run_both(options, {text});
    return outcome.faults.empty() ? "" : outcome.faults.front().reason;
  };
  EXPECT_EQ(why(with({.kind = Format::Kind::lines}, {"1,3"}), "a b\n"),
            "there is no field 3 in 'a b'");
  EXPECT_EQ(why(with({.kind = Format::Kind::lines, .delimiter = ','}, {"2"}), "a b\n"),
            "there is no field 2 in 'a b'");
  EXPECT_EQ(why(with({.kind = Format::Kind::csv}, {"n"}), "id,n\n1\n"),
            "there is no column 'n' in '1'");
  EXPECT_EQ(why(with({.kind = Format::Kind::csv, .header = false}, {"2"}), "1\n"),
            "there is no column 2 in '1'");
  EXPECT_EQ(why(with({.kind = Format::Kind::csv}), "id\n\"1\"x\n"),
            "a quote is not closed before a delimiter in '\"1\"x'");
  EXPECT_EQ(why(with({.kind = Format::Kind::json}), "\n"), "'' is not JSON");
  EXPECT_EQ(why(with({.kind = Format::Kind::json}, {"/a,/b/0"}), "{\"a\":1,\"b\":[]}\n"),
            "there is no /b/0 in '{\"a\":1,\"b\":[]}'");
}

TEST(DedupFaults, QuotesAreShortAndCutBetweenCharacters) {
  const DedupOptions options = with({.kind = Format::Kind::lines}, {"2"});
  const Outcome outcome = run_both(options, {std::string(60, 'x') + "\n" + std::string(61, 'x') +
                                             "\n" + std::string(58, 'x') + "\u20ac\u20ac\n"});
  ASSERT_EQ(outcome.faults.size(), 3u);
  EXPECT_EQ(outcome.faults[0].reason, "there is no field 2 in '" + std::string(60, 'x') + "'");
  EXPECT_EQ(outcome.faults[1].reason, "there is no field 2 in '" + std::string(60, 'x') + "…'");
  EXPECT_EQ(outcome.faults[2].reason, "there is no field 2 in '" + std::string(58, 'x') + "…'");
}

TEST(DedupFaults, AStreamOfDatesIsRefusedInAShortWindow) {
  const Outcome outcome =
      run_both(timed(), {"no\nk soon\nk 2026-01-01 10:00:00\nk 2026-01-01 23:00:00\n"});
  EXPECT_NE(
      outcome.error.find("input: record 3: field 2, '2026-01-01', is a date without a time of "
                         "day, and `window` is shorter than a day"),
      std::string::npos)
      << outcome.error;
  EXPECT_EQ(outcome.counts.records, 0u);
  EXPECT_EQ(outcome.passed, "");
  // Not where dates are fine enough.
  DedupOptions days = timed();
  days.days = true;
  EXPECT_EQ(run_both(days, {"k 2026-01-01 10:00:00\n"}).error, "");
}

TEST(DedupFaults, AfterATimeADateIsAFaultOfItsRecord) {
  const Outcome outcome = run_both(
      timed(), {"k 2026-01-01T10:00\nk 2026-01-01\nk 2026-01-01T10:01\n", "k 2026-01-02\n"});
  EXPECT_EQ(outcome.error, "");
  EXPECT_EQ(outcome.passed, "k 2026-01-01T10:00\nk 2026-01-01\nk 2026-01-02\n");
  EXPECT_EQ(outcome.counts.malformed, 2u);
  EXPECT_EQ(outcome.faults.size(), 2u);
}

TEST(DedupMarks, AMarkBeforeTheFirstRecordIsNoPartOfIt) {
  const std::string mark = "\xEF\xBB\xBF";
  const auto passed = [](const DedupOptions& options, const std::vector<std::string>& sources) {
    return run_both(options, sources).passed;
  };
  const DedupOptions json = with({.kind = Format::Kind::json}, {"/k"});
  EXPECT_EQ(passed(json, {mark + "{\"k\":1}\n{\"k\":1}\n", mark + "{\"k\":2}"}),
            "{\"k\":1}\n{\"k\":2}");
  const DedupOptions fields = with({.kind = Format::Kind::lines}, {"1"});
  EXPECT_EQ(passed(fields, {mark + "a 1\na 2\n"}), "a 1\n");
  const DedupOptions table = with({.kind = Format::Kind::csv, .header = false}, {"1"});
  EXPECT_EQ(passed(table, {mark + "\"a\",1\na,2\n"}), "\"a\",1\n");
  EXPECT_EQ(passed(json, {mark, mark + "\n"}), "\n");
  EXPECT_EQ(run_both(json, {mark}).counts.records, 0u);
  // Only before the first; a line by itself, and a header, keep theirs.
  EXPECT_EQ(run_both(json, {"{\"k\":1}\n" + mark + "{\"k\":1}\n"}).counts.malformed, 1u);
  const DedupOptions lines = with({.kind = Format::Kind::lines});
  EXPECT_EQ(passed(lines, {mark + "a\na\n"}), mark + "a\na\n");
  const DedupOptions header = with({.kind = Format::Kind::csv}, {"k"});
  EXPECT_EQ(passed(header, {mark + "k\n1\n", mark + "k\n1\n2\n"}), mark + "k\n1\n2\n");
}

}  // namespace
}  // namespace sluice
