// Trees of windows judge every event as one window does: sparse and dense, late events included,
// however the stream is cut into batches.
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "sluice/base/error.hpp"
#include "sluice/base/random.hpp"
#include "sluice/cluster/tree.hpp"
#include "sluice/filters/catalogue.hpp"
#include "sluice/window/window.hpp"
#include "tests/support/counts.hpp"
#include "tests/support/digests.hpp"
#include "tests/support/filter_slices.hpp"

namespace sluice::cluster {
namespace {

using testing_support::count_of;
using testing_support::digest_of;

constexpr std::int64_t kStart = 1'700'000'000'000;
constexpr std::int64_t kWindowMs = 60'000;
constexpr Nanoseconds kNanosecondsPerMs = 1'000'000;
constexpr WindowSpec kMinute = {WindowSpec::Kind::time, kWindowMs* kNanosecondsPerMs};
constexpr WindowSpec kHourly = {WindowSpec::Kind::landmark, 3'600'000'000'000};

Window::Params params_of(const WindowSpec& spec, const std::string& filter) {
  return {.spec = spec, .filter = filter, .fpr = 1e-9, .keys = 4096};
}

using Filters = std::vector<std::shared_ptr<LocalFilter>>;

Filters filters_for(const TreeShape& shape, const Window::Params& params) {
  Filters filters;
  for (std::size_t i = 0; i < shape.size(); ++i)
    filters.push_back(std::make_shared<LocalFilter>(AnyFilter(Window::make(params))));
  return filters;
}

Tree tree_of(const TreeShape& shape, const Tree::Options& options, const Filters& filters) {
  std::vector<std::unique_ptr<Node>> nodes;
  for (const auto& filter : filters) nodes.push_back(std::make_unique<LocalNode>(filter));
  return Tree(shape, options, std::move(nodes));
}

// The root over some sites.
Tree sliced_tree(const TreeShape& shape, const Tree::Options& options, const Filters& roots,
                 const Filters& others) {
  std::vector<std::unique_ptr<Node>> nodes;
  nodes.push_back(std::make_unique<FilterSlicesNode>(
      std::make_unique<FilterSlices>(FilterSlices::Options{.window = kMinute}, connect(roots))));
  for (const auto& filter : others) nodes.push_back(std::make_unique<LocalNode>(filter));
  return Tree(shape, options, std::move(nodes));
}

struct Stream {
  std::vector<unsigned> leaves;
  std::vector<Digest> digests;
  std::vector<std::int64_t> times_ms;
  std::size_t size() const { return digests.size(); }
};

// Events of all leaves in the order in which they come. Most are in time, some a little late, some a
// window or more. Now and then nothing comes for longer than a window.
Stream stream_for(const TreeShape& shape, std::uint64_t seed, std::size_t records,
                  std::int64_t step_ms) {
  SplitMix64 random(seed);
  const std::vector<unsigned> leaves = shape.leaves();
  Stream stream;
  std::int64_t now = kStart;
  for (std::size_t i = 0; i < records; ++i) {
    now += static_cast<std::int64_t>(random.next() % (2 * static_cast<std::uint64_t>(step_ms)));
    if (random.next() % 2000 == 0) now += 3 * kWindowMs;
    const std::uint64_t kind = random.next() % 16;
    const std::uint64_t most_late = kind < 10 ? 1 : kind < 15 ? kWindowMs : 3 * kWindowMs;
    stream.leaves.push_back(leaves[random.next() % leaves.size()]);
    stream.digests.push_back(digest_of(random.next() % 700));
    stream.times_ms.push_back(now - static_cast<std::int64_t>(random.next() % most_late));
  }
  return stream;
}

struct Judged {
  std::vector<Verdict> verdicts;
  std::vector<bool> late;
};

// By one window, without anything of trees.
Judged by_one_window(const Stream& stream, const Window::Params& params) {
  Window window = Window::make(params);
  Judged judged;
  for (std::size_t i = 0; i < stream.size(); ++i) {
    const Nanoseconds time = stream.times_ms[i] * kNanosecondsPerMs;
    Verdict verdict{};
    bool late = false;
    EXPECT_EQ(window.judge({&stream.digests[i], 1}, {&time, 1}, {&verdict, 1}, {&late, 1}), 1u);
    judged.verdicts.push_back(verdict);
    judged.late.push_back(late);
  }
  return judged;
}

void expect_same(Tree& tree, const Stream& stream, const Judged& expected, const char* what) {
  for (std::size_t i = 0; i < stream.size(); ++i) {
    Verdict verdict{};
    bool late = false;
    tree.observe(stream.leaves[i], {.digests = {&stream.digests[i], 1},
                                    .times_ms = {&stream.times_ms[i], 1},
                                    .verdicts = {&verdict, 1},
                                    .late = {&late, 1}});
    ASSERT_EQ(late, expected.late[i]) << what << ": event " << i;
    ASSERT_EQ(verdict, expected.verdicts[i]) << what << ": event " << i;
  }
}

// Filters that know the age of a key: what they remember depends on nothing else.
class EachWindow : public testing::TestWithParam<const char*> {};

TEST_P(EachWindow, SparseDenseAndOneWindowJudgeAlike) {
  const std::size_t records = count_of(6'000u, 20'000u);
  for (const WindowSpec& spec : {kMinute, kHourly}) {
    const Window::Params params = params_of(spec, GetParam());
    for (const std::uint64_t seed : {1u, 2u, 3u}) {
      // A leaf right below the root, and others further away.
      const TreeShape shape = seed == 1 ? TreeShape::even(2, 3) : TreeShape{{0, 0, 0, 1, 1, 3, 3}};
      const Stream stream = stream_for(shape, seed, records, spec == kMinute ? 100 : 2000);
      const Judged expected = by_one_window(stream, params);
      const auto duplicates = std::ranges::count(expected.verdicts, Verdict::duplicate);
      EXPECT_GT(duplicates, static_cast<std::ptrdiff_t>(records / 10));
      EXPECT_GT(std::ranges::count(expected.late, true), 10);
      Tree sparse = tree_of(shape, {.kind = Tree::Kind::sparse}, filters_for(shape, params));
      Tree dense = tree_of(shape, {.kind = Tree::Kind::dense}, filters_for(shape, params));
      expect_same(sparse, stream, expected, "sparse");
      expect_same(dense, stream, expected, "dense");
      EXPECT_GT(sparse.levels().back().hits, 0u);
      // A dense tree learns from the nodes above.
      EXPECT_GT(dense.levels().back().hits, sparse.levels().back().hits);
      EXPECT_EQ(sparse.ruled() + dense.ruled(), 0u);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Trees, EachWindow, testing::Values("exact-window", "cohort"),
                         [](const auto& tested) {
                           std::string name = tested.param;
                           std::erase(name, '-');
                           return name;
                         });

// Times that are too far ahead to be believed at once: after each quiet time, and of clocks that are
// wrong.
TEST_P(EachWindow, TimesThatAreNotBelievedAreJudgedAlike) {
  const TreeShape shape{{0, 0, 0, 1, 1, 3, 3}};
  Window::Params params = params_of(kMinute, GetParam());
  params.max_ahead = params.spec.size;
  Stream stream = stream_for(shape, 6, count_of(8'000u, 20'000u), 100);
  for (std::size_t i = 100; i < stream.size(); i += 997) {
    stream.digests[i] = digest_of(1'000'000 + i);
    stream.times_ms[i] += 10 * kWindowMs;
  }
  const Judged expected = by_one_window(stream, params);
  for (const Tree::Kind kind : {Tree::Kind::sparse, Tree::Kind::dense}) {
    Tree tree =
        tree_of(shape, {.kind = kind, .max_ahead = params.max_ahead}, filters_for(shape, params));
    expect_same(tree, stream, expected, "not believed");
    EXPECT_GT(tree.clock().disbelieved(), stream.size() / 1000);
  }
}

// By arrival: one time for all keys of a batch, which is believed however long nothing came.
TEST_P(EachWindow, ByArrivalTheyJudgeAlike) {
  const TreeShape shape = TreeShape::even(3, 2);
  Window::Params params = params_of(kMinute, GetParam());
  params.max_ahead = params.spec.size;
  const Stream stream = stream_for(shape, 7, count_of(6'000u, 20'000u), 100);
  for (const Tree::Kind kind : {Tree::Kind::sparse, Tree::Kind::dense}) {
    Window window = Window::make(params);
    Tree tree =
        tree_of(shape, {.kind = kind, .max_ahead = params.max_ahead}, filters_for(shape, params));
    std::size_t duplicates = 0;
    std::int64_t latest = 0;
    for (std::size_t i = 0; i < stream.size(); ++i) {
      // Clocks of machines go back a little now and then.
      latest = std::max(latest, stream.times_ms[i]);
      const std::int64_t now_ms = std::max(stream.times_ms[i], latest - 5'000);
      window.arrive(now_ms * kNanosecondsPerMs);
      const Verdict expected = window.observe(stream.digests[i]);
      Verdict verdict{};
      tree.observe(
          stream.leaves[i],
          {.digests = {&stream.digests[i], 1}, .now_ms = now_ms, .verdicts = {&verdict, 1}});
      ASSERT_EQ(verdict, expected) << "event " << i;
      duplicates += expected == Verdict::duplicate;
    }
    EXPECT_GT(duplicates, stream.size() / 10);
    EXPECT_EQ(tree.late(), 0u);
  }
}

// In its slack, such a filter takes a key for known or not by the keys around it, which are others in
// each node. Before and after it, a tree judges as the truth.
TEST(TreeWindows, OfFiltersWithoutAgesJudgeAsTheTruth) {
  const TreeShape shape = TreeShape::even(3, 2);
  const std::vector<unsigned> leaves = shape.leaves();
  const auto stream = testing_support::timed_stream({.seed = 5,
                                                     .records = count_of(10'000u, 30'000u),
                                                     .keys = 3000,
                                                     .start_ms = kStart,
                                                     .step_ms = 30,
                                                     .jitter_ms = 5000});
  for (const char* const filter : {"apbf", "apbbf"}) {
    const Window::Params params = params_of(kMinute, filter);
    const double slack = Window::make(params).slack();
    for (const Tree::Kind kind : {Tree::Kind::sparse, Tree::Kind::dense}) {
      Tree tree = tree_of(shape, {.kind = kind}, filters_for(shape, params));
      std::vector<Verdict> verdicts(stream.digests.size());
      for (std::size_t i = 0; i < verdicts.size(); ++i)
        tree.observe(leaves[i % 3], {.digests = {&stream.digests[i], 1},
                                     .times_ms = {&stream.times_ms[i], 1},
                                     .verdicts = {&verdicts[i], 1}});
      testing_support::expect_truth_in_window(
          stream, verdicts, kWindowMs,
          static_cast<std::int64_t>(static_cast<double>(kWindowMs) * (1 + slack)) + 1);
      // They cannot say since when they know a key, so a leaf learns nothing from above.
      EXPECT_EQ(tree.levels()[2].trips,
                verdicts.size() +
                    static_cast<std::size_t>(std::ranges::count(verdicts, Verdict::distinct)));
    }
  }
}

TEST(TreeWindows, ASlicedRootJudgesAlike) {
  const TreeShape shape = TreeShape::even(2, 4);
  const Window::Params params = params_of(kMinute, "exact-window");
  const Stream stream = stream_for(shape, 9, 6000, 100);
  const Judged expected = by_one_window(stream, params);
  for (const Tree::Kind kind : {Tree::Kind::sparse, Tree::Kind::dense}) {
    const Filters roots = filters_for(TreeShape::even(2, 4), params);
    Tree tree =
        sliced_tree(shape, {.kind = kind}, roots, filters_for(TreeShape::even(2, 3), params));
    expect_same(tree, stream, expected, "sliced");
    for (const auto& root : roots) EXPECT_GT(root->keys(), 0u);
  }
}

// One leaf, so that batches can be cut as one likes.
TEST(TreeWindows, ABatchIsJudgedAsItsEvents) {
  const TreeShape shape = TreeShape::even(3, 1);
  for (const char* const filter : {"exact-window", "cohort"}) {
    const Window::Params params = params_of(kMinute, filter);
    const Stream stream = stream_for(shape, 4, 12'000, 100);
    const Judged expected = by_one_window(stream, params);
    for (const Tree::Kind kind : {Tree::Kind::sparse, Tree::Kind::dense})
      for (const std::size_t batch : {7u, 500u, 12'000u}) {
        Tree tree = tree_of(shape, {.kind = kind}, filters_for(shape, params));
        std::vector<Verdict> verdicts(stream.size());
        const auto late = std::make_unique<bool[]>(stream.size());
        for (std::size_t at = 0; at < stream.size(); at += batch) {
          const std::size_t count = std::min(batch, stream.size() - at);
          tree.observe(2, {.digests = std::span(stream.digests).subspan(at, count),
                           .times_ms = std::span(stream.times_ms).subspan(at, count),
                           .verdicts = std::span(verdicts).subspan(at, count),
                           .late = {late.get() + at, count}});
        }
        for (std::size_t i = 0; i < stream.size(); ++i) {
          ASSERT_EQ(late[i], expected.late[i]) << batch << ": event " << i;
          ASSERT_EQ(verdicts[i], expected.verdicts[i]) << batch << ": event " << i;
        }
      }
  }
}

Verdict observe(Tree& tree, unsigned leaf, std::uint64_t key, std::int64_t time_ms) {
  const Digest digest = digest_of(key);
  Verdict verdict{};
  tree.observe(leaf,
               {.digests = {&digest, 1}, .times_ms = {&time_ms, 1}, .verdicts = {&verdict, 1}});
  return verdict;
}

// What a leaf learns from above it forgets when the root does: set as of now, leaf 2 would hold the
// key back until 106 s.
TEST(TreeWindows, ADenseLeafForgetsWhenTheRootDoes) {
  for (const char* const filter : {"exact-window", "cohort"}) {
    const TreeShape shape = TreeShape::even(2, 2);
    Tree tree = tree_of(shape, {}, filters_for(shape, params_of(kMinute, filter)));
    EXPECT_EQ(observe(tree, 1, 1, kStart), Verdict::distinct);
    EXPECT_EQ(observe(tree, 2, 1, kStart + 46'000), Verdict::duplicate);
    EXPECT_EQ(observe(tree, 2, 1, kStart + 50'000), Verdict::duplicate);
    EXPECT_EQ(tree.levels()[1].hits, 1u) << "the leaf knew it";
    EXPECT_EQ(observe(tree, 2, 1, kStart + 70'000), Verdict::distinct);
    EXPECT_EQ(observe(tree, 1, 1, kStart + 71'000), Verdict::duplicate);
  }
}

// Two producers, of whom one is half a minute behind: nothing is lost, and what passes twice is what
// the producer that is behind could not know.
TEST(TreeWindows, AProducerWhoseClockIsBehindLosesNothing) {
  const TreeShape shape = TreeShape::even(2, 2);
  const Filters filters = filters_for(shape, params_of(kMinute, "exact-window"));
  for (const Tree::Kind kind : {Tree::Kind::sparse, Tree::Kind::dense}) {
    for (const auto& filter : filters) filter->come_back_empty();
    Tree ahead = tree_of(shape, {.kind = kind}, filters);
    Tree behind = tree_of(shape, {.kind = kind}, filters);
    EXPECT_EQ(observe(ahead, 1, 1, kStart), Verdict::distinct);
    EXPECT_EQ(observe(ahead, 1, 2, kStart + 65'000), Verdict::distinct);
    // Late for the root, and not for its producer: it passes.
    EXPECT_EQ(observe(behind, 2, 1, kStart + 1'000), Verdict::distinct);
    EXPECT_EQ(observe(behind, 2, 3, kStart + 35'000), Verdict::distinct);
    EXPECT_EQ(observe(ahead, 1, 3, kStart + 66'000), Verdict::duplicate);
    EXPECT_EQ(observe(behind, 2, 2, kStart + 36'000), Verdict::duplicate);
    EXPECT_EQ(behind.late() + ahead.late(), 0u);
  }
}

// One wild clock neither ends the windows of all others, nor loses an event.
TEST(TreeWindows, AWildClockIsNotBelieved) {
  const TreeShape shape = TreeShape::even(2, 2);
  constexpr std::int64_t kYear = std::int64_t{365} * 86'400'000;
  Window::Params params = params_of(kMinute, "exact-window");
  params.max_ahead = params.spec.size;
  const Filters filters = filters_for(shape, params);
  for (const Tree::Kind kind : {Tree::Kind::sparse, Tree::Kind::dense}) {
    for (const auto& filter : filters) filter->come_back_empty();
    const Tree::Options options{.kind = kind, .max_ahead = params.max_ahead};
    Tree tree = tree_of(shape, options, filters), wild = tree_of(shape, options, filters);
    EXPECT_EQ(observe(tree, 1, 1, kStart), Verdict::distinct);
    EXPECT_EQ(observe(tree, 1, 2, kStart + 1), Verdict::distinct);
    // The first of its events: this producer believes it, and the nodes do not.
    EXPECT_EQ(observe(wild, 2, 3, kStart + kYear), Verdict::distinct);
    EXPECT_EQ(observe(tree, 1, 1, kStart + 2), Verdict::duplicate);
    EXPECT_EQ(observe(tree, 2, 2, kStart + 3), Verdict::duplicate);
    // Amid others.
    EXPECT_EQ(observe(tree, 1, 1, kStart + kYear), Verdict::distinct)
        << "perhaps it is a year later";
    EXPECT_EQ(observe(tree, 1, 2, kStart + 4), Verdict::duplicate);
    EXPECT_EQ(tree.late(), 0u);
    EXPECT_EQ(tree.clock().disbelieved(), 1u);
  }
}

TEST(TreeWindows, TopDownTestingLosesNoDuplicates) {
  const TreeShape shape = TreeShape::even(4, 2);
  const Window::Params params = params_of(kMinute, "exact-window");
  const Stream stream = stream_for(shape, 8, 6000, 100);
  const Judged expected = by_one_window(stream, params);
  for (const Tree::Kind kind : {Tree::Kind::sparse, Tree::Kind::dense})
    for (const unsigned check_to : {1u, 3u}) {
      Tree tree = tree_of(shape, {.kind = kind, .check_to = check_to}, filters_for(shape, params));
      expect_same(tree, stream, expected, "checked");
      EXPECT_GT(tree.levels()[check_to].checks, 0u);
    }
}

TEST(TreeWindows, RefusesWhatCannotBe) {
  const TreeShape two = TreeShape::even(2, 1);
  const auto refused = [&](const Window::Params& root, const Window::Params& leaf) {
    EXPECT_THROW(tree_of(two, {},
                         {std::make_shared<LocalFilter>(AnyFilter(Window::make(root))),
                          std::make_shared<LocalFilter>(AnyFilter(Window::make(leaf)))}),
                 BadParameters);
  };
  const Window::Params minute = params_of(kMinute, "cohort");
  refused(minute, params_of(kHourly, "cohort"));
  const Window::Params count = params_of({WindowSpec::Kind::count, 1000}, "cohort");
  refused(count, count);
  Window::Params refreshed = minute;
  refreshed.anchor = Anchor::refreshed;
  refused(refreshed, refreshed);
  Tree tree = tree_of(two, {}, filters_for(two, minute));
  std::vector<Verdict> verdicts(1);
  EXPECT_THROW(tree.observe(1, std::vector{digest_of(1)}, verdicts), BadParameters) << "no times";
  EXPECT_THROW(observe(tree, 0, 1, kStart), BadParameters) << "no leaf";
  EXPECT_THROW(observe(tree, 1, 1, FilterSlices::kFarthestMs + 1), BadParameters);
}

}  // namespace
}  // namespace sluice::cluster
