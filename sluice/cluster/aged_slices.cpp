#include "sluice/cluster/aged_slices.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "sluice/base/bits.hpp"
#include "sluice/base/error.hpp"

namespace sluice::cluster {
namespace {

constexpr std::int64_t kMostAhead = 64;

std::int64_t floor_divide(std::int64_t a, std::int64_t b) {
  return a / b - (a % b < 0);
}

std::int64_t ceil_divide(std::int64_t a, std::int64_t b) {
  return (a + b - 1) / b;
}

void check_params(const AgedSlices::Params& params, const model::FaultRule& rule) {
  const auto refuse = [](const std::string& what) { throw BadParameters("aged slices: " + what); };
  if (params.k == 0 || params.l == 0) refuse("`k` and `l` are at least 1");
  if (params.k > SliceMap::kMostProbes || params.l > SliceMap::kMostProbes - params.k)
    refuse(fmt::format("k = {} and l = {}; give at most {} together", params.k, params.l,
                       SliceMap::kMostProbes));
  if (params.slices.probes != params.k + params.l)
    refuse(fmt::format("{} probes; give k + l = {}: each generation has its own",
                       params.slices.probes, params.k + params.l));
  if (rule.least_live > params.k)
    refuse(fmt::format("at least {} live bits of {}; give fewer", rule.least_live, params.k));
}

}  // namespace

std::size_t AgedSlices::CellHash::operator()(const PageViews::Cell& cell) const noexcept {
  return fold_multiply(cell.position ^ std::uint64_t{cell.site} << 48,
                       static_cast<std::uint64_t>(cell.page) ^ 0x9E3779B97F4A7C15ULL);
}

AgedSlices::Shape AgedSlices::shape_of(const Params& params, const Options& options) {
  check_params(params, options.rule);
  const std::int64_t window_ms = window_ms_of(options.window);
  if (window_ms < params.l)
    throw BadParameters(fmt::format("aged slices: a window of {} ms in {} generations; give fewer",
                                    window_ms, params.l));
  const std::int64_t each = ceil_divide(window_ms, params.l);
  const std::int64_t ahead_ms = ahead_ms_of(options, each);
  const std::int64_t ahead = ceil_divide(ahead_ms, each);
  if (ahead > kMostAhead)
    throw BadParameters(fmt::format(
        "aged slices: clocks that are {} generations ahead; give at most {}", ahead, kMostAhead));
  const std::int64_t all = params.k + params.l;
  return {.keys = 512,
          .pages = all + ahead,
          .more_pages = all,
          .slack_ms = (all + 1) * each - window_ms,
          .ahead_ms = each,
          .refresh_ms = each,
          .page_at = [each](std::uint32_t, std::int64_t ms) { return floor_divide(ms, each); },
          .needed_until = [each, all, ahead_ms](
                              std::uint32_t,
                              std::int64_t page) { return (page + all) * each + ahead_ms; }};
}

AgedSlices::AgedSlices(const Params& params, const Options& options,
                       std::vector<std::unique_ptr<Pages>> sites)
    : WindowSlices(SliceMap(params.slices), options, shape_of(params, options), 1,
                   std::move(sites)),
      params_(params),
      generation_ms_(ceil_divide(window_ms(), params.l)),
      ahead_(static_cast<unsigned>(ceil_divide(ahead_ms(), generation_ms_))),
      rule_(options.rule) {}

std::int64_t AgedSlices::generation_at(std::int64_t ms) const noexcept {
  return floor_divide(ms, generation_ms_);
}

std::int64_t AgedSlices::youngest(std::size_t event) const noexcept {
  return generation_at(events()[event].now_ms) + ahead_;
}

PageViews::Cell AgedSlices::cell_of(std::size_t event, std::int64_t generation) const noexcept {
  const std::int64_t all = params_.k + params_.l;
  const std::int64_t probe = generation - floor_divide(generation, all) * all;
  const Place& place = places_[event * params_.slices.probes + static_cast<std::size_t>(probe)];
  return {place.site, generation, place.position};
}

void AgedSlices::begin() {
  const std::size_t all = params_.slices.probes;
  places_.resize(events().size() * all);
  states_.assign(events().size() * (all + ahead_), State::unasked);
  for (std::size_t i = 0; i < events().size(); ++i)
    map().places(events()[i].digest, std::span(places_).subspan(i * all, all));
  fresh_.clear();
}

void AgedSlices::ask(std::size_t event) {
  const std::size_t all = params_.slices.probes, asked = all + ahead_;
  const std::int64_t first = youngest(event);
  for (std::size_t age = 0; age < asked; ++age)
    views().add(cell_of(event, first - static_cast<std::int64_t>(age)), event * asked + age);
  count_sites(std::span(places_).subspan(event * all, all), true);
}

void AgedSlices::take(const PageViews::Part& part) {
  const std::size_t asked = params_.slices.probes + ahead_;
  for (std::size_t i = 0; i < part.whose.size(); ++i) {
    const Event& event = events()[part.whose[i] / asked];
    states_[part.whose[i]] = !part.answered()                    ? State::unknown
                             : part.answers[i] != 0              ? State::set
                             : event.now_ms < part.believed_from ? State::doubted
                                                                 : State::unset;
  }
}

// With what earlier keys of the batch set.
AgedSlices::State AgedSlices::state_of(std::size_t event, std::int64_t generation) const {
  const std::size_t asked = params_.slices.probes + ahead_;
  const auto age = static_cast<std::size_t>(youngest(event) - generation);
  const State state = age < asked ? states_[event * asked + age] : State::unasked;
  if (state == State::set || fresh_.empty()) return state;
  return fresh_.contains(cell_of(event, generation)) ? State::set : state;
}

// The one with the most bits that were read.
AgedSlices::Run AgedSlices::run_of(std::size_t event) const {
  const std::int64_t first = youngest(event);
  const std::int64_t last = first - static_cast<std::int64_t>(params_.slices.probes + ahead_) + 1;
  Run best;
  unsigned length = 0, live = 0;
  for (std::int64_t generation = first; generation >= last; --generation) {
    const State state = state_of(event, generation);
    if (state == State::unset) {
      length = live = 0;
      continue;
    }
    ++length;
    live += state == State::set;
    // The one that is too young for a run of k.
    if (length > params_.k) live -= state_of(event, generation + params_.k) == State::set;
    if (length >= params_.k && (!best.found || live > best.live))
      best = {true, generation + params_.k - 1, live};
  }
  return best;
}

Verdict AgedSlices::judge(std::size_t event) {
  const Run run = run_of(event);
  if (run.found && run.live < params_.k) count_ruled();
  if (run.found && run.live >= rule_.least_live) return Verdict::duplicate;
  // Younger pages are still being written.
  const std::int64_t first = generation_at(events()[event].now_ms) - params_.k;
  for (std::int64_t generation = first; generation > first - params_.l; --generation) {
    const auto age = static_cast<std::size_t>(youngest(event) - generation);
    const State state = states_[event * (params_.slices.probes + ahead_) + age];
    if (state == State::set || state == State::unset)
      count_met(cell_of(event, generation).site, state == State::set);
  }
  return Verdict::distinct;
}

void AgedSlices::set(std::size_t event, std::int64_t generation) {
  const PageViews::Cell cell = cell_of(event, generation);
  views().add(cell, 0);
  fresh_.insert(cell);
}

void AgedSlices::remember(std::size_t event) {
  const std::int64_t own = generation_at(events()[event].at_ms);
  std::array<Place, SliceMap::kMostProbes> places;
  for (unsigned age = 0; age < params_.k; ++age) {
    const PageViews::Cell cell = cell_of(event, own - age);
    places[age] = {cell.site, cell.position};
    if (state_of(event, own - age) != State::set) set(event, own - age);
  }
  count_sites(std::span(places).first(params_.k), false);
}

// Where it was forgotten; but only if a bit says that it was there.
void AgedSlices::heal(std::size_t event) {
  const Run run = run_of(event);
  if (!run.found || run.live == 0) return;
  for (unsigned age = 0; age < params_.k; ++age)
    if (state_of(event, run.youngest - age) == State::doubted) set(event, run.youngest - age);
}

void AgedSlices::write() {
  exchange(Verb::set, [](const PageViews::Part&) {});
}

}  // namespace sluice::cluster
