// Figures 1(a) and 1(b): what the formulas say of failed sites. No stream is run.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "repro/koloniari/experiments.hpp"
#include "sluice/model/bloom.hpp"
#include "sluice/model/sliced.hpp"

namespace sluice::repro::koloniari {
namespace {

using model::FaultRule;
using model::SlicedFilter;
using model::Slicing;

// A filter of the §7 synthetic stream's size, at its target error; eq. 1 does not depend on how
// many sites there are.
SlicedFilter filter_of(const Context& context, Slicing slicing, unsigned slices) {
  const double keys = context.number("n");
  const unsigned probes = context.whole("k");
  const double density = std::pow(context.number("P"), 1.0 / probes);
  const double bits = -static_cast<double>(probes) * keys / std::log1p(-density);
  return {slicing, bits, probes, keys, slices, 1};
}

SlicedFilter vertical_of(const Context& context, unsigned slices) {
  return filter_of(context, Slicing::vertical, slices);
}

// Eq. 5 with p of the whole filter, as the paper has it.
double horizontal_fpr(double failed_share, double p) {
  return failed_share + (1 - failed_share) * p;
}

}  // namespace

Result run_fig1a(const Context& context) {
  constexpr unsigned kSites = 100;
  const SlicedFilter filter = vertical_of(context, kSites);
  const double p = model::sliced_fpr_even(filter);
  Curve horizontal{"horizontal", Curve::Style::line, {}};
  Curve vertical{"vertical", Curve::Style::line, {}};
  bool better = true;
  double at_ten[2] = {};
  for (unsigned failed = 0; failed <= 50; ++failed) {
    const double share = static_cast<double>(failed) / kSites;
    const double h = horizontal_fpr(share, p);
    const double v = model::sliced_errors(filter, failed, FaultRule::duplicate()).fpr;
    horizontal.points.push_back({100 * share, h});
    vertical.points.push_back({100 * share, v});
    better &= failed == 0 || v < h;
    if (failed == 10) at_ten[0] = h, at_ten[1] = v;
  }
  Result result{context.rows(), {}};
  result.rows.claim("claim.faults", better,
                    fmt::format("10 % failed: {:.3f} against {:.3f}; less at every share from 1 % "
                                "to 50 %",
                                at_ten[1], at_ten[0]));
  result.rows.value("fig1a.horizontal", at_ten[0]);
  result.rows.value("fig1a.vertical", at_ten[1]);
  result.figure = {"False positives with failed sites (eqs. 5 and 6)",
                   {{"what is out of reach counts as set",
                     {"failed sites (%)"},
                     {"false positives (share of the distinct)", false, 0.0},
                     {horizontal,
                      vertical,
                      {"recomputed, horizontal",
                       Curve::Style::points,
                       {{10, context.point("fig1a.horizontal")}},
                       0},
                      {"recomputed, vertical",
                       Curve::Style::points,
                       {{10, context.point("fig1a.vertical")}},
                       1}}}}};
  return result;
}

Result run_fig1b(const Context& context) {
  Result result{context.rows(), {}};
  Panel panel{"slices so that f failed ones keep false positives at a limit",
              {"limit of false positives (share of the distinct)"},
              {"slices needed", true},
              {}};
  unsigned colour = 0;
  const double limit = context.number("limit");
  for (const unsigned failed : {2u, 4u, 8u}) {
    for (const Slicing slicing : {Slicing::horizontal, Slicing::vertical}) {
      const bool vertical = slicing == Slicing::vertical;
      const SlicedFilter filter = filter_of(context, slicing, 1);
      Curve curve{fmt::format("{}, f = {}", vertical ? "vertical" : "horizontal", failed),
                  vertical ? Curve::Style::pale : Curve::Style::line,
                  {},
                  colour};
      for (double most = 0.03; most < 0.505; most += 0.01)
        curve.points.push_back({most, model::fault_tolerance(filter, failed, most)});
      panel.curves.push_back(std::move(curve));
      if (failed == 4)
        result.rows.value(vertical ? "fig1b.vertical" : "fig1b.horizontal",
                          model::fault_tolerance(filter, failed, limit));
    }
    ++colour;
  }
  panel.curves.push_back({"paper, f = 4: above 30 and below 20",
                          Curve::Style::points,
                          {{0.15, context.published("fig1b.horizontal").printed},
                           {0.15, context.published("fig1b.vertical").printed}},
                          1});
  result.figure = {"Fault tolerance: slices needed (Definition 3)", {panel}};
  return result;
}

}  // namespace sluice::repro::koloniari
