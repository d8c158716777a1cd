#include "sluice/cluster/shared_judge.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "sluice/base/error.hpp"
#include "sluice/cluster/filter_slices.hpp"
#include "sluice/cluster/local_filter.hpp"
#include "sluice/filters/catalogue.hpp"
#include "sluice/window/window.hpp"
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

AnyFilter exact(std::optional<WindowSpec> window, std::optional<std::uint64_t> max_ahead = {}) {
  if (!window) return make_filter("exact", {});
  return AnyFilter(
      Window::make({.spec = *window, .filter = "exact-window", .max_ahead = max_ahead}));
}

struct Shared {
  Shared(std::uint32_t sites, std::optional<WindowSpec> window,
         std::optional<std::uint64_t> max_ahead = {}) {
    for (std::uint32_t i = 0; i < sites; ++i)
      filters.push_back(std::make_shared<LocalFilter>(exact(window)));
    slices =
        std::make_unique<FilterSlices>(FilterSlices::Options{.window = window}, connect(filters));
    judge = std::make_unique<SharedJudge>(
        SharedJudge::Options{.hasher = hasher(), .window = window, .max_ahead = max_ahead},
        [this](auto digests, auto times, auto verdicts) {
          slices->observe(digests, times, verdicts);
        });
  }
  std::vector<std::shared_ptr<LocalFilter>> filters;
  std::unique_ptr<FilterSlices> slices;
  std::unique_ptr<SharedJudge> judge;
};

struct Judged {
  std::vector<Verdict> verdicts;
  std::vector<bool> late;
  friend bool operator==(const Judged&, const Judged&) = default;
};

Judged judged(StreamJudge& judge, const std::vector<Digest>& digests,
              const std::vector<Nanoseconds>& times, std::size_t batch) {
  Judged all;
  for (std::size_t at = 0; at < digests.size(); at += batch) {
    const std::size_t count = std::min(batch, digests.size() - at);
    std::vector<Verdict> verdicts(count);
    const auto late = std::make_unique<bool[]>(count);
    Judge::Batch part{.digests = std::span(digests).subspan(at, count), .verdicts = verdicts};
    if (!times.empty()) {
      part.times = std::span(times).subspan(at, count);
      part.late = {late.get(), count};
    }
    EXPECT_EQ(judge.judge(part), count);
    all.verdicts.insert(all.verdicts.end(), verdicts.begin(), verdicts.end());
    all.late.insert(all.late.end(), late.get(), late.get() + count);
  }
  return all;
}

struct Stream {
  std::vector<Digest> digests;
  std::vector<Nanoseconds> times;
};

// Repeats come well before the end of the window, or well after it: near the end a site may be
// behind, because it sees fewer events. Some clocks are wrong.
Stream stream_of(std::size_t records) {
  SplitMix64 random(5);
  Stream stream;
  struct Key {
    std::uint64_t number;
    Nanoseconds delivered;
  };
  std::vector<Key> keys;
  for (std::size_t i = 0; i < records; ++i) {
    const auto early = static_cast<Nanoseconds>(random.next() % 5000) * kMs;
    const Nanoseconds time = kStart + static_cast<Nanoseconds>(i) * 50 * kMs - early;
    Key* const again = keys.empty() ? nullptr : &keys[random.next() % keys.size()];
    const Nanoseconds age = again == nullptr ? 0 : time - again->delivered;
    const bool wrong = random.next() % 100 == 0;
    if (wrong && i % 2 == 0) {
      // Years ahead, and no two of them agree.
      stream.digests.push_back(digest_of(1'000'000 + i));
      stream.times.push_back(time + static_cast<Nanoseconds>(i + 1) * 10'000'000 * kMs);
    } else if (wrong) {
      stream.digests.push_back(digest_of(again == nullptr ? 0 : again->number));
      stream.times.push_back(time - 90 * kSecond);
    } else if (again != nullptr && ((age > 0 && age < 40 * kSecond) || age > 80 * kSecond)) {
      if (age > 80 * kSecond) again->delivered = time;
      stream.digests.push_back(digest_of(again->number));
      stream.times.push_back(time);
    } else {
      keys.push_back({i, time});
      stream.digests.push_back(digest_of(i));
      stream.times.push_back(time);
    }
  }
  return stream;
}

TEST(SharedJudge, JudgesAsAJudgeOfThisProcess) {
  const auto [digests, times] = stream_of(20'000);
  for (const bool timed : {true, false}) {
    const auto window = timed ? std::optional(kMinute) : std::nullopt;
    Judge judge(hasher(), exact(window, kMinute.size));
    OwnJudge own(judge);
    const Judged expected = judged(own, digests, timed ? times : std::vector<Nanoseconds>(), 700);
    EXPECT_GT(count_duplicates(expected.verdicts), 1000u);
    EXPECT_EQ(std::ranges::count(expected.late, true) > 50, timed);
    for (const std::uint32_t sites : {1u, 7u})
      for (const std::size_t batch : {1u, 100u, 2048u}) {
        Shared shared(sites, window, kMinute.size);
        EXPECT_EQ(judged(*shared.judge, digests, timed ? times : std::vector<Nanoseconds>(), batch),
                  expected)
            << sites << " sites, batches of " << batch;
        EXPECT_EQ(shared.judge->disbelieved(), timed ? judge.window()->clock().disbelieved() : 0u);
      }
  }
}

TEST(SharedJudge, GoesByTheTimeOfArrival) {
  Shared shared(3, kMinute);
  const std::vector<Digest> digests = {digest_of(1), digest_of(2), digest_of(1)};
  const auto duplicates_at = [&](Nanoseconds now) {
    std::vector<Verdict> verdicts(3);
    EXPECT_EQ(shared.judge->judge({.digests = digests, .verdicts = verdicts, .now = now}), 3u);
    return count_duplicates(verdicts);
  };
  EXPECT_EQ(duplicates_at(kStart), 1u);
  EXPECT_EQ(duplicates_at(kStart + 59 * kSecond), 3u);
  EXPECT_EQ(duplicates_at(kStart + 61 * kSecond), 1u);
  std::vector<Verdict> verdicts(3);
  EXPECT_THROW(static_cast<void>(shared.judge->judge({.digests = digests, .verdicts = verdicts})),
               BadParameters);
}

TEST(SharedJudge, SaysHowItsWindowPasses) {
  Shared forever(1, std::nullopt), minute(1, kMinute, kSecond);
  EXPECT_FALSE(forever.judge->pace().has_value());
  EXPECT_EQ(minute.judge->pace()->spec, kMinute);
  EXPECT_EQ(minute.judge->pace()->limits.late_after, 60 * kSecond);
  EXPECT_EQ(minute.judge->pace()->limits.max_ahead, kSecond);
  EXPECT_FALSE(minute.judge->pace()->clock.started());
  judged(*minute.judge, {digest_of(1)}, {kStart}, 1);
  EXPECT_EQ(minute.judge->pace()->clock.now(), kStart);
  EXPECT_EQ(minute.judge->latest(), kStart);
  EXPECT_EQ(minute.judge->own(), nullptr);
}

// Two clocks agree: both events are remembered at their times.
TEST(SharedJudge, BelievesATimeThatASecondEventConfirms) {
  Shared shared(5, kMinute, kMinute.size);
  const std::vector<Digest> digests = {digest_of(1), digest_of(2), digest_of(3)};
  const Nanoseconds later = kStart + 3600 * kSecond;
  EXPECT_EQ(count_duplicates(
                judged(*shared.judge, digests, {kStart, later, later + kSecond}, 1).verdicts),
            0u);
  EXPECT_EQ(shared.judge->latest(), later + kSecond);
  EXPECT_EQ(shared.judge->disbelieved(), 1u);
  const Judged again = judged(*shared.judge, digests, std::vector(3, later + 2 * kSecond), 3);
  EXPECT_EQ(again.verdicts,
            (std::vector{Verdict::distinct, Verdict::duplicate, Verdict::duplicate}));
}

// All of a batch is on its way when its first time turns out to be wrong.
TEST(SharedJudge, AWrongFirstTimeMovesNoSite) {
  Shared shared(1, kMinute, kMinute.size);
  const std::vector<Digest> digests = {digest_of(1), digest_of(2), digest_of(3)};
  const std::vector<Nanoseconds> times = {kStart + 3600 * kSecond, kStart, kStart + kSecond};
  EXPECT_EQ(count_duplicates(judged(*shared.judge, digests, times, 3).verdicts), 0u);
  const Judged again = judged(*shared.judge, digests, std::vector(3, kStart + 2 * kSecond), 3);
  EXPECT_EQ(count_duplicates(again.verdicts), 3u);
}

}  // namespace
}  // namespace sluice::cluster
