// Models of sets: Bloom filters, their counters, the bounds, and cohort's fingerprints.
#include <algorithm>
#include <cmath>

#include "apps/cli/models/registry_parts.hpp"
#include "sluice/model/bloom.hpp"
#include "sluice/model/cohort.hpp"
#include "sluice/model/counting.hpp"
#include "sluice/model/lower_bound.hpp"
#include "sluice/model/sliced.hpp"

namespace sluice::model {
namespace {

constexpr double kBlockBits = 512;

constexpr ModelParameter kBloomTakes[] = {kBits, kProbes, kKeys, kTarget};
constexpr ModelOutput kBloomTells[] = {
    {"fpr", "(1 − (1 − 1/m)^kn)^k (Koloniari eq. 1)"},
    {"fpr_limit", "(1 − e^(−kn/m))^k (Koloniari eq. 2, Guo eq. 1)"},
    {"fpr_exact", "the mean over the number of set bits, which varies"},
    {"density", "share of set bits"},
    {"bits_per_key", "m/n"},
    {"best_k", "the number of probes with the lowest error"},
    {"best_fpr", "the error with best_k"},
    {"bits_for_fpr", "the fewest bits for n keys at --fpr"},
    {"keys_for_fpr", "the most keys at --fpr: the growth threshold by cardinality"},
    {"keys_for_fpr_limit", "the same by the limit: −m/k · ln(1 − fpr^(1/k))"},
    {"density_for_fpr", "set bits at --fpr, m · fpr^(1/k): the growth threshold by density"},
    {"wire_bits", "bits to send the positions of a key: k · log2 m"},
};
std::vector<double> bloom(const ModelArguments& in) {
  const double m = in.number("m"), n = in.number("n"), fpr = in.number("fpr");
  const unsigned k = in.whole("k"), best = bloom_probes(m, n);
  return {bloom_fpr(m, k, n),
          bloom_fpr_limit(m, k, n),
          bloom_fpr_exact(m, k, n),
          std::pow(bloom_fpr(m, k, n), 1.0 / k),
          m / n,
          static_cast<double>(best),
          bloom_fpr(m, best, n),
          bloom_bits(k, n, fpr),
          bloom_keys(m, k, fpr),
          bloom_keys_limit(m, k, fpr),
          growth_density(m, k, fpr),
          wire_bits({.bits = m, .probes = k, .keys = n})};
}

constexpr ModelParameter kBlockedTakes[] = {
    {"m", "bits, in blocks of 512", Takes::number, "", 512, kMostBits},
    {"k", "probes: bits per key, each in a lane of 512/k", Takes::whole, "", 1, 64},
    kKeys,
    kTarget};
constexpr ModelOutput kBlockedTells[] = {
    {"fpr", "E[(1 − (1 − 1/lane)^X)^k], X Poisson"},
    {"bits_per_key", "m/n"},
    {"bits_for_fpr", "the fewest bits for n keys at --fpr"},
    {"keys_for_fpr", "the most keys at --fpr"},
};
std::vector<double> blocked(const ModelArguments& in) {
  const double blocks = in.number("m") / kBlockBits, n = in.number("n"), fpr = in.number("fpr");
  const unsigned k = in.whole("k");
  return {blocked_bloom_fpr(blocks, k, n), in.number("m") / n,
          blocked_bloom_blocks(k, n, fpr) * kBlockBits, blocked_bloom_keys(blocks, k, fpr)};
}

constexpr ModelParameter kCountingTakes[] = {
    {"m", "counters", Takes::number, "", 2, kMostBits},
    kProbes,
    kKeys,
    {"limit", "value at which a counter overflows: 16 with four bits", Takes::whole, "16", 2,
     65536}};
constexpr ModelOutput kCountingTells[] = {
    {"fpr", "error of a Bloom filter with as many bits"},
    {"counter_overflow", "chance that a given counter reaches --limit"},
    {"overflow_bound", "upper bound of the chance that any counter does: m · C(nk, j)/m^j"},
    {"overflow_worst", "the same for any n up to the best: m · (e ln 2/j)^j"},
};
std::vector<double> counting(const ModelArguments& in) {
  const double m = in.number("m"), n = in.number("n");
  const unsigned k = in.whole("k"), limit = in.whole("limit");
  return {bloom_fpr(m, k, n), counter_overflow(m, k, n, limit),
          counting_overflow_bound(m, k, n, limit), counting_overflow_worst(m, limit)};
}

constexpr ModelParameter kCohortTakes[] = {
    {"slot", "bits of a slot", Takes::choice, "24", 0, 0, "16 24 32 40 48"},
    {"generations", "number of generations in a window; 0: no window", Takes::whole, "24", 0, 61},
    {"load",
     "share of slots that are live",
     Takes::chance,
     "as planned for the slot",
     0,
     0,
     {},
     true},
};
constexpr ModelOutput kCohortTells[] = {
    {"slots", "slots per bucket of 512 bits"},
    {"fingerprint", "bits of the fingerprint in a slot"},
    {"planned_load", "the load that tables of this slot are planned for"},
    {"fpr", "1 − (1 − slots · load/2^fingerprint)²"},
    {"bits_per_key", "512/(slots · load), the slack's keys not counted"},
    {"window_bits_per_key", "bits per key of the window, the slack's generation included"},
    {"slack", "one generation, as a share of the window"},
    {"lower_bound", "theoretical minimum of bits per key for this error and slack"},
};
std::vector<double> cohort(const ModelArguments& in) {
  const unsigned slot = in.whole("slot"), generations = in.whole("generations");
  // Numbers for the live generations, the present one, and two that are dead and not yet swept.
  unsigned tag = 4;
  while ((1u << tag) < generations + 3) ++tag;
  const unsigned slots = static_cast<unsigned>(kBlockBits) / slot;
  const double planned = cohort_load(slot);
  const double load = in.given("load") ? in.number("load") : planned;
  const double fpr = cohort_fpr(slots, slot - tag, load);
  const double slack = window_slack(generations), bits = kBlockBits / (slots * load);
  return {static_cast<double>(slots),
          static_cast<double>(slot - tag),
          planned,
          fpr,
          bits,
          bits * (1 + slack),
          slack,
          generations == 0 ? set_lower_bound_bits(fpr) : window_lower_bound_bits(fpr, slack)};
}

constexpr ModelParameter kBoundTakes[] = {
    {"fpr", "the error", Takes::chance, ""},
    {"slack", "how far past the window a key may still be remembered, as a share of it",
     Takes::number, "0.04", 1e-12, 1},
    {"bits", "bits per key, for the inverse", Takes::number, "16", 1, 1024}};
constexpr ModelOutput kBoundTells[] = {
    {"set_bits", "log2(1/fpr) bits per key, without a window"},
    {"window_bits", "log2(1/fpr) + max(log2 log2(1/fpr), log2(1/slack)), up to a constant"},
    {"set_fpr", "the lowest error at --bits, without a window"},
    {"window_fpr", "the lowest error at --bits and --slack; at most 1/2"}};
std::vector<double> lower_bound(const ModelArguments& in) {
  const double fpr = in.number("fpr"), slack = in.number("slack"), bits = in.number("bits");
  return {set_lower_bound_bits(fpr), window_lower_bound_bits(fpr, slack), set_lower_bound_fpr(bits),
          window_lower_bound_fpr(bits, slack)};
}

constexpr ModelInfo kModels[] = {
    {"bloom", "a Bloom filter (Koloniari et al. 2011, §2; Guo et al. 2010, §2)", kBloomTakes,
     kBloomTells, bloom},
    {"blocked", "a Bloom filter in cache lines: a block of 512 bits per key", kBlockedTakes,
     kBlockedTells, blocked},
    {"counting", "the counters of a counting Bloom filter (Fan et al. 2000, §V.C)", kCountingTakes,
     kCountingTells, counting},
    {"cohort", "fingerprints with a generation in buckets, two choices (ours)", kCohortTakes,
     kCohortTells, cohort},
    {"lower-bound", "the theoretical minimum of bits per key (Naor & Yogev 2013)", kBoundTakes,
     kBoundTells, lower_bound},
};

}  // namespace

std::span<const ModelInfo> set_models() {
  return kModels;
}

}  // namespace sluice::model
