// Table 5, our own: cohort beside apbbf and SWAMP's published figures, at equal error.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>

#include "repro/shtul/cells.hpp"
#include "repro/shtul/experiments.hpp"
#include "repro/shtul/fresh_keys.hpp"
#include "repro/shtul/rows_of_tables.hpp"
#include "sluice/base/error.hpp"
#include "sluice/filters/catalogue.hpp"
#include "sluice/filters/cohort/cohort.hpp"

namespace sluice::repro::shtul {
namespace {

AnyFilter cohort_for(std::uint64_t keys, double fpr) {
  return make_filter("cohort", {.keys = keys, .fpr = fpr});
}

// A filter paced by a number of keys per generation, under fresh keys.
class Paced {
 public:
  Paced(AnyFilter filter, std::uint64_t window, std::uint64_t seed)
      : filter_(std::move(filter)),
        a_generation_((window + filter_.generations() - 1) / filter_.generations()),
        left_(a_generation_),
        random_(seed) {}

  AnyFilter& filter() { return filter_; }

  // Judges and writes that many fresh keys.
  void write(std::uint64_t count) {
    while (count > 0) {
      draw(std::min<std::uint64_t>(kBatch, count));
      std::uint64_t budget = std::min<std::uint64_t>(left_, digests_.size());
      std::span<const Digest> next(digests_);
      next = next.first(budget);
      const std::uint64_t before = budget;
      filter_.admit(next, std::span(verdicts_).first(next.size()), budget, Anchor::refreshed);
      if (budget == before) throw BadParameters("a filter of Table 5 is full");
      count -= before - budget;
      left_ -= before - budget;
      if (left_ == 0) filter_.rotate(), left_ = a_generation_;
    }
  }
  // Up to the end of the generation: when the error is worst.
  void fill() {
    if (left_ > 1) write(left_ - 1);
  }
  double error(std::uint64_t probes) {
    std::uint64_t found = 0;
    for (std::uint64_t done = 0; done < probes; done += kBatch) {
      draw(kBatch);
      filter_.may_contain(digests_, verdicts_);
      found += static_cast<std::uint64_t>(std::ranges::count(verdicts_, Verdict::duplicate));
    }
    return static_cast<double>(found) /
           static_cast<double>((probes + kBatch - 1) / kBatch * kBatch);
  }

 private:
  static constexpr std::size_t kBatch = 1024;
  void draw(std::size_t count) {
    digests_.resize(count);
    verdicts_.resize(count);
    for (Digest& digest : digests_) digest = {random_.next(), random_.next()};
  }

  AnyFilter filter_;
  std::uint64_t a_generation_, left_;
  SplitMix64 random_;
  std::vector<Digest> digests_;
  std::vector<Verdict> verdicts_;
};

// A window that the caches do not hold.
constexpr std::uint64_t kSpeedKeys = 1u << 20;

double seconds_of(Paced& filter, std::uint64_t keys) {
  const auto start = std::chrono::steady_clock::now();
  filter.write(keys);
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

// Time a new key in cohort over that in apbbf: medians of laps that take turns.
double time_ratio(const BlockCut& cut, std::uint64_t keys, double fpr, std::uint64_t seed) {
  constexpr int kLaps = 41;
  constexpr std::uint64_t kLap = 16384;
  const ApbbfParams params = apbbf_of(cut.k, cut.l, cut.block, cut.bits, keys);
  Paced apbbf(AnyFilter(Apbbf::make(params)), params.capacity, seed);
  Paced cohort(cohort_for(keys, fpr), keys, seed);
  apbbf.write(keys * 5 / 4);
  cohort.write(keys * 5 / 4);
  std::vector<double> ratios;
  for (int lap = 0; lap < kLaps; ++lap) {
    const double theirs = seconds_of(apbbf, kLap);
    ratios.push_back(seconds_of(cohort, kLap) / theirs);
  }
  std::ranges::nth_element(ratios, ratios.begin() + kLaps / 2);
  return ratios[kLaps / 2];
}

// One line of Table 4 with a cohort in it.
struct Compared {
  double fpr;
  double error, bits, slack, npws;  // of cohort
  double apbbf_bits, apbbf_npws, swamp_bits;
  double lines, apbbf_lines;  // of cache that a new key touches
};

Compared compare(const Context& context, Rows& rows, const BlockCut& cut, std::uint64_t window) {
  const model::BlockShape shape{cut.block, cut.bits};
  Compared row{};
  row.fpr = model::apbbf_fpr(cut.k, cut.l, shape);
  row.apbbf_npws = model::apbf_npws(cut.k, cut.l, model::block_matches(cut.k, cut.l, shape).back());
  const ApbbfParams params = apbbf_of(cut.k, cut.l, cut.block, cut.bits, window);
  row.apbbf_bits = static_cast<double>(Apbbf::make(params).stats().bytes) * 8 /
                   static_cast<double>(params.capacity);
  row.apbbf_lines = params.forecast().lines;
  const std::string id = "table5." + cut.name();
  row.swamp_bits = printed(id + ".swamp");

  Paced cohort(cohort_for(window, row.fpr), window, context.seed() + cut.k);
  cohort.write(window * 3 / 2);
  cohort.fill();
  const FilterStats stats = cohort.filter().stats();
  row.bits = static_cast<double>(stats.bytes) * 8 / static_cast<double>(window);
  row.slack = cohort.filter().slack();
  row.npws = cohort.filter().npws();
  row.lines = cohort.filter().as<Cohort>()->params().forecast().lines;
  row.error = stats.predicted_fpr;
  rows.value(id + ".swamp", row.bits);
  rows.value(id + ".bits", row.bits);
  rows.value(id + ".slack", row.npws);
  if (stats.predicted_fpr < 1e-6) return row;  // no run of this length would find any
  const double probes =
      std::clamp(800 / stats.predicted_fpr, 1e5, 1.2e7) * std::min(1.0, context.scale());
  row.error = cohort.error(static_cast<std::uint64_t>(probes));
  rows.predicted("Table 5", fmt::format("error of cohort where {:.1e} is asked for", row.fpr),
                 stats.predicted_fpr, row.error,
                 {0.05 + 4 / std::sqrt(probes * stats.predicted_fpr)});
  return row;
}

// Times are not the same in two runs: the page has only roughly what they are, unless asked.
void add_speed(const Context& context, Rows& rows, const std::string& lines) {
  double most = 0;
  std::string ratios;
  for (const BlockCut& cut : {kTable4[1], kTable4[2]}) {
    const double fpr = model::apbbf_fpr(cut.k, cut.l, {cut.block, cut.bits});
    const double ratio = time_ratio(cut, kSpeedKeys, fpr, context.seed());
    most = std::max(most, ratio);
    ratios += fmt::format("{}{:.2f} of apbbf ({},{},{},{})", ratios.empty() ? "" : ", ", ratio,
                          cut.k, cut.l, cut.block, cut.bits);
  }
  const char* roughly = most < 0.5 ? "less than half" : most < 1 ? "less" : "not less";
  rows.claim("table5.speed", most < 1,
             fmt::format("{}; cache lines that a new key touches: {}",
                         context.number("speed") != 0 ? ratios : roughly, lines));
}

}  // namespace

Result run_table5(const Context& context) {
  // Never smaller: what a filter keeps beside its table would be most of it.
  const unsigned least = context.whole("w");
  if (least < 1000 || least > 100'000'000)
    throw BadParameters("--set w: give a window from 1000 to 100000000");
  const std::uint64_t window = context.scaled(least, least);
  Result result{context.rows(), {}};
  Table table{{"error at most", "filter", "error", "bits per key", "slack", "weighted slack",
               "cache lines per new key"},
              {}};
  const auto line = [&](const Compared& row, const char* name, double error, double bits,
                        double slack, double npws, const std::string& lines) {
    table.lines.push_back({fmt::format("{:.3e}", row.fpr), name, fmt::format("{:.3e}", error),
                           fmt::format("{:.2f}", bits), fmt::format("{:.4f}", slack),
                           fmt::format("{:.4f}", npws), lines});
  };
  Curve cohort{"cohort", Curve::Style::bars, {}, 2}, cohort_slack = cohort, cohort_lines = cohort;
  Curve apbbf{"apbbf", Curve::Style::bars, {}, 0}, apbbf_slack = apbbf, apbbf_lines = apbbf;
  Curve swamp{"SWAMP, as published", Curve::Style::bars, {}, 1};
  std::vector<std::string> names;
  std::string against, lines;
  bool never_smaller = true;
  for (const BlockCut& cut : kTable4) {
    const Compared row = compare(context, result.rows, cut, window);
    line(row, "cohort", row.error, row.bits, row.slack, row.npws, fmt::format("{:.2f}", row.lines));
    line(row, "apbbf", row.fpr, row.apbbf_bits, model::apbf_slack(cut.k, cut.l), row.apbbf_npws,
         fmt::format("{:.2f}", row.apbbf_lines));
    line(row, "SWAMP (published)", row.fpr, row.swamp_bits, 0, 0, "");
    lines += fmt::format("{}{:.1f} against {:.1f}", lines.empty() ? "" : "; ", row.lines,
                         row.apbbf_lines);
    never_smaller &= row.bits >= row.apbbf_bits;
    against += fmt::format("{}{:.1f} against {:.1f}", against.empty() ? "" : "; ", row.apbbf_bits,
                           row.bits);
    const auto x = static_cast<double>(names.size());
    names.push_back(error_name(row.fpr));
    cohort.points.push_back({x, row.bits});
    apbbf.points.push_back({x, row.apbbf_bits});
    swamp.points.push_back({x, row.swamp_bits});
    cohort_slack.points.push_back({x, 100 * row.npws});
    apbbf_slack.points.push_back({x, 100 * row.apbbf_npws});
    cohort_lines.points.push_back({x, row.lines});
    apbbf_lines.points.push_back({x, row.apbbf_lines});
    context.progress(static_cast<double>(names.size()) / 5);
  }
  result.rows.claim("claim.dictionary", never_smaller, against);
  add_speed(context, result.rows, lines);
  result.table = std::move(table);
  const Axis errors{"error at most (share of the distinct)", false, -0.6, 3.6, names};
  result.figure = {"Cohort, apbbf and SWAMP at equal error",
                   {{"memory", errors, {"bits per key", false, 0.0}, {cohort, apbbf, swamp}},
                    {"keys reported past the window, weighted by their chance",
                     errors,
                     {"slack (% of the window)", false, 0.0},
                     {cohort_slack, apbbf_slack}},
                    {"what speed depends on",
                     errors,
                     {"cache lines that a new key touches", false, 0.0},
                     {cohort_lines, apbbf_lines}}}};
  result.note =
      "Table 5 is ours. Times are compared in turns within a run, and differ between runs, so the "
      "row gives them only roughly; `--set speed=1` shows the ratios.";
  return result;
}

}  // namespace sluice::repro::shtul
