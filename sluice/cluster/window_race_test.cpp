// Producers that race for a key on windows over slices: with claims one of them wins.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <functional>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "tests/support/counts.hpp"
#include "tests/support/window_slices.hpp"

namespace sluice::cluster {
namespace {

using namespace testing_support;

constexpr std::int64_t kWindow = 30'000;
constexpr std::int64_t kStart = 1'700'000'000'000;

class WindowRaces : public testing::TestWithParam<WindowCase> {
 protected:
  LocalWindow vertical(const WindowSlices::Options& options) {
    return {GetParam(), GetParam().slices(Slicing::vertical, 400'000), options};
  }
};
INSTANTIATE_TEST_SUITE_P(Of, WindowRaces, testing::ValuesIn(kWindows),
                         [](const auto& which) { return which.param.name; });

// Another producer comes in between two requests of this one.
class InterruptedPage final : public Site {
 public:
  using Then = std::function<void()>;
  InterruptedPage(std::unique_ptr<Site> site, Verb at, std::shared_ptr<Then> then)
      : site_(std::move(site)), at_(at), then_(std::move(then)) {}
  std::uint64_t cells() const override { return site_->cells(); }
  unsigned cell_bits() const override { return site_->cell_bits(); }
  void send(const Request& request) override {
    site_->send(request);
    if (request.verb == at_ && !request.positions.empty() && *then_) std::exchange(*then_, {})();
  }
  Reply receive(std::span<std::uint32_t> answers) override { return site_->receive(answers); }

 private:
  std::unique_ptr<Site> site_;
  Verb at_;
  std::shared_ptr<Then> then_;
};

class InterruptedPages final : public Pages {
 public:
  InterruptedPages(std::unique_ptr<Pages> pages, Verb at,
                   std::shared_ptr<InterruptedPage::Then> then)
      : pages_(std::move(pages)), at_(at), then_(std::move(then)) {}
  std::uint64_t cells() const override { return pages_->cells(); }
  unsigned cell_bits() const override { return pages_->cell_bits(); }
  std::unique_ptr<Site> open(std::int64_t number) override {
    return std::make_unique<InterruptedPage>(pages_->open(number), at_, then_);
  }

 private:
  std::unique_ptr<Pages> pages_;
  Verb at_;
  std::shared_ptr<InterruptedPage::Then> then_;
};

// A producer whose first write, when it has read all, is followed by `then`.
std::unique_ptr<WindowSlices> interrupted(const LocalWindow& window, InterruptedPage::Then then) {
  const Verb at = window.window.aged() ? Verb::set : Verb::test_and_set;
  const auto shared = std::make_shared<InterruptedPage::Then>(std::move(then));
  std::vector<std::unique_ptr<Pages>> sites;
  for (auto& pages : connect_pages(window.memories))
    sites.push_back(std::make_unique<InterruptedPages>(std::move(pages), at, shared));
  return window.window.make(window.slices, window.options, std::move(sites));
}

TEST_P(WindowRaces, WithAClaimOneOfTwoProducersWins) {
  for (const bool claims : {false, true}) {
    const LocalWindow window = vertical({.window = window_of(kWindow), .claims = claims});
    const auto second = window.producer();
    int wins = 0;
    const auto first = interrupted(
        window, [&] { wins += observe(*second, digest_of(1), kStart) == Verdict::distinct; });
    wins += observe(*first, digest_of(1), kStart) == Verdict::distinct;
    EXPECT_EQ(wins, claims ? 1 : 2);
    // Both are done: the key is known, and no claim is left.
    EXPECT_EQ(observe(*second, digest_of(1), kStart + 1), Verdict::duplicate);
    EXPECT_EQ(observe(*second, digest_of(1), kStart + 2 * kWindow + second->slack_ms()),
              Verdict::distinct);
    EXPECT_EQ(first->traffic().expired + second->traffic().expired, 0u);
  }
}

// Its lease ended before the key was written: another producer may have won, too, and it is said.
TEST_P(WindowRaces, AClaimThatHadEndedIsSaid) {
  const LocalWindow window = vertical({.window = window_of(kWindow), .claims = true});
  const auto second = window.producer();
  int wins = 0;
  const auto first = interrupted(window, [&] {
    for (const auto& memory : window.memories) memory->drop_claims();
    wins += observe(*second, digest_of(1), kStart) == Verdict::distinct;
  });
  wins += observe(*first, digest_of(1), kStart) == Verdict::distinct;
  EXPECT_EQ(wins, 2);
  EXPECT_EQ(first->traffic().expired, 1u);
  EXPECT_EQ(second->traffic().expired, 0u);
}

// Twice in one batch, and more than a window apart: the second is no duplicate of the first, whose
// claim the producer still holds.
TEST_P(WindowRaces, AKeyIsClaimedOncePerBatch) {
  const LocalWindow window = vertical({.window = window_of(kWindow), .claims = true});
  const auto slices = window.producer();
  const std::vector<Digest> keys(4, digest_of(1));
  const std::int64_t apart = kWindow + slices->slack_ms();
  std::vector<Verdict> verdicts(4);
  slices->observe(keys, std::vector{kStart, kStart + 1, kStart + apart, kStart + apart}, verdicts);
  EXPECT_EQ(verdicts, (std::vector{Verdict::distinct, Verdict::duplicate, Verdict::distinct,
                                   Verdict::duplicate}));
  window.memories[window.producer()->map().claim_site(digest_of(2))]->fail();
  observe(*slices, digest_of(2), kStart + apart);
  EXPECT_EQ(slices->traffic().unclaimed, 1u);
}

// Every thread brings every key, two by two in the same order, so that they meet. After a window
// they bring them again, and again one wins.
TEST_P(WindowRaces, OneOfManyThreadsWins) {
  constexpr unsigned kThreads = 4;
  constexpr unsigned kRounds = 2;
  const std::size_t keys = count_of(300u, 1000u, 5000u);
  for (const Slicing slicing : {Slicing::vertical, Slicing::horizontal_vertical,
                                Slicing::vertical_horizontal, Slicing::general}) {
    const LocalWindow window(GetParam(), GetParam().slices(slicing, keys * 600),
                             {.window = window_of(kWindow), .claims = true});
    std::vector<std::atomic<unsigned>> wins(keys);
    std::atomic<unsigned> ready = 0, expired = 0;
    for (unsigned round = 0; round < kRounds; ++round) {
      ready = 0;
      std::vector<std::jthread> threads;
      for (unsigned thread = 0; thread < kThreads; ++thread)
        threads.emplace_back([&, thread] {
          const auto slices = window.producer();
          ++ready;
          while (ready < kThreads) std::this_thread::yield();
          SplitMix64 random(thread / 2);
          std::vector<std::size_t> order(keys);
          for (std::size_t i = 0; i < keys; ++i) order[i] = i;
          for (std::size_t i = keys; i > 1; --i) std::swap(order[i - 1], order[random.next() % i]);
          for (const std::size_t key : order)
            wins[key] +=
                observe(*slices, digest_of(key), kStart + 3 * kWindow * round) == Verdict::distinct;
          expired += static_cast<unsigned>(slices->traffic().expired);
        });
    }
    for (std::size_t key = 0; key < keys; ++key)
      ASSERT_EQ(wins[key], kRounds) << name_of(slicing) << key;
    EXPECT_EQ(expired, 0u);
  }
}

}  // namespace
}  // namespace sluice::cluster
