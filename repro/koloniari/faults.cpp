// Figure 5(d): the rule of at least x live bits, with a fifth of the sites failed.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "repro/koloniari/experiments.hpp"
#include "repro/koloniari/streams.hpp"
#include "sluice/base/random.hpp"
#include "sluice/model/sliced.hpp"

namespace sluice::repro::koloniari {
namespace {

using cluster::Slicing;
using model::FaultRule;

constexpr std::size_t kDraws = 12;  // of hash functions and of failed sites
constexpr std::size_t kProbes = 40000;

struct Errors {
  double fpr = 0;
  double fnr = 0;         // of keys
  double stream_fnr = 0;  // of events: the same, by how often each key comes
};

// `failed` sites go after the stream has passed; then its keys and others are asked for.
std::vector<Errors> measure(const Context& context, const std::vector<CountedKey>& keys,
                            std::uint64_t bits) {
  const unsigned k = context.whole("k"), slices = context.whole("slices");
  const unsigned failed = std::min(slices, context.whole("failed"));
  std::vector<Errors> errors(k + 1);
  double events = 0;
  for (const CountedKey& key : keys) events += static_cast<double>(key.count);
  for (std::size_t draw = 0; draw < kDraws; ++draw) {
    std::vector<std::shared_ptr<cluster::LocalMemory>> memories;
    const cluster::SliceParams params{Slicing::vertical, bits, k, slices, 1, 1};
    cluster::Slices whole = local_slices({.slices = params}, &memories);
    std::vector<Digest> seen, fresh(kProbes);
    for (const CountedKey& key : keys) seen.push_back(rehashed(key.key, context.seed() + draw));
    whole.insert(seen);
    SplitMix64 random(context.seed() + 100 + draw);
    for (Digest& digest : fresh) digest = {random.next(), random.next()};
    std::vector<unsigned> order(slices);
    for (unsigned i = 0; i < slices; ++i) order[i] = i;
    for (unsigned i = 0; i < failed; ++i) {
      std::swap(order[i], order[i + random.next() % (slices - i)]);
      memories[order[i]]->fail();
    }
    for (unsigned x = 0; x <= k; ++x) {
      cluster::Slices slices_by_rule({.slices = params, .rule = FaultRule::hybrid(x)},
                                     cluster::connect(memories));
      std::vector<Verdict> verdicts(std::max(seen.size(), fresh.size()));
      slices_by_rule.may_contain(fresh, std::span(verdicts).first(fresh.size()));
      errors[x].fpr += static_cast<double>(std::count(verdicts.begin(), verdicts.begin() + kProbes,
                                                      Verdict::duplicate)) /
                       kProbes / kDraws;
      slices_by_rule.may_contain(seen, std::span(verdicts).first(seen.size()));
      for (std::size_t i = 0; i < seen.size(); ++i)
        if (verdicts[i] == Verdict::distinct) {
          errors[x].fnr += 1.0 / static_cast<double>(seen.size()) / kDraws;
          errors[x].stream_fnr += static_cast<double>(keys[i].count) / events / kDraws;
        }
    }
    context.progress(static_cast<double>(draw + 1) / kDraws);
  }
  return errors;
}

}  // namespace

Result run_fig5d(const Context& context) {
  const std::vector<CountedKey> keys = count_keys(web_log(context).events);
  const unsigned k = context.whole("k"), slices = context.whole("slices");
  const unsigned failed = std::min(slices, context.whole("failed"));
  const double n = static_cast<double>(keys.size());
  const std::uint64_t bits = bits_for(n, k, context.number("P"));
  const std::vector<Errors> found = measure(context, keys, bits);

  const model::SlicedFilter filter{Slicing::vertical, static_cast<double>(bits), k, n, slices, 1};
  Curve fpr{"false positives", Curve::Style::line, {}, 0u},
      fnr{"false negatives", Curve::Style::line, {}, 1u};
  Curve by_event{"false negatives, by event", Curve::Style::line, {}, 2u};
  Curve fpr_model{"false positives, formula", Curve::Style::model, {}, 0u};
  Curve fnr_model{"false negatives, formula", Curve::Style::model, {}, 1u};
  Curve literal{"false positives if x set bits were enough", Curve::Style::model, {}, 3u};
  Result result{context.rows(), {}};
  const double share = static_cast<double>(failed) / slices;
  const double set = (1 - share) * model::sliced_density(filter);
  for (unsigned x = 0; x <= k; ++x) {
    const model::SlicedErrors expected = model::sliced_errors(filter, failed, FaultRule::hybrid(x));
    const double at = x;
    fpr.points.push_back({at, found[x].fpr});
    fnr.points.push_back({at, found[x].fnr});
    by_event.points.push_back({at, found[x].stream_fnr});
    fpr_model.points.push_back({at, expected.fpr});
    fnr_model.points.push_back({at, expected.fnr});
    // The chance of at least x of k bits being set and within reach.
    double more = 0;
    for (unsigned i = x; i <= k; ++i)
      more += std::exp(std::lgamma(k + 1.0) - std::lgamma(i + 1.0) - std::lgamma(k - i + 1.0)) *
              std::pow(set, i) * std::pow(1 - set, k - i);
    literal.points.push_back({at, more});
    if (x == 0 || x == k / 2 || x == k) {
      const std::string rule = fmt::format("at least {} live bits", x);
      result.rows.predicted("Fig. 5(d)", "false positives, " + rule, expected.fpr, found[x].fpr,
                            {0.06, true}, "chance: twelve draws of the failed sites");
    }
  }
  if (k == 8) {
    result.rows.value("fig5d.fnr.3", found[3].fnr);
    result.rows.value("fig5d.fnr.4", found[4].fnr);
    result.rows.claim(
        "fig5d.knee", found[4].fnr < 0.02 && found[5].fnr > 3 * found[4].fnr,
        fmt::format("false negatives {:.2f} %, {:.2f} %, {:.1f} %, {:.0f} % at x = 3, 4, "
                    "5, 6",
                    100 * found[3].fnr, 100 * found[4].fnr, 100 * found[5].fnr,
                    100 * found[6].fnr));
    result.rows.claim("fig5d.best", found[4].fpr < 1.5 * found[8].fpr,
                      fmt::format("false positives {:.3f} at x = 1, {:.3f} at 4, {:.4f} at 8",
                                  found[1].fpr, found[4].fpr, found[8].fpr));
  }
  result.figure = {
      fmt::format("At least x live bits: {} of {} sites failed, k = {}", failed, slices, k),
      {{"web log",
        {"x: live bits that a duplicate needs", false, -0.2, k + 0.2, {}, 1.0},
        {"errors (share of the distinct, of the duplicates)", true, 1e-4, 1.0},
        {fpr,
         fpr_model,
         fnr,
         fnr_model,
         by_event,
         literal,
         {"the paper, recomputed",
          Curve::Style::points,
          {{3, context.point("fig5d.fnr.3")}, {4, context.point("fig5d.fnr.4")}},
          3u}}}}};
  return result;
}

}  // namespace sluice::repro::koloniari
