#include "sluice/cluster/window_slices.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "sluice/base/error.hpp"

namespace sluice::cluster {
namespace {

constexpr std::int64_t kNanosecondsPerMs = 1'000'000;

[[noreturn]] void refuse(const std::string& what) {
  throw BadParameters("slices: " + what);
}

// The name of a key in a claim: two racing keys with the same name hold each other back, with a
// chance of 1 in 2^64.
std::uint64_t claim_name(const Digest& digest) {
  return digest.lo;
}

std::int64_t grace_ms(const WindowSlices::Options& options, std::int64_t window_ms) {
  if (!options.grace) return std::max<std::int64_t>(window_ms / 2, 1000);
  if (options.grace->count() < 1) refuse("a `grace` of 0 ms; give at least 1 ms");
  return options.grace->count();
}

}  // namespace

std::int64_t WindowSlices::window_ms_of(const WindowSpec& window) {
  if (window.kind == WindowSpec::Kind::count)
    refuse(
        "a window of a count: no site sees the whole stream, and so none can count it; give a "
        "window of time");
  if (window.kind == WindowSpec::Kind::landmark)
    refuse("a window since the last hour or day: cells hold the last so much time; give that");
  if (window.size == 0 || window.size > kLongestWindow)
    refuse(fmt::format("a window of {} ns; give 1 ns to {}", window.size, kLongestWindow));
  return static_cast<std::int64_t>((window.size + kNanosecondsPerMs - 1) / kNanosecondsPerMs);
}

std::int64_t WindowSlices::ahead_ms_of(const Options& options, std::int64_t otherwise) {
  if (!options.ahead) return otherwise;
  const std::int64_t ahead = options.ahead->count();
  if (ahead < 0 || ahead > window_ms_of(options.window))
    refuse(fmt::format("clocks that are {} ms ahead; give 0 ms to a window", ahead));
  return ahead;
}

WindowSlices::WindowSlices(const SliceMap& map, const Options& options, const Shape& shape,
                           unsigned cell_bits, std::vector<std::unique_ptr<Pages>> sites)
    : map_(map),
      options_(options),
      shape_(shape),
      window_ms_(window_ms_of(options.window)),
      ahead_ms_(ahead_ms_of(options, shape.ahead_ms)),
      limits_(static_cast<std::uint64_t>(window_ms_ * kNanosecondsPerMs),
              static_cast<std::uint64_t>(window_ms_ * kNanosecondsPerMs)),
      views_(std::move(sites), static_cast<std::size_t>(shape.pages + shape.more_pages),
             {.needed_until = shape.needed_until,
              .grace_ms = grace_ms(options, window_ms_),
              .refresh_ms = shape.refresh_ms,
              .remembers_ms = window_ms_ + shape.slack_ms + ahead_ms_}),
      load_(map.sites()),
      met_(map.sites()) {
  if (views_.sites() != map_.sites())
    refuse(fmt::format("{} sites where the slicing has {}", views_.sites(), map_.sites()));
  for (std::uint32_t site = 0; site < views_.sites(); ++site) {
    const Pages& pages = views_.pages(site);
    if (pages.cell_bits() != cell_bits || pages.cells() < map_.site_bits())
      refuse(fmt::format("a site of {} cells of {} bits where the slicing needs {} of {}",
                         pages.cells(), pages.cell_bits(), map_.site_bits(), cell_bits));
  }
}

std::int64_t WindowSlices::latest_ms() const noexcept {
  return clock_.started() ? clock_.now() / kNanosecondsPerMs : -kFarthestMs;
}

void WindowSlices::check_times(std::span<const Digest> digests,
                               std::span<const std::int64_t> times_ms) const {
  check_length("times_ms", times_ms.size(), digests.size());
  for (const std::int64_t time : times_ms)
    if (time < -kFarthestMs || time > kFarthestMs)
      refuse(
          fmt::format("a time of {} is more than 146 years from 1970: give ms since 1970", time));
}

// The next events that can share requests: few enough, and near each other in time. Returns how
// many.
std::size_t WindowSlices::read(std::span<const Digest> digests,
                               std::span<const std::int64_t> times_ms, EventClock& clock) {
  events_.clear();
  std::int64_t first_page = 0;
  for (std::size_t i = 0; i < std::min(digests.size(), shape_.keys); ++i) {
    const EventClock before = clock;
    Nanoseconds read = times_ms[i] * kNanosecondsPerMs;
    clock.read(digests[i], read, limits_);
    Event event{.digest = digests[i], .at_ms = times_ms[i]};
    event.now_ms = std::max(event.at_ms, clock.now() / kNanosecondsPerMs);
    event.late = event.now_ms - event.at_ms >= window_ms_;
    const std::int64_t page = shape_.page_at(0, event.now_ms);
    if (i == 0) first_page = page;
    if (page < first_page || page - first_page >= shape_.more_pages) {
      clock = before;
      break;
    }
    events_.push_back(event);
  }
  return events_.size();
}

// Calls then(offset) for each batch.
template <class Then>
void WindowSlices::in_batches(std::span<const Digest> digests,
                              std::span<const std::int64_t> times_ms, EventClock& clock,
                              const Then& then) {
  check_times(digests, times_ms);
  for (offset_ = 0; offset_ < digests.size(); offset_ += events_.size()) {
    read(digests.subspan(offset_), times_ms.subspan(offset_), clock);
    traffic_.keys += events_.size();
    names_.clear();
    claim_cells_.clear();
    claims_.clear();
    begin();
    then();
  }
}

void WindowSlices::exchange(Verb verb, const PageViews::Take& take) {
  views_.exchange(verb, events_.back().now_ms, latest_ms(), take);
}

void WindowSlices::count_sites(std::span<const Place> places, bool asks) {
  for (std::size_t i = 0; i < places.size(); ++i) {
    const auto before = places.first(i);
    if (std::ranges::find(before, places[i].site, &Place::site) != before.end()) continue;
    ++(asks ? traffic_.lookups : traffic_.sets);
    if (asks) ++load_[places[i].site];
  }
}

bool WindowSlices::is_held(const Event& event) const {
  return !claims_.empty() && !event.late && claims_[event.claim] == Claim::held;
}

void WindowSlices::look() {
  for (std::size_t i = 0; i < events_.size(); ++i)
    if (!events_[i].late && !is_held(events_[i])) ask(i);
  exchange(Verb::test, [this](const PageViews::Part& part) { take(part); });
}

// A key that comes several times is claimed once.
void WindowSlices::claim() {
  for (Event& event : events_) {
    if (event.late) continue;
    const std::uint64_t name = claim_name(event.digest);
    const auto number = static_cast<std::uint32_t>(claims_.size());
    const auto [found, is_new] = names_.emplace(name, number);
    event.claim = found->second;
    if (!is_new) continue;
    const std::uint32_t site = map_.claim_site(event.digest);
    claim_cells_.push_back({site, shape_.page_at(site, event.now_ms), name});
    claims_.push_back(Claim::none);
    views_.add(claim_cells_.back(), number);
  }
  traffic_.claims += claims_.size();
  exchange(Verb::claim, [this](const PageViews::Part& part) {
    for (std::size_t i = 0; i < part.whose.size(); ++i)
      claims_[part.whose[i]] = part.outcome == Outcome::failed ? Claim::none
                               : part.outcome == Outcome::late ? Claim::maybe
                               : part.answers[i] != 0          ? Claim::held
                                                               : Claim::mine;
    if (part.outcome != Outcome::answered) traffic_.unclaimed += part.whose.size();
  });
}

void WindowSlices::release() {
  for (std::size_t i = 0; i < claims_.size(); ++i)
    if (claims_[i] == Claim::mine || claims_[i] == Claim::maybe) views_.add(claim_cells_[i], i);
  exchange(Verb::release, [this](const PageViews::Part& part) {
    for (std::size_t i = 0; i < part.whose.size(); ++i)
      traffic_.expired += part.outcome == Outcome::answered && part.answers[i] == 0 &&
                          claims_[part.whose[i]] == Claim::mine;
  });
}

void WindowSlices::observe(std::span<const Digest> digests, std::span<const std::int64_t> times_ms,
                           std::span<Verdict> verdicts) {
  check_length("verdicts", verdicts.size(), digests.size());
  in_batches(digests, times_ms, clock_, [&] {
    if (options_.claims) claim();
    look();
    for (std::size_t i = 0; i < events_.size(); ++i) {
      Verdict& verdict = verdicts[offset_ + i];
      verdict = Verdict::distinct;
      late_ += events_[i].late;
      if (events_[i].late) continue;
      if (is_held(events_[i])) {
        verdict = Verdict::duplicate;
        continue;
      }
      verdict = judge(i);
      verdict == Verdict::distinct ? remember(i) : heal(i);
    }
    write();
    if (options_.claims) release();
  });
}

void WindowSlices::may_contain(std::span<const Digest> digests,
                               std::span<const std::int64_t> times_ms,
                               std::span<Verdict> verdicts) {
  check_length("verdicts", verdicts.size(), digests.size());
  EventClock clock = clock_;
  in_batches(digests, times_ms, clock, [&] {
    look();
    for (std::size_t i = 0; i < events_.size(); ++i)
      verdicts[offset_ + i] = events_[i].late ? Verdict::distinct : judge(i);
  });
}

void WindowSlices::insert(std::span<const Digest> digests, std::span<const std::int64_t> times_ms) {
  in_batches(digests, times_ms, clock_, [&] {
    for (std::size_t i = 0; i < events_.size(); ++i) {
      late_ += events_[i].late;
      if (!events_[i].late) remember(i);
    }
    write();
  });
}

// What was met long ago counts for less and less.
void WindowSlices::count_met(std::uint32_t site, bool live) noexcept {
  constexpr std::uint32_t kMost = 1u << 16;
  Met& met = met_[site];
  ++met.cells;
  met.live += live;
  if (met.cells < kMost) return;
  met.cells /= 2;
  met.live /= 2;
}

double WindowSlices::fill(std::uint32_t site) const noexcept {
  return static_cast<double>(met_[site].live) / met_[site].cells;
}

std::vector<std::uint32_t> WindowSlices::overfull(double planned) const {
  constexpr double kErrors = 4;
  std::vector<std::uint32_t> sites;
  for (std::uint32_t site = 0; site < met_.size(); ++site) {
    const double error = std::sqrt(planned * (1 - planned) / met_[site].cells);
    if (met_[site].cells > 0 && fill(site) > planned + kErrors * error) sites.push_back(site);
  }
  return sites;
}

Traffic WindowSlices::traffic() const noexcept {
  Traffic traffic = traffic_;
  traffic.requests = views_.requests();
  traffic.unanswered = views_.unanswered();
  return traffic;
}

}  // namespace sluice::cluster
