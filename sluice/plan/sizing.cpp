#include "sluice/plan/sizing.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "sluice/base/error.hpp"
#include "sluice/base/quantity.hpp"
#include "sluice/filters/catalogue.hpp"
#include "sluice/model/lower_bound.hpp"
#include "sluice/window/cut.hpp"

namespace sluice::planning {
namespace {

// Errors that a search goes through: below, no filter tells them apart.
constexpr double kLeastFpr = 1e-12;
constexpr std::uint64_t kMostKeys = std::uint64_t{1} << 40;
constexpr double kRounding = 1e-9;

constexpr Family kSets[] = {{"bloom"},
                            {"bloom,layout=blocked"},
                            {"bloom,layout=classic"},
                            {"growing"},
                            {"dynamic"},
                            {"counting"},
                            {"exact"}};
// Half the error for each filter of twice the keys: as many as come.
constexpr Family kGrowing[] = {{"growing"}, {"dynamic,tighten=0.5"}, {"exact"}};
constexpr Family kWindows[] = {{"cohort"},
                               {"apbbf,layout=line", false, true},
                               {"apbbf,layout=column", false, true, "apbbf,layout=segment"},
                               {"apbbf,layout=segment", false, true},
                               {"apbf", false, true},
                               {"timing"},
                               {"timer"},
                               {"exact-window"}};
constexpr Family kForgetting[] = {{"reservoir", true}, {"stable", true}};

// Generations to try for a filter whose slack is several of them.
constexpr unsigned kCuts[] = {6, 8, 11, 16, 23, 32, 45, 64, 91, 128};

double power_of_ten(int exponent) {
  return std::strtod(fmt::format("1e{}", exponent).c_str(), nullptr);
}

// `digits` digits, up or down, as the double that is nearest to what is printed.
double rounded(double value, int digits, bool up) {
  if (!(value > 0) || !std::isfinite(value)) return value;
  int exponent = static_cast<int>(std::floor(std::log10(value))) - digits + 1;
  const double scaled =
      exponent >= 0 ? value / power_of_ten(exponent) : value * power_of_ten(-exponent);
  const double whole = up ? std::ceil(scaled - kRounding) : std::floor(scaled + kRounding);
  return std::strtod(fmt::format("{:.0f}e{}", whole, exponent).c_str(), nullptr);
}

// Filters made alike differ in their errors, small ones much. What is promised is promised of each:
// the mean and three deviations may be a little more than the error asked for, or else less is
// asked for; `make` tells what comes of that.
constexpr double kDeviations = 3;
constexpr double kLittle = 1.08;

template <class Make>
Forecast sure_of(double fpr, double& target, Make make) {
  constexpr int kMostRounds = 12;
  target = fpr;
  Forecast first = make(target), made = first;
  for (int round = 0; round < kMostRounds; ++round) {
    const double sure = (made.fpr + kDeviations * made.fpr_spread) / kLittle;
    if (!(sure > fpr)) {
      made.fpr = std::max(made.fpr, sure);
      return made;
    }
    target = floor3(target * std::clamp(fpr / sure, 0.2, 0.95));
    try {
      made = make(target);
    } catch (const Error&) {
      break;
    }
  }
  // A handful of keys: there is no telling.
  target = fpr;
  return first;
}

std::string without_fpr(const Settings& settings) {
  Settings kept;
  for (const auto& [name, value] : settings.pairs())
    if (name != "fpr" && name != "seed") kept.add(name, value);
  return kept.text();
}

// The size of a table, where settings have one: with the keys and the error given, too, it decides.
std::string table_of(const std::string& settings) {
  Settings kept;
  bool sized = false;
  const Settings all = Settings::parse(settings);
  for (const auto& [name, value] : all.pairs()) {
    if (name == "bytes" || name == "probes") kept.add(name, value);
    sized |= name == "bytes";
  }
  return sized ? kept.text() : std::string();
}

}  // namespace

std::span<const Family> set_families() {
  return kSets;
}
std::span<const Family> growing_families() {
  return kGrowing;
}
std::span<const Family> window_families() {
  return kWindows;
}
std::span<const Family> forgetting_families() {
  return kForgetting;
}

double floor3(double value) {
  return rounded(value, 3, false);
}
double ceil3(double value) {
  return rounded(value, 3, true);
}
double ceil6(double value) {
  return rounded(value, 6, true);
}

double share_at(int index) {
  return std::strtod(fmt::format("{}e{}", 100 + index % 900, index / 900 - 14).c_str(), nullptr);
}

int index_of_share(double share) {
  int low = 0, high = kShareIndices;
  while (low < high) {
    const int middle = (low + high) / 2;
    if (share_at(middle) < share * (1 - kRounding))
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}

std::uint64_t count_at(int index) {
  if (index < 100) return static_cast<std::uint64_t>(index);
  std::uint64_t unit = 1;
  for (int decade = 0; decade < (index - 100) / 900; ++decade) unit *= 10;
  return static_cast<std::uint64_t>(100 + (index - 100) % 900) * unit;
}

bool memory_alone(const PlanRequest& request) {
  return request.memory && !request.window && !request.expect;
}

std::optional<std::uint64_t> keys_of(const PlanRequest& request) {
  if (!request.window) return request.expect;
  if (request.window->kind == WindowSpec::Kind::count) return request.window->size;
  if (request.expect) return request.expect;
  if (!request.rate) return std::nullopt;
  const double keys = *request.rate * static_cast<double>(request.window->size) * 1e-9;
  return std::max<std::uint64_t>(1, static_cast<std::uint64_t>(keys));
}

double most_fpr(const PlanRequest& request) {
  const bool by_count = request.window ? !request.window->by_time() : memory_alone(request);
  return by_count && request.anchor == Anchor::delivered ? kMostDeliveredFpr : 0.5;
}

Plan Sizing::best(const Family& family) {
  if (memory_alone(request_)) return most_keys(family);
  const auto keys = keys_of(request_);
  if (request_.fpr || !request_.memory)
    return settled(family, keys, floor3(request_.fpr.value_or(kStandardFpr)));
  return least_error(family, keys);
}

bool Sizing::beats(const Family& family, double fpr) {
  const int index = index_of_share(fpr) - 1;
  const Plan plan = sized(family, keys_of(request_), share_at(std::max(index, 0)));
  return plan.feasible() && (index >= 0 || plan.fpr < fpr);
}

// The least error that fits.
Plan Sizing::least_error(const Family& family, std::optional<std::uint64_t> keys) {
  const auto at = [&](int index) { return sized(family, keys, share_at(index)); };
  const int least = index_of_share(kLeastFpr), most = index_of_share(most_fpr(request_));
  Plan plan = at(most);
  if (!plan.feasible() || plan.fpr == 0) return plan;
  const int found = greatest(least, most, [&](int index) {
    // Counted from the far end: the larger the error, the better it fits.
    return at(most - (index - least)).feasible();
  });
  return settled(family, keys, share_at(most - (found - least)));
}

// As many keys as fit, in three digits: a number that a person can read costs at most a hundredth.
Plan Sizing::most_keys(const Family& family) {
  const double fpr = floor3(request_.fpr.value_or(kStandardFpr));
  const int found = greatest(
      1, kCountIndices, [&](int index) { return sized(family, count_at(index), fpr).feasible(); });
  return settled(family, count_at(found), fpr);
}

// Sizes are steps, so what comes out is often better than what was asked for: then that is
// promised, if asking for it gives the same again; else what was asked for.
Plan Sizing::settled(const Family& family, std::optional<std::uint64_t> keys, double fpr) {
  Plan plan = sized(family, keys, fpr);
  const double asked = plan.window ? std::min(fpr, most_fpr(request_)) : fpr;
  if (plan.settings.empty() || plan.fpr == 0 || plan.fpr >= asked) return plan;
  // Slices and blocks come in many shapes: there, what is asked for is what is chosen by.
  if (family.by_slices || sized(family, keys, plan.fpr).settings != plan.settings) plan.fpr = asked;
  return plan;
}

Plan Sizing::sized(const Family& family, std::optional<std::uint64_t> keys, double fpr) {
  Plan plan{.filter = std::string(family.text), .anchor = request_.anchor, .target_fpr = fpr};
  try {
    if (family.forgets) return sized_forgetting(family, keys, fpr);
    if (request_.window || memory_alone(request_)) return sized_window(family, keys, fpr);
    plan.keys = keys;
    judge(plan, family, fpr, sure_of(fpr, plan.target_fpr, [&](double) {
            return forecast_filter(plan.filter, plan.wish());
          }));
    // The error asked for stays what the filter is held to.
    if (plan.target_fpr != fpr) plan.table = table_of(plan.settings);
    if (!plan.table.empty()) plan.target_fpr = fpr;
  } catch (const Error& error) {
    plan.why_not = error.what();
  }
  return plan;
}

Plan Sizing::sized_window(const Family& family, std::optional<std::uint64_t> keys, double fpr) {
  Plan plan{
      .filter = std::string(family.text),
      .window = request_.window.value_or(WindowSpec{WindowSpec::Kind::count, keys.value_or(1)}),
      .anchor = request_.anchor,
      .target_fpr = std::min(fpr, most_fpr(request_))};
  if (plan.window->by_time()) plan.keys = keys;
  const auto holds = [&](const Forecast& made) {
    return made.slack <= request_.slack.value_or(1e300) * (1 + kRounding) &&
           made.npws <= request_.npws.value_or(1e300) * (1 + kRounding);
  };
  const auto bound_holds = [&](const Plan& wanted, auto good) {
    if (family.bounded_by.empty()) return true;
    Window::Params bound = wanted.window_params();
    bound.filter = family.bounded_by;
    return good(Window::forecast(bound));
  };
  const auto fits = [&](const Forecast& made) {
    return !request_.memory || made.bytes + request_.beside <= *request_.memory;
  };
  if (!bound_holds(plan, fits)) {
    plan.why_not = "takes more memory than there is";
    return plan;
  }
  fpr = plan.target_fpr;
  const auto forecast = [&](Plan& wanted) {
    return sure_of(fpr, wanted.target_fpr,
                   [&](double) { return Window::forecast(wanted.window_params()); });
  };
  Forecast made = forecast(plan);
  std::vector<unsigned> cuts;
  if (plan.window->kind == WindowSpec::Kind::landmark || holds(made)) {
    // The filter's own cut will do.
  } else if (family.by_slices) {
    cuts.assign(std::begin(kCuts), std::end(kCuts));
  } else {
    cuts.push_back(generations_for(
        *plan.window, std::min(request_.slack.value_or(1), request_.npws.value_or(1))));
  }
  for (const unsigned cut : cuts) {
    Plan finer = plan;
    finer.generations = cut;
    try {
      if (!bound_holds(finer, holds)) continue;
      made = forecast(finer);
    } catch (const Error&) {
      continue;
    }
    plan = finer;
    if (holds(made)) break;
  }
  judge(plan, family, fpr, made);
  return plan;
}

// Distances grow with the table: the smallest of a series of tables, each a fiftieth larger than
// the one before, with which few enough repeats are let through.
Plan Sizing::sized_forgetting(const Family& family, std::optional<std::uint64_t> keys, double fpr) {
  constexpr double kStep = 1.02;
  constexpr int kMostSteps = 700;  // a million times
  Plan plan{.filter = std::string(family.text), .target_fpr = fpr};
  const std::uint64_t distance = keys.value_or(kStandardCapacity);
  const auto at = [&](int step) {
    const double mean = static_cast<double>(distance) * std::pow(kStep, step);
    plan.keys = std::min(kMostKeys, static_cast<std::uint64_t>(mean));
    Forecast made = forecast_filter(plan.filter, plan.wish());
    if (*plan.keys != distance) {
      Settings sized;
      sized.add("bytes", made.bytes);
      made = forecast_filter(fmt::format("{},{}", plan.filter, sized.text()),
                             {.keys = distance, .fpr = plan.target_fpr});
    }
    return made;
  };
  int step = 0;
  if (request_.fnr && !memory_alone(request_) && at(0).fnr > *request_.fnr)
    step = 1 + greatest(0, kMostSteps, [&](int index) { return at(index).fnr > *request_.fnr; });
  judge(plan, family, fpr, sure_of(fpr, plan.target_fpr, [&](double) { return at(step); }));
  return plan;
}

// Fills in what the forecast says, rounded to what is promised.
void Sizing::judge(Plan& plan, const Family& family, double asked, const Forecast& made) const {
  plan.settings = without_fpr(made.settings);
  plan.holds = made.keys;
  plan.bytes = made.bytes;
  plan.fpr = ceil3(made.fpr);
  plan.fnr = ceil6(made.fnr);
  plan.slack = ceil6(made.slack);
  plan.npws = ceil6(made.npws);
  plan.lines = ceil3(made.lines);
  // A window is what was asked for; a set, too.
  plan.bits_per_key = 8 * static_cast<double>(plan.bytes) / static_cast<double>(plan.holds);
  if (plan.fpr > 0 && !family.forgets) {
    const double slack = std::max(made.slack, 1 / static_cast<double>(plan.holds));
    const bool sliding = plan.window && plan.window->kind != WindowSpec::Kind::landmark;
    const double bound = sliding ? model::window_lower_bound_bits(made.fpr, slack)
                                 : model::set_lower_bound_bits(made.fpr);
    if (bound > 0) plan.over_bound = plan.bits_per_key / bound;
  }
  plan.why_not = what_is_amiss(plan, asked, made);
}

std::string Sizing::what_is_amiss(const Plan& plan, double asked, const Forecast& made) const {
  if (!std::isfinite(made.fpr) || !std::isfinite(made.fnr) || plan.holds == 0)
    return "nothing can be said of it";
  if (request_.fnr && plan.fnr > *request_.fnr * (1 + kRounding) && !memory_alone(request_))
    return fmt::format("lets {} of repeats through", format_probability(plan.fnr));
  if (made.fpr > asked * (1 + kRounding))
    return fmt::format("errs at {}", format_probability(made.fpr));
  if (request_.memory && plan.bytes + request_.beside > *request_.memory)
    return fmt::format("takes {}", format_size(plan.bytes + request_.beside));
  if (request_.slack && made.slack > *request_.slack * (1 + kRounding))
    return fmt::format("has a slack of {:.3g}", made.slack);
  if (request_.npws && made.npws > *request_.npws * (1 + kRounding))
    return fmt::format("has an npws of {:.3g}", made.npws);
  if (request_.lines && made.lines > *request_.lines * (1 + kRounding))
    return fmt::format("touches {:.3g} lines", made.lines);
  return {};
}

}  // namespace sluice::planning
