// Windows whose memory ends in the middle of a batch.
#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "sluice/base/error.hpp"
#include "sluice/base/random.hpp"
#include "sluice/filters/catalogue.hpp"
#include "sluice/window/window.hpp"
#include "tests/support/counts.hpp"
#include "tests/support/filter_bytes.hpp"

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
