// Table 1 and Figures 5 to 7: keys that several filters claim, and what forgetting leaves behind.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "repro/guo/experiments.hpp"
#include "repro/guo/series.hpp"
#include "sluice/base/error.hpp"
#include "sluice/model/dynamic_sizing.hpp"

namespace sluice::repro::guo {
namespace {

using model::DynamicShape;

constexpr int kSteps = 40;  // of Figure 6, to 10 c

// Full filters, each filled by itself: so none is asked before a key goes into another, as in the
// paper's Algorithm 1.
struct Series {
  std::vector<Dynamic> each;
  std::vector<Digest> keys;
  Dynamic all;
};

std::vector<Digest> fill(Dynamic& filter, SplitMix64& random, double count) {
  std::vector<Digest> keys;
  for (int tries = 0; static_cast<double>(keys.size()) < count && tries < 100 * count; ++tries) {
    const Digest key = next_key(random);
    if (filter.observe(key) == Verdict::distinct) keys.push_back(key);
  }
  return keys;
}

Series series_of(const DynamicShape& shape, int filters, SplitMix64& random) {
  Series series{{}, {}, dynamic_of(shape, true)};
  for (int i = 0; i < filters; ++i) {
    series.each.push_back(dynamic_of(shape, true));
    const std::vector<Digest> keys = fill(series.each.back(), random, shape.capacity);
    series.keys.insert(series.keys.end(), keys.begin(), keys.end());
    series.all.merge(series.each.back());
  }
  return series;
}

double share_claimed_twice(const Series& series) {
  std::size_t twice = 0;
  for (const Digest& key : series.keys)
    twice += std::ranges::count_if(
                 series.each, [&](const Dynamic& filter) { return filter.may_contain(key); }) > 1;
  return static_cast<double>(twice) / static_cast<double>(series.keys.size());
}

// In the order in which they were written.
void forget_all(Series& series) {
  for (const Digest& key : series.keys) series.all.forget(key);
}

struct Shares {
  double fpr = 0, twice = 0, left = 0;
};

// Table 1's columns for n / c = 1 to 10.
std::vector<Shares> measure(const Context& context, const DynamicShape& shape) {
  SplitMix64 random(context.seed());
  std::vector<Shares> all;
  for (int filters = 1; filters <= 10; ++filters) {
    Shares mean;
    // Short series have few keys with several addresses.
    const unsigned rounds = rounds_of(context) * 10 / static_cast<unsigned>(filters);
    for (unsigned round = 0; round < rounds; ++round) {
      Series series = series_of(shape, filters, random);
      mean.fpr += found_share(series.all, random) / rounds;
      mean.twice += share_claimed_twice(series) / rounds;
      forget_all(series);
      mean.left += static_cast<double>(series.all.stats().keys) /
                   static_cast<double>(series.keys.size()) / rounds;
    }
    all.push_back(mean);
    context.progress(filters / 10.0);
  }
  return all;
}

// Eq. 10 for the series at this place of Table 1.
double bound_of(const DynamicShape& shape, std::size_t at) {
  return model::several_addresses_last(shape, static_cast<double>(at + 1) * shape.capacity);
}

// The three values of Table 1's experiment that are known.
Curve known(const Context& context, const char* name, const char* what, unsigned colour) {
  Curve curve{fmt::format("{}, simulated independently", name), Curve::Style::points, {}, colour};
  for (const int filters : {2, 5, 10}) {
    const std::string id = fmt::format("table1.{}.{}", filters, what);
    curve.points.push_back({double(filters), context.published(id).corrected.value_or(0)});
  }
  return curve;
}

Figure figure_of(const Context& context, const DynamicShape& shape,
                 const std::vector<Shares>& all) {
  Curve fpr{"false positives, measured", Curve::Style::line, {}, 0};
  Curve formula{"false positives, eq. 3", Curve::Style::model, {}, 0};
  Curve twice{"claimed by several, measured", Curve::Style::line, {}, 1};
  Curve bound{"claimed by several, eq. 10", Curve::Style::model, {}, 1};
  Curve left{"left after forgetting all, measured", Curve::Style::line, {}, 2};
  Curve model_left{"left after forgetting all, our model", Curve::Style::model, {}, 2};
  for (std::size_t i = 0; i < all.size(); ++i) {
    const double x = static_cast<double>(i + 1), keys = x * shape.capacity;
    fpr.points.push_back({x, all[i].fpr});
    formula.points.push_back({x, model::dynamic_fpr(shape, keys)});
    twice.points.push_back({x, all[i].twice});
    bound.points.push_back({x, bound_of(shape, i)});
    left.points.push_back({x, all[i].left});
    model_left.points.push_back({x, model::left_after_forgetting_all(shape, keys)});
  }
  return {"Keys that several filters claim",
          {{fmt::format("m = {:.0f}, k = {}, c = {:.0f}", shape.bits, shape.probes, shape.capacity),
            {"keys in the set, n / c"},
            {"share of the keys", false, 0.0},
            {fpr, formula, known(context, "false positives", "fpr", 0), twice, bound,
             known(context, "claimed by several", "several", 1), left, model_left,
             known(context, "left", "left", 2)}}}};
}

}  // namespace

Result run_table1(const Context& context) {
  const DynamicShape shape = shape_of(context);
  const std::vector<Shares> all = measure(context, shape);
  Result result{context.rows(), {}};
  Table table{{"n_over_c", "several_addresses", "eq_10", "left_after_forgetting_all", "model_left",
               "false_positives", "eq_3"},
              {}};
  const auto text = [](double value) { return fmt::format("{:.5f}", value); };
  for (int filters = 1; filters <= 10; ++filters) {
    const Shares& each = all[static_cast<std::size_t>(filters - 1)];
    const double keys = filters * shape.capacity;
    const double bound = model::several_addresses_last(shape, keys);
    const double left = model::left_after_forgetting_all(shape, keys);
    table.lines.push_back({std::to_string(filters), text(each.twice), text(bound), text(each.left),
                           text(left), text(each.fpr), text(model::dynamic_fpr(shape, keys))});
    if (filters != 2 && filters != 5 && filters != 10) continue;
    result.rows.value(fmt::format("table1.{}.several", filters), each.twice);
    result.rows.value(fmt::format("table1.{}.left", filters), each.left);
    result.rows.value(fmt::format("table1.{}.fpr", filters), each.fpr);
    result.rows.predicted(
        "§3.4", fmt::format("n = {} c: share left after forgetting all", filters), left, each.left,
        {std::max(0.15, 3 / std::sqrt(left * shape.capacity * 10 * rounds_of(context))), true},
        kLuck);
  }
  result.table = std::move(table);
  result.figure = figure_of(context, shape, all);
  result.rows.claim("claim.operations", all[9].left < all[9].twice,
                    fmt::format("{:.1f} % of the keys of ten filters cannot be taken out, since "
                                "several claim them; the union is that of eq. 4 (Fig. 3)",
                                100 * all[9].left));
  return result;
}

Result run_fig5(const Context& context) {
  const DynamicShape shape = shape_of(context);
  const std::vector<Shares> all = measure(context, shape);
  Result result{context.rows(), {}};
  bool below = true;
  for (std::size_t i = 1; i < all.size(); ++i)
    below &=
        all[i].left < all[i].twice && all[i].left < bound_of(shape, i) && all[i].left < all[i].fpr;
  result.rows.claim("fig5.below", below,
                    fmt::format("n = 10 c: {:.4f} left, {:.4f} claimed by several, bound {:.4f}, "
                                "false positives {:.4f}",
                                all[9].left, all[9].twice, bound_of(shape, 9), all[9].fpr));
  result.figure = figure_of(context, shape, all);
  return result;
}

Result run_fig6(const Context& context) {
  const DynamicShape shape = shape_of(context);
  const unsigned rounds = rounds_of(context);
  SplitMix64 random(context.seed());
  Panel panel{"all keys of a series forgotten, and others written",
              {"other keys written, over c", false, 0.0},
              {"false positives (share)", false, 0.0},
              {}};
  std::vector<double> means, kept;
  for (const int filters : {10, 8, 5, 0}) {
    Curve curve{filters == 0 ? std::string("none before") : fmt::format("n = {} c before", filters),
                Curve::Style::line, std::vector<Point>(kSteps + 1)};
    double remaining = 0, sum = 0;
    for (unsigned round = 0; round < rounds; ++round) {
      Series series = series_of(shape, filters, random);
      forget_all(series);
      remaining += static_cast<double>(series.all.stats().keys) / rounds;
      double written = 0;
      for (int step = 0; step <= kSteps; ++step) {
        const double until = std::round(10 * shape.capacity * step / kSteps);
        fill(series.all, random, until - written);
        written = until;
        const double found = found_share(series.all, random, 1000) / rounds;
        Point& point = curve.points[static_cast<std::size_t>(step)];
        point.x = until / shape.capacity;
        point.y += found;
        sum += found;
      }
      context.progress((static_cast<double>(means.size()) + (round + 1.0) / rounds) / 4);
    }
    kept.push_back(remaining);
    means.push_back(sum / (kSteps + 1));
    panel.curves.push_back(std::move(curve));
  }
  panel.curves.push_back({"eq. 3, none before", Curve::Style::model, {}, 3});
  for (double step = 0; step <= 10; step += 0.125)
    panel.curves.back().points.push_back({step, model::dynamic_fpr(shape, step * shape.capacity)});
  Result result{context.rows(), {}};
  // A dozen keys more than none are within the luck of the series.
  result.rows.claim("fig6.order",
                    means[0] > means[1] && means[1] > means[2] && means[2] > 0.98 * means[3],
                    fmt::format("{:.0f}, {:.0f}, {:.0f} and no keys left behind: {:.4f}, {:.4f}, "
                                "{:.4f}, {:.4f} as a mean over n to 10 c",
                                kept[0], kept[1], kept[2], means[0], means[1], means[2], means[3]));
  result.figure = {"False positives with keys left behind", {panel}};
  return result;
}

Result run_fig7(const Context& context) {
  const double capacity = context.whole("c");
  if (capacity < 1) throw BadParameters("--set c=0: give 1 or more");
  Result result{context.rows(), {}};
  Panel panel{"keys found before they are written",
              {"filters in the series, s"},
              {"their number n · f₂(n), over c", true, 1e-4},
              {}};
  double ten = 0, twenty = 0;
  for (const double fpr : {0.1, 0.05, 0.01, 0.001, 0.0001}) {
    const DynamicShape shape = model::filter_for(capacity, fpr);
    Curve curve{fmt::format("f = {:g}", fpr), Curve::Style::line, {}};
    for (double filters = 2; filters <= 20; ++filters)
      curve.points.push_back({filters, model::ask_first_ratio(shape, filters * shape.capacity)});
    if (fpr == 0.01) ten = curve.points[8].y;
    if (fpr == 0.001) twenty = curve.points[18].y;
    panel.curves.push_back(std::move(curve));
  }
  panel.curves.push_back({"one filter wasted", Curve::Style::model, {{2, 1}, {20, 1}}, 7});
  panel.curves.push_back({"recomputed (the paper: below 1)",
                          Curve::Style::points,
                          {{10, context.point("fig7.ten")}, {20, context.point("fig7.twenty")}},
                          5});
  result.rows.value("fig7.ten", ten);
  result.rows.value("fig7.twenty", twenty);
  result.figure = {"When to ask before writing (§3.5.1)", {panel}};
  return result;
}

}  // namespace sluice::repro::guo
