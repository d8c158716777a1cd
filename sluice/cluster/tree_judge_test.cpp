// A tree behind the interface of judges: the same stream gets the verdicts of a Judge.
#include "sluice/cluster/tree_judge.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "sluice/base/error.hpp"
#include "sluice/base/random.hpp"
#include "sluice/filters/catalogue.hpp"
#include "sluice/judge/judge.hpp"
#include "tests/support/digests.hpp"

namespace sluice::cluster {
namespace {

using testing_support::digest_of;

constexpr Nanoseconds kMs = 1'000'000, kSecond = 1000 * kMs;
constexpr Nanoseconds kStart = 1'700'000'000 * kSecond;
constexpr WindowSpec kMinute = {WindowSpec::Kind::time, 60'000'000'000};

Hasher hasher() {
  return {HashKind::highway, Secret::from_seed(3)};
}

AnyFilter exact(std::optional<WindowSpec> window) {
  if (!window) return make_filter("exact", {});
  return AnyFilter(
      Window::make({.spec = *window, .filter = "exact-window", .max_ahead = window->size}));
}

TreeJudge tree_judge(Tree::Kind kind, std::optional<WindowSpec> window,
                     std::function<void()> before = {}) {
  const TreeShape shape = TreeShape::even(2, 1);
  std::vector<std::unique_ptr<Node>> nodes;
  for (std::size_t i = 0; i < shape.size(); ++i)
    nodes.push_back(std::make_unique<LocalNode>(std::make_shared<LocalFilter>(exact(window))));
  Tree::Options options{.kind = kind};
  if (window) options.max_ahead = window->size;
  return TreeJudge({.hasher = hasher(), .leaf = 1, .slack = 0.25, .before = std::move(before)},
                   Tree(shape, options, std::move(nodes)));
}

struct Stream {
  std::vector<Digest> digests;
  std::vector<Nanoseconds> times;
};

// Times in whole milliseconds, up to two windows late, and a few far ahead.
Stream stream() {
  SplitMix64 random(5);
  Stream made;
  for (std::int64_t i = 0; i < 10'000; ++i) {
    made.digests.push_back(digest_of(random.next() % 800));
    const std::int64_t late = random.next() % 8 == 0
                                  ? static_cast<std::int64_t>(random.next() % 120'000)
                                  : static_cast<std::int64_t>(random.next() % 300);
    made.times.push_back(kStart + (i * 60 - late) * kMs);
    if (i % 999 == 500) {
      made.digests.back() = digest_of(1'000'000 + static_cast<std::uint64_t>(i));
      made.times.back() += 3600 * kSecond;
    }
  }
  return made;
}

TEST(TreeJudge, JudgesAsAJudgeDoes) {
  const Stream events = stream();
  for (const Tree::Kind kind : {Tree::Kind::sparse, Tree::Kind::dense})
    for (const bool by_time : {true, false})
      for (const std::size_t together : {1u, 300u}) {
        const auto window = by_time ? std::optional(kMinute) : std::nullopt;
        TreeJudge tree = tree_judge(kind, window);
        Judge own(hasher(), exact(window));
        std::size_t duplicates = 0, late_events = 0;
        for (std::size_t at = 0; at < events.digests.size(); at += together) {
          const std::size_t count = std::min(together, events.digests.size() - at);
          std::vector<Verdict> verdicts(count), expected(count);
          const auto late = std::make_unique<bool[]>(count), was = std::make_unique<bool[]>(count);
          Judge::Batch batch{.digests = std::span(events.digests).subspan(at, count),
                             .verdicts = verdicts};
          if (by_time) {
            batch.times = std::span(events.times).subspan(at, count);
            batch.late = {late.get(), count};
          }
          ASSERT_EQ(tree.judge(batch), count);
          batch.verdicts = expected;
          if (by_time) batch.late = {was.get(), count};
          ASSERT_EQ(own.judge(batch), count);
          ASSERT_EQ(verdicts, expected) << at;
          for (std::size_t i = 0; i < count; ++i) {
            ASSERT_EQ(late[i], was[i]) << at + i;
            late_events += late[i];
          }
          duplicates += count_duplicates(verdicts);
        }
        EXPECT_GT(duplicates, 4000u);
        EXPECT_EQ(late_events > 100, by_time);
        EXPECT_EQ(tree.tree().late(), late_events);
      }
}

TEST(TreeJudge, SaysWhatTimeItIs) {
  TreeJudge judge = tree_judge(Tree::Kind::dense, kMinute);
  ASSERT_TRUE(judge.pace());
  EXPECT_EQ(judge.pace()->spec, kMinute);
  EXPECT_EQ(judge.pace()->slack, 0.25);
  EXPECT_FALSE(judge.pace()->clock.started());
  const Digest key = digest_of(1);
  Verdict verdict{};
  EXPECT_THROW(static_cast<void>(judge.judge({.digests = {&key, 1}, .verdicts = {&verdict, 1}})),
               BadParameters);
  const auto arrive = [&](Nanoseconds now) {
    EXPECT_EQ(judge.judge({.digests = {&key, 1}, .verdicts = {&verdict, 1}, .now = now}), 1u);
    return verdict;
  };
  EXPECT_EQ(arrive(kStart), Verdict::distinct);
  EXPECT_EQ(arrive(kStart + 59 * kSecond), Verdict::duplicate);
  EXPECT_EQ(judge.pace()->clock.now(), kStart + 59 * kSecond);
  EXPECT_EQ(arrive(kStart + 100 * kSecond), Verdict::distinct);
  EXPECT_FALSE(tree_judge(Tree::Kind::dense, std::nullopt).pace());
  EXPECT_TRUE(judge.asks_for_digests());
  EXPECT_EQ(judge.own(), nullptr);
}

TEST(TreeJudge, EndsBeforeMoreIsJudged) {
  bool gone = false;
  TreeJudge judge = tree_judge(Tree::Kind::sparse, std::nullopt, [&] {
    if (gone) throw BadParameters("gone");
  });
  const Digest one = digest_of(1), two = digest_of(2);
  Verdict verdict{};
  EXPECT_EQ(judge.judge({.digests = {&one, 1}, .verdicts = {&verdict, 1}}), 1u);
  gone = true;
  EXPECT_THROW(static_cast<void>(judge.judge({.digests = {&two, 1}, .verdicts = {&verdict, 1}})),
               BadParameters);
  gone = false;
  EXPECT_EQ(judge.judge({.digests = {&two, 1}, .verdicts = {&verdict, 1}}), 1u);
  EXPECT_EQ(verdict, Verdict::distinct) << "it was not remembered";
}

// It waits before each request, and is otherwise the node.
TEST(TreeJudge, ANodeThatIsFarAway) {
  const TreeShape shape = TreeShape::even(2, 1);
  unsigned waits = 0;
  std::vector<std::unique_ptr<Node>> nodes;
  nodes.push_back(std::make_unique<DelayedNode>(
      std::make_unique<LocalNode>(std::make_shared<LocalFilter>(exact(kMinute))),
      [&] { ++waits; }));
  nodes.push_back(std::make_unique<LocalNode>(std::make_shared<LocalFilter>(exact(kMinute))));
  TreeJudge judge({.hasher = hasher(), .leaf = 1}, Tree(shape, {}, std::move(nodes)));
  const Digest key = digest_of(1);
  Verdict verdict{};
  for (int i = 0; i < 3; ++i)
    EXPECT_EQ(judge.judge({.digests = {&key, 1}, .verdicts = {&verdict, 1}, .now = kStart + i}),
              1u);
  EXPECT_EQ(verdict, Verdict::duplicate);
  EXPECT_EQ(waits, 1u) << "the leaf knows the others";
}

}  // namespace
}  // namespace sluice::cluster
