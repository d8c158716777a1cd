// What the gain over `stable` is made of, what a better rule gains, and what the paper's bounds
// say: on Table 5's stream.
#include <fmt/format.h>

#include <algorithm>

#include "repro/dutta/experiments.hpp"
#include "repro/dutta/trace.hpp"
#include "sluice/model/reservoir.hpp"

namespace sluice::repro::dutta {
namespace {

constexpr double kMegabyte = 8.0 * 1024 * 1024;  // bits

std::vector<Subject> subjects_of(const Context& context, double bits) {
  std::vector<Subject> subjects = both(context, bits, "as published");
  const unsigned filters = context.whole("k");
  Stable::Params equal = stable_params(context, bits);
  equal.probes = equal.decrements = filters;
  subjects.emplace_back(fmt::format("stable, K = P = {}", filters), AnyFilter(Stable::make(equal)));
  Reservoir::Params biased = reservoir_params(context, bits);
  biased.variant = Reservoir::Variant::biased;
  subjects.emplace_back(fmt::format("biased, k = {}", filters), AnyFilter(Reservoir::make(biased)));
  biased = reservoir_params(context, bits, filters + 1);
  biased.variant = Reservoir::Variant::biased;
  subjects.emplace_back(fmt::format("biased, k = {}", filters + 1),
                        AnyFilter(Reservoir::make(biased)));
  return subjects;
}

struct Size {
  const char* name;
  double bits;
  std::vector<Trace> traces;
};

Figure figure_of(const std::vector<Size>& sizes) {
  Figure figure{"Rules of writing, on a uniform stream", {}, 2};
  for (const bool fnr : {true, false}) {
    Panel panel{fnr ? "false negatives" : "false positives",
                {"memory at the paper's size", false, -0.6, 1.6, {}},
                {fnr ? "repeats let through (%)" : "distinct held back (%)", false, 0.0},
                {}};
    for (const Size& size : sizes) panel.x.classes.push_back(size.name);
    for (std::size_t i = 0; i < sizes.front().traces.size(); ++i) {
      Curve curve{sizes.front().traces[i].name, Curve::Style::bars, {}, static_cast<unsigned>(i)};
      for (std::size_t at = 0; at < sizes.size(); ++at) {
        const Errors& total = sizes[at].traces[i].total();
        curve.points.push_back({static_cast<double>(at), fnr ? total.fnr() : total.fpr()});
      }
      panel.curves.push_back(std::move(curve));
    }
    figure.panels.push_back(std::move(panel));
  }
  return figure;
}

void add_rows(Rows& rows, const Context& context, const std::vector<Size>& sizes) {
  for (const Size& size : sizes)
    rows.predicted(
        "Table 5",
        fmt::format("reservoir, {}: FNR beside that of {} (%)", size.name, size.traces[2].name),
        size.traces[2].total().fnr(), size.traces[1].total().fnr(), {1, false});
  const Errors& paper = sizes.back().traces[1].total();
  const Errors& biased = sizes.back().traces[3].total();
  rows.remark("claim.first");
  rows.claim("claim.best", biased.fnr() > paper.fnr(),
             fmt::format("512 MB: {:.2f} % false negatives, and {:.2f} % when only what is judged "
                         "distinct is written; false positives {:.3f} and {:.3f} %",
                         paper.fnr(), biased.fnr(), paper.fpr(), biased.fpr()));
  if (!context.input().empty()) return;
  const StreamPlan plan = uniform_plan(context);
  const double records = static_cast<double>(plan.records);
  const double universe = static_cast<double>(universe_of(records, plan.distinct));
  const Reservoir::Params params = reservoir_params(context, sizes.back().bits);
  const double size = static_cast<double>(params.size());
  const double bound =
      100 * (std::max(model::dutta_fnr_5_14(size, params.filters, universe, records), 0.0) +
             model::dutta_fnr_5_17(params.filters, universe));
  rows.claim("claim.bounds", paper.fnr() <= bound,
             fmt::format("512 MB: eqs. 5.14 and 5.17 allow {:.1e} % false negatives, {:.2f} % are "
                         "measured",
                         bound, paper.fnr()));
}

}  // namespace

Result run_rules(const Context& context) {
  std::vector<Size> sizes = {{"128 MB", 128 * kMegabyte, {}}, {"512 MB", 512 * kMegabyte, {}}};
  const StreamPlan plan = uniform_plan(context);
  double begin = 0;
  for (Size& size : sizes) {
    size.traces = follow(context,
                         {.plan = plan,
                          .step = std::max<std::uint64_t>(plan.records / 100, 1),
                          .begin = begin,
                          .share = 0.5},
                         subjects_of(context, size.bits));
    begin += 0.5;
  }
  Result result{context.rows(), {}};
  add_rows(result.rows, context, sizes);
  result.figure = figure_of(sizes);
  return result;
}

}  // namespace sluice::repro::dutta
