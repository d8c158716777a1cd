// Figures 6 to 8: how soon the filters settle.
//
// The paper takes the change of the number of ones from one look to the next for convergence. That
// change has two parts: how far the fill still is from its end, and how many cells are turned over
// a record, which never stops in `stable`. So the fill itself is shown beside it.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "repro/dutta/experiments.hpp"
#include "repro/dutta/trace.hpp"

namespace sluice::repro::dutta {
namespace {

// The mean change a step between two shares of the stream.
double difference_between(const Trace& trace, double from, double to) {
  double sum = 0, count = 0;
  const double all = trace.moments.back().records;
  for (const Moment& moment : trace.moments)
    if (moment.records > from * all && moment.records <= to * all)
      sum += moment.difference, ++count;
  return count == 0 ? 0 : sum / count;
}

// Records after which the ones first come within 2 % of their mean over the last tenth.
double settled_at(const Trace& trace) {
  double sum = 0, count = 0;
  const double all = trace.moments.back().records;
  for (const Moment& moment : trace.moments)
    if (moment.records > 0.9 * all) sum += moment.ones, ++count;
  const double end = sum / count;
  for (const Point& point : trace.growth)
    if (std::abs(point.y - end) <= 0.02 * end) return point.x;
  return all;
}

Figure figure_of(const std::string& title, const std::vector<Trace>& traces, double step) {
  const double millions = traces.front().moments.back().records / 1e6;
  Panel change{"change of the number of ones",
               {"records (millions)", false, 0.0, millions},
               {fmt::format("mean |change| in {:.0f} records (bits)", step), true},
               {}};
  Panel fill{"share of ones",
             {"records (millions)", false, 0.0, millions},
             {"ones (% of the table)", false, 0.0},
             {}};
  for (const Trace& trace : traces) {
    Curve changes{trace.name, Curve::Style::line, {}, trace.colour};
    Curve fills = changes;
    for (const Moment& moment : trace.moments) {
      changes.points.push_back({moment.records / 1e6, moment.difference});
      fills.points.push_back({moment.records / 1e6, 100 * moment.ones / trace.ones_most});
    }
    change.curves.push_back(std::move(changes));
    fill.curves.push_back(std::move(fills));
  }
  return {title, {change, fill}, 2};
}

// Whether the reservoir's ones have all but come to rest where the paper says, and stable's not at
// the end: a fifth of stable's change, and stable's still half of what it was early on.
struct Rest {
  bool reservoir, stable;
  std::string numbers;
};
Rest rest_of(const Trace& stable, const Trace& reservoir, double after) {
  const double all = stable.moments.back().records;
  const double theirs = difference_between(stable, 0.8, 1);
  const double ours = difference_between(reservoir, after, 1);
  const double early = difference_between(stable, 0.1, 0.3);
  return {ours<theirs / 5, theirs> early / 2,
          fmt::format("after {:.3g} records {:.2g} bits per step; stable {:.2g} at the end",
                      after * all, ours, theirs)};
}

}  // namespace

Result run_fig6(const Context& context) {
  std::vector<Subject> subjects = both(context, 16384, "2 KB");
  for (Subject& subject : both(context, 32768, "4 KB")) subjects.push_back(std::move(subject));
  const std::uint64_t step = count_of(context, "step");
  const std::vector<Trace> traces =
      follow(context, {.plan = clicks_plan(context), .step = step}, std::move(subjects));
  Result result{context.rows(), {}};
  const Rest small = rest_of(traces[0], traces[1], 0.5 / 3);
  const Rest large = rest_of(traces[2], traces[3], 1.5 / 3);
  result.rows.claim("fig6.2k", small.reservoir && small.stable, small.numbers);
  result.rows.claim("fig6.4k", large.reservoir && large.stable, large.numbers);
  result.figure = figure_of("Convergence on a stream of clicks", traces, static_cast<double>(step));
  const auto percent = [](const Trace& trace, double share) {
    const double ones = trace
                            .moments[static_cast<std::size_t>(
                                share * static_cast<double>(trace.moments.size() - 1))]
                            .ones;
    return 100 * ones / trace.ones_most;
  };
  result.note = fmt::format(
      "The number of ones hardly changes between samples, but this does not mean that it has "
      "converged: "
      "after a third of the stream, and at its end, {:.1f} and {:.1f} % of the table are set in "
      "reservoir of 4 KB, {:.1f} and {:.1f} % in stable.",
      percent(traces[3], 1.0 / 3), percent(traces[3], 1), percent(traces[2], 1.0 / 3),
      percent(traces[2], 1));
  return result;
}

Result run_fig7(const Context& context) {
  const std::uint64_t step = count_of(context, "step");
  const std::vector<Trace> traces = follow(context, {.plan = uniform_plan(context), .step = step},
                                           both(context, context.number("bits"), "512 KB"));
  Result result{context.rows(), {}};
  const Rest rest = rest_of(traces[0], traces[1], 55.0 / 455);
  result.rows.claim("fig7.rest", rest.reservoir && rest.stable, rest.numbers);
  const double stable = settled_at(traces[0]), reservoir = settled_at(traces[1]);
  result.rows.claim("claim.convergence", reservoir < stable,
                    fmt::format("the fill comes within 2 % of its end after {:.2g} records, "
                                "stable's after {:.2g}",
                                reservoir, stable));
  result.figure = figure_of("Convergence on a uniform stream", traces, static_cast<double>(step));
  return result;
}

namespace {

// The stretch that the paper draws: how far the false negatives have risen since it began, with the
// two rises that it names.
Panel rises(const Context& context, const std::vector<Trace>& traces, double from) {
  const double length = 5e5 * context.scale();
  Panel panel{fmt::format("since record {:.3g}", from),
              {"records since then (millions at the paper's size)", false, 0.0, 0.5},
              {"rise of repeats let through (percentage points)", false, 0.0},
              {}};
  for (const Trace& trace : traces) {
    Curve curve{trace.name, Curve::Style::line, {}, trace.colour};
    for (int i = 0; i <= 20; ++i)
      curve.points.push_back({i / 40.0, trace.fnr_at(from + length * i / 20) - trace.fnr_at(from)});
    panel.curves.push_back(std::move(curve));
  }
  panel.curves.push_back(
      {"stable, paper", Curve::Style::points, {{0.3, context.point("fig8.stable")}}, 0});
  panel.curves.push_back(
      {"reservoir, paper", Curve::Style::points, {{0.35, context.point("fig8.reservoir")}}, 1});
  return panel;
}

}  // namespace

Result run_fig8(const Context& context) {
  const StreamPlan plan = uniform_plan(context);
  const double bits = context.number("bits");
  const std::vector<Trace> traces = follow(context, {.plan = plan, .step = context.scaled(1000, 1)},
                                           both(context, bits, fmt::format("{:.0f} bits", bits)));
  Result result{context.rows(), {}};
  const double from = context.number("from") * context.scale();
  const auto rise = [&](const Trace& trace, double length) {
    return trace.fnr_at(from + length * context.scale()) - trace.fnr_at(from);
  };
  const double stable = rise(traces[0], 3e5), reservoir = rise(traces[1], 3.5e5);
  result.rows.value("fig8.stable", stable);
  result.rows.value("fig8.reservoir", reservoir);
  result.rows.claim(
      "fig8.slower", reservoir / 3.5 < 0.8 * stable / 3,
      fmt::format("{:.2g} % a million records against {:.2g} %", reservoir / 0.35, stable / 0.3));
  Panel panel{"repeats let through so far",
              {"records (millions)", false, 0.0, traces[0].moments.back().records / 1e6},
              {"repeats let through (%)", false, 0.0},
              {}};
  for (const Trace& trace : traces)
    panel.curves.push_back({trace.name, Curve::Style::line, trace.fnr(), trace.colour});
  result.figure = {
      "How false negatives settle on a uniform stream", {panel, rises(context, traces, from)}, 2};
  return result;
}

}  // namespace sluice::repro::dutta
