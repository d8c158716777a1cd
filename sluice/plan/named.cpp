#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "sluice/base/error.hpp"
#include "sluice/base/quantity.hpp"
#include "sluice/filters/catalogue.hpp"
#include "sluice/plan/plan.hpp"
#include "sluice/plan/sizing.hpp"
#include "sluice/window/cut.hpp"

namespace sluice {
namespace {

using planning::Family;

std::optional<std::string> value_of(const Settings& settings, std::string_view name) {
  for (const auto& [each, value] : settings.pairs())
    if (each == name) return value;
  return std::nullopt;
}

// A parameter that the request gives, too: `bloom,keys=10` for 20 keys.
template <class Value>
void check_not_twice(std::string_view name, const std::string& given, Value value,
                     std::string_view field, const std::optional<Value>& asked) {
  if (asked && *asked != value)
    throw BadParameters(fmt::format("`filter` says {}={} and `{}` says {}: give one of them", name,
                                    given, field, *asked));
}

struct Named {
  const FilterInfo& info;
  std::string text;  // without `fpr`
  Settings settings = {};
  std::optional<double> fpr = {};
};

Named parsed(std::string_view filter, bool window) {
  const std::size_t comma = std::min(filter.find(','), filter.size());
  std::string name(filter.substr(0, comma));
  // With a window, the filter that remembers keys exactly has another name.
  if (window && name == "exact") name = "exact-window";
  Named named{.info = filter_named(name), .text = name + std::string(filter.substr(comma))};
  if (comma + 1 >= filter.size()) return named;
  named.settings = Settings::parse(filter.substr(comma + 1));
  const auto fpr = value_of(named.settings, "fpr");
  if (!fpr || std::ranges::find(named.info.parameters, "fpr", &ParameterInfo::name) ==
                  named.info.parameters.end())
    return named;
  Settings only, others;
  for (const auto& [each, value] : named.settings.pairs())
    (each == "fpr" ? only : others).add(each, value);
  named.fpr = SettingsReader(name, only, named.info.parameters).probability("fpr");
  named.text = others.pairs().empty() ? name : name + "," + others.text();
  return named;
}

// How the planner would try it; nothing if it would not, or if its size is given.
std::optional<Family> family_of(const Named& named, const PlanRequest& request) {
  if (value_of(named.settings, "bytes") || value_of(named.settings, "keys")) return std::nullopt;
  if (!request.window && !request.expect) return std::nullopt;
  const Role role = request.window ? Role::window : Role::set;
  for (const Family& family : named.info.row->families)
    if (family.role == role) return Family{role, named.text, family.many_shapes, family.by_parts};
  return std::nullopt;
}

Plan as_it_is(const Named& named, const PlanRequest& request) {
  Plan plan{.filter = named.text,
            .window = request.window,
            .anchor = request.anchor,
            .target_fpr = request.fpr.value_or(planning::kStandardFpr)};
  plan.asked_fpr = plan.target_fpr;
  if (!request.window || request.window->by_time()) plan.keys = planning::keys_of(request);
  if (request.slack || request.npws) {
    plan.generations = generations_for(
        *request.window, std::min(request.slack.value_or(1), request.npws.value_or(1)));
    if (!plan.generations) throw BadParameters(kTooFine);
  }
  return plan;
}

}  // namespace

Plan plan_named(std::string_view filter, const PlanRequest& request) {
  planning::check(request);
  const Named named = parsed(filter, request.window.has_value());
  if (const auto keys = value_of(named.settings, "keys"))
    check_not_twice("keys", *keys, parse_count("keys of `filter`", *keys), "expect",
                    request.expect);
  if (named.fpr)
    check_not_twice("fpr", *value_of(named.settings, "fpr"), *named.fpr, "fpr", request.fpr);
  PlanRequest asked = request;
  if (named.fpr) asked.fpr = named.fpr;
  const std::optional<Family> family = family_of(named, asked);
  if (!family) return as_it_is(named, asked);
  planning::WindowForecasts windows;
  Plan plan = planning::Sizing(asked, windows).best(*family);
  // There is no such filter; else it is made even if it errs more than was asked for.
  if (plan.settings.empty()) throw BadParameters(plan.why_not);
  return plan;
}

}  // namespace sluice
