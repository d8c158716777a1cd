#include "repro/dautrich/trials.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "sluice/infer/inferred.hpp"
#include "sluice/model/timing.hpp"

namespace sluice::repro::dautrich {

void Calibration::add(double posterior, bool in_window) {
  const auto bin = std::min(kBins - 1, static_cast<std::size_t>(posterior * kBins));
  ++asked_[bin];
  true_[bin] += in_window;
}

double Calibration::error() const {
  double sum = 0, all = 0;
  for (std::size_t bin = 0; bin < kBins; ++bin) {
    const double asked = static_cast<double>(asked_[bin]);
    const double middle = (static_cast<double>(bin) + 0.5) / kBins;
    sum += std::abs(static_cast<double>(true_[bin]) - middle * asked);
    all += asked;
  }
  return all > 0 ? sum / all : 0;
}

Timing::Params timing_of(std::uint64_t window, double bits, unsigned probes) {
  Timing::Params params;
  params.probes = probes;
  params.timer_bits = model::timing_bits(probes);
  params.timers = std::max<std::uint64_t>(1, model::timing_timers(window, bits, params.timer_bits));
  const auto shape = model::timing_shape(window, params.timers, probes, params.timer_bits);
  params.generations = static_cast<unsigned>(shape.generations);
  params.padding = static_cast<unsigned>(shape.padding);
  params.capacity = shape.block * shape.generations;
  params.target_fpr = 0.5;
  return params;
}

Outcome run_trial(const Trial& trial, unsigned probes, bool printed, std::uint64_t asked) {
  const Stream& stream = trial.stream;
  const Timing::Params params = timing_of(trial.window, trial.bits, probes);
  InferredWindow<Timing> filter(Timing::make(params),
                                {.window = trial.window,
                                 .block = params.capacity / params.generations,
                                 .anchor = Anchor::refreshed,
                                 .distinct = stream.distinct,
                                 .printed = printed});
  Penalties penalties(trial.seed, trial.most);
  Calibration calibration;
  Outcome outcome;
  // No more beforehand than it takes to fill the window.
  const std::uint64_t first = stream.warm - std::min(stream.warm, trial.window * 5 / 4);
  const std::uint64_t end = stream.warm + std::min(asked, stream.asked());
  for (std::uint64_t i = first; i < end; ++i) {
    const std::uint32_t item = stream.items[i];
    const Costs costs = penalties.next();
    const Prior prior = Prior::arrival(stream.chances[item]);
    const Judgement judgement = filter.observe(stream.digests[item], prior, costs);
    if (i < stream.warm) continue;
    const bool in_window = trial.truth.in_window[i - stream.warm];
    const auto cost = [&](bool duplicate) {
      return duplicate == in_window ? 0 : duplicate ? costs.lost : costs.duplicate;
    };
    const double posterior = judgement.posterior.value_or(1);
    const bool duplicate = judgement.verdict == Verdict::duplicate;
    outcome.standard += cost(posterior > 0);
    outcome.inferred += cost(duplicate);
    outcome.errors += duplicate != in_window;
    outcome.prior_only += cost(least_cost(trial.truth.chances[item], costs) == Verdict::duplicate);
    calibration.add(posterior, in_window);
  }
  outcome.posterior_error = calibration.error();
  return outcome;
}

Best best_of(const Trial& trial, const Probes& probes) {
  std::uint64_t asked = probes.all ? trial.stream.asked() : trial.stream.asked() / 4;
  Best best;
  best.standard = best.inferred.inferred = std::numeric_limits<double>::infinity();
  Outcome last;
  unsigned risen = 0;
  const unsigned from = probes.all ? 1 : std::min(probes.from, probes.most);
  for (unsigned k = from; k <= probes.most; ++k) {
    Outcome outcome = run_trial(trial, k, true, asked);
    // Too few to choose by.
    if (k == from && !probes.all && outcome.errors < 1500) {
      asked = trial.stream.asked();
      outcome = run_trial(trial, k, true, asked);
    }
    if (outcome.standard < best.standard)
      best.standard = outcome.standard, best.standard_probes = k;
    if (outcome.inferred < best.inferred.inferred)
      best.inferred = outcome, best.inferred_probes = k;
    const bool rose = outcome.standard > last.standard && outcome.inferred > last.inferred;
    risen = k > from && rose ? risen + 1 : 0;
    last = outcome;
    // One rise is enough where it cannot be chance.
    if (!probes.all && risen == (outcome.errors > 1000 ? 1 : 2)) break;
  }
  if (asked == trial.stream.asked()) return best;
  best.inferred = run_trial(trial, best.inferred_probes, true, trial.stream.asked());
  best.standard = best.standard_probes == best.inferred_probes
                      ? best.inferred.standard
                      : run_trial(trial, best.standard_probes, true, trial.stream.asked()).standard;
  return best;
}

}  // namespace sluice::repro::dautrich
