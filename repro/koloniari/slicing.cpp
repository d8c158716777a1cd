// Figures 5(a), 7(a), 7(b): false positives against the number of slices; and Proposition 2, that
// no other way of slicing does better.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "repro/koloniari/experiments.hpp"
#include "repro/koloniari/streams.hpp"
#include "sluice/base/random.hpp"
#include "sluice/model/sliced.hpp"

namespace sluice::repro::koloniari {
namespace {

using cluster::SliceParams;
using cluster::Slicing;

constexpr double kTargets[] = {0.02, 0.05, 0.08};
constexpr std::size_t kDraws = 5;       // of hash functions, for each point
constexpr std::size_t kProbes = 40000;  // keys never seen, asked for at the end of each

struct Errors {
  double full = 0;    // of keys never seen, at the end of the stream
  double stream = 0;  // FP / (FP + TN) over the whole stream
};

// Duplicates are always found and set nothing: the first arrivals are all that matter.
Errors measure(const SliceParams& params, const std::vector<CountedKey>& keys, std::uint64_t seed) {
  Errors errors;
  for (std::size_t draw = 0; draw < kDraws; ++draw) {
    cluster::Slices slices = local_slices({.slices = params});
    std::vector<Digest> digests;
    for (const CountedKey& key : keys) digests.push_back(rehashed(key.key, seed + draw));
    std::vector<Verdict> verdicts(digests.size());
    slices.observe(digests, verdicts);
    errors.stream += static_cast<double>(std::ranges::count(verdicts, Verdict::duplicate)) /
                     static_cast<double>(digests.size());
    SplitMix64 random(seed + 1000 + draw);
    digests.resize(kProbes);
    verdicts.resize(kProbes);
    for (Digest& digest : digests) digest = {random.next(), random.next()};
    slices.may_contain(digests, verdicts);
    errors.full += static_cast<double>(std::ranges::count(verdicts, Verdict::duplicate)) / kProbes;
  }
  return {errors.full / kDraws, errors.stream / kDraws};
}

model::SlicedFilter model_of(const SliceParams& params, double keys) {
  const cluster::SliceMap map(params);
  return {params.slicing, static_cast<double>(map.site_bits() * map.sites()),
          params.probes,  keys,
          params.slices,  1};
}

// Slices of fewer than four bits would be nothing to measure.
std::vector<unsigned> slice_counts(const Context& context, std::uint64_t least_bits) {
  const auto most =
      static_cast<unsigned>(std::clamp<std::uint64_t>(least_bits / 4, 1, context.whole("slices")));
  std::vector<unsigned> counts;
  for (const unsigned percent : {0u, 3u, 5u, 10u, 15u, 20u, 25u, 38u, 50u, 75u, 100u})
    counts.push_back(std::max(1u, most * percent / 100));
  counts.erase(std::unique(counts.begin(), counts.end()), counts.end());
  return counts;
}

// The measurement of one point that rows are about.
struct Landmark {
  double target;
  unsigned slices;
  Errors horizontal, vertical;
  double horizontal_model, vertical_model, even_model;
};

struct Sweep {
  Panel full, stream;
  std::vector<Landmark> landmarks;
};

Sweep sweep(const Context& context, const DataSet& data) {
  const std::vector<CountedKey> keys = count_keys(data.events);
  const double n = static_cast<double>(keys.size());
  const std::vector<unsigned> counts =
      slice_counts(context, bits_for(n, context.whole("k"), *std::ranges::max_element(kTargets)));
  Sweep result{{"a full filter, asked for keys never seen",
                {"number of slices"},
                {"false positives (share of the distinct)", false, 0.0},
                {}},
               {"over the whole stream, as the filter fills: FP / (FP + TN)",
                {"number of slices"},
                {"false positives (share of the distinct)", false, 0.0},
                {}},
               {}};
  unsigned colour = 0;
  double done = 0;
  for (const double target : kTargets) {
    const std::uint64_t bits = bits_for(n, context.whole("k"), target);
    Curve measured[2], streams[2], even, binomial;
    for (const bool vertical : {false, true}) {
      const std::string name =
          fmt::format("{}, P = {}", vertical ? "vertical" : "horizontal", target);
      measured[vertical] = {name, vertical ? Curve::Style::pale : Curve::Style::line, {}, colour};
      streams[vertical] = measured[vertical];
    }
    even = {
        fmt::format("the paper's eq. 4, P = {}", target), Curve::Style::points, {}, colour, true};
    binomial = {fmt::format("uneven slices, P = {}", target), Curve::Style::model, {}, colour};
    for (const unsigned slices : counts) {
      Landmark mark{target, slices, {}, {}, 0, 0, 0};
      for (const bool vertical : {false, true}) {
        const SliceParams params{vertical ? Slicing::vertical : Slicing::horizontal,
                                 bits,
                                 context.whole("k"),
                                 slices,
                                 1,
                                 1};
        const Errors errors = measure(params, keys, context.seed());
        const double expected = model::sliced_fpr(model_of(params, n));
        (vertical ? mark.vertical : mark.horizontal) = errors;
        (vertical ? mark.vertical_model : mark.horizontal_model) = expected;
        if (!vertical) mark.even_model = model::sliced_fpr_even(model_of(params, n));
        const double x = slices;
        measured[vertical].points.push_back({x, errors.full});
        streams[vertical].points.push_back({x, errors.stream});
        if (!vertical) even.points.push_back({x, mark.even_model});
        if (!vertical) binomial.points.push_back({x, expected});
      }
      result.landmarks.push_back(mark);
      context.progress(++done / static_cast<double>(counts.size() * std::size(kTargets)));
    }
    for (const bool vertical : {false, true}) {
      result.full.curves.push_back(measured[vertical]);
      result.stream.curves.push_back(streams[vertical]);
    }
    result.full.curves.push_back(binomial);
    result.full.curves.push_back(even);
    ++colour;
  }
  return result;
}

// `id` is the figure's, with its rows in published.csv: bits and errors for each target.
Result run(const Context& context, const DataSet& data, const std::string& id,
           const std::string& title) {
  const Sweep found = sweep(context, data);
  const double n = static_cast<double>(count_keys(data.events).size());
  Result result{context.rows(), {title, {found.full, found.stream}}};
  const unsigned most = context.whole("slices");
  bool flat = true;
  for (const Landmark& mark : found.landmarks) {
    const int percent = static_cast<int>(std::lround(100 * mark.target));
    flat &= std::abs(mark.vertical.full / mark.vertical_model - 1) < 0.08;
    if (mark.slices == most / 10) {
      result.rows.value(
          fmt::format("{}.bits.{}", id, percent),
          static_cast<double>(bits_for(n, context.whole("k"), mark.target)) / context.scale());
      result.rows.value(fmt::format("{}.vertical.{}", id, percent), mark.vertical.full);
    }
    if (mark.slices == most) {
      const std::string many = fmt::format("P = {}, {} slices", mark.target, most);
      result.rows.predicted("", "horizontal, " + many, mark.horizontal_model, mark.horizontal.full,
                            {0.08, true},
                            "slices of few bits: the model takes their expected density, and the "
                            "mean of its k-th power is higher");
      result.rows.predicted("", "vertical, " + many, mark.vertical_model, mark.vertical.full,
                            {0.05, true}, "chance: five draws of the hash functions");
    }
  }
  const Landmark& last = found.landmarks[found.landmarks.size() / std::size(kTargets) - 1];
  if (id == "fig7a" && last.slices == most)
    result.rows.value("fig7a.horizontal.400", last.horizontal.full);
  if (id == "fig5a")
    result.rows.claim(
        "claim.slicing", flat,
        fmt::format("vertical, {} slices: {:.4f} of {}; every vertical point within "
                    "8 % of eq. 3; horizontal {:.4f}",
                    last.slices, last.vertical.full, last.target, last.horizontal.full));
  return result;
}

}  // namespace

Result run_fig5a(const Context& context) {
  return run(context, web_log(context), "fig5a",
             "False positives against the number of slices: web log");
}

Result run_fig7a(const Context& context) {
  return run(context, synthetic(context), "fig7a",
             "False positives against the number of slices: synthetic");
}

Result run_fig7b(const Context& context) {
  return run(context, yahoo(context), "fig7b",
             "False positives against the number of slices: Yahoo");
}

Result run_prop2(const Context& context) {
  const std::vector<CountedKey> keys = count_keys(synthetic(context).events);
  const double n = static_cast<double>(keys.size());
  const unsigned k = context.whole("k"), slices = context.whole("slices");
  const std::uint64_t bits = bits_for(n, k, context.number("P"));
  Result result{context.rows(), {}};
  Curve measured{"measured", Curve::Style::bars, {}},
      predicted{"model", Curve::Style::marks, {}, 4};
  Panel panel{"k1 slices per key, k2 bits in each; diced filters",
              {"slicing"},
              {"false positives (share of the distinct)", false, 0.0},
              {}};
  double best = 1;
  const double whole =
      model::sliced_fpr_even({Slicing::vertical, static_cast<double>(bits), k, n, 1, 1});
  const auto add = [&](const std::string& name, const SliceParams& params, double model) {
    const double x = static_cast<double>(panel.x.classes.size());
    const double ours = measure(params, keys, context.seed()).full;
    panel.x.classes.push_back(name);
    measured.points.push_back({x, ours});
    predicted.points.push_back({x, model});
    best = std::min(best, ours);
    result.rows.predicted("Prop. 2", name, model, ours, {0.05, true},
                          "chance: five draws of the hash functions");
  };
  const double m = static_cast<double>(bits);
  for (unsigned k1 = 1; k1 <= k; ++k1)
    if (k % k1 == 0 && k1 <= slices)
      add(fmt::format("({}, {})", k1, k / k1), {Slicing::general, bits, k, slices, 1, k1},
          model::general_fpr({m, n, slices, k1, k / k1}));
  const unsigned inner = 4;
  const unsigned outer = std::max(1u, slices / inner);
  add("h-v diced", {Slicing::horizontal_vertical, bits, k, outer, inner, 1},
      model::sliced_fpr({Slicing::horizontal_vertical, m, k, n, outer, inner}));
  add("v-h diced", {Slicing::vertical_horizontal, bits, k, outer, inner, 1},
      model::sliced_fpr({Slicing::vertical_horizontal, m, k, n, outer, inner}));
  panel.curves = {measured, predicted};
  panel.x.from = -0.6, panel.x.to = static_cast<double>(panel.x.classes.size()) - 0.4;
  result.rows.claim(
      "claim.general", best > 0.95 * whole,
      fmt::format("the least is {:.4f}; one filter of that size: {:.4f}", best, whole));
  result.figure = {"Every way to slice a filter", {panel}};
  return result;
}

}  // namespace sluice::repro::koloniari
