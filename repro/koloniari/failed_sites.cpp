// Eqs. 5 to 7 and their counterparts, measured: every slicing with failed sites, what is out of
// reach counting as set or as not set.
#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "repro/koloniari/experiments.hpp"
#include "repro/koloniari/streams.hpp"
#include "sluice/base/random.hpp"
#include "sluice/model/sliced.hpp"

namespace sluice::repro::koloniari {
namespace {

using cluster::SliceParams;
using cluster::Slicing;
using model::FaultRule;

constexpr std::size_t kDraws = 24;  // of the failed sites
constexpr unsigned kSteps = 5;      // up to half of the sites

struct Cut {
  Slicing slicing;
  unsigned inner;  // of diced slicings, how many sites a slice is cut into
};
constexpr Cut kCuts[] = {
    {Slicing::horizontal, 1},
    {Slicing::vertical, 1},
    {Slicing::horizontal_vertical, 8},
    {Slicing::vertical_horizontal, 4},
};

struct Errors {
  double fpr = 0;  // what is gone counts as set
  double fnr = 0;  // as not set
};

double share(const SliceParams& params, FaultRule rule,
             const std::vector<std::shared_ptr<cluster::LocalMemory>>& memories,
             const std::vector<Digest>& keys, Verdict verdict) {
  cluster::Slices slices({.slices = params, .rule = rule}, cluster::connect(memories));
  std::vector<Verdict> verdicts(keys.size());
  slices.may_contain(keys, verdicts);
  return static_cast<double>(std::ranges::count(verdicts, verdict)) /
         static_cast<double>(keys.size());
}

Errors measure(const SliceParams& params, std::size_t keys, unsigned failed, std::uint64_t seed) {
  Errors errors;
  for (std::size_t draw = 0; draw < kDraws; ++draw) {
    SplitMix64 random(seed + draw);
    std::vector<std::shared_ptr<cluster::LocalMemory>> memories;
    cluster::Slices whole = local_slices({.slices = params}, &memories);
    std::vector<Digest> seen(keys), fresh(2 * keys);
    for (Digest& digest : seen) digest = {random.next(), random.next()};
    for (Digest& digest : fresh) digest = {random.next(), random.next()};
    whole.insert(seen);
    std::vector<std::size_t> order(memories.size());
    std::iota(order.begin(), order.end(), 0);
    for (unsigned i = 0; i < failed; ++i) {
      std::swap(order[i], order[i + random.next() % (order.size() - i)]);
      memories[order[i]]->fail();
    }
    errors.fpr += share(params, FaultRule::duplicate(), memories, fresh, Verdict::duplicate);
    errors.fnr +=
        share(params, FaultRule::distinct(params.probes), memories, seen, Verdict::distinct);
  }
  return {errors.fpr / kDraws, errors.fnr / kDraws};
}

}  // namespace

Result run_eq7(const Context& context) {
  const unsigned k = context.whole("k"), sites = std::max(8u, context.whole("slices") / 8 * 8);
  const std::uint64_t keys = context.scaled(context.number("n"), 100);
  const double n = static_cast<double>(keys);
  const std::uint64_t bits = bits_for(n, k, context.number("P"));
  const Axis x{"failed sites (%)", false, 0.0, 50.0};
  Panel fpr{"what is out of reach counts as set",
            x,
            {"false positives (share of the distinct)", false, 0.0},
            {}};
  Panel fnr{"what is out of reach counts as not set",
            x,
            {"false negatives (share of the duplicates)", false, 0.0},
            {}};
  Result result{context.rows(), {}};
  unsigned colour = 0;
  double done = 0;
  for (const Cut& cut : kCuts) {
    const SliceParams params{cut.slicing, bits, k, sites / cut.inner, cut.inner, 1};
    const model::SlicedFilter filter{cut.slicing, static_cast<double>(bits), k,
                                     n,           sites / cut.inner,         cut.inner};
    const std::string name(cluster::name_of(cut.slicing));
    Curve positives{name, Curve::Style::line, {}, colour}, negatives = positives;
    Curve positive_model{name + ", model", Curve::Style::model, {}, colour};
    Curve negative_model = positive_model;
    for (unsigned step = 0; step <= kSteps; ++step) {
      const unsigned failed = sites * step / (2 * kSteps);
      const Errors found = measure(params, keys, failed, context.seed() + 100 * step);
      const double duplicate = model::diced_errors(filter, failed, FaultRule::duplicate()).fpr;
      const double distinct = model::diced_errors(filter, failed, FaultRule::distinct(k)).fnr;
      const double percent = 100.0 * failed / sites;
      positives.points.push_back({percent, found.fpr});
      negatives.points.push_back({percent, found.fnr});
      positive_model.points.push_back({percent, duplicate});
      negative_model.points.push_back({percent, distinct});
      if (step == 2) {
        const std::string what = fmt::format("{}, {} of {} sites failed", name, failed, sites);
        constexpr const char* kWhy = "chance: which sites failed, in 24 draws";
        result.rows.predicted("Eqs. 5 to 7", "false positives: " + what, duplicate, found.fpr,
                              {0.1, true}, kWhy);
        result.rows.predicted("§3", "false negatives: " + what, distinct, found.fnr, {0.1, true},
                              kWhy);
      }
      if (step == 2 && cut.inner > 1)
        result.rows.value(cut.slicing == Slicing::horizontal_vertical ? "eq7.hv" : "eq7.vh",
                          found.fpr);
      context.progress(++done / (std::size(kCuts) * (kSteps + 1.0)));
    }
    fpr.curves.insert(fpr.curves.end(), {positives, positive_model});
    fnr.curves.insert(fnr.curves.end(), {negatives, negative_model});
    ++colour;
  }
  result.figure = {"Every slicing with failed sites, measured", {fpr, fnr}};
  return result;
}

}  // namespace sluice::repro::koloniari
