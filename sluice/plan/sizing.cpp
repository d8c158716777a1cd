#include "sluice/plan/sizing.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdlib>
#include <vector>

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
constexpr std::uint64_t kMostBytes = std::uint64_t{1} << 62;
constexpr double kRounding = 1e-9;

// Generations to try for a filter whose slack is several of them.
constexpr unsigned kCuts[] = {6, 8, 11, 16, 23, 32, 45, 64, 91, 128};

// whole · 10^exponent, as the double that is nearest to it: up to 22 both sides are exact, and one
// product or division rounds as reading the text would.
double by_tens(double whole, int exponent) {
  static constexpr double kTens[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                     1e8,  1e9,  1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
                                     1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
  if (exponent >= 0 && exponent <= 22) return whole * kTens[exponent];
  if (exponent < 0 && exponent >= -22) return whole / kTens[-exponent];
  return std::strtod(fmt::format("{}e{}", whole, exponent).c_str(), nullptr);
}

// `digits` digits, up or down, as the double that is nearest to what is printed.
double rounded(double value, int digits, bool up) {
  if (!(value > 0) || !std::isfinite(value)) return value;
  const int exponent = static_cast<int>(std::floor(std::log10(value))) - digits + 1;
  const double scaled =
      exponent >= 0 ? value / by_tens(1, exponent) : value * by_tens(1, -exponent);
  return by_tens(up ? std::ceil(scaled * (1 - kRounding)) : std::floor(scaled * (1 + kRounding)),
                 exponent);
}

// Filters with the same parameters differ in their errors, small ones by much, and the promise
// holds for each. So the mean plus three deviations may exceed the requested error only a little;
// otherwise a smaller error is requested, and `make` tells the result.
constexpr double kDeviations = 3;
constexpr double kLittle = 1.08;

// `first` was made for `fpr`; `make` returns none where there is none.
template <class Make>
Forecast sure_of(double fpr, double& target, const Forecast& first, Make make) {
  constexpr int kMostRounds = 12;
  target = fpr;
  Forecast made = first;
  for (int round = 0; round < kMostRounds; ++round) {
    const double sure = (made.fpr + kDeviations * made.fpr_spread) / kLittle;
    if (!(sure > fpr)) {
      made.fpr = std::max(made.fpr, sure);
      return made;
    }
    target = floor3(target * std::clamp(fpr / sure, 0.2, 0.95));
    std::optional<Forecast> next = make();
    if (!next) break;
    made = *std::move(next);
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
std::string table_of(const std::string& settings, std::string_view filter) {
  Settings kept;
  bool sized = false;
  const Settings all = Settings::parse(settings);
  for (const auto& [name, value] : all.pairs()) {
    const bool said = filter.find("," + name + "=") != filter.npos;
    // A layout that the filter chose itself has to be said: for another error it chooses another.
    if (!said && (name == "bytes" || name == "probes" || name == "layout")) kept.add(name, value);
    sized |= name == "bytes";
  }
  return sized ? kept.text() : std::string();
}

}  // namespace

std::span<const Family> families_for(Role role) {
  static const auto kFamilies = [] {
    std::array<std::vector<Family>, 4> of_role;
    for (const FilterInfo& filter : catalogue())
      for (const Family& family : filter.row->families)
        of_role[static_cast<std::size_t>(family.role)].push_back(family);
    return of_role;
  }();
  return kFamilies[static_cast<std::size_t>(role)];
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
  return by_tens(100 + index % 900, index / 900 - 14);
}

int index_of_share(double share) {
  const double least = share * (1 - kRounding);
  const int decade = static_cast<int>(std::floor(std::log10(std::clamp(share, 1e-12, 1.0)))) + 12;
  int index = std::min(decade * 900, kShareIndices);
  index += static_cast<int>(std::clamp(least / share_at(index) * 100 - 100, 0.0, 900.0));
  index = std::min(index, kShareIndices);
  while (index > 0 && share_at(index - 1) >= least) --index;
  while (index < kShareIndices && share_at(index) < least) ++index;
  return index;
}

std::uint64_t count_at(int index) {
  if (index < 100) return static_cast<std::uint64_t>(index);
  std::uint64_t unit = 1;
  for (int decade = 0; decade < (index - 100) / kIndicesPerDecade; ++decade) unit *= 10;
  return static_cast<std::uint64_t>(100 + (index - 100) % kIndicesPerDecade) * unit;
}

bool memory_alone(const PlanRequest& request) {
  return request.memory && !request.window && !request.expect;
}

std::optional<std::uint64_t> keys_of(const PlanRequest& request) {
  if (!request.window) return request.expect;
  if (request.window->kind == WindowSpec::Kind::count) return request.window->size;
  if (request.expect) return request.expect;
  if (!request.rate) return std::nullopt;
  return keys_of_rate(request, 1);
}

// Arrivals are Poisson at best: a window of n keys on average has n + 4 √n at times. Where each of
// `parts` has its own room, each must have that much and more: there are many of them, and the few keys
// that each has on average are often exceeded by a multiple. Its room is exceeded once in ten million
// times: a quantile of the Poisson distribution, from that of the normal one and the skew.
std::uint64_t keys_of_rate(const PlanRequest& request, unsigned parts) {
  constexpr double kRoom = 4, kRoomOfPart = 5.2;
  const double keys = request.rate
                          ? *request.rate * static_cast<double>(request.window->size) * 1e-9
                          : static_cast<double>(*request.expect);
  const double room = parts <= 1 ? kRoom * std::sqrt(keys)
                                 : kRoomOfPart * std::sqrt(keys * parts) +
                                       parts * (1 + (kRoomOfPart * kRoomOfPart - 1) / 6);
  return std::max<std::uint64_t>(1, static_cast<std::uint64_t>(keys + room));
}

bool error_is_open(const PlanRequest& request) {
  return request.memory && !request.fpr && !memory_alone(request);
}

double most_fpr(const PlanRequest& request) {
  if (error_is_open(request)) return kMostUnasked;
  const bool by_count = request.window ? !request.window->by_time() : memory_alone(request);
  return by_count && request.anchor == Anchor::delivered ? kMostDeliveredFpr : 0.5;
}

double least_fpr(const PlanRequest& request) {
  return request.window && request.window->by_time() ? kStandardFpr : kLeastFpr;
}

const WindowForecasts::Answer& WindowForecasts::of(const Family& family, const Plan& plan) {
  constexpr std::size_t kPlaces = 256;
  if (places_.empty()) places_.resize(kPlaces);
  const Question question{family.text.data(), plan.window->size, plan.keys.value_or(0),
                          plan.generations.value_or(0), plan.target_fpr};
  std::uint64_t mixed = std::bit_cast<std::uintptr_t>(question.family);
  for (const std::uint64_t part : {question.size, question.keys, question.generations,
                                   std::bit_cast<std::uint64_t>(question.fpr)})
    mixed = (mixed ^ part) * 0x9E37'79B9'7F4A'7C15;
  Place& place = places_[(mixed >> 32) % kPlaces];
  if (place.question == question) return place.answer;
  place.question = question;
  try {
    place.answer = {Window::forecast(plan.window_params(), true), {}};
  } catch (const Error& error) {
    place.answer = {{}, error.what()};
  }
  return place.answer;
}

Plan Sizing::best(const Family& family) {
  if (memory_alone(request_)) return most_keys(family);
  const auto keys = keys_of(request_);
  if (request_.fpr || !request_.memory) return settled(family, keys, asked_fpr());
  return least_error(family, keys);
}

Plan Sizing::rough(const Family& family) {
  if (memory_alone(request_)) return sized(family, 1, asked_fpr(), Words::no);
  const double fpr =
      error_is_open(request_) ? share_at(index_of_share(most_fpr(request_))) : asked_fpr();
  return sized(family, keys_of(request_), fpr, Words::no);
}

bool Sizing::beats(const Family& family, double fpr) {
  const int index = index_of_share(fpr) - 1, least = index_of_share(least_fpr(request_));
  const Plan plan = sized(family, keys_of(request_), share_at(std::max(index, least)), Words::no);
  return plan.feasible() && (index >= least || plan.fpr < fpr);
}

double Sizing::asked_fpr() const {
  return floor3(request_.fpr.value_or(kStandardFpr));
}

// The least error that fits.
Plan Sizing::least_error(const Family& family, std::optional<std::uint64_t> keys) {
  const int least = index_of_share(least_fpr(request_)), most = index_of_share(most_fpr(request_));
  Plan plan = sized(family, keys, share_at(most), Words::yes);
  if (!plan.feasible() || plan.fpr == 0) return plan;
  // Where there is memory to spare, the least that is looked for.
  plan = settled(family, keys, share_at(least));
  if (plan.feasible()) return plan;
  // Counted from the far end: the larger the error, the better it fits. What forgets at random
  // takes a search for each, and tenths of a decade will do.
  const int step = family.forgets() ? 90 : 1;
  const int found = greatest(0, (most - least) / step, [&](int index) {
    return sized(family, keys, share_at(most - step * index), Words::no).feasible();
  });
  return settled(family, keys, share_at(most - step * found));
}

// As many keys as fit, in three digits: a number that a person can read costs at most a hundredth.
Plan Sizing::most_keys(const Family& family) {
  const double fpr = asked_fpr();
  const int found = greatest(1, kCountIndices, [&](int index) {
    return sized(family, count_at(index), fpr, Words::no).feasible();
  });
  return settled(family, count_at(found), fpr);
}

// Sizes are steps, so what comes out is often better than what was asked for: then that is
// promised, if asking for it gives the same again; else what was asked for.
Plan Sizing::settled(const Family& family, std::optional<std::uint64_t> keys, double fpr) {
  Plan plan = sized(family, keys, fpr, Words::yes);
  const double asked = plan.window ? std::min(fpr, most_fpr(request_)) : fpr;
  if (plan.settings.empty() || plan.fpr == 0 || plan.fpr >= asked) return plan;
  // Of many shapes, the request decides which one is taken.
  if (family.many_shapes || sized(family, keys, plan.fpr, Words::yes).settings != plan.settings)
    plan.fpr = asked;
  return plan;
}

Plan Sizing::sized(const Family& family, std::optional<std::uint64_t> keys, double fpr,
                   Words words) {
  Plan plan{.filter = std::string(family.text),
            .anchor = request_.anchor,
            .target_fpr = fpr,
            .asked_fpr = fpr};
  try {
    if (family.forgets()) return sized_forgetting(family, keys, fpr, words);
    if (request_.window || memory_alone(request_)) return sized_window(family, keys, fpr, words);
    plan.keys = keys;
    const auto make = [&]() -> std::optional<Forecast> {
      try {
        return forecast_filter(plan.filter, plan.wish());
      } catch (const Error&) {
        return std::nullopt;
      }
    };
    const Forecast first = forecast_filter(plan.filter, plan.wish());
    judge(plan, family, fpr, sure_of(fpr, plan.target_fpr, first, make), words);
    if (plan.feasible() && keys && plan.holds < *keys)
      plan.why_not = fmt::format("holds {} keys at most", format_count(plan.holds));
    // The error asked for stays what the filter is held to.
    if (plan.target_fpr != fpr) plan.table = table_of(plan.settings, plan.filter);
    if (!plan.table.empty()) plan.target_fpr = fpr;
  } catch (const Error& error) {
    plan.why_not = error.what();
  }
  return plan;
}

Plan Sizing::sized_window(const Family& family, std::optional<std::uint64_t> keys, double fpr,
                          Words words) {
  const auto refused = [&, asked = fpr](std::string why_not) {
    return Plan{.filter = std::string(family.text),
                .anchor = request_.anchor,
                .target_fpr = asked,
                .why_not = std::move(why_not)};
  };
  Plan plan{
      .filter = std::string(family.text),
      .window = request_.window.value_or(WindowSpec{WindowSpec::Kind::count, keys.value_or(1)}),
      .anchor = request_.anchor,
      .target_fpr = std::min(fpr, most_fpr(request_)),
      .asked_fpr = fpr};
  if (plan.window->by_time()) plan.keys = keys;
  fpr = plan.target_fpr;
  // Segments fill up one by one: a burst takes more of them, and there would be no memory for it.
  if (family.by_parts && plan.window->by_time() && request_.memory && !request_.rate)
    return refused("holds so many keys only if they come evenly: give their `rate`");
  Forecast made;
  // The reason why not, or nothing.
  const auto forecast = [&](const Plan& wanted) -> const std::string& {
    const WindowForecasts::Answer& answer = windows_.of(family, wanted);
    if (answer.why_not.empty()) made = answer.made;
    return answer.why_not;
  };
  const bool apart =
      family.by_parts && plan.window->by_time() && (request_.rate || request_.expect);
  const auto holds = [&] {
    return made.slack <= request_.slack.value_or(1e300) * (1 + kRounding) &&
           made.npws <= request_.npws.value_or(1e300) * (1 + kRounding);
  };
  // False: impossible with that many, and nothing has changed.
  const auto cut_into = [&](unsigned generations) {
    const Plan before = plan;
    plan.generations = generations;
    plan.target_fpr = fpr;
    if (apart) plan.keys = keys_of_rate(request_, generations);
    if (forecast(plan).empty()) return true;
    plan.generations = before.generations;
    plan.target_fpr = before.target_fpr;
    plan.keys = before.keys;
    return false;
  };
  const auto be_sure = [&] {
    made = sure_of(fpr, plan.target_fpr, made, [&]() -> std::optional<Forecast> {
      const WindowForecasts::Answer& answer = windows_.of(family, plan);
      return answer.why_not.empty() ? std::optional(answer.made) : std::nullopt;
    });
  };
  // Each part has room for chance, so how many keys it is made for depends on the number of parts, and that
  // on the keys and the error: until there is room in all.
  for (unsigned parts = 1;;) {
    plan.target_fpr = fpr;
    if (const std::string& why_not = forecast(plan); !why_not.empty()) return refused(why_not);
    // Before it is cut another way: what a plan promises must lead to that plan, also if only a smaller error
    // than asked for made its slack what it is.
    be_sure();
    if (!apart || *made.generations <= parts) break;
    parts = *made.generations;
    plan.keys = keys_of_rate(request_, parts);
  }
  const bool cut = plan.window->kind != WindowSpec::Kind::landmark && !holds();
  std::size_t coarsest = std::size(kCuts);
  if (cut && !family.many_shapes) {
    const auto generations = generations_for(
        *plan.window, std::min(request_.slack.value_or(1), request_.npws.value_or(1)));
    if (!generations) return refused(kTooFine);
    cut_into(*generations);
  } else if (cut) {
    // The coarsest that holds. A finer cut has less slack, and may not reach the error.
    for (std::size_t low = 0; low < coarsest;) {
      const std::size_t middle = low + (coarsest - low) / 2;
      if (cut_into(kCuts[middle]) && !holds())
        low = middle + 1;
      else
        coarsest = middle;
    }
    if (coarsest < std::size(kCuts)) cut_into(kCuts[coarsest]);
  }
  if (cut) be_sure();
  // A smaller error may take more slack.
  while (cut && !holds() && ++coarsest < std::size(kCuts) && cut_into(kCuts[coarsest])) be_sure();
  // Settings, and the lines of what has many shapes, take most of the time: searches do without.
  const auto judge_in_full = [&] {
    Forecast full = Window::forecast(plan.window_params());
    made.lines = full.lines;
    made.settings = std::move(full.settings);
    judge(plan, family, fpr, made, words);
  };
  if (words == Words::no) judge(plan, family, fpr, made, words);
  const bool lines_count = request_.lines && family.many_shapes;
  if (words == Words::yes || (lines_count && plan.feasible())) judge_in_full();
  return plan;
}

// Distances grow with the table: the smallest of a series of tables, each a fiftieth larger than
// the one before, with which few enough repeats are let through.
Plan Sizing::sized_forgetting(const Family& family, std::optional<std::uint64_t> keys, double fpr,
                              Words words) {
  constexpr double kStep = 1.02;
  constexpr int kMostSteps = 700;  // a million times
  constexpr int kMostBeyond = 16;  // past an estimate, which is off by one or two
  const ForgettingInfo& filter = *filter_named(family.text).row->forgetting;
  Plan plan{.filter = std::string(family.text), .target_fpr = fpr};
  const std::uint64_t distance = keys.value_or(kStandardCapacity);
  const auto wish = [&] {
    return Wish{.keys = plan.keys, .fpr = plan.target_fpr, .brief = words == Words::no};
  };
  struct Known {
    int step;
    double target;
    Forecast made;
  };
  std::optional<Known> known[2];  // the last even step and the last odd one
  const auto at = [&](int step) {
    const double mean = static_cast<double>(distance) * std::pow(kStep, step);
    plan.keys = std::min(kMostKeys, static_cast<std::uint64_t>(mean));
    std::optional<Known>& same = known[step % 2];
    if (!same || same->step != step || same->target != plan.target_fpr) {
      check_wish(wish());
      same = {step, plan.target_fpr, filter.forecast(wish(), static_cast<double>(distance))};
    }
    return same->made;
  };
  const auto forgets_at = [&](int index) { return at(index).fnr > *request_.fnr; };
  // Tables beyond the largest there is are all alike.
  const double farthest = static_cast<double>(kMostKeys) / static_cast<double>(distance);
  const int most =
      std::clamp(1 + static_cast<int>(std::log(farthest) / std::log(kStep)), 1, kMostSteps);
  int step = 0;
  if (request_.fnr && !memory_alone(request_) && forgets_at(0)) {
    // All distances grow alike: how far a large table reaches tells which step it will be, or
    // nearly.
    constexpr std::uint64_t kFar = std::uint64_t{1} << 32;
    plan.keys = kFar;
    const double farther = static_cast<double>(kFar) / filter.distance(wish(), *request_.fnr);
    step = static_cast<int>(std::clamp(std::ceil(std::log(farther) / std::log(kStep)), 1.0,
                                       static_cast<double>(most + 1)));
    for (const int last = std::min(most, step + kMostBeyond); step <= last && forgets_at(step);)
      ++step;
    while (step > 1 && !forgets_at(step - 1)) --step;
  }
  const int step_at_first = step;
  const Forecast first = at(step);
  // With less error it forgets sooner, and takes a larger table to remember as far.
  const auto make = [&]() -> std::optional<Forecast> {
    try {
      const int last = std::min(most, step + kMostBeyond);
      while (step > 0 && step < last && forgets_at(step)) ++step;
      return at(step);
    } catch (const Error&) {
      return std::nullopt;
    }
  };
  judge(plan, family, fpr, first, words);
  // What touches too many lines or takes too many bytes will not do so less with a smaller error.
  const bool too_much = plan.lines > request_.lines.value_or(plan.lines) ||
                        plan.bytes + request_.beside > request_.memory.value_or(kMostBytes);
  if (words == Words::no && !plan.feasible() && too_much) return plan;
  const Forecast made = sure_of(fpr, plan.target_fpr, first, make);
  if (plan.target_fpr == fpr) at(step_at_first);  // came back to it
  plan.asked_fpr = plan.target_fpr;               // who names it gets just that
  judge(plan, family, fpr, made, words);
  return plan;
}

// Fills in what the forecast says, rounded to what is promised.
void Sizing::judge(Plan& plan, const Family& family, double asked, const Forecast& made,
                   Words words) const {
  plan.holds = made.keys;
  plan.bytes = bytes_in(made, request_.costs);
  plan.fpr = ceil3(made.fpr);
  plan.fnr = ceil6(made.fnr);
  plan.slack = ceil6(made.slack);
  plan.npws = ceil6(made.npws);
  plan.lines = ceil3(made.lines);
  plan.why_not = what_is_amiss(plan, asked, made, words);
  if (words == Words::no) return;
  plan.settings = without_fpr(made.settings);
  // A window is what was asked for; a set, too.
  plan.bits_per_key = 8 * static_cast<double>(plan.bytes) / static_cast<double>(plan.holds);
  if (plan.fpr > 0 && !family.forgets()) {
    const double slack = std::max(made.slack, 1 / static_cast<double>(plan.holds));
    const bool sliding = plan.window && plan.window->kind != WindowSpec::Kind::landmark;
    const double bound = sliding ? model::window_lower_bound_bits(made.fpr, slack)
                                 : model::set_lower_bound_bits(made.fpr);
    if (bound > 0) plan.over_bound = plan.bits_per_key / bound;
  }
}

std::string Sizing::what_is_amiss(const Plan& plan, double asked, const Forecast& made,
                                  Words words) const {
  const auto above = [](double value, const std::optional<double>& most) {
    return most && value > *most * (1 + kRounding);
  };
  const auto say = [&](const char* sentence, auto what, auto value) {
    if (words == Words::no) return std::string("no");
    return fmt::format(fmt::runtime(sentence), what(value));
  };
  const auto itself = [](double value) { return value; };
  if (!std::isfinite(made.fpr) || !std::isfinite(made.fnr) || plan.holds == 0)
    return "nothing can be said of it";
  if (above(plan.fnr, request_.fnr))
    return say("lets {} of repeats through", format_probability, plan.fnr);
  if (above(made.fpr, asked)) return say("errs at {}", format_probability, made.fpr);
  // Whatever its table could do, two keys of one digest are one key to it.
  if (made.fpr > 0 && asked < 0x1p-128 * static_cast<double>(plan.holds))
    return "digests of 128 bits are equal by chance more often";
  if (request_.memory && plan.bytes + request_.beside > *request_.memory)
    return say("takes {}", format_size, plan.bytes + request_.beside);
  if (above(made.slack, request_.slack)) return say("has a slack of {:.3g}", itself, made.slack);
  if (above(made.npws, request_.npws)) return say("has an npws of {:.3g}", itself, made.npws);
  if (above(made.lines, request_.lines)) return say("touches {:.3g} lines", itself, made.lines);
  return {};
}

}  // namespace sluice::planning
