#include "sluice/plan/plan.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "sluice/base/error.hpp"
#include "sluice/base/quantity.hpp"
#include "sluice/filters/catalogue.hpp"
#include "sluice/filters/share_range.hpp"
#include "sluice/plan/nearest.hpp"
#include "sluice/plan/sizing.hpp"

namespace sluice {
namespace {

using planning::error_is_open;
using planning::Family;
using planning::memory_alone;
using planning::WindowForecasts;

constexpr double kMostWindowKeys = 1e13;

void refuse_if(bool wrong, const char* sentence) {
  if (wrong) throw BadParameters(sentence);
}

void check_shares(const PlanRequest& request) {
  for (const auto& [value, flag] :
       {std::pair(request.fpr, "`fpr`"), std::pair(request.fnr, "`fnr`"),
        std::pair(request.slack, "`slack`"), std::pair(request.npws, "`npws`")})
    if (value && !can_be_asked(*value))
      throw BadParameters(fmt::format("{} {}", flag, kShareRange));
}

void check_window(const PlanRequest& request) {
  const bool window = request.window.has_value();
  refuse_if((request.slack || request.npws) && !window,
            "`slack` and `npws` say how long past a window keys may be remembered: give `window`");
  refuse_if(request.rate && !(window && request.window->by_time()),
            "`rate` needs a window of time: give `window` 10m or the like");
  if (!window) return;
  refuse_if(request.window->size == 0, "`window` must be longer than nothing");
  const WindowSpec::Kind kind = request.window->kind;
  refuse_if(kind < WindowSpec::Kind::count || kind > WindowSpec::Kind::landmark,
            "`window` must be a number of keys, a span of time, or the present hour or day");
  refuse_if(request.window->by_time() && request.window->size > kLongestWindow,
            "`window` is too long: at most 73 years");
  refuse_if(!request.window->by_time() && request.expect,
            "`expect` cannot be used with a window of records: `window` says how many to remember");
  refuse_if(request.rate && request.expect,
            "`rate` and `expect` say the same thing: give only one of them");
  refuse_if(request.rate && !(*request.rate > 0), "`rate` must be more than nothing");
  refuse_if(request.rate &&
                *request.rate * static_cast<double>(request.window->size) * 1e-9 > kMostWindowKeys,
            "`rate` times `window` is more than 10^13 keys: ask for less");
  refuse_if(request.memory && request.window->by_time() && !request.rate && !request.expect,
            "`memory` for a window of time needs `rate`, the distinct keys to expect: 50k/s");
}

}  // namespace

void planning::check(const PlanRequest& request) {
  check_shares(request);
  check_window(request);
  refuse_if(request.expect == std::uint64_t{0}, "`expect` 0 leaves nothing to do: give 1 or more");
  refuse_if(request.lines && !(*request.lines >= 1),
            "`lines` must be 1 or more: every key touches a cache line");
  refuse_if(request.fnr && !request.window && !request.expect && !request.memory,
            "`fnr` allows what forgets at random: say what is to be remembered with `window`, "
            "`expect` or `memory`");
  if (!request.memory) return;
  const std::uint64_t least = request.beside + kLeastFilterBytes;
  if (memory_alone(request) && *request.memory < least)
    throw BadParameters(fmt::format("`memory` {} is too little{}: give {} or more",
                                    exact_size(*request.memory), taken_beside(request),
                                    size_of_at_least(least)));
  if (*request.memory > kMostMemory)
    throw BadParameters(fmt::format("`memory` {} is more than any filter takes: give {} or less",
                                    exact_size(*request.memory), exact_size(kMostMemory)));
}

namespace {

std::vector<Plan> sized(const PlanRequest& request, std::span<const Family> families,
                        WindowForecasts& windows) {
  std::vector<Plan> plans;
  planning::Sizing sizing(request, windows);
  for (const Family& family : families) {
    Plan plan = sizing.best(family);
    // `bloom` is one of its layouts.
    const auto same = [&](const Plan& other) {
      return !plan.settings.empty() && other.settings == plan.settings &&
             other.filter.substr(0, other.filter.find(',')) ==
                 plan.filter.substr(0, plan.filter.find(','));
    };
    if (std::ranges::none_of(plans, same)) plans.push_back(std::move(plan));
  }
  return plans;
}

// With memory alone the error is no less than what is usual, and what is open is how many keys.
PlanRequest fixed_error(PlanRequest request) {
  request.fpr = request.fpr.value_or(planning::kStandardFpr);
  return request;
}

// Where the error is open the default is good enough at the standard one: what errs less still
// costs more lines, or slack.
bool default_will_do(const PlanRequest& request, const Plan& plan) {
  return plan.feasible() && (!error_is_open(request) || plan.fpr <= planning::kStandardFpr);
}

// Only what may be chosen.
std::vector<Plan> worth_choosing(const PlanRequest& request, std::span<const Family> families,
                                 WindowForecasts& windows) {
  planning::Sizing sizing(request, windows);
  std::vector<Plan> plans = {sizing.best(families.front())};
  if (default_will_do(request, plans[0])) return plans;
  double least = plans[0].feasible() ? plans[0].fpr : 1;
  for (const Family& family : families.subspan(1)) {
    if (error_is_open(request) && (least == 0 || !sizing.beats(family, least))) continue;
    plans.push_back(sizing.best(family));
    if (plans.back().feasible()) least = std::min(least, plans.back().fpr);
  }
  return plans;
}

std::span<const Family> families_of(const PlanRequest& request) {
  if (request.window || memory_alone(request)) return planning::families_for(Role::window);
  return request.expect ? planning::families_for(Role::set)
                        : planning::families_for(Role::growing_set);
}

// The default where it will do; else what takes the fewest bytes or, where the error is open, errs
// least.
std::size_t choose(const PlanRequest& request, const std::vector<Plan>& plans) {
  const bool open = error_is_open(request);
  if (default_will_do(request, plans[0])) return 0;
  std::optional<std::size_t> best;
  for (std::size_t i = 0; i < plans.size(); ++i) {
    if (!plans[i].feasible()) continue;
    if (!best) {
      best = i;
    } else if (open && plans[i].fpr != plans[*best].fpr) {
      if (plans[i].fpr < plans[*best].fpr) best = i;
    } else if (*best != 0 && plans[i].bytes < plans[*best].bytes) {
      best = i;
    }
  }
  return best.value_or(plans.size());
}

std::string_view name_in(const Plan& plan) {
  return std::string_view(plan.filter).substr(0, plan.filter.find(','));
}

std::string bits_and_bound(const Plan& plan) {
  if (!plan.over_bound) return fmt::format("{:.1f} bits per key", plan.bits_per_key);
  return fmt::format("{:.1f} bits per key, {:.2g} × the theoretical minimum", plan.bits_per_key,
                     *plan.over_bound);
}

std::string reason_for(const PlanRequest& request, const std::vector<Plan>& plans,
                       std::size_t chosen) {
  const Plan& plan = plans[chosen];
  const std::string_view name = name_in(plan);
  if (error_is_open(request)) {
    const bool by_default = default_will_do(request, plans[0]);
    const bool can_grow = by_default && request.window && request.window->by_time();
    return fmt::format("{} {} {}: {}", name,
                       can_grow     ? "is the default, and has the standard error within"
                       : by_default ? "is the default, and this is its lowest error that fits into"
                                    : "has the lowest error of the filters that fit into",
                       format_size(*request.memory), bits_and_bound(plan));
  }
  if (chosen != 0)
    return fmt::format(
        "{} takes the fewest bytes of the feasible filters; the default, {}, is not feasible ({})",
        plan.filter, name_in(plans[0]), plans[0].why_not);
  if (name == "cohort")
    return fmt::format(
        "cohort is the default for windows: it forgets no key too early, touches two "
        "cache lines per key, and takes {}",
        bits_and_bound(plan));
  if (name == "growing")
    return fmt::format(
        "the number of keys is not known, and growing keeps its error at any number: {}",
        bits_and_bound(plan));
  return fmt::format(
      "the number of keys is known, so a Bloom filter is enough: {} cache line{} per key, {}",
      plan.lines, plan.lines == 1 ? "" : "s", bits_and_bound(plan));
}

// A window and a filter that forgets at random are compared by the distance, in keys, at which a
// repeat is still recognised: the length of the window, or the mean distance of the other. If
// repeats are far apart, the share of them that is caught is proportional to it.
void choose_for_memory(const PlanRequest& request, Planning& planning, WindowForecasts& windows) {
  const std::size_t window = choose(fixed_error(request), planning.candidates);
  std::vector<Plan> random = sized(request, planning::families_for(Role::forgetting), windows);
  const std::size_t farthest = static_cast<std::size_t>(
      std::ranges::max_element(random, {},
                               [](const Plan& plan) { return plan.feasible() ? plan.holds : 0; }) -
      random.begin());
  const Plan* sure = window < planning.candidates.size() ? &planning.candidates[window] : nullptr;
  const std::uint64_t sure_keys = sure == nullptr ? 0 : sure->holds;
  const std::uint64_t random_keys = random[farthest].feasible() ? random[farthest].holds : 0;
  const std::string both = fmt::format(
      "a window that fits remembers the last {} keys for certain, and forgetting at random "
      "remembers a key for {} later keys on average",
      format_count(sure_keys), format_count(random_keys));
  if (sure_keys >= random_keys && sure != nullptr) {
    planning.chosen = window;
    planning.reason = fmt::format("the most recent past ({}), because {}", name_in(*sure), both);
  } else if (random_keys > 0) {
    planning.chosen = planning.candidates.size() + farthest;
    planning.reason =
        fmt::format("forgetting at random ({}), because {}", name_in(random[farthest]), both);
  }
  std::ranges::move(random, std::back_inserter(planning.candidates));
}

// The chosen one first, then what is feasible, else as before.
void put_in_order(Planning& planning) {
  if (planning.chosen) {
    const auto first = planning.candidates.begin();
    const auto at = first + static_cast<std::ptrdiff_t>(*planning.chosen);
    std::rotate(first, at, at + 1);
    planning.chosen = 0;
  }
  std::stable_partition(planning.candidates.begin(), planning.candidates.end(),
                        [](const Plan& plan) { return plan.feasible(); });
}

bool fills_by_parts(const Plan& plan) {
  const std::span<const Family> families = filter_named(name_in(plan)).row->families;
  return std::ranges::any_of(families, &Family::by_parts);
}

std::string assumed_in(const PlanRequest& request) {
  if (request.window && request.fpr && *request.fpr > planning::most_fpr(request))
    return fmt::format("`fpr` {}: where more of what is new is lost, little is left to remember",
                       planning::most_fpr(request));
  if (request.window && request.window->by_time() && !request.rate && !request.expect)
    return fmt::format(
        "no `rate`: sizes are those with {} keys in a window, and grow with what comes",
        format_count(Window::kFirstKeys));
  if (!request.window && !request.expect && !request.memory)
    return fmt::format("no `expect`: sizes are those with {} keys, and grow with what comes",
                       format_count(kStandardCapacity));
  return {};
}

}  // namespace

std::string Plan::filter_text() const {
  return table.empty() ? filter : filter + "," + table;
}

Wish Plan::wish() const {
  return {.keys = keys, .fpr = target_fpr, .generations = generations};
}

Window::Params Plan::window_params() const {
  Window::Params params;
  params.spec = window.value();
  params.anchor = anchor;
  params.filter = filter;
  params.fpr = target_fpr;
  params.keys = keys;
  params.generations = generations;
  return params;
}

AnyFilter Plan::make() const {
  return window ? AnyFilter(Window::make(window_params())) : make_filter(filter_text(), wish());
}

Planning plan(const PlanRequest& request, PlanScope scope) {
  planning::check(request);
  Planning planning{.request = request, .assumed = assumed_in(request)};
  const std::span<const Family> families = families_of(request);
  WindowForecasts windows;
  planning.candidates = scope == PlanScope::all ? sized(request, families, windows)
                        : memory_alone(request)
                            ? worth_choosing(fixed_error(request), families, windows)
                            : worth_choosing(request, families, windows);
  if (memory_alone(request)) {
    choose_for_memory(request, planning, windows);
  } else {
    if (request.fnr)
      std::ranges::move(sized(request, planning::families_for(Role::forgetting), windows),
                        std::back_inserter(planning.candidates));
    else if (scope == PlanScope::all)
      for (const Family& family : planning::families_for(Role::forgetting))
        planning.candidates.push_back({.filter = std::string(family.text),
                                       .why_not = "lets some duplicates through: needs `fnr`"});
    const std::size_t chosen = choose(request, planning.candidates);
    if (chosen < planning.candidates.size()) {
      planning.reason = reason_for(request, planning.candidates, chosen);
      planning.chosen = chosen;
    }
  }
  put_in_order(planning);
  if (planning.chosen) return planning;
  planning.nearest = planning::nearest_to(request, windows);
  planning.reason = planning::why_none(request, planning.nearest);
  return planning;
}

PlanRequest promised(const Planning& planning) {
  const Plan& plan = planning.choice();
  PlanRequest request = planning.request;
  const bool alone = memory_alone(request);
  // What grows with what comes has no limit to promise: a window of time without a rate, a set
  // without a number of keys.
  // Segments that fill up one by one have none either if keys may come in bursts.
  const bool by_time = request.window && request.window->by_time();
  const bool even = request.rate || (request.expect && !(by_time && fills_by_parts(plan)));
  const bool grows = !even && (request.window ? by_time : !request.memory);
  const std::uint64_t bytes = plan.bytes + request.beside;
  if (!grows && bytes <= kMostMemory) request.memory = bytes;
  if (can_be_asked(plan.fpr)) request.fpr = plan.fpr;
  if (alone && !plan.window) return request;
  request.window = plan.window ? plan.window : request.window;
  if (can_be_asked(plan.fnr)) request.fnr = plan.fnr;
  request.lines = std::max(1.0, plan.lines);
  const bool sliding = plan.window && plan.window->kind != WindowSpec::Kind::landmark;
  if (sliding && can_be_asked(plan.slack)) request.slack = plan.slack;
  if (sliding && can_be_asked(plan.npws)) request.npws = plan.npws;
  return request;
}

}  // namespace sluice
