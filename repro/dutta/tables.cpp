// Tables 2 to 5: both errors against memory.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "repro/dutta/experiments.hpp"
#include "repro/dutta/stream.hpp"
#include "sluice/model/reservoir.hpp"
#include "sluice/model/stable.hpp"

namespace sluice::repro::dutta {
namespace {

struct Line {
  double bits;
  unsigned filters;  // with which the paper's values are met
};

struct Spec {
  const char* id;     // "t2"
  const char* where;  // "Table 2"
  std::vector<Line> lines;
};

struct Measured {
  Line line = {};
  Errors stable, reservoir;
  Errors stable_late, reservoir_late;  // of the last tenth of the stream
  model::StableShape stable_shape;
  model::ReservoirShape reservoir_shape;
};

// --set bits: one line of that size instead of the table's; --set k: that many filters everywhere.
std::vector<Line> lines_of(const Context& context, const Spec& spec) {
  std::vector<Line> lines = spec.lines;
  if (const double bits = context.number("bits"); bits > 0) lines = {{bits, lines.back().filters}};
  if (const unsigned filters = context.whole("k"); filters > 0)
    for (Line& line : lines) line.filters = filters;
  return lines;
}

StreamPlan plan_of(const Context& context, unsigned number) {
  return {.records = count_of(context, "records", 100),
          .distinct = context.number("distinct"),
          .seed = context.seed() + 1000 * number,
          .input = context.input()};
}

// Short streams are run several times, for some 20 M records in all.
unsigned streams_of(const Context& context) {
  if (!context.input().empty()) return 1;
  if (const unsigned wanted = context.whole("streams"); wanted > 0) return wanted;
  const double records = static_cast<double>(plan_of(context, 0).records);
  return static_cast<unsigned>(std::clamp(std::ceil(2e7 / records), 1.0, 20.0));
}

Measured measure(const Context& context, const Line& line, double begin, double share) {
  Measured measured;
  measured.line = line;
  const unsigned streams = streams_of(context);
  for (unsigned number = 0; number < streams; ++number) {
    Stable::Params stable_with = stable_params(context, line.bits);
    Reservoir::Params reservoir_with = reservoir_params(context, line.bits, line.filters);
    stable_with.seed += number, reservoir_with.seed += number;
    measured.stable_shape = stable_with.shape();
    measured.reservoir_shape = reservoir_with.shape();
    Subject stable("stable", AnyFilter(Stable::make(stable_with)));
    Subject reservoir("reservoir", AnyFilter(Reservoir::make(reservoir_with)));
    const StreamPlan plan = plan_of(context, number);
    const double records = static_cast<double>(plan.records);
    std::optional<Errors> stable_early, reservoir_early;
    each_batch(plan, std::max<std::uint64_t>(plan.records / 10, 1), [&](const Batch& batch) {
      stable.take(batch);
      reservoir.take(batch);
      const double done = static_cast<double>(stable.errors().records());
      if (!stable_early && done >= 0.9 * records)
        stable_early = stable.errors(), reservoir_early = reservoir.errors();
      context.progress(begin + share * (number + std::min(done / records, 1.0)) / streams);
    });
    measured.stable += stable.errors();
    measured.reservoir += reservoir.errors();
    measured.stable_late += stable.errors() - stable_early.value_or(Errors{});
    measured.reservoir_late += reservoir.errors() - reservoir_early.value_or(Errors{});
  }
  return measured;
}

std::vector<Measured> measure_all(const Context& context, const std::vector<Line>& lines) {
  std::vector<Measured> all;
  const double share = 1.0 / static_cast<double>(lines.size());
  for (const Line& line : lines)
    all.push_back(measure(context, line, share * static_cast<double>(all.size()), share));
  return all;
}

// Where the stream is long against its universe and the table, what the models say of one that is
// endless: of the last tenth, since the first records find an empty table.
void predict(Rows& rows, const Context& context, const Spec& spec, const Measured& measured) {
  if (!context.input().empty()) return;
  const StreamPlan plan = plan_of(context, 0);
  const double records = static_cast<double>(plan.records);
  const double universe = static_cast<double>(universe_of(records, plan.distinct));
  if (records < 5 * universe) return;
  const model::StableShape& stable = measured.stable_shape;
  const double settling = stable.cells / (stable.decrements + stable.probes);
  const std::string size = fmt::format("{:.0f} bits", measured.line.bits);
  if (stable.cells > 1000 && records > 12 * settling * stable.max)
    rows.predicted(spec.where, "stable, " + size + ": FNR of the last tenth of the stream (%)",
                   100 * model::stable_uniform_fnr(stable, universe), measured.stable_late.fnr(),
                   {1, false});
  const model::ReservoirShape& reservoir = measured.reservoir_shape;
  if (reservoir.size > 500 && records > 12 * reservoir.size / 2)
    rows.predicted(spec.where, "reservoir, " + size + ": FNR of the last tenth of the stream (%)",
                   100 * model::reservoir_uniform_fnr(reservoir, universe),
                   measured.reservoir_late.fnr(), {1, false});
}

Table table_of(const std::vector<Measured>& all) {
  Table table{{"bits", "k", "stable_fnr_percent", "reservoir_fnr_percent", "stable_fpr_percent",
               "reservoir_fpr_percent", "distinct", "duplicates"},
              {}};
  for (const Measured& each : all)
    table.lines.push_back(
        {fmt::format("{:.0f}", each.line.bits), std::to_string(each.line.filters),
         fmt::format("{:.6g}", each.stable.fnr()), fmt::format("{:.6g}", each.reservoir.fnr()),
         fmt::format("{:.6g}", each.stable.fpr()), fmt::format("{:.6g}", each.reservoir.fpr()),
         std::to_string(each.stable.distinct), std::to_string(each.stable.duplicates)});
  return table;
}

std::string id_of(const Spec& spec, const Line& line, const char* what) {
  return fmt::format("{}.{:.0f}.{}", spec.id, line.bits, what);
}

Panel panel_of(const char* title, const std::vector<Measured>& all, const Spec& spec,
               const Context& context, bool fnr) {
  Curve stable{"stable", Curve::Style::line, {}, 0},
      reservoir{"reservoir", Curve::Style::line, {}, 1};
  Curve stable_paper{"stable, paper", Curve::Style::points, {}, 0};
  Curve reservoir_paper{"reservoir, paper", Curve::Style::points, {}, 1};
  for (const Measured& each : all) {
    stable.points.push_back({each.line.bits / 1e6, fnr ? each.stable.fnr() : each.stable.fpr()});
    reservoir.points.push_back(
        {each.line.bits / 1e6, fnr ? each.reservoir.fnr() : each.reservoir.fpr()});
  }
  for (const Line& line : spec.lines) {
    const auto printed = [&](const char* what) {
      return context.published(id_of(spec, line, what)).printed;
    };
    stable_paper.points.push_back({line.bits / 1e6, printed(fnr ? "stable.fnr" : "stable.fpr")});
    reservoir_paper.points.push_back(
        {line.bits / 1e6, printed(fnr ? "reservoir.fnr" : "reservoir.fpr")});
  }
  return {title,
          {"memory at the paper's size (Mbit)", true},
          {fnr ? "repeats let through (%)" : "distinct held back (%)", !fnr,
           fnr ? std::optional<double>(0.0) : std::nullopt},
          {stable, reservoir, stable_paper, reservoir_paper}};
}

struct Outcome {
  std::vector<Measured> all;
  Result result;
};

Outcome run_table(const Context& context, const Spec& spec) {
  const std::vector<Line> lines = lines_of(context, spec);
  Outcome outcome{{}, {context.rows(), {}}};
  outcome.all = measure_all(context, lines);
  Rows& rows = outcome.result.rows;
  const bool as_printed = context.number("bits") <= 0;
  for (const Measured& each : outcome.all) {
    if (!as_printed) continue;
    const auto value = [&](const char* what, double ours, std::uint64_t errors) {
      const std::string id = id_of(spec, each.line, what);
      rows.value(id, ours, why_of(context, id, each.line.bits, errors));
    };
    value("stable.fnr", each.stable.fnr(), each.stable.missed);
    value("reservoir.fnr", each.reservoir.fnr(), each.reservoir.missed);
    value("stable.fpr", each.stable.fpr(), each.stable.lost);
    value("reservoir.fpr", each.reservoir.fpr(), each.reservoir.lost);
  }
  for (const Measured& each : outcome.all) predict(rows, context, spec, each);
  outcome.result.figure = {fmt::format("{}: both errors against memory", spec.where),
                           {panel_of("false negatives", outcome.all, spec, context, true),
                            panel_of("false positives", outcome.all, spec, context, false)},
                           2};
  outcome.result.table = table_of(outcome.all);
  if (!as_printed) {
    const Measured& one = outcome.all.front();
    const std::string bits = fmt::format("{:.0f} bits", one.line.bits);
    rows.measured(spec.where, "stable, " + bits + ": FNR (%)", one.stable.fnr());
    rows.measured(spec.where, "reservoir, " + bits + ": FNR (%)", one.reservoir.fnr());
    rows.measured(spec.where, "stable, " + bits + ": FPR (%)", one.stable.fpr());
    rows.measured(spec.where, "reservoir, " + bits + ": FPR (%)", one.reservoir.fpr());
    outcome.result.note = fmt::format(
        "{:.0f} bits at the paper's size, k = {}: FNR {:.4g} % (stable) and {:.4g} % (reservoir), "
        "FPR "
        "{:.4g} % and {:.4g} %.",
        one.line.bits, one.line.filters, one.stable.fnr(), one.reservoir.fnr(), one.stable.fpr(),
        one.reservoir.fpr());
  }
  return outcome;
}

const Spec kTable2{"t2", "Table 2", {{16384, 3}, {65536, 3}, {4194304, 3}}};
const Spec kTable3{"t3", "Table 3", {{16384, 3}, {262144, 3}, {4194304, 3}}};
const Spec kTable4{"t4", "Table 4", {{262144, 3}, {67108864, 2}, {1073741824, 2}, {4294967296, 2}}};
const Spec kTable5{"t5", "Table 5", {{67108864, 2}, {1073741824, 2}, {4294967296, 2}}};

}  // namespace

Result run_table2(const Context& context) {
  return run_table(context, kTable2).result;
}

Result run_table3(const Context& context) {
  return run_table(context, kTable3).result;
}

Result run_table4(const Context& context) {
  return run_table(context, kTable4).result;
}

Result run_table5(const Context& context) {
  Outcome outcome = run_table(context, kTable5);
  if (outcome.all.size() < 3) return std::move(outcome.result);
  Rows& rows = outcome.result.rows;
  const Measured& least = outcome.all[0];
  const Measured& middle = outcome.all[1];
  const Measured& most = outcome.all[2];
  rows.value("t5.text.58", least.reservoir.fnr());
  rows.value("t5.text.1.74", most.stable.fnr() / most.reservoir.fnr());
  double best = 0, worst_fpr = 0, best_fpr = 1e9;
  for (const Measured& each : outcome.all) {
    best = std::max(best, each.stable.fnr() / each.reservoir.fnr());
    worst_fpr = std::max(worst_fpr, each.reservoir.fpr() / each.stable.fpr());
    best_fpr = std::min(best_fpr, each.reservoir.fpr() / each.stable.fpr());
  }
  rows.claim("claim.fnr",
             least.reservoir.fnr() < least.stable.fnr() &&
                 middle.reservoir.fnr() < middle.stable.fnr() &&
                 most.reservoir.fnr() < most.stable.fnr(),
             fmt::format("Table 5: {:.1f}, {:.1f}, {:.1f} % against {:.1f}, {:.1f}, {:.1f} %",
                         least.reservoir.fnr(), middle.reservoir.fnr(), most.reservoir.fnr(),
                         least.stable.fnr(), middle.stable.fnr(), most.stable.fnr()));
  rows.claim("claim.twice", best > 1.5 && best < 2.2,
             fmt::format("at most {:.2f} times fewer", best));
  rows.claim("claim.fpr", worst_fpr < 1.25,
             fmt::format("{:.2f} to {:.2f} times those of stable", best_fpr, worst_fpr));
  return std::move(outcome.result);
}

}  // namespace sluice::repro::dutta
