#include "plan.hpp"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>

#include "errors.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace sluice::python {
namespace {

nb::tuple plan_tuple(const Plan& plan) {
  return nb::make_tuple(plan.filter, plan.settings, plan.holds, plan.bytes, plan.bits_per_key,
                        plan.fpr, plan.fnr, plan.slack, plan.npws, plan.lines, plan.over_bound,
                        in_keywords(plan.why_not));
}

nb::object make_plan(const std::optional<std::string>& window, bool refresh,
                     std::optional<double> rate, std::optional<std::uint64_t> keys,
                     std::optional<double> fpr, std::optional<double> fnr,
                     std::optional<double> slack, std::optional<double> npws,
                     std::optional<double> lines, std::optional<std::uint64_t> memory) {
  PlanRequest request;
  if (window) request.window = parse_window("`window`", *window);
  request.anchor = refresh ? Anchor::refreshed : Anchor::delivered;
  request.rate = rate;
  request.expect = keys;
  request.fpr = fpr;
  request.fnr = fnr;
  request.slack = slack;
  request.npws = npws;
  request.lines = lines;
  request.memory = memory;
  std::optional<Planning> planning;
  {
    const nb::gil_scoped_release free;
    planning = plan(request);
  }
  return planning_tuple(&*planning);
}

}  // namespace

nb::object planning_tuple(const Planning* planning) {
  if (planning == nullptr) return nb::none();
  nb::list candidates, nearest;
  for (const Plan& plan : planning->candidates) candidates.append(plan_tuple(plan));
  for (const NearRequest& near : planning->nearest)
    nearest.append(
        nb::make_tuple(in_keywords("`" + near.field + "`"), near.value, in_keywords(near.also)));
  return nb::make_tuple(candidates, planning->chosen ? nb::cast(*planning->chosen) : nb::none(),
                        in_keywords(planning->reason), in_keywords(planning->assumed), nearest);
}

void bind_plan(nb::module_& m) {
  m.def("plan", make_plan, "window"_a.none(), "refresh"_a, "rate"_a.none(), "keys"_a.none(),
        "fpr"_a.none(), "fnr"_a.none(), "slack"_a.none(), "npws"_a.none(), "lines"_a.none(),
        "memory"_a.none());
}

}  // namespace sluice::python
