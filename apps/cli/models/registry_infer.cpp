// Models of inference: how likely a key is in the window, given what a filter shows of it, and the
// verdict of least cost (Dautrich & Ravishankar 2013, and the same where only delivered events are
// inserted).
#include <algorithm>
#include <cmath>

#include "apps/cli/models/registry_parts.hpp"
#include "sluice/model/cohort.hpp"
#include "sluice/model/distinct_keys.hpp"
#include "sluice/model/posterior.hpp"

namespace sluice::model {
namespace {

constexpr ModelParameter kChance{"p", "chance that a tick brings the key", Takes::chance, ""};
constexpr ModelParameter kLost{
    "lost", "cost of holding back a distinct event", Takes::number, "1", 1e-9, 1e12};
constexpr ModelParameter kPassed{
    "duplicate", "cost of letting a duplicate through", Takes::number, "1", 1e-9, 1e12};
constexpr ModelParameter kUniverse{"universe", "U: keys of the stream", Takes::whole, "65536", 1,
                                   1e9};
constexpr ModelParameter kWindow{"window", "w: ticks of the window", Takes::number, "", 1, 1e12};
constexpr ModelParameter kPosition{
    "position", "b: ticks since the last rotation", Takes::number, "0", 0, 1e12};
constexpr ModelParameter kAnchor{"anchor",
                                 "what is inserted: every arrival, or delivered events only",
                                 Takes::choice,
                                 "refreshed",
                                 0,
                                 0,
                                 "refreshed delivered"};
constexpr ModelParameter kTicks{
    "ticks", "t: how far back the key is looked for", Takes::number, "the window", 0, 1e12, {},
    true};

constexpr ModelOutput kThreshold{"threshold", "lost/(lost + duplicate): below, let through"};
constexpr ModelOutput kPasses{"passes", "1: least cost lets it through; 0: holds it back"};

double threshold_of(const ModelArguments& in) {
  return in.number("lost") / (in.number("lost") + in.number("duplicate"));
}

constexpr ModelParameter kLeastCostTakes[] = {
    {"posterior", "chance that the key is in the window", Takes::number, "0.5", 0, 1},
    kLost,
    kPassed};
constexpr ModelOutput kLeastCostTells[] = {
    kThreshold,
    {"cost_duplicate", "expected cost of the verdict `duplicate`: lost · (1 − P)"},
    {"cost_distinct", "that of `distinct`: duplicate · P"},
    {"cost", "the lower of the two"},
    kPasses};
std::vector<double> least_cost(const ModelArguments& in) {
  const double posterior = in.number("posterior");
  const double held = in.number("lost") * (1 - posterior);
  const double passed = in.number("duplicate") * posterior;
  return {threshold_of(in), held, passed, std::min(held, passed), held > passed ? 1.0 : 0.0};
}

constexpr ModelParameter kClassicTakes[] = {
    kChance,
    {"n", "arrivals so far", Takes::number, "", 0, kMostKeys},
    {"fpr", "the filter's false-positive rate", Takes::chance, "0.01"},
    kLost,
    kPassed};
constexpr ModelOutput kClassicTells[] = {
    {"prior", "chance that the key was inserted: 1 − (1 − p)^n"},
    {"posterior", "the same, given that all its bits are set (Theorem 1)"},
    kThreshold,
    kPasses,
    {"p_threshold", "keys with a lower chance per tick are let through"}};
std::vector<double> classic(const ModelArguments& in) {
  const double p = in.number("p"), n = in.number("n"), fpr = in.number("fpr");
  const double threshold = threshold_of(in), posterior = classic_posterior(p, n, fpr);
  const double prior = threshold * fpr / (1 - threshold + threshold * fpr);
  return {-std::expm1(n * std::log1p(-p)), posterior, threshold, posterior < threshold ? 1.0 : 0.0,
          n > 0 ? -std::expm1(std::log1p(-prior) / n) : 1.0};
}

// What a window tells once the prior and the evidence are known.
std::vector<double> weighed(const ModelArguments& in, const AgePrior& prior,
                            const AgeEvidence& evidence) {
  const double window = in.number("window"), threshold = threshold_of(in);
  const double ticks = in.given("ticks") ? in.number("ticks") : window;
  const double posterior = posterior_within(prior, evidence, window);
  return {posterior,
          posterior_within(prior, evidence, ticks),
          posterior_mean(prior, evidence),
          posterior_mode(prior, evidence),
          threshold,
          posterior < threshold ? 1.0 : 0.0};
}
constexpr ModelOutput kPosterior{"posterior", "chance that the key is in the window"};
constexpr ModelOutput kWithin{"within", "chance that it was inserted less than --ticks ago"};
constexpr ModelOutput kMeanAge{"mean_age", "its expected age, in ticks"};
constexpr ModelOutput kLikelyAge{"likely_age", "its most likely age; if several, the youngest"};

DistinctKeys curve_of(const ModelArguments& in) {
  const double universe = in.number("universe");
  if (in.choice("stream") == "uniform") return DistinctKeys::uniform(universe);
  if (in.choice("stream") == "power")
    return DistinctKeys::power_law(static_cast<std::uint64_t>(universe));
  return {};
}

constexpr ModelParameter kTimingTakes[] = {
    kChance,
    kWindow,
    {"block", "B: ticks that share a timestamp", Takes::number, "", 1, 1e12},
    kPosition,
    {"age", "λ: age of the key's oldest timers, in blocks", Takes::whole, "1", 0, 1e9},
    {"oldest", "c: number of timers with that age", Takes::whole, "1", 1, 64},
    {"k", "timers per key", Takes::whole, "", 1, 64},
    {"m", "timers in total", Takes::number, "", 2, kMostBits},
    kAnchor,
    {"stream", "D(j): every arrival a new key, or keys of --universe", Takes::choice, "new", 0, 0,
     "new uniform power"},
    kUniverse,
    kTicks,
    kLost,
    kPassed};
constexpr ModelOutput kTimingTells[] = {
    {"theorem", "the paper's theorem that gives `printed`: 2 to 5"},
    {"last_age", "the oldest age that can be in the window: ⌈(w − b)/B⌉"},
    {"block_keys", "keys of a block: D(B), or D(b) at age 0"},
    {"touched", "chance that other keys left such timers: F(c, 0, B), or F(c, 0, b) at age 0"},
    {"printed", "chance that the key is in the window, as printed: every arrival inserted"},
    {"last_keys", "keys that came for the last time in that block: D(λB + b) − D((λ − 1)B + b)"},
    {"last_touched", "chance that those left such timers; agrees with measurements"},
    kPosterior,
    kWithin,
    kMeanAge,
    kLikelyAge,
    kThreshold,
    kPasses};
std::vector<double> timing(const ModelArguments& in) {
  const double p = in.number("p"), block = in.number("block"), b = in.number("position");
  const unsigned age = in.whole("age"), oldest = in.whole("oldest"), k = in.whole("k");
  TimingSight sight{.window = in.number("window"), .block = block, .position = b, .age = age};
  refuse_unless(oldest <= k, "model 'posterior-timing': --oldest is more than --k");
  refuse_unless(block <= sight.window, "model 'posterior-timing': --block is more than --window");
  refuse_unless(b < block, "model 'posterior-timing': --position is not less than --block");
  refuse_unless(age > 0 || b > 0,
                "model 'posterior-timing': nothing is of --age 0 just after a rotation: give "
                "--position");
  // Inside a window of delivered events no key stands twice.
  const bool refreshed = in.choice("anchor") == "refreshed";
  const DistinctKeys distinct = refreshed ? curve_of(in) : DistinctKeys();
  const auto touched = [&](double keys) {
    return timers_pattern(oldest, 0, timer_untouched(in.number("m"), k, keys));
  };
  const double keys = distinct(age == 0 ? b : block);
  const double last = age == 0 ? keys : distinct(age * block + b) - distinct((age - 1) * block + b);
  const unsigned until = timing_last_age(sight.window, block, b);
  const double theorem = age > until ? 2 : age == 0 ? 3 : age < until ? 4 : 5;
  sight.touched = touched(keys);
  const double printed = timing_posterior(p, sight);
  std::vector<double> all{
      theorem, static_cast<double>(until), keys, sight.touched, printed, last, touched(last)};
  sight.touched = touched(last);
  const AgePrior prior =
      refreshed ? refreshed_age(p) : renewal_age(p, std::ceil(sight.window / block), block, b);
  const std::vector<double> rest = weighed(in, prior, timing_evidence(sight));
  all.insert(all.end(), rest.begin(), rest.end());
  return all;
}

constexpr ModelParameter kCohortTakes[] = {
    kChance,
    kWindow,
    {"generations", "generations that the window is cut into", Takes::whole, "24", 1, 255},
    kPosition,
    {"age", "rotations since the slot was written", Takes::whole, "1", 0, 255},
    {"keys", "keys of that generation", Takes::number, "a generation's share", 0, 1e12, {}, true},
    {"buckets", "buckets of the table", Takes::number, "", 1, 1e12},
    {"fingerprint", "bits of the fingerprint in a slot", Takes::whole, "19", 1, 47},
    {"anchor", "what is inserted: every arrival, or delivered events only", Takes::choice,
     "delivered", 0, 0, "refreshed delivered"},
    kTicks,
    kLost,
    kPassed};
constexpr ModelOutput kCohortTells[] = {
    {"block", "ticks of a generation"},
    {"match", "chance that one other key leaves such a slot: 2/(buckets · 2^fingerprint)"},
    {"touched", "chance that any key of the generation does"},
    kPosterior,
    kWithin,
    kMeanAge,
    kLikelyAge,
    kThreshold,
    kPasses};
std::vector<double> cohort(const ModelArguments& in) {
  const double window = in.number("window"), generations = in.number("generations");
  const double block = window / generations, b = in.number("position");
  const unsigned age = in.whole("age");
  refuse_unless(b < block, "model 'posterior-cohort': --position is not less than a generation");
  refuse_unless(age > 0 || b > 0,
                "model 'posterior-cohort': nothing is of --age 0 just after a rotation: give "
                "--position");
  const double match =
      cohort_match(static_cast<std::uint64_t>(in.number("buckets")), in.whole("fingerprint"));
  const double share = age == 0 ? b : block;
  const double touched = match * (in.given("keys") ? in.number("keys") : share);
  AgeEvidence evidence = timing_evidence(
      {.window = window, .block = block, .position = b, .age = age, .touched = touched});
  const bool refreshed = in.choice("anchor") == "refreshed";
  // While a delivered key is held, none with its fingerprint is written.
  if (!refreshed) evidence.inside = 0;
  std::vector<double> all{block, match, touched};
  const AgePrior prior = refreshed ? refreshed_age(in.number("p"))
                                   : renewal_age(in.number("p"), generations, block, b);
  const std::vector<double> rest = weighed(in, prior, evidence);
  all.insert(all.end(), rest.begin(), rest.end());
  return all;
}

constexpr ModelParameter kAgeTakes[] = {kChance,
                                        kWindow,
                                        {"hold",
                                         "ticks for which a delivered key is held back",
                                         Takes::number,
                                         "the window",
                                         1,
                                         1e12,
                                         {},
                                         true},
                                        kTicks};
constexpr ModelOutput kAgeTells[] = {
    {"refreshed", "every arrival inserted: 1 − (1 − p)^w of the ages are in the window (eq. 4)"},
    {"refreshed_within", "the same for --ticks"},
    {"refreshed_mean", "the expected age: (1 − p)/p"},
    {"renewal", "delivered events inserted: wp/(1 + hold·p) of the ages are in the window"},
    {"renewal_within", "the same for --ticks"},
    {"renewal_mean", "the expected age"},
    {"renewal_density", "chance of each age below the hold: p/(1 + hold·p)"},
    {"cycle", "ticks from a delivery of the key to the next: hold + 1/p"},
    {"distinct", "D(w): distinct keys of a window of deliveries, which is all of them"}};
std::vector<double> ages(const ModelArguments& in) {
  const double p = in.number("p"), window = in.number("window");
  const double hold = in.given("hold") ? in.number("hold") : window;
  const double ticks = in.given("ticks") ? in.number("ticks") : window;
  refuse_unless(hold >= window, "model 'posterior-age': --hold is less than --window");
  const AgeEvidence nothing{.from = 0, .to = 0, .inside = 1, .beyond = 1};
  const AgePrior refreshed = refreshed_age(p), renewal = renewal_age(p, hold);
  return {posterior_within(refreshed, nothing, window),
          posterior_within(refreshed, nothing, ticks),
          posterior_mean(refreshed, nothing),
          posterior_within(renewal, nothing, window),
          posterior_within(renewal, nothing, ticks),
          posterior_mean(renewal, nothing),
          p / (1 + hold * p),
          hold + 1 / p,
          DistinctKeys()(window)};
}

constexpr ModelParameter kDistinctTakes[] = {
    {"j", "arrivals", Takes::number, "", 1, 1e12},
    kUniverse,
    {"j1", "interpolated: arrivals of a point that was counted", Takes::number, "1k", 1, 1e12},
    {"d1", "distinct keys among those", Takes::number, "800", 1, 1e12},
    {"j2", "the next point", Takes::number, "1M", 1, 1e12},
    {"d2", "distinct keys among those", Takes::number, "100k", 1, 1e12}};
constexpr ModelOutput kDistinctTells[] = {
    {"uniform", "keys of a uniform stream: U (1 − (1 − 1/U)^j) (eqs. 15, 16)"},
    {"power_law", "of p_x = 1/(x H): the sum of eq. 15"},
    {"power_law_limit", "as printed, j/H (1 − γ + ln(U H/j)) (eq. 17): for 1 ≪ j ≪ U H only"},
    {"power_law_table", "eq. 18 between sums of eq. 15, four per octave; used by the filters"},
    {"interpolated", "eq. 18 through (1, 1), (--j1, --d1) and (--j2, --d2)"},
    {"delivered", "if only delivered events are inserted, inside the window: j"}};
std::vector<double> distinct_keys(const ModelArguments& in) {
  const double j = in.number("j"), universe = in.number("universe");
  const auto keys = static_cast<std::uint64_t>(universe);
  const DistinctKeys::Point points[] = {{in.number("j1"), in.number("d1")},
                                        {in.number("j2"), in.number("d2")}};
  return {uniform_distinct(universe, j),         power_law_distinct(keys, j),
          power_law_distinct_limit(universe, j), DistinctKeys::power_law(keys)(j),
          DistinctKeys::measured(points)(j),     DistinctKeys()(j)};
}

constexpr ModelInfo kModels[] = {
    {"posterior-age", "how old a key is before a filter is asked, with either anchor", kAgeTakes,
     kAgeTells, ages},
    {"posterior-classic",
     "a duplicate of a Bloom filter, by Theorem 1 (Dautrich & Ravishankar 2013, §2)", kClassicTakes,
     kClassicTells, classic},
    {"posterior-timing",
     "the timers of a key, by Theorems 2 to 5 (Dautrich & Ravishankar 2013, §3) and by our formula",
     kTimingTakes, kTimingTells, timing},
    {"posterior-cohort", "the slot of a key in a cohort filter (ours)", kCohortTakes, kCohortTells,
     cohort},
    {"distinct-keys", "D(j): distinct keys among j arrivals (Dautrich & Ravishankar 2013, §2.5)",
     kDistinctTakes, kDistinctTells, distinct_keys},
    {"least-cost", "the verdict with the lowest expected cost (Dautrich & Ravishankar 2013, §2.6)",
     kLeastCostTakes, kLeastCostTells, least_cost},
};

}  // namespace

std::span<const ModelInfo> infer_models() {
  return kModels;
}

}  // namespace sluice::model
