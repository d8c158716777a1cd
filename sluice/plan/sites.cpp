#include "sluice/plan/sites.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "sluice/base/error.hpp"
#include "sluice/base/quantity.hpp"
#include "sluice/filters/share_range.hpp"
#include "sluice/model/bloom.hpp"
#include "sluice/plan/nearest.hpp"
#include "sluice/plan/sizing.hpp"

namespace sluice {
namespace {

using model::Slicing;
using Kind = RuleWish::Kind;

void refuse_if(bool wrong, const std::string& sentence) {
  if (wrong) throw BadParameters(sentence);
}

bool diced(Slicing slicing) {
  return slicing == Slicing::horizontal_vertical || slicing == Slicing::vertical_horizontal;
}

void check_share(const std::optional<double>& value, const char* field) {
  if (value && !can_be_asked(*value)) throw BadParameters(fmt::format("{} {}", field, kShareRange));
}

void check_number(std::uint64_t value, std::uint64_t least, const char* field, const char* what) {
  refuse_if(value < least || value > kMostPlannedSites,
            fmt::format("{} {}: give {} to {} {}", field, value, least, kMostPlannedSites, what));
}

void check_numbers(const SitesRequest& request) {
  refuse_if(request.sites.has_value() == request.tolerate.has_value(),
            "give `sites`, or how many failures to `tolerate`");
  if (request.tolerate) {
    check_number(*request.tolerate, 1, "`tolerate`", "sites that may fail");
    refuse_if(!request.fpr && !request.fnr,
              "`tolerate` finds how many sites keep an error: give `fpr`, the share of new events "
              "that may be lost meanwhile, or `fnr`, that of repeats that may be let through");
    refuse_if(diced(request.slicing),
              "`tolerate` plans horizontal and vertical slices: for diced ones give `sites`");
    return;
  }
  check_number(*request.sites, 1, "`sites`", "sites");
  refuse_if(request.failed > *request.sites,
            fmt::format("`failed` {} is more than the {}", request.failed,
                        counted(*request.sites, "site")));
  refuse_if(request.fnr.has_value(),
            "`fnr` needs `tolerate`: what failed sites let through is shown for every rule");
  refuse_if(!diced(request.slicing) && request.inner != 1, "`inner` needs a diced `slicing`");
  refuse_if(request.inner == 0 || *request.sites % request.inner != 0,
            fmt::format("`inner` {} does not divide the {}: each slice has as many parts",
                        request.inner, counted(*request.sites, "site")));
}

void check_filter(const SitesRequest& request) {
  const PlanRequest& filter = request.filter;
  if (request.slicing != Slicing::horizontal) {
    refuse_if(filter.window.has_value(),
              "a window over many sites is planned for horizontal slices: each is a window of its "
              "own; leave out `slicing`");
    refuse_if(filter.rate || filter.slack || filter.npws || filter.lines,
              "slices that are not horizontal are those of one Bloom filter: of `rate`, `slack`, "
              "`npws` and `lines` it knows none; give `expect`, the number of keys");
  }
  refuse_if(filter.window && !filter.window->by_time() && request.sites != std::uint64_t{1},
            "a window of a count over several sites: each would count only its own part of the "
            "stream; give a window of time, or `sites` 1");
  refuse_if(filter.expect == std::uint64_t{0}, "`expect` 0 leaves nothing to do: give 1 or more");
  refuse_if(filter.memory && *filter.memory > kMostSiteBytes,
            fmt::format("`memory` {} per site: give at most {}: a larger key cannot be moved "
                        "between servers",
                        exact_size(*filter.memory), exact_size(kMostSiteBytes)));
  refuse_if(filter.memory && *filter.memory == 0, "`memory` 0 leaves nothing at a site");
  check_share(request.fpr, "`fpr`");
  check_share(request.fnr, "`fnr`");
  check_share(filter.fpr, request.tolerate ? "`alive_fpr`" : "`fpr`");
  refuse_if(request.fpr && filter.fpr && *filter.fpr >= *request.fpr,
            fmt::format("`alive_fpr` {:g}: the filter's own error must be below `fpr` {:g}, which "
                        "failures add to",
                        filter.fpr.value_or(0), request.fpr.value_or(0)));
}

double own_error(const SitesRequest& request) {
  // A hundredth leaves nearly all of the error for failures, and costs a horizontal filter 7 bits
  // per key more than none would.
  constexpr double kShare = 0.01;
  const double most = request.fpr ? std::max(kLeastAsked, *request.fpr * kShare) : 1;
  return request.filter.fpr.value_or(std::min(planning::kStandardFpr, most));
}

// With which a Bloom filter takes the fewest bits: half of them are set.
unsigned probes_for(double fpr) {
  return static_cast<unsigned>(
      std::clamp(std::round(-std::log2(fpr)), 1.0, static_cast<double>(model::kMostProbes)));
}

RuleWish rule_of(const SitesRequest& request) {
  if (request.rule) return *request.rule;
  return {request.fnr && !request.fpr ? Kind::distinct : Kind::duplicate};
}

class Sites {
 public:
  explicit Sites(const SitesRequest& request) {
    plan_.request = request;
    plan_.fpr = own_error(request);
    plan_.probes = horizontal() ? 0 : probes_for(plan_.fpr);
    plan_.density = horizontal() ? 0 : std::pow(plan_.fpr, 1.0 / plan_.probes);
    rule_ = rule_of(request);
    refuse_if(rule_.kind == Kind::hybrid && horizontal(),
              "a key is at one site of horizontal slices, so there is no hybrid `rule`: give "
              "duplicate or distinct");
    refuse_if(
        rule_.kind == Kind::hybrid && (rule_.least_live == 0 || rule_.least_live > plan_.probes),
        fmt::format("`rule` {}: a key has {} bits here; give 1 to {}", rule_.text(), plan_.probes,
                    plan_.probes));
  }

  SitesPlan run() && {
    if (request().tolerate)
      tolerate();
    else
      as_given();
    plan_.messages = horizontal() ? 1 : model::sites_of_key(plan_.cut());
    list_rules();
    return std::move(plan_);
  }

 private:
  const SitesRequest& request() const { return plan_.request; }
  bool horizontal() const { return request().slicing == Slicing::horizontal; }
  bool keys_known() const {
    return request().filter.expect || request().filter.rate ||
           (request().filter.window && !request().filter.window->by_time());
  }
  std::uint64_t most_bytes() const { return request().filter.memory.value_or(kMostSiteBytes); }

  double needed(std::uint64_t failed) const {
    const model::SlicedFilter cut = plan_.cut();
    const auto f = static_cast<unsigned>(failed);
    const model::FaultRule rule = rule_.rule(plan_.probes);
    double sites = static_cast<double>(failed);
    if (request().fpr)
      sites = std::max(sites, model::fault_tolerance_at(cut, plan_.fpr, f, *request().fpr, rule));
    if (request().fnr)
      sites = std::max(sites, model::fault_tolerance_fnr(cut, f, *request().fnr, rule));
    return sites;
  }

  model::SlicedErrors errors(const RuleWish& rule) const {
    return model::errors_at(plan_.cut(), plan_.fpr, static_cast<unsigned>(plan_.failed),
                            rule.rule(plan_.probes));
  }

  void as_given() {
    plan_.sites = *request().sites;
    plan_.failed = request().failed;
    if (!size() || plan_.site_bytes <= most_bytes()) return;
    const std::uint64_t bytes = plan_.site_bytes;
    const bool enough = grow_to_fit();
    plan_.why_not = fmt::format(
        "a slice of {} at each of {}: {}", format_size(bytes), counted(*request().sites, "site"),
        request().filter.memory ? "more than `memory`"
                                : "a key of more than 511 MiB cannot be moved between servers");
    if (enough) {
      plan_.nearest.push_back({"sites", fmt::format("{}", plan_.sites)});
      plan_.why_not += fmt::format(": it takes `sites` {}", plan_.sites);
    } else {
      plan_.why_not +=
          fmt::format(", and {} sites are too few: give fewer keys", kMostPlannedSites);
    }
    plan_.sites = *request().sites;
    size();
  }

  void tolerate() {
    plan_.failed = *request().tolerate;
    plan_.needed = needed(plan_.failed);
    constexpr double kRounding = 1e-12;
    if (!(plan_.needed <= static_cast<double>(kMostPlannedSites))) return none_keeps_errors();
    const auto least = static_cast<std::uint64_t>(std::ceil(plan_.needed * (1 - kRounding)));
    // One at least is to answer.
    plan_.sites = std::max(least, plan_.failed + 1);
    if (plan_.sites > kMostPlannedSites) return none_keeps_errors();
    if (!size() || plan_.site_bytes <= most_bytes() || grow_to_fit()) return;
    plan_.why_not = fmt::format("{} sites would hold {} each, more than {}: give fewer keys",
                                kMostPlannedSites, format_size(plan_.site_bytes),
                                request().filter.memory ? "`memory`" : "a key may have");
  }

  // Sizes of what is at a site. False if they are not known, or there is none.
  bool size() {
    if (!keys_known()) return false;
    if (!horizontal()) {
      const double bits =
          model::bloom_bits(plan_.probes, static_cast<double>(*request().filter.expect), plan_.fpr);
      constexpr double kMost = 1e18;  // far beyond what a site can hold
      plan_.bits = static_cast<std::uint64_t>(
          std::min(kMost, std::ceil(bits / static_cast<double>(plan_.sites))));
      plan_.site_bytes = (*plan_.bits + 7) / 8;
      return true;
    }
    PlanRequest slice = request().filter;
    slice.fpr = plan_.fpr;
    slice.memory.reset();
    slice.beside = 0;
    const auto sites = static_cast<double>(plan_.sites);
    if (slice.rate) slice.rate = *slice.rate / sites;
    if (slice.expect) slice.expect = keys_of_slice(static_cast<double>(*slice.expect));
    const Planning planning = plan(slice, PlanScope::choice);
    if (!planning.chosen) {
      plan_.why_not = "for each slice: " + planning.reason;
      return false;
    }
    plan_.slice = planning.choice();
    plan_.site_bytes = plan_.slice->bytes;
    return true;
  }

  // Chance gives some slices more keys than others. One in ten million exceeds this: a quantile of
  // the Poisson distribution, as in keys_of_rate().
  std::uint64_t keys_of_slice(double keys) const {
    if (plan_.sites == 1) return static_cast<std::uint64_t>(keys);
    constexpr double kRoom = 5.2;
    const double mean = keys / static_cast<double>(plan_.sites);
    const double room = kRoom * std::sqrt(mean) + (kRoom * kRoom - 1) / 6;
    return static_cast<std::uint64_t>(std::ceil(std::min(keys, mean + room)));
  }

  // As many more sites as make each small enough. False: there are not so many.
  bool grow_to_fit() {
    while (plan_.site_bytes > most_bytes()) {
      if (plan_.sites == kMostPlannedSites) return false;
      const double share =
          static_cast<double>(plan_.site_bytes) / static_cast<double>(most_bytes());
      const double sites = std::ceil(static_cast<double>(plan_.sites) * share);
      plan_.sites = static_cast<std::uint64_t>(std::clamp(
          sites, static_cast<double>(plan_.sites + 1), static_cast<double>(kMostPlannedSites)));
      if (!size()) return false;
    }
    return true;
  }

  void none_keeps_errors() {
    std::string asked;
    if (request().fpr) asked += fmt::format("`fpr` {:g}", *request().fpr);
    if (request().fnr)
      asked += fmt::format("{}`fnr` {:g}", asked.empty() ? "" : " and ", *request().fnr);
    plan_.sites = kMostPlannedSites;
    find_nearest();
    std::string others;
    for (const NearSites& near : plan_.nearest)
      others += fmt::format("{}`{}` {}{}{}", others.empty() ? "" : ", or ", near.field, near.value,
                            near.also.empty() ? "" : " ", near.also);
    plan_.why_not =
        fmt::format("no number of {} sites up to {} keeps {} while {} {}{}{}",
                    horizontal() ? "horizontal" : "vertical", kMostPlannedSites, asked,
                    plan_.failed, plan_.failed == 1 ? "has failed" : "have failed",
                    others.empty() ? "" : "; the nearest requests that can be met: ", others);
  }

  // The least errors that the most sites can keep. With a larger one, the filter's own may be larger,
  // too.
  std::optional<SitesRequest> relaxed() const {
    SitesRequest other = request();
    other.filter = {.fpr = request().filter.fpr};
    constexpr int kMostRounds = 20;
    for (int round = 0; round < kMostRounds; ++round) {
      Sites sites(other);
      if (sites.needed(plan_.failed) <= static_cast<double>(kMostPlannedSites)) return other;
      sites.plan_.sites = kMostPlannedSites;
      sites.plan_.failed = plan_.failed;
      const model::SlicedErrors least = sites.errors(rule_);
      for (const auto& [error, limit] :
           {std::pair(least.fpr, &other.fpr), std::pair(least.fnr, &other.fnr)}) {
        if (!*limit || error <= **limit) continue;
        *limit = planning::ceil3(error);
        if (!can_be_asked(**limit)) return std::nullopt;
      }
    }
    return std::nullopt;
  }

  void find_nearest() {
    if (const auto other = relaxed()) {
      NearSites near;
      const auto add = [&](const char* field, const std::optional<double>& before,
                           const std::optional<double>& after) {
        if (before == after) return;
        const std::string value = fmt::format("{:g}", *after);
        if (near.field.empty())
          near = {field, value};
        else
          near.also = fmt::format("`{}` {}", field, value);
      };
      add("fpr", request().fpr, other->fpr);
      add("fnr", request().fnr, other->fnr);
      plan_.nearest.push_back(std::move(near));
    }
    std::uint64_t low = 0, high = plan_.failed;  // low can be tolerated, high cannot
    while (high - low > 1) {
      const std::uint64_t middle = low + (high - low) / 2;
      (needed(middle) <= static_cast<double>(kMostPlannedSites) ? low : high) = middle;
    }
    if (low > 0) plan_.nearest.push_back({"tolerate", fmt::format("{}", low)});
    if (!horizontal() || request().filter.window) return;
    SitesRequest other = request();
    other.slicing = Slicing::vertical;
    // Only for the errors.
    other.filter = {.fpr = request().filter.fpr};
    const SitesPlan vertical = Sites(other).run();
    if (vertical.feasible())
      plan_.nearest.push_back({"slicing", "vertical", fmt::format("(`sites` {})", vertical.sites)});
  }

  void list_rules() {
    const auto add = [&](const RuleWish& rule) {
      const model::SlicedErrors found = errors(rule);
      plan_.rules.push_back({rule, found.fpr, found.fnr, rule == rule_});
    };
    add({Kind::duplicate});
    if (rule_.kind == Kind::hybrid)
      add(rule_);
    else if (plan_.probes > 1)
      add(knee());
    add({Kind::distinct});
  }

  // The hybrid rule whose larger error is the smallest.
  RuleWish knee() const {
    RuleWish best{Kind::hybrid, 1};
    double least = 2;
    for (unsigned x = 1; x < plan_.probes; ++x) {
      const model::SlicedErrors found = errors({Kind::hybrid, x});
      const double larger = std::max(found.fpr, found.fnr);
      if (larger >= least) continue;
      least = larger;
      best.least_live = x;
    }
    return best;
  }

  SitesPlan plan_;
  RuleWish rule_;
};

}  // namespace

model::FaultRule RuleWish::rule(unsigned probes) const {
  switch (kind) {
    case Kind::duplicate:
      return model::FaultRule::duplicate();
    case Kind::hybrid:
      return model::FaultRule::hybrid(least_live);
    case Kind::distinct:
      break;
  }
  return model::FaultRule::distinct(std::max(1u, probes));
}

std::string RuleWish::text() const {
  switch (kind) {
    case Kind::duplicate:
      return "duplicate";
    case Kind::hybrid:
      return fmt::format("hybrid={}", least_live);
    case Kind::distinct:
      break;
  }
  return "distinct";
}

model::SlicedFilter SitesPlan::cut() const {
  const bool has_parts = diced(request.slicing);
  const auto inner = static_cast<unsigned>(has_parts ? request.inner : 1);
  return {.slicing = request.slicing,
          .probes = probes,
          .slices = static_cast<unsigned>(sites) / inner,
          .inner = inner};
}

SitesPlan plan_sites(const SitesRequest& request) {
  check_numbers(request);
  check_filter(request);
  return Sites(request).run();
}

}  // namespace sluice
