#include "sluice/cluster/timer_slices.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cassert>

#include "sluice/base/error.hpp"

namespace sluice::cluster {
namespace {

constexpr unsigned kPositionBits = 48;
// Producers that write one timer at the same time overwrite each other a few times at most: each
// round that puts back a time meets a later one.
constexpr int kMostRepairs = 16;

std::uint64_t packed(const Place& place) {
  return std::uint64_t{place.site} << kPositionBits | place.position;
}

std::int64_t ceil_divide(std::int64_t a, std::int64_t b) {
  return (a + b - 1) / b;
}

void check_params(const TimerSlices::Params& params, const SliceMap& map,
                  const model::FaultRule& rule) {
  const auto refuse = [](const std::string& what) { throw BadParameters("timers: " + what); };
  if (params.timer_bits != 16 && params.timer_bits != 32)
    refuse(fmt::format("of {} bits; give 16 or 32", params.timer_bits));
  if (params.unit_ms < 0) refuse("a unit of less than 0 ms");
  if (params.equal > map.probes())
    refuse(fmt::format("{} equal ones of {}; give fewer", params.equal, map.probes()));
  if (rule.least_live > map.probes())
    refuse(fmt::format("at least {} live ones of {}; give fewer", rule.least_live, map.probes()));
  if (map.site_bits() >> kPositionBits != 0)
    refuse("more than 2^48 per site; cut the filter into more");
  if (params.different && map.site_bits() < map.probes())
    refuse(fmt::format("{} per site, and a key has {} different ones; give more", map.site_bits(),
                       map.probes()));
}

}  // namespace

TimerUnits TimerUnits::of(std::int64_t window_ms, unsigned timer_bits, std::int64_t unit_ms,
                          std::uint32_t sites) {
  constexpr std::int64_t kOfAWindow = 256, kOfALongWindow = std::int64_t{1} << 30;
  const std::int64_t most = timer_bits == 16 ? kOfAWindow : kOfALongWindow;
  return {.unit_ms = unit_ms > 0 ? unit_ms : ceil_divide(window_ms, most),
          .units = (std::int64_t{1} << timer_bits) - 1,
          .sites = sites};
}

TimerSlices::Shape TimerSlices::shape_of(const Params& params, const Options& options,
                                         const SliceMap& map) {
  check_params(params, map, options.rule);
  const std::int64_t window_ms = window_ms_of(options.window);
  const TimerUnits units =
      TimerUnits::of(window_ms, params.timer_bits, params.unit_ms, map.sites());
  const std::int64_t ahead_ms = ahead_ms_of(options, window_ms);
  const std::int64_t span = (window_ms + ahead_ms) / units.unit_ms + 3;
  // Of a page's timers the last may be written `ahead` of now, and is live for a window.
  const std::int64_t more = window_ms + ahead_ms + units.unit_ms;
  constexpr std::int64_t kMostPages = 64;
  if (span / units.units > kMostPages)
    throw BadParameters(
        fmt::format("timers: a unit of {} ms: {} bits tell {} of them, and a window has {}; give a "
                    "longer unit",
                    units.unit_ms, params.timer_bits, units.units, window_ms / units.unit_ms));
  return {.keys = std::min<std::size_t>(512, Site::kAtomicPositions / map.probes()),
          .pages = span / units.units + 2,
          .more_pages = 1,
          .slack_ms = 2 * (units.unit_ms - 1),
          .ahead_ms = window_ms,
          .refresh_ms = std::max<std::int64_t>(1, window_ms / 4),
          .page_at = [units](std::uint32_t site,
                             std::int64_t ms) { return units.page_of(site, units.unit_of(ms)); },
          .needed_until =
              [units, more](std::uint32_t site, std::int64_t page) {
                return units.unit_at(site, page + 1, 1) * units.unit_ms + more;
              }};
}

TimerSlices::TimerSlices(const Params& params, const Options& options,
                         std::vector<std::unique_ptr<Pages>> sites)
    : WindowSlices(SliceMap(params.slices), options,
                   shape_of(params, options, SliceMap(params.slices)), params.timer_bits,
                   std::move(sites)),
      params_(params),
      units_(TimerUnits::of(window_ms(), params.timer_bits, params.unit_ms, map().sites())),
      // Of a key that is younger than the window, by as much as rounding may add.
      reach_(ceil_divide(window_ms() - 1, units_.unit_ms)),
      ahead_(ceil_divide(ahead_ms(), units_.unit_ms)),
      rule_(options.rule) {}

TimerSlices::Range TimerSlices::live(const Event& event) const noexcept {
  const std::int64_t now = units_.unit_of(event.now_ms);
  return {now - reach_, now + ahead_};
}

void TimerSlices::begin() {
  probes_.assign(events().size() * map().probes(), {});
  places_.resize(map().probes());
  fresh_.clear();
  for (std::size_t i = 0; i < events().size(); ++i) places_of(i);
}

// Different: the next timer of the same slice that is not the key's yet.
void TimerSlices::places_of(std::size_t event) {
  map().places(events()[event].digest, places_);
  if (params_.different)
    for (auto place = places_.begin() + 1; place != places_.end(); ++place)
      while (std::find(places_.begin(), place, *place) != place)
        place->position = (place->position + 1) % map().site_bits();
  const std::span<Probe> probes = probes_of(event);
  for (std::size_t i = 0; i < probes.size(); ++i) probes[i].place = places_[i];
}

void TimerSlices::ask(std::size_t event) {
  const Range range = live(events()[event]);
  const std::span<Probe> probes = probes_of(event);
  for (std::size_t i = 0; i < probes.size(); ++i) {
    const Place& place = probes[i].place;
    places_[i] = place;
    const std::int64_t last = units_.page_of(place.site, range.last);
    for (std::int64_t page = units_.page_of(place.site, range.first); page <= last; ++page)
      views().add({place.site, page, place.position}, event * probes.size() + i);
  }
  count_sites(places_, true);
}

void TimerSlices::take(const PageViews::Part& part) {
  for (std::size_t i = 0; i < part.whose.size(); ++i) {
    Probe& probe = probes_[part.whose[i]];
    const Event& event = events()[part.whose[i] / map().probes()];
    if (!part.answered()) {
      probe.unknown = true;
      continue;
    }
    const std::int64_t unit =
        part.answers[i] == 0 ? kNever : units_.unit_at(part.site, part.page, part.answers[i]);
    const Range range = live(event);
    if (unit <= range.last) probe.unit = std::max(probe.unit, unit);
    if (!range.has(unit) && event.now_ms < part.believed_from) probe.doubted = true;
  }
}

// With what earlier keys of the batch write.
std::int64_t TimerSlices::seen(const Probe& probe) const {
  if (fresh_.empty()) return probe.unit;
  const auto found = fresh_.find(packed(probe.place));
  return found == fresh_.end() ? probe.unit : std::max(probe.unit, found->second);
}

Verdict TimerSlices::judge(std::size_t event) {
  const Range range = live(events()[event]);
  unsigned readable = 0, ruled = 0;
  bool empty = false;
  times_.clear();
  for (const Probe& probe : probes_of(event)) {
    const std::int64_t unit = seen(probe);
    if (range.has(unit)) {
      ++readable;
      times_.push_back(unit);
    } else if (probe.unknown || probe.doubted) {
      ++ruled;
    } else {
      empty = true;
    }
  }
  std::ranges::sort(times_);
  unsigned most = 0, run = 0;
  for (std::size_t i = 0; i < times_.size(); ++i) {
    run = i > 0 && times_[i] == times_[i - 1] ? run + 1 : 1;
    most = std::max(most, run);
  }
  if (!sights_.empty()) sights_[offset() + event] = {!empty && ruled == 0, most};
  if (!empty && ruled > 0) count_ruled();
  // A timer that cannot be read may show any time.
  if (!empty && readable >= rule_.least_live && most + ruled >= params_.equal)
    return Verdict::duplicate;
  for (const Probe& probe : probes_of(event))
    if (!probe.unknown && !probe.doubted) count_met(probe.place.site, range.has(probe.unit));
  return Verdict::distinct;
}

void TimerSlices::set(const Probe& probe, std::int64_t unit) {
  const std::uint32_t site = probe.place.site;
  views().add({site, units_.page_of(site, unit), probe.place.position}, 0,
              units_.value_of(site, unit));
  fresh_[packed(probe.place)] = unit;
}

// Times that are later stay: they hold this key for longer.
void TimerSlices::remember(std::size_t event) {
  const std::int64_t unit = units_.unit_of(events()[event].at_ms);
  const std::span<Probe> probes = probes_of(event);
  for (std::size_t i = 0; i < probes.size(); ++i) {
    places_[i] = probes[i].place;
    if (seen(probes[i]) < unit) set(probes[i], unit);
  }
  count_sites(places_, false);
}

// Its last delivery is not later than any of its timers.
void TimerSlices::heal(std::size_t event) {
  const Range range = live(events()[event]);
  std::int64_t oldest = range.last + 1;
  for (const Probe& probe : probes_of(event))
    if (const std::int64_t unit = seen(probe); range.has(unit)) oldest = std::min(oldest, unit);
  if (oldest > range.last) return;
  for (const Probe& probe : probes_of(event))
    if (probe.doubted && seen(probe) < oldest) set(probe, oldest);
}

void TimerSlices::take_overwritten(const PageViews::Part& part) {
  const Range range = live(events().back());
  if (!part.answered()) return;
  for (std::size_t i = 0; i < part.answers.size(); ++i)
    if (part.answers[i] > part.values[i] &&
        units_.unit_at(part.site, part.page, part.answers[i]) <= range.last)
      repairs_.push_back({{part.site, part.page, part.positions[i]}, part.answers[i]});
}

void TimerSlices::write() {
  const auto take = [this](const PageViews::Part& part) { take_overwritten(part); };
  repairs_.clear();
  exchange(Verb::test_and_set, take);
  for (int round = 0; round < kMostRepairs && !repairs_.empty(); ++round) {
    for (const Repair& repair : repairs_) views().add(repair.cell, 0, repair.value);
    repaired_ += repairs_.size();
    repairs_.clear();
    exchange(Verb::test_and_set, take);
  }
}

void TimerSlices::observe(std::span<const Digest> digests, std::span<const std::int64_t> times_ms,
                          std::span<Verdict> verdicts, std::span<Sight> sights) {
  check_length("sights", sights.size(), digests.size());
  sights_ = sights;
  observe(digests, times_ms, verdicts);
  sights_ = {};
}

}  // namespace sluice::cluster
