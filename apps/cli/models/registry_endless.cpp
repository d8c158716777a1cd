// Models of filters for streams without an end: those that forget at random, and one that grows.
#include <cmath>

#include "apps/cli/models/registry_parts.hpp"
#include "sluice/model/growing.hpp"
#include "sluice/model/reservoir.hpp"
#include "sluice/model/stable.hpp"

namespace sluice::model {
namespace {

constexpr ModelParameter kDistance{
    "distance", "records after which a key repeats", Takes::number, "1M", 0, 1e15};
constexpr ModelParameter kUniverse{
    "universe", "keys of a stream that is uniform over them", Takes::number, "1M", 1, 1e15};

constexpr ModelParameter kStableTakes[] = {
    {"m", "cells", Takes::number, "", 2, kMostBits},
    {"k", "K: cells per key", Takes::whole, "2", 1, kMostStableProbes},
    {"p", "P: cells that a record decrements", Takes::whole, "4", 1, kMostStableDecrements},
    {"max", "Max: the value that a cell is set to", Takes::whole, "1", 1, 255},
    kDistance,
    kUniverse,
    kTarget};
constexpr ModelOutput kStableTells[] = {
    {"zeros", "the stable point: (1/(1 + 1/(P(1/K − 1/m))))^Max of the cells are 0"},
    {"fpr", "chance that a key never seen is judged duplicate: (1 − zeros)^K"},
    {"caught", "chance that a repeat after --distance is judged duplicate"},
    {"mean_distance", "records after which a key is forgotten, on average"},
    {"half_distance", "records after which half of the keys are forgotten"},
    {"uniform_fnr", "false negatives on the stream that is uniform over --universe"},
    {"p_for_fpr", "the fewest P with an error of at most --fpr"},
    {"best_k", "the K that remembers longest at --fpr"},
    {"best_p", "its P"}};
std::vector<double> stable(const ModelArguments& in) {
  const StableShape shape{.cells = in.number("m"),
                          .probes = in.whole("k"),
                          .decrements = in.whole("p"),
                          .max = in.whole("max")};
  refuse_unless(shape.cells > shape.probes, "model 'stable': --k is not less than --m");
  const double fpr = in.number("fpr");
  const ForgettingPlan memory = stable_memory(shape);
  const StableShape best = stable_shape(shape.cells, shape.max, fpr);
  return {stable_zeros(shape),
          stable_fpr(shape),
          stable_caught(shape, in.number("distance")),
          memory.mean_distance,
          memory.half_distance,
          stable_uniform_fnr(shape, in.number("universe")),
          static_cast<double>(stable_decrements(shape, fpr)),
          static_cast<double>(best.probes),
          static_cast<double>(best.decrements)};
}

constexpr ModelParameter kReservoirTakes[] = {
    {"m", "bits in total", Takes::number, "", 2, kMostBits},
    {"k",
     "filters: bits per key",
     Takes::whole,
     "the paper's for --fpr",
     1,
     kMostReservoirFilters,
     {},
     true},
    {"variant", "the rule for what is written: ours, or the paper's Algorithm 1", Takes::choice,
     "biased", 0, 0, "biased paper"},
    {"resets", "bits that a key resets in each filter; for biased", Takes::whole, "1", 1,
     kMostReservoirResets},
    kDistance,
    kUniverse,
    {"records", "length of the stream so far, for the paper's equations", Takes::number, "1M", 1,
     1e15},
    {"fpr", "FPR_t: the target error", Takes::chance, "0.1"}};
constexpr ModelOutput kReservoirTells[] = {
    {"k", "filters"},
    {"size", "s: bits of a filter"},
    {"k_for_fpr", "filters with which (1 − 1/e)^k = fpr (eq. 5.27)"},
    {"k_mean", "the paper's: the mean of those and 1, rounded"},
    {"fill", "share of bits set in the long run"},
    {"fpr", "chance that a key never seen is judged duplicate: fill^k"},
    {"caught", "chance that a repeat after --distance is judged duplicate"},
    {"mean_distance", "keys after which a key is forgotten, on average"},
    {"half_distance", "keys after which half of the keys are forgotten"},
    {"uniform_fnr", "false negatives on the stream that is uniform over --universe"},
    {"best_k", "number of filters that remembers longest at --fpr; 0: none reaches it"},
    {"best_resets", "resets for best_k"},
    {"best_mean_distance", "mean_distance for best_k"},
    {"dutta_fpr_5_7", "as printed, not a valid prediction: eq. 5.7"},
    {"dutta_fnr_5_14", "as printed, not a valid prediction: eq. 5.14"},
    {"dutta_5_15", "as printed, not a valid prediction: eq. 5.15"},
    {"dutta_5_16", "as printed, not a valid prediction: eq. 5.16"},
    {"dutta_fnr_5_17", "as printed, not a valid prediction: eq. 5.17"}};
std::vector<double> reservoir(const ModelArguments& in) {
  const double m = in.number("m"), fpr = in.number("fpr"), records = in.number("records");
  const double universe = in.number("universe");
  const unsigned k = in.given("k") ? in.whole("k") : reservoir_mean_filters(fpr);
  refuse_unless(m >= 2.0 * k, "model 'reservoir': --m is less than two bits per filter");
  const ReservoirShape shape{.size = m / k,
                             .filters = k,
                             .variant = in.choice("variant") == "paper" ? ReservoirVariant::paper
                                                                        : ReservoirVariant::biased,
                             .resets = in.whole("resets")};
  const ForgettingPlan memory = reservoir_memory(shape);
  const ForgettingPlan best = reservoir_plan(m, fpr, shape.variant);
  return {static_cast<double>(k),
          shape.size,
          reservoir_filters(fpr),
          static_cast<double>(reservoir_mean_filters(fpr)),
          reservoir_fill(shape),
          reservoir_fpr(shape),
          reservoir_caught(shape, in.number("distance")),
          memory.mean_distance,
          memory.half_distance,
          reservoir_uniform_fnr(shape, universe),
          static_cast<double>(best.filters),
          static_cast<double>(best.resets),
          best.mean_distance,
          dutta_fpr_5_7(shape.size, k, universe, records),
          dutta_fnr_5_14(shape.size, k, universe, records),
          dutta_last_insertion_5_15(universe),
          dutta_some_bit_zero_5_16(shape.size, k, records),
          dutta_fnr_5_17(k, universe)};
}

constexpr ModelParameter kGrowingTakes[] = {
    {"slot", "bits of a slot", Takes::whole, "32", 8, 64},
    {"tag", "bits of the tag in a slot; all but one of the others are hash bits", Takes::whole,
     "12", 1, 63},
    {"load", "keys per slot", Takes::chance, "0.68"},
    {"first", "buckets at the start", Takes::number, "1024", 1, 1e15},
    {"buckets", "buckets now", Takes::number, "1M", 1, 1e15},
    {"fpr", "the error of the series that it is compared with", Takes::chance, "1e-6"}};
constexpr ModelOutput kGrowingTells[] = {
    {"slots", "slots per bucket of 512 bits"},
    {"keys", "slots · load · buckets"},
    {"fpr_bound", "upper bound of the error after growing to --buckets"},
    {"fpr_bound_doubled", "the same after one more doubling"},
    {"bits_per_key", "slot/load"},
    {"series_bits_per_key",
     "for comparison: a series of blocked filters that double, each with 0.8 times the error of "
     "the one before"}};
std::vector<double> growing(const ModelArguments& in) {
  const unsigned slot = in.whole("slot"), tag = in.whole("tag"), slots = 512 / slot;
  refuse_unless(tag < slot, "model 'growing': --tag is not less than --slot");
  const double load = in.number("load"), first = in.number("first"), now = in.number("buckets");
  refuse_unless(now >= first, "model 'growing': --buckets is less than --first");
  // One bit marks where the known bits of the hash begin.
  const auto bound = [&](double buckets) {
    return growing_fpr_bound(slots, load, tag, slot - tag - 1, first, buckets);
  };
  return {static_cast<double>(slots),
          slots * load * now,
          bound(now),
          bound(2 * now),
          growing_bits_per_key(slot, load),
          tightening_series_bits_per_key(slots * load * first, 2, 0.8, in.number("fpr"),
                                         slots * load * now)};
}

constexpr ModelInfo kModels[] = {
    {"stable", "cells that are decremented at random (Deng & Rafiei 2006; Dutta et al. 2012, §6)",
     kStableTakes, kStableTells, stable},
    {"reservoir", "bits that are reset at random (Dutta et al. 2012, and our rule)",
     kReservoirTakes, kReservoirTells, reservoir},
    {"growing", "fingerprints in buckets that are split one at a time (ours)", kGrowingTakes,
     kGrowingTells, growing},
};

}  // namespace

std::span<const ModelInfo> endless_models() {
  return kModels;
}

}  // namespace sluice::model
