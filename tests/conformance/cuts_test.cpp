// A filter's bytes do not depend on how calls were cut into batches, nor on a reload in between.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "sluice/base/random.hpp"
#include "sluice/filters/catalogue.hpp"
#include "sluice/window/window.hpp"
#include "tests/support/filter_bytes.hpp"

namespace sluice {
namespace {

using testing_support::bytes_of;
using testing_support::copy_of;

constexpr Nanoseconds kSecond = 1'000'000'000;

struct Events {
  std::vector<Digest> digests;
  std::vector<Nanoseconds> times;
};

// Repeats, bursts, gaps up to two windows of 60 s, and some that come late.
Events events(std::uint64_t seed, std::size_t count) {
  SplitMix64 random(seed);
  Events all;
  Nanoseconds now = 1'700'000'000 * kSecond, pace = kSecond / 50;
  for (std::size_t i = 0; i < count; ++i) {
    if (random.next() % 400 == 0) pace = kSecond / (1 + Nanoseconds(random.next() % 400));
    if (random.next() % 500 == 0) now += Nanoseconds(random.next() % 120) * kSecond;
    now += Nanoseconds(random.next() % static_cast<std::uint64_t>(2 * pace));
    const bool repeat = i > 0 && random.next() % 3 == 0;
    all.digests.push_back(repeat
                              ? all.digests[i - 1 - random.next() % std::min<std::size_t>(i, 900)]
                              : Digest{random.next(), random.next()});
    const bool late = random.next() % 10 == 0;
    all.times.push_back(late ? now - Nanoseconds(random.next() % 50) * kSecond : now);
  }
  return all;
}

// Judges all in batches of 1 to `most`; halfway through it goes on with a copy.
AnyFilter run(AnyFilter filter, const Events& events, std::uint64_t seed, std::size_t most,
              std::vector<Verdict>& verdicts) {
  SplitMix64 random(seed);
  const std::size_t size = events.digests.size();
  verdicts.resize(size);
  const auto late = std::make_unique<bool[]>(size);
  bool copied = false;
  for (std::size_t at = 0; at < size;) {
    const std::size_t count = std::min(size - at, 1 + random.next() % most);
    const auto digests = std::span(events.digests).subspan(at, count);
    const auto out = std::span(verdicts).subspan(at, count);
    const std::size_t judged =
        filter.window() == nullptr
            ? filter.observe(digests, out)
            : filter.window()->judge(digests, std::span(events.times).subspan(at, count), out,
                                     {late.get(), count});
    EXPECT_EQ(judged, count);
    at += count;
    if (copied || at < size / 2) continue;
    filter = copy_of(filter);
    copied = true;
  }
  return filter;
}

void expect_equal_bytes(const std::function<AnyFilter()>& make, const Events& events) {
  std::vector<Verdict> right, verdicts;
  const auto bytes = bytes_of(run(make(), events, 1, events.digests.size(), right));
  for (const std::size_t most : {1, 7, 300, 2000}) {
    EXPECT_TRUE(bytes_of(run(make(), events, most, most, verdicts)) == bytes)
        << "batches up to " << most;
    EXPECT_EQ(verdicts, right) << "batches up to " << most;
  }
}

TEST(Cuts, MakeNoDifferenceToFilters) {
  // After few keys the sweeps of window filters are on their way.
  const Events stream = events(1, 4000), few = events(3, 60);
  for (const FilterInfo& info : catalogue()) {
    SCOPED_TRACE(info.name);
    const auto make = [&] {
      return make_filter(std::string(info.name), {.keys = 300'000, .fpr = 1e-3});
    };
    expect_equal_bytes(make, stream);
    expect_equal_bytes(make, few);
  }
}

TEST(Cuts, MakeNoDifferenceToWindows) {
  const Events stream = events(2, 8000);
  for (const char* filter : {"cohort", "cohort,slot=32,generations=5", "exact-window", "timing",
                             "timer", "apbf", "apbbf", "sharded,of=cohort"})
    for (const Anchor anchor : {Anchor::delivered, Anchor::refreshed})
      for (const WindowSpec::Kind kind : {WindowSpec::Kind::count, WindowSpec::Kind::time}) {
        const bool by_time = kind == WindowSpec::Kind::time;
        SCOPED_TRACE(std::string(filter) + (by_time ? " by time" : " by count") +
                     (anchor == Anchor::refreshed ? " refreshed" : ""));
        const Window::Params params{
            .spec = {kind, by_time ? 60ull * kSecond : 500},
            .anchor = anchor,
            .filter = filter,
            .fpr = 1e-3,
            .keys = by_time ? std::optional<std::uint64_t>(300) : std::nullopt,
        };
        expect_equal_bytes([&] { return AnyFilter(Window::make(params)); }, stream);
      }
}

}  // namespace
}  // namespace sluice
