// Errors and sizes of the stable Bloom filter (Deng & Rafiei 2006): numbers in, numbers out.
#pragma once

#include "sluice/model/forgetting.hpp"

namespace sluice::model {

struct StableShape {
  double cells = 0;         // m
  unsigned probes = 0;      // K
  unsigned decrements = 0;  // P
  unsigned max = 1;         // Max: the value that a cell is set to
};

inline constexpr unsigned kMostStableProbes = 64;
inline constexpr unsigned kMostStableDecrements = 1u << 16;

// The stable point: the share of cells that are zero once the stream is long,
// (1 / (1 + 1/(P(1/K − 1/m))))^Max.
double stable_zeros(const StableShape& shape);

// Chance that a key never seen is judged duplicate at the stable point: (1 − zeros)^K.
double stable_fpr(const StableShape& shape);

// The fewest decrements with which the error is at most `fpr` (at most kMostStableDecrements); the
// inverse of stable_fpr. `decrements` of the shape is ignored.
unsigned stable_decrements(StableShape shape, double fpr);

// Chance that a key is judged duplicate when it repeats after `distance` records. A cell is reduced
// with rate P/m and set again with rate K/m per record, so only its last setting counts.
double stable_caught(const StableShape& shape, double distance);

// The inverse: after how many records a share of `fnr` is no longer judged duplicate.
double stable_distance(const StableShape& shape, double fnr);

// How far back it remembers.
ForgettingPlan stable_memory(const StableShape& shape);

// The probes, with the decrements they need for `fpr`, that remember farthest.
StableShape stable_shape(double cells, unsigned max, double fpr);

// False negatives at the stable point, on a stream that is uniform over `universe` keys.
double stable_uniform_fnr(const StableShape& shape, double universe);

}  // namespace sluice::model
