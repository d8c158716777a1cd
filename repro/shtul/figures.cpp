// Figures 2, 4 and 9: what slices hold, and how keys fade.
#include <fmt/format.h>

#include <cmath>
#include <numeric>

#include "repro/shtul/cells.hpp"
#include "repro/shtul/experiments.hpp"
#include "repro/shtul/fresh_keys.hpp"
#include "sluice/base/error.hpp"
#include "sluice/model/apbf.hpp"

namespace sluice::repro::shtul {
namespace {

using model::Fills;

constexpr double kSliceKeys = 90'000;  // that fill a slice to one half

// A filter with k + l full generations and some more.
FreshKeys<ApbfParams> filled(const ApbfParams& params, unsigned generations, std::uint64_t seed) {
  FreshKeys<ApbfParams> stream(params, seed);
  stream.run(generations);
  return stream;
}

double mean(std::span<const double> values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

// The paper's (i + 1)/2k, up to one half.
Curve linear_fills(unsigned k, unsigned all, unsigned slices, unsigned colour) {
  Curve curve{"printed formula", Curve::Style::points, {}, colour, true};
  for (unsigned i = 0; i < all * slices; ++i)
    curve.points.push_back({static_cast<double>(i), std::min(i / slices + 1, k) / (2.0 * k)});
  return curve;
}

unsigned at_least_one(const Context& context, const char* name) {
  const unsigned value = context.whole(name);
  if (value == 0 || value > 64)
    throw BadParameters(fmt::format("--set {}: give a number from 1 to 64", name));
  return value;
}

}  // namespace

Result run_fig2(const Context& context) {
  const unsigned k = at_least_one(context, "k"), l = at_least_one(context, "l");
  const auto keys = context.scaled(kSliceKeys, 500) * l / k;
  const unsigned generations = k + l + 3;
  const auto stream = filled(apbf_of(k, l, keys), generations, context.seed());
  const std::vector<double> fills = slice_fills(stream.filter(), generations - 1);
  Curve ours{"measured", Curve::Style::line, {}, 0},
      exact{"1 - 2^(-(i+1)/k)", Curve::Style::model, {}, 0};
  const std::vector<double> model = model::segment_matches(k, l, Fills::exact);
  for (unsigned i = 0; i < k + l; ++i) {
    ours.points.push_back({static_cast<double>(i), fills[i]});
    exact.points.push_back({static_cast<double>(i), model[i]});
  }
  Result result{context.rows(), {}};
  const double full = mean(std::span(fills).subspan(k - 1));
  result.rows.value("fig2.youngest", fills[0]);
  result.rows.value("fig2.middle", fills[(k - 1) / 2]);
  result.rows.value("fig2.full", full);
  result.rows.predicted("Fig. 2", "share of set bits of the youngest slice", model[0], fills[0],
                        {0.04}, "chance: one slice of one filter");
  result.figure = {fmt::format("How full slices are just before a shift, k = {}, l = {}", k, l),
                   {{"written are the first k; all are asked",
                     {"slice, youngest first", false, -0.5, k + l - 0.5},
                     {"share of set bits", false, 0.0, 0.6},
                     {ours, exact, linear_fills(k, k + l, 1, 1)}}}};
  return result;
}

Result run_fig4(const Context& context) {
  const unsigned k = at_least_one(context, "k"), l = at_least_one(context, "l");
  constexpr unsigned kFilters = 4;
  const unsigned ages = l + k + 4;
  std::vector<double> shares(ages);
  double written = 0;  // keys whose fate is followed
  SplitMix64 seeds(context.seed());
  for (unsigned i = 0; i < kFilters; ++i) {
    auto stream =
        filled(apbf_of(k, l, context.scaled(kSliceKeys, 500) * l / k), k + l, seeds.next());
    stream.filter().rotate();
    const std::vector<Digest> keys = stream.fresh(stream.a_generation());
    stream.write(keys);
    written += static_cast<double>(keys.size());
    for (unsigned age = 0; age < ages; ++age) {
      if (age > 0) stream.filter().rotate(), stream.fill();
      shares[age] +=
          static_cast<double>(stream.reported(keys)) / static_cast<double>(keys.size() * kFilters);
    }
    context.progress((i + 1.0) / kFilters);
  }
  Curve ours{"measured", Curve::Style::line, {}, 0}, by_model{"model", Curve::Style::model, {}, 0};
  Curve paper{"1, 1/2, 1/4 … (paper)", Curve::Style::points, {}, 1, true};
  const std::vector<double> fills = model::segment_matches(k, l, Fills::exact);
  Result result{context.rows(), {}};
  double reported_past = 0, expected_past = 0;
  for (unsigned age = 0; age < ages; ++age) {
    // What is left of the key matches for certain, the rest as it does for any other.
    std::vector<double> matches = fills;
    for (unsigned i = age; i < std::min(age + k, k + l); ++i) matches[i] = 1;
    const double x = age;
    const double model = model::run_of_matches(matches, k);
    ours.points.push_back({x, shares[age]});
    by_model.points.push_back({x, model});
    if (age < l + k) paper.points.push_back({x, age <= l ? 1 : std::pow(0.5, age - l)});
    if (age >= l && age < l + k) reported_past += shares[age], expected_past += model;
    if (age > l && age <= l + 3 && age < l + k) {
      result.rows.value(fmt::format("fig4.past{}", age - l), shares[age]);
      result.rows.predicted("Fig. 4",
                            fmt::format("the same, {} generations past the window", age - l), model,
                            shares[age], {0.04 + 3 / std::sqrt(written * model)},
                            "chance: few of the keys are still reported");
    }
  }
  result.rows.value("fig4.npws", reported_past / l);
  result.rows.predicted("§5.2", "the same, false positives of forgotten keys included",
                        expected_past / l, reported_past / l, {0.02 + 4 / std::sqrt(written)});
  result.figure = {fmt::format("How reporting decays past the window, k = {}, l = {}", k, l),
                   {{fmt::format("the window ends at generation {}", l),
                     {"age of a key (generations), just before a shift", false, 0.0, ages - 0.5},
                     {"reported (share of the keys)", true, 0.0005, 1.5},
                     {ours, by_model, paper}}}};
  return result;
}

Result run_fig9(const Context& context) {
  struct Design {
    unsigned k, slices;
  };
  const unsigned ratio = at_least_one(context, "l_over_k");
  Result result{context.rows(), {}};
  Panel panel{
      "", {"slice, youngest first", false, -0.5, 9.5}, {"share of set bits", false, 0.0, 0.6}, {}};
  std::uint64_t smallest = 0;
  unsigned colour = 0;
  for (const Design& design : {Design{10, 1}, {5, 2}, {2, 5}}) {
    const unsigned l = ratio * design.k;
    const unsigned generations = design.k + l + 2;
    const ApbfParams params =
        apbf_of(design.k, l, context.scaled(kSliceKeys, 500) * ratio, design.slices);
    const auto stream = filled(params, generations, context.seed() + design.k);
    const std::vector<double> fills = slice_fills(stream.filter(), generations - 1);
    const std::string name = fmt::format("k = {}, {} slice{} a segment", design.k, design.slices,
                                         design.slices == 1 ? "" : "s");
    Curve ours{name, Curve::Style::line, {}, colour};
    for (unsigned i = 0; i < 10; ++i) ours.points.push_back({static_cast<double>(i), fills[i]});
    panel.curves.push_back(std::move(ours));
    panel.curves.push_back(linear_fills(design.k, design.k, design.slices, colour++));
    if (smallest == 0) smallest = params.generation_keys();
    result.rows.value(fmt::format("fig9.{}", design.k),
                      mean(std::span(fills).first(design.slices)));
    if (design.k < 10)
      result.rows.value(
          fmt::format("fig9.jump{}", design.k),
          static_cast<double>(params.generation_keys()) / static_cast<double>(smallest));
  }
  result.figure = {"Segments of one, two and five slices being filled", {panel}};
  return result;
}

}  // namespace sluice::repro::shtul
