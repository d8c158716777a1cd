// Producers that race for a key: one of them wins.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <functional>
#include <thread>
#include <vector>

#include "sluice/base/random.hpp"
#include "sluice/cluster/local_site.hpp"
#include "sluice/cluster/tree.hpp"
#include "tests/support/digests.hpp"

namespace sluice::cluster {
namespace {

using testing_support::digest_of;
using Memories = std::vector<std::shared_ptr<LocalMemory>>;

constexpr unsigned kThreads = 4;
constexpr std::size_t kKeys = 2000;

// Every thread brings every key, in an order of its own, and counts those it was let through with.
// The thread makes `observe` itself: connections belong to one thread.
using Observe = std::function<Verdict(const Digest&)>;
std::vector<unsigned> race(const std::function<Observe(unsigned thread)>& make) {
  std::vector<std::atomic<unsigned>> wins(kKeys);
  std::atomic<unsigned> ready = 0;
  std::vector<std::jthread> threads;
  for (unsigned thread = 0; thread < kThreads; ++thread)
    threads.emplace_back([&, thread] {
      const Observe observe = make(thread);
      ++ready;
      while (ready < kThreads) std::this_thread::yield();
      // Two by two the same order, so that they meet at the same keys.
      SplitMix64 random(thread / 2);
      std::vector<std::size_t> order(kKeys);
      for (std::size_t i = 0; i < kKeys; ++i) order[i] = i;
      for (std::size_t i = kKeys; i > 1; --i) std::swap(order[i - 1], order[random.next() % i]);
      for (const std::size_t key : order) wins[key] += observe(digest_of(key)) == Verdict::distinct;
    });
  threads.clear();
  return {wins.begin(), wins.end()};
}

void expect_once(const std::vector<unsigned>& wins) {
  EXPECT_EQ(std::ranges::count(wins, 1u), static_cast<std::ptrdiff_t>(kKeys));
}

// 600 bits per key: a false positive would be a key that no producer wins, and there is none.
constexpr std::uint64_t kBits = kKeys * 600;

Memories memories_for(const SliceParams& params) {
  const SliceMap map(params);
  return local_memories(map.sites(), map.site_bits());
}

TEST(Races, HorizontalSlicesTestAndSet) {
  const SliceParams params{Slicing::horizontal, kBits, 4, 8, 1, 1};
  const Memories memories = memories_for(params);
  expect_once(race([&](unsigned) -> Observe {
    auto slices = std::make_shared<Slices>(Slices::Options{.slices = params, .test_and_set = true},
                                           connect(memories));
    return [slices](const Digest& digest) { return slices->observe(digest); };
  }));
}

TEST(Races, VerticalSlicesWithClaims) {
  for (const Slicing slicing : {Slicing::vertical, Slicing::horizontal_vertical})
    for (const bool test_and_set : {false, true}) {
      const unsigned inner = slicing == Slicing::vertical ? 1 : 4;
      const SliceParams params{slicing, kBits, 4, 8, inner, 1};
      const Memories memories = memories_for(params);
      expect_once(race([&](unsigned) -> Observe {
        auto slices = std::make_shared<Slices>(
            Slices::Options{.slices = params, .test_and_set = test_and_set, .claims = true},
            connect(memories));
        return [slices](const Digest& digest) { return slices->observe(digest); };
      }));
    }
}

TEST(Races, TreesFromEveryLeaf) {
  for (const Tree::Kind kind : {Tree::Kind::sparse, Tree::Kind::dense}) {
    const TreeShape shape = TreeShape::even(3, 2);
    const SliceParams params{Slicing::vertical, kBits, 4, 1, 1, 1};
    const Memories memories = local_memories(shape.size(), kBits);
    expect_once(race([&](unsigned thread) -> Observe {
      std::vector<std::unique_ptr<Slices>> nodes;
      for (const auto& memory : memories)
        nodes.push_back(std::make_unique<Slices>(
            Slices::Options{
                .slices = params, .rule = model::FaultRule::distinct(4), .test_and_set = true},
            connect(std::span(&memory, 1))));
      auto tree = std::make_shared<Tree>(shape, Tree::Options{.kind = kind}, std::move(nodes));
      const std::vector<unsigned> leaves = shape.leaves();
      const unsigned leaf = leaves[thread % leaves.size()];
      return [tree, leaf](const Digest& digest) { return tree->observe(leaf, digest); };
    }));
  }
}

// Another producer comes in between two requests of this one.
class InterruptedSite final : public Site {
 public:
  InterruptedSite(std::shared_ptr<LocalMemory> memory, Verb at, std::function<void()> then)
      : site_(std::move(memory)), at_(at), then_(std::move(then)) {}
  std::uint64_t cells() const override { return site_.cells(); }
  unsigned cell_bits() const override { return site_.cell_bits(); }
  void send(const Request& request) override {
    site_.send(request);
    if (request.verb == at_ && !request.positions.empty() && then_) std::exchange(then_, nullptr)();
  }
  Reply receive(std::span<std::uint32_t> answers) override { return site_.receive(answers); }

 private:
  LocalSite site_;
  Verb at_;
  std::function<void()> then_;
};

// How many of two producers win, when the second comes while the first has tested and not set.
int winners(bool claims) {
  const SliceParams params{Slicing::vertical, 4000, 4, 4, 1, 1};
  const Memories memories = memories_for(params);
  const Slices::Options options{.slices = params, .claims = claims};
  Slices second(options, connect(memories));
  int wins = 0;
  bool came = false;
  const auto come_in = [&] {
    if (!std::exchange(came, true)) wins += second.observe(digest_of(1)) == Verdict::distinct;
  };
  std::vector<std::unique_ptr<Site>> sites;
  for (const auto& memory : memories)
    sites.push_back(std::make_unique<InterruptedSite>(memory, Verb::test, come_in));
  Slices first(options, std::move(sites));
  wins += first.observe(digest_of(1)) == Verdict::distinct;
  EXPECT_TRUE(came);
  // Both are done: the key is known, and no claim is left.
  EXPECT_EQ(second.observe(digest_of(1)), Verdict::duplicate);
  EXPECT_EQ(second.observe(digest_of(2)), Verdict::distinct);
  return wins;
}

TEST(Races, WithoutAClaimBothMayWinVerticalSlices) {
  EXPECT_EQ(winners(false), 2);
  EXPECT_EQ(winners(true), 1);
}

// Its lease ended before the key was set: another producer may have won, too, and it is said.
TEST(Races, AClaimThatHadEndedIsSaid) {
  const SliceParams params{Slicing::vertical, 4000, 4, 4, 1, 1};
  const Memories memories = memories_for(params);
  const Slices::Options options{.slices = params, .claims = true};
  std::vector<std::unique_ptr<Site>> sites;
  for (const auto& memory : memories)
    sites.push_back(std::make_unique<InterruptedSite>(memory, Verb::test, [&] {
      for (const auto& each : memories) each->drop_claims();
    }));
  Slices first(options, std::move(sites)), second(options, connect(memories));
  EXPECT_EQ(first.observe(digest_of(1)), Verdict::distinct);
  EXPECT_EQ(first.traffic().expired, 1u);
  EXPECT_EQ(second.observe(digest_of(1)), Verdict::duplicate);
  EXPECT_EQ(second.traffic().expired, 0u);
}

TEST(Races, AClaimOfAProducerThatIsGoneHoldsUntilItIsDropped) {
  const SliceParams params{Slicing::vertical, 4000, 4, 4, 1, 1};
  const Memories memories = memories_for(params);
  const SliceMap map(params);
  const std::uint64_t name = digest_of(1).lo;
  std::uint8_t held = 0;
  LocalSite gone(memories[map.claim_site(digest_of(1))]);
  gone.ask(Verb::claim, {&name, 1}, {&held, 1});
  Slices slices({.slices = params, .claims = true}, connect(memories));
  EXPECT_EQ(slices.observe(digest_of(1)), Verdict::duplicate);
  // No other producer can release it.
  LocalSite other(memories[map.claim_site(digest_of(1))]);
  other.ask(Verb::release, {&name, 1}, {});
  EXPECT_EQ(slices.observe(digest_of(1)), Verdict::duplicate);
  for (const auto& memory : memories) memory->drop_claims();
  EXPECT_EQ(slices.observe(digest_of(1)), Verdict::distinct);
  // With its site gone a key is judged without a claim, and that is counted.
  memories[map.claim_site(digest_of(2))]->fail();
  slices.observe(digest_of(2));
  EXPECT_EQ(slices.traffic().unclaimed, 1u);
}

}  // namespace
}  // namespace sluice::cluster
