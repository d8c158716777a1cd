// Errors and sizes of the reservoir sampling Bloom filter (Dutta et al. 2012) and of our own
// variant: numbers in, numbers out.
//
// `size` is the bits of each of the `filters` filters (s and k), so that all take k·s bits.
#pragma once

#include "sluice/model/forgetting.hpp"

namespace sluice::model {

enum class ReservoirVariant : unsigned char {
  biased,  // keys judged distinct are written, after resetting random bits in each filter
  paper,   // Algorithm 1
};

struct ReservoirShape {
  double size = 0;       // s
  unsigned filters = 0;  // k
  ReservoirVariant variant = ReservoirVariant::biased;
  unsigned resets = 1;  // biased: bits that a key resets in each filter for the one that it sets
};

inline constexpr unsigned kMostReservoirFilters = 64;
inline constexpr unsigned kMostReservoirResets = 64;

// Eq. 5.27: filters with which (1 − 1/e)^k = fpr. No whole number.
double reservoir_filters(double fpr);
// The paper's operating points: that many, rounded, for few false positives; one for few false
// negatives; and the mean of the two.
unsigned reservoir_most_filters(double fpr);
unsigned reservoir_mean_filters(double fpr);

// The stationary model: a long stream of keys that are all new, and a repeat now and then.
// The share of bits set. paper: each record sets a random bit and resets one, or swaps one: 1/2.
// biased: a key is written only if one of its bits is not set, so ρ(1 + r(1 − ρ^k)) = 1. One filter
// with one reset would fill up: its share is 1.
double reservoir_fill(const ReservoirShape& shape);
// Chance that a key never seen is judged duplicate: ρ^k.
double reservoir_fpr(const ReservoirShape& shape);
// The fewest resets with an error of at most `fpr`: the inverse of reservoir_fpr. 0 when the most
// that there may be are too few; 1 with variant=paper.
unsigned reservoir_resets(ReservoirShape shape, double fpr);
// Chance that a key is judged duplicate when it repeats after `distance` new keys:
// (ρ + (1 − ρ)e^{−d/(ρs)})^k. A bit that is not set becomes so with rate 1/s, one that is set is
// reset with a rate that keeps the fill, and both together make 1/(ρs).
double reservoir_caught(const ReservoirShape& shape, double distance);
// The inverse: after how many new keys a share of `fnr` is no longer judged duplicate.
double reservoir_distance(const ReservoirShape& shape, double fnr);

// How far back it remembers. Distances grow in proportion to bits.
ForgettingPlan reservoir_memory(const ReservoirShape& shape);
// The filters and resets that remember farthest in `bits` bits with an error of at most `fpr`;
// none (0 filters) when it is below what 64 filters reach.
ForgettingPlan reservoir_plan(double bits, double fpr, ReservoirVariant variant);

// False negatives of a long stream that is uniform over `universe` keys. paper: while every record
// is written, that is for the first `size` of them and nearly so until the threshold. biased: bits
// differ in how many keys share them, and only what is judged distinct resets bits, so the rate is
// a fixed point; with few enough keys it is 0, and nothing is forgotten.
double reservoir_uniform_fnr(const ReservoirShape& shape, double universe);

// The paper's own equations, to be reported beside measurements. They do not predict: 5.7 is a
// product with the chance that a key is new at all, 5.14 to 5.17 rest on 5.12, which does not hold,
// and give 10⁻⁸ where 7 to 88 % are measured. `records` is m, the length of the stream so far.
double dutta_fpr_5_7(double size, unsigned filters, double universe, double records);
double dutta_fnr_5_14(double size, unsigned filters, double universe, double records);
double dutta_last_insertion_5_15(double universe);
double dutta_some_bit_zero_5_16(double size, unsigned filters, double records);
double dutta_fnr_5_17(unsigned filters, double universe);

}  // namespace sluice::model
