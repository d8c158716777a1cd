// Windows whose memory ends in the middle of a batch.
#include <gtest/gtest.h>

#include <array>
#include <memory>
#include <vector>

#include "sluice/base/error.hpp"
#include "sluice/base/random.hpp"
#include "sluice/filters/catalogue.hpp"
#include "sluice/window/window.hpp"
#include "tests/support/counts.hpp"
#include "tests/support/filter_bytes.hpp"
#include "tests/support/host_memory.hpp"

namespace sluice {
namespace {

using testing_support::bytes_of;

constexpr Nanoseconds kSecond = 1'000'000'000;

// Judged with little memory, and on as soon as there is more: the verdicts and bytes are those of a
// window that always had enough. Times come early, late and from wild clocks.
TEST(MemoryEnd, TheRestCanBeJudgedLaterAsIfNothingHadHappened) {
  int stopped = 0;
  for (std::uint64_t seed = 0; seed < testing_support::count_of(40u, 200u); ++seed) {
    SystemMemory memory({.budget = 530'000});
    std::vector<AnyFilter> hog;
    hog.push_back(make_filter("cohort,bytes=500KiB", {.fpr = 0.01}, memory));
    const Window::Params params{.spec = {WindowSpec::Kind::time, 60 * kSecond},
                                .fpr = 1e-3,
                                .keys = 100,
                                .max_ahead = 30 * kSecond};
    Window window = Window::make(params, memory);
    Window twin = Window::make(params);
    SplitMix64 random(seed);
    std::vector<Digest> digests;
    std::vector<Nanoseconds> times;
    Nanoseconds now = 1'700'000'000 * kSecond;
    for (int i = 0; i < 20'000; ++i) {
      digests.push_back({random.next() % 15'000, 1});
      digests.back().hi = SplitMix64(digests.back().lo).next();
      digests.back().lo = SplitMix64(digests.back().hi).next();
      now += static_cast<Nanoseconds>(random.next() % (kSecond / 100));
      const std::uint64_t kind = random.next() % 50;
      times.push_back(kind == 0   ? now + 100 * kSecond
                      : kind == 1 ? now - 20 * kSecond
                      : kind == 2 ? now - 80 * kSecond
                                  : now);
    }
    std::vector<Verdict> verdicts(digests.size()), right(digests.size());
    const auto late = std::make_unique<bool[]>(digests.size());
    ASSERT_EQ(twin.judge(digests, times, right, {late.get(), digests.size()}), digests.size());
    for (std::size_t at = 0; at < digests.size();) {
      const std::size_t count = std::min<std::size_t>(digests.size() - at, 1 + random.next() % 900);
      const std::size_t judged =
          window.judge(std::span(digests).subspan(at, count), std::span(times).subspan(at, count),
                       std::span(verdicts).subspan(at, count), {late.get(), count});
      at += judged;
      if (judged == count) continue;
      // One key alone needs less memory than a batch, but nothing comes of asking twice.
      bool unread = false;
      const std::size_t alone =
          window.judge({&digests[at], 1}, {&times[at], 1}, {&verdicts[at], 1}, {&unread, 1});
      at += alone;
      if (alone == 1) continue;
      ASSERT_FALSE(hog.empty()) << "memory is there";
      hog.clear();
      ++stopped;
    }
    EXPECT_TRUE(verdicts == right) << seed;
    EXPECT_TRUE(bytes_of(window) == bytes_of(twin)) << seed;
    EXPECT_EQ(window.clock(), twin.clock());
  }
  EXPECT_GT(stopped, 20);
}

// Any allocation of any call may be refused, windows of all filters and forms: batches by their times,
// clocks that are wrong or agree with wrong ones, time that passes between them, clears.
TEST(MemoryEnd, AnyCallMayBeRefusedSome) {
  std::uint64_t refused = 0;
  for (const char* filter : {"cohort", "exact-window", "apbf", "timing"})
    for (std::uint64_t seed = 0; seed < testing_support::count_of(20u, 100u); ++seed) {
      const Window::Params params{
          .spec = {WindowSpec::Kind::time, 1'000'000},
          .anchor = seed % 3 == 0 ? Anchor::refreshed : Anchor::delivered,
          .filter = filter,
          .fpr = 1e-3,
          .keys = 150,
          .generations = 5,
          .listed = seed % 2 == 0,
      };
      TestMemory memory, enough;
      Window window = Window::make(params, memory), twin = Window::make(params, enough);
      SplitMix64 random(seed);
      Nanoseconds now = 1'000'000'000;
      const std::uint64_t pace = std::array{20u, 1500u, 9000u}[seed % 3];
      for (int step = 0; step < 60; ++step) {
        const std::size_t count = 1 + random.next() % (step % 4 == 0 ? 1200 : 80);
        std::vector<Digest> digests(count);
        std::vector<Nanoseconds> times(count);
        for (std::size_t i = 0; i < count; ++i) {
          digests[i].hi = SplitMix64(random.next() % 4000).next();
          digests[i].lo = SplitMix64(digests[i].hi).next();
          now += static_cast<Nanoseconds>(random.next() % pace);
          const std::uint64_t kind = random.next() % 60;
          times[i] = now + (kind == 0   ? -300'000
                            : kind == 1 ? -1'500'000
                            : kind == 2 ? 700'000
                            : kind == 3 ? 20'000'000
                                        : 0);
        }
        std::vector<Verdict> verdicts(count), right(count);
        const auto late = std::make_unique<bool[]>(count);
        ASSERT_EQ(twin.judge(digests, times, right, {late.get(), count}), count);
        memory.fail_at(1 + random.next() % 12);
        for (std::size_t at = 0; at < count;) {
          const std::size_t judged =
              window.judge(std::span(digests).subspan(at), std::span(times).subspan(at),
                           std::span(verdicts).subspan(at), {late.get() + at, count - at});
          ASSERT_EQ(window.bytes(), memory.taken());
          refused += at + judged < count;
          at += judged;
        }
        ASSERT_TRUE(verdicts == right) << filter << ' ' << seed << ' ' << step;
        ASSERT_TRUE(bytes_of(window) == bytes_of(twin)) << filter << ' ' << seed << ' ' << step;
        memory.fail_at(1);
        now += step % 9 == 0 ? 3'000'000 : 0;
        if (step % 3 == 0)
          for (Window* each : {&window, &twin}) each->arrive(now);
        if (step % 20 == 13)
          for (Window* each : {&window, &twin}) each->clear();
        memory.fail_at(0);
      }
    }
  EXPECT_GT(refused, 150u);  // a list that is refused a block asks once more, from aside
}

TEST(MemoryEnd, OneKeyAloneThrows) {
  SystemMemory memory({.budget = 100'000});
  Window window = Window::make(
      {.spec = {WindowSpec::Kind::time, 60 * kSecond}, .fpr = 1e-3, .keys = 100}, memory);
  SplitMix64 random(1);
  EXPECT_THROW(
      for (int i = 0; i < 100'000; ++i) window.observe(Digest{random.next(), random.next()}),
      NoMemory);
}

}  // namespace
}  // namespace sluice
