// Figures 10 to 16: expected memory for a set whose size has a known bound and distribution.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "repro/guo/experiments.hpp"
#include "repro/guo/series.hpp"
#include "sluice/model/dynamic_sizing.hpp"

namespace sluice::repro::guo {
namespace {

using model::BoundedPlan;
using model::SetSizes;
using model::ZipfOrder;

struct Shape {
  const char* id;
  const char* name;
};
constexpr Shape kShapes[] = {{"max", "maximum Zipf"},
                             {"random", "random Zipf"},
                             {"uniform", "uniform"},
                             {"normal", "normal"},
                             {"min", "minimum Zipf"}};
constexpr std::size_t kCount = std::size(kShapes);

struct Spread {
  double exponent, deviation;
};

SetSizes sizes_of(std::size_t shape, std::uint64_t bound, const Spread& spread,
                  std::uint64_t seed) {
  switch (shape) {
    case 0:
      return model::zipf_sizes(bound, spread.exponent, ZipfOrder::maximum);
    case 1:
      return model::random_zipf_sizes(bound, spread.exponent, seed);
    case 2:
      return model::uniform_sizes(bound);
    case 3:
      return model::normal_sizes(bound, std::ceil(static_cast<double>(bound) / 2),
                                 spread.deviation);
    default:
      return model::zipf_sizes(bound, spread.exponent, ZipfOrder::minimum);
  }
}

Spread spread_of(const Context& context) {
  return {context.number("a"), context.number("sigma")};
}

SetSizes sizes_of(const Context& context, std::size_t shape, std::uint64_t bound) {
  return sizes_of(shape, bound, spread_of(context), context.seed());
}

double kilobits(double bits) {
  return bits / 1000;
}

// A curve for each distribution, of what `of(shape, x)` says at each x. Not within the braces of a
// panel: it may throw, and GCC 12 then frees the panel's title twice.
template <class Of>
std::vector<Curve> curves_of(const std::vector<double>& xs, Of of) {
  std::vector<Curve> curves;
  for (std::size_t shape = 0; shape < kCount; ++shape) {
    Curve curve{kShapes[shape].name, Curve::Style::line, {}, static_cast<unsigned>(shape)};
    for (const double x : xs) curve.points.push_back({x, of(shape, x)});
    curves.push_back(std::move(curve));
  }
  return curves;
}

// In thousands, as the axes have them.
std::vector<double> bounds_of(const Context& context) {
  const double first = context.whole("N") / 1000.0;
  std::vector<double> bounds;
  for (int i = 1; i <= 10; ++i) bounds.push_back(i * first);
  return bounds;
}

std::uint64_t whole(double thousands) {
  return static_cast<std::uint64_t>(std::llround(1000 * thousands));
}

// .0001 to .1, ten a decade.
std::vector<double> errors() {
  std::vector<double> all;
  for (int i = 0; i <= 30; ++i) all.push_back(std::pow(10, -4 + i / 10.0));
  return all;
}

// A random order has its luck: the mean over some.
double mean_saving(const Context& context, std::size_t shape, std::uint64_t bound, double fpr) {
  constexpr unsigned kOrders = 20;
  double sum = 0;
  for (unsigned i = 0; i < kOrders; ++i)
    sum += model::least_memory(sizes_of(shape, bound, spread_of(context), context.seed() + i), fpr)
               .saving();
  return sum / kOrders;
}

// What real filters take: sets drawn from the distribution, each written into a dynamic filter of
// the plan, in whole words. As a share of one standard filter for the bound; and what to expect.
struct Share {
  double measured = 0, expected = 0;
};
Share real_share(const SetSizes& sizes, double fpr, unsigned sets, SplitMix64& random) {
  model::DynamicShape shape = model::least_memory(sizes, fpr).shape;
  shape.bits = std::ceil(shape.bits / 64) * 64;
  const double standard = model::filter_for(static_cast<double>(sizes.size()), fpr).bits;
  Share share;
  for (unsigned i = 0; i < sets; ++i) {
    double keys = 1, left = random.next_unit();
    for (std::size_t at = 0; at + 1 < sizes.size() && left >= sizes[at]; ++at, ++keys)
      left -= sizes[at];
    Dynamic filter = dynamic_of(shape, false);
    write(filter, random, keys);
    share.measured += static_cast<double>(filter.series().filters) * shape.bits / standard / sets;
  }
  for (std::size_t i = 0; i < sizes.size(); ++i)
    share.expected += sizes[i] * model::dynamic_filters(shape, static_cast<double>(i + 1)) *
                      shape.bits / standard;
  return share;
}

// From one half on, unless something is below.
void show_all(Panel& panel) {
  for (const Curve& curve : panel.curves)
    for (const Point& point : curve.points)
      if (point.y < 0.5) panel.y.from = 0;
}

Curve standard_curve(const std::vector<double>& xs, const std::vector<double>& ys) {
  Curve curve{"one standard filter", Curve::Style::model, {}, 7};
  for (std::size_t i = 0; i < xs.size(); ++i) curve.points.push_back({xs[i], ys[i]});
  return curve;
}

}  // namespace

Result run_fig10(const Context& context) {
  const std::uint64_t bound = context.whole("N");
  const double fpr = context.number("fpr");
  Result result{context.rows(), {}};
  std::vector<double> filters(30);
  for (std::size_t i = 0; i < filters.size(); ++i) filters[i] = static_cast<double>(i + 1);
  std::vector<BoundedPlan> plans;
  Panel panel{fmt::format("N = {}, ε = {:g}", bound, fpr),
              {"filters s of which the series may have"},
              {"expected memory (kbit)"},
              {}};
  panel.curves = curves_of(filters, [&](std::size_t shape, double s) {
    return kilobits(
        model::expected_bits(sizes_of(context, shape, bound), fpr, static_cast<unsigned>(s)));
  });
  bool less = true;
  for (std::size_t shape = 0; shape < kCount; ++shape) {
    plans.push_back(model::least_memory(sizes_of(context, shape, bound), fpr));
    less &= plans.back().expected_bits < plans.back().standard_bits;
    result.rows.value(fmt::format("fig10.{}", kShapes[shape].id), plans.back().filters);
  }
  const double standard = kilobits(plans.front().standard_bits);
  panel.curves.push_back(standard_curve(filters, std::vector<double>(filters.size(), standard)));
  result.rows.claim("fig10.less", less,
                    fmt::format("{:.2f}, {:.2f}, {:.2f}, {:.2f} and {:.2f} kbit against {:.2f}",
                                kilobits(plans[0].expected_bits), kilobits(plans[1].expected_bits),
                                kilobits(plans[2].expected_bits), kilobits(plans[3].expected_bits),
                                kilobits(plans[4].expected_bits), standard));
  result.figure = {"Expected memory by the number of filters", {panel}};
  return result;
}

Result run_fig11(const Context& context) {
  const double fpr = context.number("fpr");
  const std::vector<double> bounds = bounds_of(context);
  Result result{context.rows(), {}};
  std::vector<double> standard;
  for (const double bound : bounds)
    standard.push_back(
        kilobits(model::least_memory(model::uniform_sizes(whole(bound)), fpr, 1).expected_bits));
  Panel panel{fmt::format("ε = {:g}", fpr),
              {"bound N of the set (thousand keys)", false, 0.0},
              {"least expected memory (kbit)", false, 0.0},
              {}};
  panel.curves = curves_of(bounds, [&](std::size_t shape, double bound) {
    return kilobits(model::least_memory(sizes_of(context, shape, whole(bound)), fpr).expected_bits);
  });
  bool order = true;
  for (std::size_t i = 0; i < bounds.size(); ++i)
    for (std::size_t shape = 0; shape < kCount; ++shape) {
      const double each = panel.curves[shape].points[i].y;
      order &= each <= panel.curves[0].points[i].y && each >= panel.curves[4].points[i].y &&
               each < standard[i];
    }
  panel.curves.push_back(standard_curve(bounds, standard));
  result.rows.claim("fig11.order", order,
                    fmt::format("at every N to {}: {:.1f} kbit at most, {:.1f} at least, {:.1f} "
                                "of a standard filter",
                                whole(bounds.back()), panel.curves[0].points.back().y,
                                panel.curves[4].points.back().y, standard.back()));
  result.figure = {"Least expected memory by the bound of the set", {panel}};
  return result;
}

Result run_fig12(const Context& context) {
  const double fpr = context.number("fpr");
  const std::vector<double> bounds = bounds_of(context);
  Result result{context.rows(), {}};
  Panel panel{fmt::format("ε = {:g}", fpr),
              {"bound N of the set (thousand keys)", false, 0.0},
              {"memory over that of a standard filter", false, 0.5, 1.0},
              {}};
  panel.curves = curves_of(bounds, [&](std::size_t shape, double bound) {
    return 1 - model::least_memory(sizes_of(context, shape, whole(bound)), fpr).saving();
  });
  show_all(panel);
  SplitMix64 random(context.seed());
  const unsigned sets = context.whole("sets");
  double savings[kCount];
  for (std::size_t shape = 0; shape < kCount; ++shape) {
    savings[shape] = 100 * mean_saving(context, shape, whole(bounds[0]), fpr);
    const std::string id = fmt::format("fig12.{}", kShapes[shape].id);
    result.rows.value(id, savings[shape]);
    Curve paper{fmt::format("{}, paper", kShapes[shape].name),
                Curve::Style::points,
                {},
                static_cast<unsigned>(shape)};
    const PublishedValue& value = context.published(id);
    if (value.kind == PublishedValue::Kind::value)
      for (const double bound : {bounds.front(), bounds.back()})
        paper.points.push_back({bound, 1 - value.printed / 100});
    if (!paper.points.empty()) panel.curves.push_back(std::move(paper));
    if (sets == 0) continue;
    const Share share = real_share(sizes_of(context, shape, whole(bounds[0])), fpr, sets, random);
    result.rows.predicted(
        "§4.2",
        fmt::format("{}: saving of {} real series of whole words, N = {} (%)", kShapes[shape].name,
                    sets, whole(bounds[0])),
        100 * (1 - share.expected), 100 * (1 - share.measured),
        {3 * std::sqrt(std::max(1.0, 2000.0 / sets)) * std::max(1.0, share.expected), false},
        "chance: --set sets takes the mean of more");
    context.progress(static_cast<double>(shape + 1) / kCount);
  }
  result.rows.claim("claim.memory", *std::ranges::min_element(savings) > 0,
                    fmt::format("{:.1f}, {:.1f}, {:.1f}, {:.1f} and {:.1f} % less (maximum, random "
                                "Zipf, uniform, normal, minimum Zipf)",
                                savings[0], savings[1], savings[2], savings[3], savings[4]));
  result.figure = {"What a dynamic filter saves, by the bound of the set", {panel}};
  return result;
}

namespace {

// Figures 13 and 14 are the same runs, as bits and as a share.
Panel by_error(const Context& context, bool as_share) {
  const std::uint64_t bound = context.whole("N");
  std::vector<SetSizes> sizes;
  for (std::size_t shape = 0; shape < kCount; ++shape)
    sizes.push_back(sizes_of(context, shape, bound));
  Panel panel{fmt::format("N = {}", bound),
              {"false positives ε allowed (share)", true, 1e-4, 0.1},
              {as_share ? "memory over that of a standard filter" : "least expected memory (kbit)",
               false, as_share ? 0.5 : 0.0},
              {}};
  panel.curves = curves_of(errors(), [&](std::size_t shape, double fpr) {
    const BoundedPlan plan = model::least_memory(sizes[shape], fpr);
    return as_share ? 1 - plan.saving() : kilobits(plan.expected_bits);
  });
  if (as_share) show_all(panel);
  std::vector<double> standard;
  for (const double fpr : errors())
    standard.push_back(as_share ? 1
                                : kilobits(model::least_memory(sizes[0], fpr, 1).expected_bits));
  panel.curves.push_back(standard_curve(errors(), standard));
  return panel;
}

}  // namespace

Result run_fig13(const Context& context) {
  Result result{context.rows(), {}};
  const Panel panel = by_error(context, false);
  bool falls = true;
  for (std::size_t shape = 0; shape < kCount; ++shape)
    for (std::size_t i = 1; i < panel.curves[shape].points.size(); ++i)
      falls &= panel.curves[shape].points[i].y < panel.curves[shape].points[i - 1].y;
  result.rows.claim("fig13.falls", falls, "from .0001 to .1, in all five");
  result.figure = {"Least expected memory by the error allowed", {panel}};
  return result;
}

Result run_fig14(const Context& context) {
  Result result{context.rows(), {}};
  Panel panel = by_error(context, true);
  double all = 0;
  for (std::size_t shape = 0; shape < kCount; ++shape)
    for (const Point& point : panel.curves[shape].points) all = std::max(all, point.y);
  // Where maximum Zipf, which saves least, ceases to.
  const SetSizes sizes = sizes_of(context, 0, context.whole("N"));
  double saves = 0.0001, not_so = 0.5;
  while (not_so / saves > 1.001) {
    const double middle = std::sqrt(saves * not_so);
    (model::least_memory(sizes, middle).saving() > 0 ? saves : not_so) = middle;
  }
  panel.curves.push_back({"paper: all five save to here",
                          Curve::Style::points,
                          {{context.point("fig14.to") / 100, 1}},
                          0});
  result.rows.value("fig14.to", 100 * saves);
  result.rows.claim("fig14.all", all <= 1, fmt::format("at most {:.3f}, to 10 %", all));
  result.figure = {"What a dynamic filter saves, by the error allowed", {panel}};
  return result;
}

Result run_fig15(const Context& context) {
  const std::uint64_t bound = context.whole("N");
  const double fpr = context.number("fpr");
  const auto plan = [&](std::size_t shape, double exponent) {
    return model::least_memory(
        sizes_of(shape, bound, {exponent, context.number("sigma")}, context.seed()), fpr);
  };
  double gains_to = 0;  // the highest exponent with which maximum Zipf still saves
  for (double exponent = 0; exponent <= 1; exponent += 0.01)
    if (plan(0, exponent).saving() > 0) gains_to = exponent;
  Result result{context.rows(), {}};
  result.rows.value("fig15.to", gains_to);
  const double first = plan(4, 0.2).expected_bits, last = plan(4, 1).expected_bits;
  result.rows.claim(
      "fig15.min", last < first,
      fmt::format("{:.2f} kbit with .2, {:.2f} with 1", kilobits(first), kilobits(last)));
  std::vector<double> exponents;
  for (int i = 0; i <= 20; ++i) exponents.push_back(i / 20.0);
  Panel panel{fmt::format("N = {}, ε = {:g}", bound, fpr),
              {"exponent of the Zipf law"},
              {"least expected memory (kbit)", false, 0.0},
              {}};
  for (const std::size_t shape : {0, 1, 4}) {
    Curve curve{kShapes[shape].name, Curve::Style::line, {}, static_cast<unsigned>(shape)};
    for (const double exponent : exponents)
      curve.points.push_back({exponent, kilobits(plan(shape, exponent).expected_bits)});
    panel.curves.push_back(std::move(curve));
  }
  panel.curves.push_back(standard_curve(
      exponents, std::vector<double>(exponents.size(), kilobits(plan(0, 0.4).standard_bits))));
  panel.curves.push_back({"paper: maximum Zipf saves to here",
                          Curve::Style::points,
                          {{context.point("fig15.to"), kilobits(plan(0, 0.4).standard_bits)}},
                          0});
  result.figure = {"Least expected memory by the exponent", {panel}};
  return result;
}

Result run_fig16(const Context& context) {
  const std::uint64_t bound = context.whole("N");
  const double fpr = context.number("fpr");
  Result result{context.rows(), {}};
  Curve curve{"normal", Curve::Style::line, {}, 3};
  bool rises = true, less = true;
  double standard = 0;
  std::vector<double> deviations;
  for (double deviation = 10; deviation <= 200; deviation += 10) {
    const BoundedPlan plan =
        model::least_memory(sizes_of(3, bound, {0.4, deviation}, context.seed()), fpr);
    standard = kilobits(plan.standard_bits);
    less &= plan.saving() > 0;
    rises &= curve.points.empty() || kilobits(plan.expected_bits) >= curve.points.back().y;
    deviations.push_back(deviation);
    curve.points.push_back({deviation, kilobits(plan.expected_bits)});
  }
  result.rows.claim("fig16.rises", rises && less,
                    fmt::format("{:.2f} kbit at σ = 10, {:.2f} at 200; {:.2f} of a standard filter",
                                curve.points.front().y, curve.points.back().y, standard));
  result.figure = {
      "Least expected memory by the deviation",
      {{fmt::format("N = {}, ε = {:g}, mean N/2", bound, fpr),
        {"standard deviation σ of the size of the set (keys)"},
        {"least expected memory (kbit)", false, 0.0},
        {curve, standard_curve(deviations, std::vector<double>(deviations.size(), standard))}}}};
  return result;
}

}  // namespace sluice::repro::guo
