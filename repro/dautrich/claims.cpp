// What the abstract says beside the figures: other queries, other penalties, other filters.
#include <fmt/format.h>

#include <cmath>

#include "repro/dautrich/experiments.hpp"
#include "repro/dautrich/trials.hpp"
#include "sluice/infer/inferred.hpp"

namespace sluice::repro::dautrich {
namespace {

constexpr std::uint64_t kKeys = 1u << 16, kWindow = 1u << 16;
constexpr double kBits = 8;
constexpr unsigned kProbes = 3;  // the best at these bits (Figure 7)

InferredWindow<Timing> timing_window(const Stream& stream) {
  const Timing::Params params = timing_of(kWindow, kBits, kProbes);
  return {Timing::make(params),
          {.window = kWindow,
           .block = params.capacity / params.generations,
           .anchor = Anchor::refreshed,
           .distinct = stream.distinct,
           .printed = true}};
}

// Eq. 8: expected ages against true ones.
void claim_queries(const Context& context, Rows& rows, const Stream& stream) {
  InferredWindow<Timing> filter = timing_window(stream);
  Penalties penalties(context.seed(), 10);
  std::vector<std::uint64_t> last(stream.digests.size());
  double expected = 0, truth = 0, distance = 0, from_prior = 0, count = 0;
  for (std::uint64_t now = 1; now <= stream.items.size(); ++now) {
    const std::uint32_t item = stream.items[now - 1];
    const Prior prior = Prior::arrival(stream.chances[item]);
    if (now > stream.warm && now % 16 == 0 && last[item] != 0) {
      if (const auto age = filter.age(stream.digests[item], prior)) {
        const auto real = static_cast<double>(now - last[item] - 1);
        expected += age->mean, truth += real, ++count;
        distance += std::abs(age->mean - real);
        from_prior += std::abs(1 / stream.chances[item] - 1 - real);
      }
    }
    filter.observe(stream.digests[item], prior, penalties.next());
    last[item] = now;
  }
  rows.predicted("eq. 8", "mean true age of keys with a trace, against the mean of expected ages",
                 expected / count, truth / count, {0.06});
  rows.claim("claim.queries", std::abs(expected / truth - 1) < 0.06 && distance < 0.9 * from_prior,
             fmt::format("{:.0f} against {:.0f}; {:.0f} off, the prior {:.0f}", expected / count,
                         truth / count, distance / count, from_prior / count));
}

// Penalty ratios to be drawn.
struct Bars {
  Curve curve{"inferential over standard", Curve::Style::bars, {}, 0};
  std::vector<std::string> names = {};
  void add(const std::string& name, double ratio) {
    curve.points.push_back({static_cast<double>(names.size()), ratio});
    names.push_back(name);
  }
};

// Penalties that are the same for all queries, and lean one way or the other.
void claim_penalties(Rows& rows, const Stream& stream, const Truth& truth, Bars& bars) {
  std::string numbers;
  bool never_more = true;
  for (const Costs costs : {Costs{10, 1}, Costs{1, 1}, Costs{1, 10}}) {
    InferredWindow<Timing> filter = timing_window(stream);
    double standard = 0, inferred = 0;
    for (std::uint64_t i = 0; i < stream.items.size(); ++i) {
      const std::uint32_t item = stream.items[i];
      const Judgement judgement =
          filter.observe(stream.digests[item], Prior::arrival(stream.chances[item]), costs);
      if (i < stream.warm) continue;
      const bool in_window = truth.in_window[i - stream.warm];
      const auto cost = [&](bool duplicate) {
        return duplicate == in_window ? 0 : duplicate ? costs.lost : costs.duplicate;
      };
      standard += cost(judgement.posterior.value_or(1) > 0);
      inferred += cost(judgement.verdict == Verdict::duplicate);
    }
    never_more &= inferred <= standard;
    bars.add(fmt::format("timing {:g}:{:g}", costs.lost, costs.duplicate), inferred / standard);
    numbers += fmt::format("{}{:.3f}", numbers.empty() ? "" : ", ", inferred / standard);
  }
  rows.claim("claim.penalties", never_more, numbers);
}

struct OfFilter {
  double ratio, error;
};

// Observes a stream from the beginning; `in_set` is the truth of each item.
template <class F>
OfFilter run_filter(F& filter, const Stream& stream, std::uint64_t from, std::uint64_t seed,
                    const std::function<bool(std::uint64_t)>& in_set) {
  Penalties penalties(seed, 10);
  Calibration calibration;
  double standard = 0, inferred = 0;
  for (std::uint64_t i = 0; i < stream.items.size(); ++i) {
    const std::uint32_t item = stream.items[i];
    const Costs costs = penalties.next();
    const Judgement judgement =
        filter.observe(stream.digests[item], Prior::arrival(stream.chances[item]), costs);
    const bool inside = in_set(i);
    if (i < from) continue;
    const auto cost = [&](bool duplicate) {
      return duplicate == inside ? 0 : duplicate ? costs.lost : costs.duplicate;
    };
    const double posterior = judgement.posterior.value_or(1);
    standard += cost(posterior > 0);
    inferred += cost(judgement.verdict == Verdict::duplicate);
    calibration.add(posterior, inside);
  }
  return {inferred / standard, calibration.error()};
}

// A set has no window: a quarter as many items as keys, so that both answers are common. By the
// power law, so that some keys are likely to be new and others not.
template <class F>
OfFilter run_set(const typename F::Params& params, std::uint64_t seed) {
  const Stream stream = power_stream(4 * kKeys, {.warm = 0, .asked = kKeys}, seed);
  InferredSet<F> filter(F::make(params));
  std::vector<bool> seen(4 * kKeys);
  return run_filter(filter, stream, kKeys / 8, seed, [&](std::uint64_t i) {
    const bool before = seen[stream.items[i]];
    seen[stream.items[i]] = true;
    return before;
  });
}

void claim_any(const Context& context, Rows& rows, const Stream& stream, const Truth& truth,
               Bars& bars) {
  const OfFilter bloom = run_set<Bloom>({65536, 2, kKeys, 0.2}, context.seed());
  const OfFilter blocked = run_set<BlockedBloom>({128, 8, kKeys, 0.1}, context.seed());
  InferredWindow<Cohort> window(
      Cohort::make(Cohort::Params::from({.keys = kWindow}, Settings::parse("slot=16"))),
      {.window = kWindow, .anchor = Anchor::refreshed, .distinct = stream.distinct});
  const OfFilter cohort = run_filter(
      window, stream, stream.warm, context.seed(),
      [&](std::uint64_t i) { return i >= stream.warm && truth.in_window[i - stream.warm]; });
  bars.add("Bloom", bloom.ratio);
  bars.add("blocked", blocked.ratio);
  bars.add("cohort", cohort.ratio);
  const double most = std::max({bloom.error, blocked.error, cohort.error});
  rows.claim("claim.any", bloom.ratio < 1 && blocked.ratio < 1 && cohort.ratio < 1 && most < 0.05,
             fmt::format("{:.2f}, {:.2f}, {:.2f}; {:.3f}", bloom.ratio, blocked.ratio, cohort.ratio,
                         most));
}

}  // namespace

Result run_claims(const Context& context) {
  Result result{context.rows(), {}};
  // A long history, as ages beyond it are not known.
  const Length length{1u << 20, context.scaled(1u << 20, 1024)};
  const Stream stream = uniform_stream(kKeys, length, context.seed());
  const Truth truth = truth_of(stream, kWindow);
  claim_queries(context, result.rows, stream);
  context.progress(0.3);
  Bars bars;
  claim_penalties(result.rows, stream, truth, bars);
  context.progress(0.8);
  claim_any(context, result.rows, stream, truth, bars);
  Table table{{"what", "ours"}, {}};
  for (const Row& row : result.rows.all()) table.lines.push_back({row.what, row.ours});
  result.table = std::move(table);
  result.figure = {
      "Penalty of inferential filters over that of the filters themselves",
      {{"timing filter by penalty of a lost event : of a duplicate; others by random penalties",
        {"filter", false, -0.6, 5.6, bars.names},
        {"penalty with inference over without (ratio)", false, 0.0, 1.1},
        {bars.curve, {"as without", Curve::Style::model, {{-0.6, 1}, {5.6, 1}}, 7}}}}};
  return result;
}

}  // namespace sluice::repro::dautrich
