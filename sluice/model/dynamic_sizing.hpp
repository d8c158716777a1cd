// How to size a dynamic Bloom filter (Guo et al. 2010, §4): for a known bound on the number of keys
// with a distribution below it, for an unknown one between two limits of error, and for many nodes
// that must use the same configuration. Numbers: docs/filters/dynamic-sizing.md.
#pragma once

#include <cstdint>
#include <vector>

#include "sluice/model/dynamic.hpp"

namespace sluice::model {

// The filter of least memory with whole numbers of bits and probes that holds `capacity` keys at
// `fpr` by eq. 1. The paper's m = ⌈n · ln ε / ln .6185⌉ with a rounded k misses its own bound.
DynamicShape filter_for(double capacity, double fpr);

// --- §4.2: a known bound -------------------------------------------------------------------------

// How likely a set is to have 1, 2, ..., N keys: one chance for each, summing to 1. All makers
// throw BadParameters for a bound of 0 or above kLargestBound; only shares matter below, so a
// larger problem can be scaled down.
using SetSizes = std::vector<double>;
inline constexpr std::uint64_t kLargestBound = std::uint64_t{1} << 24;

SetSizes uniform_sizes(std::uint64_t bound);
// Cut off at 1 and at the bound. `deviation` is σ; the paper's print says σ² = 20, but its savings
// are those of σ = 20.
SetSizes normal_sizes(std::uint64_t bound, double mean, double deviation);
// Zipf: the chance of rank i is as 1/i^exponent. `minimum`: the smallest set is the likeliest.
// `maximum`: the largest is.
enum class ZipfOrder { minimum, maximum };
SetSizes zipf_sizes(std::uint64_t bound, double exponent, ZipfOrder order);
// The chances of Zipf in an order drawn by `seed`. Over all seeds their mean is uniform_sizes.
SetSizes random_zipf_sizes(std::uint64_t bound, double exponent, std::uint64_t seed);

// A dynamic filter for at most N keys at an error of at most ε, of the least expected memory.
struct BoundedPlan {
  unsigned filters = 1;      // s*
  double filter_fpr = 0;     // of each: 1 − (1 − ε)^{1/s}
  DynamicShape shape = {};   // m, k, c: in whole numbers, so that ε is kept
  double expected_bits = 0;  // by the paper's continuous formula, which the choice is made by
  double standard_bits = 0;  // of one standard filter for N keys, by the same
  double saving() const { return 1 - expected_bits / standard_bits; }
};
// The expected bits with `filters` filters: Σ rᵢ · (N/s) · ln ε₁ / ln .6185, where rᵢ is the chance
// that the i-th is begun.
double expected_bits(const SetSizes& sizes, double fpr, unsigned filters);
// Tries 1 to `most_filters`, as far as there are keys for them.
BoundedPlan least_memory(const SetSizes& sizes, double fpr, unsigned most_filters = 256);

// --- §4.3: an unknown bound ----------------------------------------------------------------------

// The most keys with an error of at most `limit` (β) before the filter must be rebuilt, larger: one
// standard filter, with its number of probes fixed, and a dynamic one, by eq. 3.
double standard_rebuild_at(const DynamicShape& shape, double limit);
double dynamic_rebuild_at(const DynamicShape& shape, double limit);

// --- §4.4: one configuration for all nodes -------------------------------------------------------

// The configuration that nodes that exchange dynamic filters must share, and the rules for
// replacing it. A node that is about to outgrow it makes the next one and tells the others; a node
// that receives a later one rebuilds its filter.
struct DynamicConfiguration {
  DynamicShape shape = {};
  double target = 0;  // ε: error of one full filter
  double limit = 0;   // β: error that no node may pass
  std::uint64_t version = 1;

  // For sets of about `capacity` keys. Throws BadParameters unless 0 < target < limit < 1 and there
  // is a capacity.
  static DynamicConfiguration make(double capacity, double target, double limit);

  // Whether a node with `keys` keys would pass the limit.
  bool must_rebuild(double keys) const;
  // The next version: filters of at least double the capacity, and of more than what the present
  // series could hold or the node has.
  DynamicConfiguration next(double keys) const;
  // The configuration of a node with `keys` keys after it received `heard`: the later of the two,
  // or the next one if the node has outgrown that.
  DynamicConfiguration after(const DynamicConfiguration& heard, double keys) const;
  // The later version wins; of two with the same version, the larger. All nodes decide the same
  // way.
  bool later_than(const DynamicConfiguration& other) const;

  bool operator==(const DynamicConfiguration&) const = default;
};

}  // namespace sluice::model
