// Figures 1 to 4, 8 and 9: false positives of dynamic and standard filters.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "repro/guo/experiments.hpp"
#include "repro/guo/series.hpp"
#include "sluice/model/bloom.hpp"

namespace sluice::repro::guo {
namespace {

using model::DynamicShape;

double standard_fpr(const DynamicShape& shape, double keys) {
  return model::bloom_fpr_limit(shape.bits, shape.probes, keys);
}

// A filter of `factor` times the bits and the keys.
DynamicShape times(const DynamicShape& shape, double factor) {
  return {shape.bits * factor, shape.probes, shape.capacity * factor};
}

template <class Of>
Curve curve_of(std::string name, Curve::Style style, unsigned colour, double from, double to,
               double step, Of of) {
  Curve curve{std::move(name), style, {}, colour};
  for (double x = from; x <= to; x += step) curve.points.push_back({x, of(x)});
  return curve;
}

// Mean of what `once` says over all rounds.
template <class Once>
double mean_of(unsigned rounds, Once once) {
  double sum = 0;
  for (unsigned i = 0; i < rounds; ++i) sum += once();
  return sum / rounds;
}

const Axis kKeys{"keys n in the set", false, 0.0};
const Axis kShare{"false positives (share)", false, 0.0};

}  // namespace

Result run_fig1(const Context& context) {
  const DynamicShape shape = shape_of(context);
  const unsigned rounds = rounds_of(context);
  const double c = shape.capacity, most = 10 * c;
  SplitMix64 random(context.seed());
  Curve dynamic{"dynamic, measured", Curve::Style::line, {}, 0};
  Curve standard{"standard, measured", Curve::Style::line, {}, 1};
  for (int half = 1; half <= 20; ++half) {
    const double keys = std::ceil(half * c / 2);
    dynamic.points.push_back({keys, mean_of(rounds, [&] {
                                Dynamic filter = dynamic_of(shape, false);
                                write(filter, random, keys);
                                return found_share(filter, random);
                              })});
    standard.points.push_back({keys, mean_of(rounds, [&] {
                                 Bloom filter = standard_of(shape.bits, shape.probes, keys);
                                 write(filter, random, keys);
                                 return found_share(filter, random);
                               })});
    context.progress(half / 20.0);
  }
  Result result{context.rows(), {}};
  Rows& rows = result.rows;
  const double full = standard_fpr(shape, c);
  rows.value("fig1.full", full);
  rows.value("fig1.standard", standard_fpr(shape, most) / full);
  rows.value("fig1.dynamic", model::dynamic_fpr(shape, most) / full);
  for (const int filters : {1, 2, 5, 10}) {
    const std::size_t at = static_cast<std::size_t>(2 * filters - 1);
    rows.predicted("eq. 3", fmt::format("dynamic, n = {} c: false positives", filters),
                   model::dynamic_fpr(shape, filters * c), dynamic.points[at].y,
                   of_formula(model::dynamic_fpr(shape, filters * c), rounds), kAsks);
    rows.predicted("eq. 1", fmt::format("standard, n = {} c: false positives", filters),
                   standard_fpr(shape, filters * c), standard.points[at].y,
                   of_formula(standard_fpr(shape, filters * c), rounds), kLuck);
  }
  rows.claim("claim.control", dynamic.points[19].y < 0.2 * standard.points[19].y,
             fmt::format("at ten times the keys of one filter {:.3f}, where a standard filter has "
                         "{:.3f}",
                         dynamic.points[19].y, standard.points[19].y));
  const double printed = context.published("fig1.full").printed;
  const Curve paper{"as the paper says (§3.2)",
                    Curve::Style::points,
                    {{c, printed},
                     {most, printed * context.published("fig1.dynamic").printed},
                     {most, printed * context.published("fig1.standard").printed}},
                    3};
  result.figure = {"False positives as the set grows",
                   {{fmt::format("m = {:.0f}, k = {}, c = {:.0f}", shape.bits, shape.probes, c),
                     kKeys,
                     kShare,
                     {curve_of("dynamic, eq. 3", Curve::Style::model, 0, 1, most, c / 19,
                               [&](double n) { return model::dynamic_fpr(shape, n); }),
                      curve_of("standard, eq. 1", Curve::Style::model, 1, 1, most, c / 19,
                               [&](double n) { return standard_fpr(shape, n); }),
                      dynamic, standard, paper}}}};
  return result;
}

Result run_fig2(const Context& context) {
  const DynamicShape shape = shape_of(context);
  Result result{context.rows(), {}};
  Panel panel{"standard over dynamic",
              {"keys n in the set, over c", false, 0.0},
              {"ratio of false positives", false, 0.0},
              {}};
  double least = 1e9, greatest = 0, peak_at = 0, peak = 0;
  for (const unsigned factor : {1u, 2u, 4u, 8u}) {
    const DynamicShape each = times(shape, factor);
    Curve curve{fmt::format("m = {:.0f}", each.bits), Curve::Style::line, {}};
    double highest = 0;
    for (double n = 1; n <= 10 * each.capacity; ++n) {
      const double ratio = standard_fpr(each, n) / model::dynamic_fpr(each, n);
      if (ratio > highest) {
        highest = ratio;
        if (factor == 1) peak = ratio, peak_at = n;
      }
      if (std::fmod(n, 8 * factor) == 0) curve.points.push_back({n / each.capacity, ratio});
    }
    least = std::min(least, highest), greatest = std::max(greatest, highest);
    panel.curves.push_back(std::move(curve));
  }
  result.rows.value("fig2.peak", peak);
  result.rows.value("fig2.at", peak_at);
  result.rows.claim("fig2.size", greatest < 1.01 * least,
                    fmt::format("peaks of {:.2f} to {:.2f}", least, greatest));
  panel.curves.push_back({"highest, recomputed",
                          Curve::Style::points,
                          {{context.point("fig2.at") / 133, context.point("fig2.peak")}},
                          0});
  result.figure = {"What a standard filter errs more than a dynamic one", {panel}};
  return result;
}

Result run_fig3(const Context& context) {
  const DynamicShape shape = shape_of(context);
  const unsigned rounds = rounds_of(context);
  const double c = shape.capacity;
  const auto difference = [&](double a, double b) {
    return standard_fpr(shape, a + b) - model::dynamic_union_fpr(shape, a, b);
  };
  bool positive = true;
  const double step = std::max(7.0, std::floor(c / 19));
  for (double a = 1; a <= 10 * c; a += step)
    for (double b = 1; b <= 10 * c; b += step) positive &= difference(a, b) > 0;
  Result result{context.rows(), {}};
  result.rows.claim("fig3.positive", positive, "for all sizes of both from 1 to 10 c");
  SplitMix64 random(context.seed());
  const std::pair<double, double> sizes[] = {
      {std::floor(0.75 * c), std::floor(1.5 * c)}, {c, c}, {std::floor(2.25 * c), 3 * c}};
  for (const auto& [a, b] : sizes) {
    const double measured = mean_of(rounds, [&, a = a, b = b] {
      Dynamic first = dynamic_of(shape, false), second = dynamic_of(shape, false);
      write(first, random, a);
      write(second, random, b);
      first.merge(second);
      return found_share(first, random);
    });
    result.rows.predicted("eq. 4",
                          fmt::format("union of {:.0f} and {:.0f} keys: false positives", a, b),
                          model::dynamic_union_fpr(shape, a, b), measured,
                          of_formula(model::dynamic_union_fpr(shape, a, b), rounds), kAsks);
  }
  Panel panel{"standard less dynamic",
              {"keys of the one set", false, 0.0},
              {"difference of false positives", false, 0.0},
              {}};
  for (const double factor : {0.25, 0.5, 1.0, 2.0, 4.0}) {
    const double b = std::max(1.0, std::floor(factor * c));
    panel.curves.push_back(curve_of(fmt::format("{:.0f} keys of the other", b), Curve::Style::line,
                                    static_cast<unsigned>(panel.curves.size()), 1, 6 * c, c / 13,
                                    [&](double a) { return difference(a, b); }));
  }
  result.figure = {"Unions of two sets", {panel}};
  return result;
}

Result run_fig4(const Context& context) {
  const DynamicShape shape = shape_of(context);
  Result result{context.rows(), {}};
  Panel panel{"dynamic filters of four sizes", kKeys, kShare, {}};
  bool lower = true;
  for (const unsigned factor : {1u, 2u, 4u, 8u}) {
    const DynamicShape each = times(shape, factor);
    panel.curves.push_back(curve_of(fmt::format("m = {:.0f}", each.bits), Curve::Style::line,
                                    static_cast<unsigned>(panel.curves.size()), 1,
                                    20 * shape.capacity, shape.capacity / 7,
                                    [&](double n) { return model::dynamic_fpr(each, n); }));
    for (double n = 1; factor > 1 && n <= 20 * shape.capacity; ++n)
      lower &= model::dynamic_fpr(each, n) < model::dynamic_fpr(times(shape, factor / 2), n);
  }
  result.rows.claim("fig4.lower", lower, "at every n from 1 to 20 c");
  result.figure = {"False positives by the size of one filter", {panel}};
  return result;
}

Result run_fig8(const Context& context) {
  const DynamicShape shape = shape_of(context);
  Result result{context.rows(), {}};
  Curve curve{"eq. 13", Curve::Style::line, {}};
  bool fewer = true;
  for (double filters = 1; filters <= 20; ++filters) {
    curve.points.push_back({filters, model::standard_size_ratio(shape, filters)});
    fewer &= filters == 1 || curve.points.back().y < 1;
  }
  result.rows.value("fig8.one", curve.points[0].y);
  result.rows.claim("fig8.fewer", fewer,
                    fmt::format("{:.3f} at n = 2 c, {:.3f} at 5 c, {:.3f} at 10 c",
                                curve.points[1].y, curve.points[4].y, curve.points[9].y));
  result.figure = {
      "Memory for the same error",
      {{"a standard filter built anew for n keys",
        {"filters in the series, n / c"},
        {"its bits over those of the series", false, 0.0, 1.05},
        {curve, {"paper", Curve::Style::points, {{1, context.point("fig8.one")}}, 0}}}}};
  return result;
}

Result run_fig9(const Context& context) {
  const DynamicShape shape = shape_of(context);
  const unsigned rounds = rounds_of(context);
  const double c = shape.capacity;
  SplitMix64 random(context.seed());
  Result result{context.rows(), {}};
  Curve measured{"standard, measured", Curve::Style::line, {}, 1};
  for (int quarter = 1; quarter <= 40; ++quarter) {
    const double keys = std::ceil(quarter * c / 4);
    const double bits = model::dynamic_filters(shape, keys) * shape.bits;
    measured.points.push_back({keys, mean_of(rounds, [&] {
                                 Bloom filter = standard_of(bits, shape.probes, keys);
                                 write(filter, random, keys);
                                 return found_share(filter, random);
                               })});
    context.progress(quarter / 40.0);
  }
  for (const int filters : {2, 5, 10})
    result.rows.predicted(
        "eq. 14", fmt::format("standard of {} m bits, n = {} c: false positives", filters, filters),
        model::standard_same_memory_fpr(shape, filters * c),
        measured.points[static_cast<std::size_t>(4 * filters - 1)].y,
        of_formula(model::standard_same_memory_fpr(shape, filters * c), rounds), kLuck);
  bool never = true;
  for (double n = 1; n <= 10 * c; ++n)
    never &= model::dynamic_fpr(shape, n) >= model::standard_same_memory_fpr(shape, n) * (1 - 1e-9);
  result.rows.claim("claim.static", never,
                    fmt::format("at every n to 10 c; there {:.4f} against {:.4f}",
                                model::dynamic_fpr(shape, 10 * c),
                                model::standard_same_memory_fpr(shape, 10 * c)));
  result.figure = {"False positives in the same memory",
                   {{"a standard filter built anew, of as many bits as the series",
                     kKeys,
                     {kShare.label, true},
                     {curve_of("dynamic, eq. 3", Curve::Style::model, 0, c / 2, 10 * c, c / 19,
                               [&](double n) { return model::dynamic_fpr(shape, n); }),
                      curve_of("standard, eq. 14", Curve::Style::model, 1, c / 2, 10 * c, c / 19,
                               [&](double n) { return model::standard_same_memory_fpr(shape, n); }),
                      measured}}}};
  return result;
}

}  // namespace sluice::repro::guo
