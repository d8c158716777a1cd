// A filter's bytes depend on the stream alone: not on how calls were cut into batches, nor on where
// it was saved and loaded, or copied, in between.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "sluice/base/random.hpp"
#include "sluice/filters/catalogue_row.hpp"
#include "sluice/seen.hpp"
#include "sluice/snapshot/clone.hpp"
#include "sluice/window/window.hpp"
#include "tests/support/counts.hpp"
#include "tests/support/filter_bytes.hpp"

namespace sluice {
namespace {

using testing_support::bytes_of;
using testing_support::copy_of;
using testing_support::count_of;

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

// Judges all in batches of 1 to `most`. With `copies` it goes on with a copy now and then, about
// four times, through bytes or by clone().
AnyFilter run(AnyFilter filter, const Events& events, std::uint64_t seed, std::size_t most,
              bool copies, std::vector<Verdict>& verdicts) {
  SplitMix64 random(seed);
  const std::size_t size = events.digests.size();
  verdicts.resize(size);
  const auto late = std::make_unique<bool[]>(size);
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
    if (!copies || random.next() % (1 + size / most / 2) != 0) continue;
    filter = random.next() % 2 == 0 ? copy_of(filter) : clone(filter);
  }
  return filter;
}

void expect_equal_bytes(const std::function<AnyFilter()>& make, const Events& events) {
  std::vector<Verdict> right, verdicts;
  const auto bytes = bytes_of(run(make(), events, 1, events.digests.size(), false, right));
  for (const std::size_t most : {1, 7, 300, 2000}) {
    EXPECT_TRUE(bytes_of(run(make(), events, most, most, true, verdicts)) == bytes)
        << "batches up to " << most;
    EXPECT_EQ(verdicts, right) << "batches up to " << most;
  }
}

TEST(Cuts, MakeNoDifferenceToFilters) {
  // After few keys the sweeps of window filters are on their way.
  const Events stream = events(1, count_of(2000, 4000, 4000)), few = events(3, 60);
  const std::uint64_t keys = count_of(100'000, 300'000, 300'000);
  for (const FilterInfo& info : catalogue()) {
    SCOPED_TRACE(info.name);
    const auto make = [&] {
      return make_filter(std::string(info.name), {.keys = keys, .fpr = 1e-3});
    };
    expect_equal_bytes(make, stream);
    expect_equal_bytes(make, few);
  }
}

TEST(Cuts, MakeNoDifferenceToWindows) {
  const Events stream = events(2, count_of(2500, 8000, 8000));
  std::vector<std::string> filters = {"cohort,slot=32,generations=5", "sharded,of=cohort"};
  for (const FilterInfo& info : catalogue())
    if (!info.row->families.empty() && info.row->families.front().role == Role::window)
      filters.emplace_back(info.name);
  for (const std::string& filter : filters)
    for (const Anchor anchor : {Anchor::delivered, Anchor::refreshed})
      for (const WindowSpec::Kind kind : {WindowSpec::Kind::count, WindowSpec::Kind::time}) {
        const bool by_time = kind == WindowSpec::Kind::time;
        SCOPED_TRACE(filter + (by_time ? " by time" : " by count") +
                     (anchor == Anchor::refreshed ? " refreshed" : ""));
        const Window::Params params{
            .spec = {kind, by_time ? 60ull * kSecond : 500},
            .anchor = anchor,
            .filter = filter,
            .fpr = 1e-3,
            .keys = by_time ? std::optional<std::uint64_t>(300) : std::nullopt,
            .max_ahead = by_time ? std::optional<std::uint64_t>(60ull * kSecond) : std::nullopt,
        };
        expect_equal_bytes([&] { return AnyFilter(Window::make(params)); }, stream);
      }
}

// Few keys at a time, so that a list lives long and keys leave it; more now and then, so that it ends.
TEST(Cuts, MakeNoDifferenceToLists) {
  int lists = 0, tables = 0;
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    const Events stream = events(100 + seed, 150 + 20 * (seed % 20));
    const auto kind = static_cast<WindowSpec::Kind>(1 + seed % 3);
    const bool landmark = kind == WindowSpec::Kind::landmark;
    const Window::Params params{
        .spec = {kind, kind == WindowSpec::Kind::count ? 20 + seed : (2 + seed) * kSecond},
        .anchor = seed % 4 < 2 ? Anchor::delivered : Anchor::refreshed,
        .filter = landmark || seed % 5 > 0 ? "cohort" : "timing",
        .fpr = 1e-3,
        .keys = kind == WindowSpec::Kind::count ? std::nullopt
                                                : std::optional<std::uint64_t>(20 + 10 * seed),
        .listed = true};
    SCOPED_TRACE(params.settings().text() + ", stream " + std::to_string(seed));
    const auto make = [&] { return AnyFilter(Window::make(params)); };
    expect_equal_bytes(make, stream);
    std::vector<Verdict> unread;
    ++(run(make(), stream, 1, 1, false, unread).window()->listed() ? lists : tables);
  }
  EXPECT_GT(lists, 10);
  EXPECT_GT(tables, 10);
}

TEST(Cuts, MakeNoDifferenceToSeen) {
  using namespace std::chrono_literals;
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    SCOPED_TRACE(seed);
    const Events stream = events(200 + seed, 400);
    Seen::Options options{.refresh = seed % 4 > 1, .keys = 30 + 20 * seed, .fpr = 1e-4, .seed = 7};
    if (seed % 3 == 0) options.window = 10s * (1 + seed % 7);
    if (seed % 3 == 1) options.window = 40 + seed;
    if (seed % 3 == 1) options.keys.reset();
    if (!options.window) options.refresh = false;
    Seen one(options), other(options);
    SplitMix64 random(seed);
    for (std::size_t i = 0; i < stream.digests.size(); ++i) {
      const std::string key = std::to_string(stream.digests[i].lo);
      const Seen::Time when{std::chrono::nanoseconds(stream.times[i])};
      ASSERT_EQ(one.first(key, when), other.first(key, when)) << i;
      if (random.next() % 40 == 0)
        other = random.next() % 2 == 0 ? Seen::load(other.save()) : other.clone();
    }
    EXPECT_EQ(one.save(), other.save());
  }
}

}  // namespace
}  // namespace sluice
