// What the tests of windows over slices share: both kinds of window, in process, with what each is
// to remember.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <ostream>
#include <span>
#include <string>
#include <vector>

#include "sluice/base/random.hpp"
#include "sluice/cluster/aged_slices.hpp"
#include "sluice/cluster/local_site.hpp"
#include "sluice/cluster/timer_slices.hpp"
#include "tests/support/digests.hpp"

namespace sluice::testing_support {

using cluster::AgedSlices;
using cluster::LocalMemory;
using cluster::Pages;
using cluster::SliceMap;
using cluster::SliceParams;
using cluster::Slicing;
using cluster::TimerSlices;
using cluster::WindowSlices;

constexpr std::int64_t kMs = 1'000'000;

inline WindowSpec window_of(std::int64_t ms) {
  return {WindowSpec::Kind::time, static_cast<std::uint64_t>(ms * kMs)};
}

// A window over slices, whatever its kind: what a test says of it, and how it is made.
struct WindowCase {
  std::string name;
  unsigned timer_bits = 32;  // 0: aged
  std::int64_t unit_ms = 0;  // of timers
  unsigned k = 4, l = 6;     // l: of aged ones

  bool aged() const { return timer_bits == 0; }
  unsigned cell_bits() const { return aged() ? 1 : timer_bits; }
  unsigned probes() const { return aged() ? k + l : k; }
  // Sites: 10 or 20.
  SliceParams slices(Slicing slicing, std::uint64_t cells) const {
    switch (slicing) {
      case Slicing::horizontal_vertical:
      case Slicing::vertical_horizontal:
        return {slicing, cells, probes(), 5, 4, 1};
      case Slicing::general:
        return {slicing, cells, probes(), 10, 1, 2};
      default:
        return {slicing, cells, probes(), 10, 1, 1};
    }
  }
  std::unique_ptr<WindowSlices> make(const SliceParams& slices,
                                     const WindowSlices::Options& options,
                                     std::vector<std::unique_ptr<Pages>> sites) const {
    if (aged())
      return std::make_unique<AgedSlices>(AgedSlices::Params{slices, k, l}, options,
                                          std::move(sites));
    return std::make_unique<TimerSlices>(TimerSlices::Params{slices, timer_bits, unit_ms}, options,
                                         std::move(sites));
  }
  friend std::ostream& operator<<(std::ostream& out, const WindowCase& c) { return out << c.name; }
};

inline const std::vector<WindowCase> kWindows = {
    {.name = "Timers32"},
    {.name = "Timers16", .timer_bits = 16},
    // Pages of 65 s.
    {.name = "Timers16OfAMs", .timer_bits = 16, .unit_ms = 1},
    {.name = "Aged", .timer_bits = 0},
};

// The sites of a window, and producers that share them.
struct LocalWindow {
  LocalWindow(const WindowCase& kind, const SliceParams& params, const WindowSlices::Options& with)
      : window(kind), slices(params), options(with) {
    const SliceMap map(params);
    memories = cluster::local_memories(map.sites(), map.site_bits(), kind.cell_bits());
  }
  std::unique_ptr<WindowSlices> producer() const { return producer(options); }
  std::unique_ptr<WindowSlices> producer(const WindowSlices::Options& with) const {
    return window.make(slices, with, cluster::connect_pages(memories));
  }
  std::size_t pages() const {
    std::size_t count = 0;
    for (const auto& memory : memories) count += memory->pages().size();
    return count;
  }
  void pass(std::int64_t ms) const {
    for (const auto& memory : memories) memory->pass(std::chrono::milliseconds(ms));
  }

  WindowCase window;
  SliceParams slices;
  WindowSlices::Options options;
  std::vector<std::shared_ptr<LocalMemory>> memories;
};

struct TimedKeys {
  std::vector<Digest> digests;
  std::vector<std::int64_t> times_ms;
  std::size_t size() const { return digests.size(); }
};

// Keys that repeat at random, at times that rise by up to `step_ms` per event; one in `late_one_in`
// is late by up to `late_ms`. 0: none.
inline TimedKeys timed_keys(std::uint64_t seed, std::size_t count, std::uint64_t different,
                            std::int64_t step_ms, std::int64_t late_ms = 0,
                            std::uint64_t late_one_in = 4,
                            std::int64_t start_ms = 1'700'000'000'000) {
  SplitMix64 random(seed);
  const auto below = [&](std::int64_t most) {
    return static_cast<std::int64_t>(random.next() % static_cast<std::uint64_t>(most + 1));
  };
  TimedKeys keys;
  std::int64_t now = start_ms;
  for (std::size_t i = 0; i < count; ++i) {
    now += below(step_ms);
    const bool late = late_ms > 0 && random.next() % late_one_in == 0;
    keys.digests.push_back(digest_of(random.next() % different));
    keys.times_ms.push_back(late ? now - below(late_ms) : now);
  }
  return keys;
}

inline std::vector<Verdict> observe(WindowSlices& slices, const TimedKeys& keys,
                                    std::size_t batch) {
  std::vector<Verdict> verdicts(keys.size());
  for (std::size_t at = 0; at < keys.size(); at += batch) {
    const std::size_t count = std::min(batch, keys.size() - at);
    slices.observe(std::span(keys.digests).subspan(at, count),
                   std::span(keys.times_ms).subspan(at, count),
                   std::span(verdicts).subspan(at, count));
  }
  return verdicts;
}

inline Verdict observe(WindowSlices& slices, const Digest& digest, std::int64_t ms) {
  Verdict verdict;
  slices.observe({&digest, 1}, {&ms, 1}, {&verdict, 1});
  return verdict;
}
inline bool holds(WindowSlices& slices, const Digest& digest, std::int64_t ms) {
  Verdict verdict;
  slices.may_contain({&digest, 1}, {&ms, 1}, {&verdict, 1});
  return verdict == Verdict::duplicate;
}

inline std::vector<Digest> keys_from(std::uint64_t first, std::size_t count) {
  std::vector<Digest> digests;
  for (std::size_t i = 0; i < count; ++i) digests.push_back(digest_of(first + i));
  return digests;
}
// How many are duplicates; all at one time.
inline std::size_t held(WindowSlices& slices, std::span<const Digest> digests, std::int64_t ms) {
  std::vector<Verdict> verdicts(digests.size());
  slices.may_contain(digests, std::vector(digests.size(), ms), verdicts);
  return static_cast<std::size_t>(std::ranges::count(verdicts, Verdict::duplicate));
}
inline std::size_t delivered(WindowSlices& slices, std::span<const Digest> digests,
                             std::int64_t ms) {
  std::vector<Verdict> verdicts(digests.size());
  slices.observe(digests, std::vector(digests.size(), ms), verdicts);
  return static_cast<std::size_t>(std::ranges::count(verdicts, Verdict::distinct));
}

// What a window over slices is to remember, kept in the plainest way: of each key all units of time
// in which it was delivered. A unit is a ms, what timers round to, or a generation.
class ExactWindow {
 public:
  ExactWindow(std::int64_t window_ms, std::int64_t unit_ms, std::int64_t units)
      : window_ms_(window_ms), unit_ms_(unit_ms), units_(units) {}

  Verdict observe(const Digest& digest, std::int64_t ms) {
    now_ms_ = std::max(now_ms_.value_or(ms), ms);
    if (*now_ms_ - ms >= window_ms_) {
      ++late;
      return Verdict::distinct;
    }
    std::int64_t& last =
        last_.try_emplace({digest.lo, digest.hi}, unit(ms) - units_ * 10).first->second;
    if (unit(*now_ms_) - last <= units_) return Verdict::duplicate;
    last = unit(ms);
    return Verdict::distinct;
  }

  std::uint64_t late = 0;

 private:
  std::int64_t unit(std::int64_t ms) const { return ms / unit_ms_ - (ms % unit_ms_ < 0); }
  std::int64_t window_ms_, unit_ms_, units_;
  std::optional<std::int64_t> now_ms_;
  std::map<std::pair<std::uint64_t, std::uint64_t>, std::int64_t> last_;
};

inline std::vector<Verdict> exact_verdicts(ExactWindow& exact, const TimedKeys& keys) {
  std::vector<Verdict> verdicts;
  for (std::size_t i = 0; i < keys.size(); ++i)
    verdicts.push_back(exact.observe(keys.digests[i], keys.times_ms[i]));
  return verdicts;
}

}  // namespace sluice::testing_support
