// Windows with a limit (Params::memory): bytes() never exceeds it, whatever form the keys have.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "sluice/base/error.hpp"
#include "sluice/filters/any_filter.hpp"
#include "sluice/snapshot/clone.hpp"
#include "sluice/window/window.hpp"
#include "tests/support/counts.hpp"
#include "tests/support/digests.hpp"
#include "tests/support/filter_bytes.hpp"
#include "tests/support/host_memory.hpp"

namespace sluice {
namespace {

using testing_support::count_of;
using testing_support::random_digests;

constexpr Nanoseconds kSecond = 1'000'000'000;
constexpr Nanoseconds kStart = 1'700'000'000 * kSecond;
constexpr WindowSpec kTime{WindowSpec::Kind::time, 600 * kSecond};
constexpr WindowSpec kHour{WindowSpec::Kind::landmark, 3600 * kSecond};

// By `digests`, one at a time and `step` apart; how many are judged.
std::size_t judge_all(AnyFilter& filter, std::span<const Digest> digests, Nanoseconds step,
                      std::uint64_t limit) {
  constexpr std::size_t kEnough = 10;  // refused: each asks for a stage, which takes long
  std::size_t judged = 0, asked = 0;
  Nanoseconds time = kStart;
  for (const Digest& digest : digests) {
    Verdict verdict{};
    bool late = false;
    judged += filter.window()->judge({&digest, 1}, {&time, 1}, {&verdict, 1}, {&late, 1});
    time += step;
    EXPECT_LE(filter.bytes(), limit) << judged << " keys, " << filter.window()->params().filter
                                     << ", listed " << filter.window()->listed();
    if (filter.bytes() > limit || ++asked - judged > kEnough) break;
  }
  return judged;
}

// Of all forms: a list, a table, several stages; in a burst and at an even pace; from resources that
// give just what is asked for, and from one that gives more.
TEST(WindowLimit, IsHeld) {
  std::size_t made = 0;
  const auto digests = random_digests(1, 2000);
  for (const char* filter : {"cohort", "apbf", "apbbf", "timing", "timer", "exact-window"})
    for (const WindowSpec& spec : {kTime, kHour, WindowSpec{WindowSpec::Kind::count, 700}})
      for (const std::uint64_t keys : {1u, 50u, 300u, 1000u})
        for (const double fpr : {1e-2, 1e-6}) {
          Window::Params params{.spec = spec, .filter = filter, .fpr = fpr, .listed = true};
          if (spec.by_time()) params.keys = keys;
          if (!spec.by_time() && keys > 1) continue;
          std::uint64_t table = 0;
          try {
            table = Window::forecast(params).bytes;
          } catch (const BadParameters&) {
            continue;
          }
          for (const std::uint64_t more : {0u, 40u, 344u, 2000u, 20'000u})
            for (const int kind : {0, 1, 2})
              for (const Nanoseconds step : {Nanoseconds{0}, 600 * kSecond / Nanoseconds(keys)}) {
                params.memory = table + more;
                SystemMemory system;
                HostMemory host(malloc_calls());
                TestMemory generous;
                MemoryResource& memory = kind == 0   ? static_cast<MemoryResource&>(system)
                                         : kind == 1 ? static_cast<MemoryResource&>(host)
                                                     : generous;
                SCOPED_TRACE(std::string(filter) + " memory " + std::to_string(*params.memory) +
                             " keys " + std::to_string(keys) + " kind " + std::to_string(kind));
                try {
                  AnyFilter window(Window::make(params, memory));
                  const std::size_t count = count_of(400u, 2000u, 2000u);
                  judge_all(window, std::span(digests).first(count), step, *params.memory);
                  ++made;
                } catch (const NoMemory&) {
                  // Blocks are larger than the plan assumes, and a smaller table cannot be had.
                  EXPECT_NE(kind, 0);
                }
                if (testing::Test::HasFailure()) return;
              }
        }
  EXPECT_GT(made, 300u);
}

// A list has no memory that the table needs: all keys of the plan are judged.
TEST(WindowLimit, TheListMakesWayForTheTable) {
  const auto digests = random_digests(2, 1000);
  for (const std::uint64_t more : {0u, 20u, 344u, 1000u, 5000u}) {
    Window::Params params{.spec = kTime, .fpr = 1e-3, .keys = 1000, .listed = true};
    params.memory = Window::forecast(params).bytes + more;
    AnyFilter filter(Window::make(params));
    EXPECT_EQ(judge_all(filter, digests, kSecond / 2, *params.memory), 1000u) << more;
    EXPECT_FALSE(filter.window()->listed());
  }
}

// It takes memory by itself as it grows, up to the limit. What it knows it still knows then, and it
// takes new keys as soon as others have left.
TEST(WindowLimit, OfAnExactWindow) {
  for (const WindowSpec& spec : {kHour, kTime})
    for (const std::uint64_t times : {1u, 3u, 50u}) {
      SCOPED_TRACE(times);
      Window::Params params{
          .spec = spec, .filter = "exact-window", .fpr = 1e-6, .keys = 10, .listed = true};
      const std::uint64_t limit = times * Window::forecast(params).bytes;
      params.memory = limit;
      AnyFilter filter(Window::make(params));
      const auto digests = random_digests(4, 20'000);
      std::vector<Verdict> verdicts(digests.size());
      filter.window()->arrive(kStart);
      const std::size_t judged = filter.observe(digests, verdicts);
      EXPECT_LE(filter.bytes(), limit);
      EXPECT_LT(judged, digests.size());
      EXPECT_GE(judged, times * 10u);
      const auto others = std::span(digests).subspan(judged);
      const auto unread = std::span(verdicts).first(others.size());
      EXPECT_EQ(filter.observe(others, unread), 0u);
      EXPECT_THROW(filter.observe(digests.back()), NoMemory);
      EXPECT_EQ(filter.observe(std::span(digests).first(judged), std::span(verdicts).first(judged)),
                judged);
      EXPECT_EQ(std::count(verdicts.begin(), verdicts.begin() + std::ptrdiff_t(judged),
                           Verdict::duplicate),
                std::ptrdiff_t(judged));
      AnyFilter loaded = clone(filter);
      EXPECT_EQ(loaded.observe(others, unread), 0u);
      // For many windows, at the pace that was planned for.
      for (std::size_t i = 0; i < 1000; ++i) {
        filter.window()->arrive(kStart + Nanoseconds(spec.size) +
                                Nanoseconds(i + 1) * Nanoseconds(spec.size) / 10);
        ASSERT_EQ(filter.observe(digests[i]), Verdict::distinct) << i;
        ASSERT_LE(filter.bytes(), limit);
      }
    }
}

// As many keys as were planned for, and those of the generation that has just begun.
TEST(WindowLimit, OfAnExactWindowIsEnoughForItsPlan) {
  for (const std::uint64_t keys : {1u, 32u, 33u, 64u, 100u, 128u, 1024u}) {
    Window::Params params{.spec = kTime, .filter = "exact-window", .keys = keys, .generations = 8};
    params.memory = Window::forecast(params).bytes;
    AnyFilter filter(Window::make(params));
    const std::size_t count = 3 * keys;
    EXPECT_EQ(judge_all(filter, random_digests(keys, count),
                        600 * kSecond / static_cast<Nanoseconds>(keys), *params.memory),
              count)
        << keys;
  }
}

// Bursts and pauses: it never begins to move to a table that does not fit.
TEST(WindowLimit, OfAnExactWindowInBursts) {
  for (unsigned seed = 0; seed < count_of(5u, 40u, 40u); ++seed) {
    std::mt19937_64 random(seed);
    Window::Params params{.spec = kTime, .filter = "exact-window", .keys = 1 + random() % 100};
    params.memory = Window::forecast(params).bytes + random() % 30'000;
    AnyFilter filter(Window::make(params));
    Nanoseconds now = kStart;
    std::vector<Verdict> verdicts(2000);
    for (unsigned i = 0; i < 100; ++i) {
      now += Nanoseconds(random() % 400) * kSecond;
      filter.window()->arrive(now);
      const auto digests = random_digests(1 + seed * 100 + i, 1 + random() % (1u << random() % 11));
      (void)filter.observe(digests, std::span(verdicts).first(digests.size()));
      ASSERT_LE(filter.bytes(), *params.memory) << seed << ' ' << i;
    }
  }
}

// A caller that would rather forget than stop: all keys are judged, within the limit, and the most
// recent ones are known, in a burst within one generation and at an even pace.
TEST(WindowLimit, ForgettingTheOldestMakesRoom) {
  const auto digests = random_digests(7, count_of(8000u, 20'000u, 100'000u));
  for (const char* filter : {"cohort", "apbf", "apbbf", "timing", "timer", "exact-window"})
    for (const Nanoseconds step : {Nanoseconds{0}, kSecond / 20}) {
      SCOPED_TRACE(std::string(filter) + " step " + std::to_string(step));
      Window::Params params{.spec = kTime, .filter = filter, .fpr = 1e-4, .keys = 300};
      params.memory = Window::forecast(params).bytes + 6000;
      AnyFilter window(Window::make(params));
      std::uint64_t forgotten = 0;
      Nanoseconds time = kStart;
      std::size_t known = 0, asked = 0, full = 0;
      std::uint64_t least = digests.size(), most = 0;
      for (std::size_t i = 0; i < digests.size(); ++i, time += step) {
        Verdict verdict{};
        bool late = false;
        while (window.window()->judge({&digests[i], 1}, {&time, 1}, {&verdict, 1}, {&late, 1}) ==
               0) {
          const auto early = window.window()->forget_oldest();
          ASSERT_TRUE(early) << i;
          forgotten += *early;
          if (full == 0) full = i;
        }
        ASSERT_LE(window.bytes(), *params.memory) << i;
        // Keys of the last few, fewer than a generation has.
        if (i < 8) continue;
        known += window.window()->may_contain(digests[i - 8]);
        ++asked;
        if (full == 0 || i < 3 * full || i % 64 != 0) continue;
        least = std::min(least, window.stats().keys);
        most = std::max(most, window.stats().keys);
      }
      EXPECT_GT(forgotten, digests.size() / 10);
      // A burst that comes before the first pressure is one generation, forgotten at once.
      EXPECT_GE(known + 400, asked);
      // From then on one generation at a time is forgotten, not all that a burst brought. Filters of
      // bits count whole parts, and stages leave as a whole.
      EXPECT_GT(6 * least, most);
    }
}

std::string refusal_of(const std::function<void()>& make) {
  try {
    make();
  } catch (const NoMemory& error) {
    return error.what();
  }
  ADD_FAILURE() << "there was memory";
  return "";
}

// A larger budget always helps; what else does depends on who asks.
TEST(WindowLimit, ARefusedTableNamesWhatHelps) {
  const auto has = [](const std::string& text, const char* part) {
    return text.find(part) != std::string::npos;
  };
  HostMemory little(malloc_calls(), 8192);
  Window::Params time{.spec = kTime, .listed = true},
      count{.spec = {WindowSpec::Kind::count, 9000}};
  const std::string by_time = refusal_of([&] { Window::make(time, little); }),
                    by_count = refusal_of([&] { Window::make(count, little); });
  EXPECT_TRUE(has(by_time, "larger budget, or ask for fewer `keys` or a larger `fpr`")) << by_time;
  EXPECT_TRUE(has(by_count, "larger budget, or ask for a smaller `window` or a larger `fpr`"))
      << by_count;
  // They do.
  time.keys = 10;
  time.fpr = 0.1;
  EXPECT_NO_THROW(Window::make(time, little));
  count.spec.size = 100;
  EXPECT_NO_THROW(Window::make(count, little));
  // A state is as large as it is.
  time = {.spec = kTime, .listed = true};
  BytesEncoder header, payload;
  Window::make(time).encode_header(header);
  BytesDecoder from_header(header.written()), from_payload(payload.written());
  const std::string decoded =
      refusal_of([&] { Window::decode(from_header, from_payload, little); });
  EXPECT_TRUE(has(decoded, "free some of the resource, or give it a larger budget")) << decoded;
  EXPECT_FALSE(has(decoded, "keys")) << decoded;
}

}  // namespace
}  // namespace sluice
