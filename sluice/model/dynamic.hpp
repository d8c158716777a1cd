// Errors of dynamic Bloom filters (Guo et al. 2010): a series of equal Bloom filters, each filled
// before the next is begun. Equation numbers are the paper's. Where a printed formula is wrong, it
// is corrected here; docs/filters/dynamic-sizing.md lists the differences.
#pragma once

#include <cstdint>

namespace sluice::model {

// One filter of the series.
struct DynamicShape {
  double bits = 0;      // m
  unsigned probes = 0;  // k
  double capacity = 0;  // c: after this many keys the next filter is begun

  bool operator==(const DynamicShape&) const = default;
};

// How the error of one filter is taken: as eq. 1 does, from the mean share of set bits, or exactly
// (model/bloom.hpp), which makes a difference in filters of a few thousand bits.
enum class Fill { mean, exact };
double filter_fpr(const DynamicShape& shape, double keys, Fill fill = Fill::mean);

// Filters that `keys` keys take, s = ⌈n/c⌉, and the keys in the last of them: 1 to c, where the
// paper's n − c⌊n/c⌋ is 0 for a full one.
double dynamic_filters(const DynamicShape& shape, double keys);
double dynamic_last_keys(const DynamicShape& shape, double keys);

// Eq. 3: chance that a key never inserted is found in one filter or another.
double dynamic_fpr(const DynamicShape& shape, double keys, Fill fill = Fill::mean);
// Eq. 12: the same when the last filter is taken for full.
double dynamic_fpr_full(const DynamicShape& shape, double keys, Fill fill = Fill::mean);
// The keys at which eq. 3 comes to `fpr` (below 1): its inverse in n.
double dynamic_keys(const DynamicShape& shape, double fpr);

// Eq. 4: the same for the union of two series, one behind the other.
double dynamic_union_fpr(const DynamicShape& shape, double keys_a, double keys_b,
                         Fill fill = Fill::mean);

// --- §2.2: intersection of two plain filters -----------------------------------------------------

// Theorem 3: chance that the AND of two filters is the filter of the common keys, given the keys
// that only one of them has. A lower bound: it requires that no bit is set from both sides, though
// a bit that a common key also sets does no harm.
double intersection_chance_bound(double bits, unsigned probes, double only_a, double only_b);
// The same, allowing such bits, with bits assumed independent.
double intersection_chance(double bits, unsigned probes, double only_a, double only_b,
                           double common);

// --- §3.4: keys with several addresses -----------------------------------------------------------

// Eq. 9: chance that a key of one of the first s − 1 filters is found in another one too. Corrected
// where c divides n, as above: the last filter is then full, not empty. 0 for one filter.
double several_addresses_early(const DynamicShape& shape, double keys, Fill fill = Fill::mean);
// Eq. 10: the same for a key of the last filter, and an upper bound for all.
double several_addresses_last(const DynamicShape& shape, double keys, Fill fill = Fill::mean);
// The share of all keys: the mean of the two, weighted by the keys that each is for.
double several_addresses(const DynamicShape& shape, double keys, Fill fill = Fill::mean);

// Share of the keys that are left when all are forgotten, since a key with several addresses cannot
// be removed; filters that fit into one are merged on the way. In the order of insertion, or in
// reverse, a key stays if a filter that is still full claims it too; filters that are already
// emptied claim almost nothing. With s full filters of error f: 1 − (1 − (1 − f)^s)/(sf). In a
// random order all filters empty at the same time and far fewer keys stay; there is no closed
// formula, so the loads are simulated in steps (2 to 7 % too low up to ten filters).
enum class ForgetOrder { oldest_first, newest_first, random };
double left_after_forgetting_all(const DynamicShape& shape, double keys,
                                 ForgetOrder order = ForgetOrder::oldest_first,
                                 Fill fill = Fill::mean);

// --- §3.5.1: asking before inserting -------------------------------------------------------------

// n · f₂(n) / c: an upper estimate of the filters that are wasted on keys which were found before
// they were inserted. From 1 on it pays to ask first.
double ask_first_ratio(const DynamicShape& shape, double keys);
bool ask_first(const DynamicShape& shape, double keys);
// The exact value for distinct keys: the mean number of such keys, in filters. About half of the
// estimate.
double wasted_filters(const DynamicShape& shape, double keys);

// --- §4.1: against one standard filter -----------------------------------------------------------

// Eq. 13: bits of a standard filter with the error of `filters` full ones, as a share of theirs;
// the same probes, all of their keys.
double standard_size_ratio(const DynamicShape& shape, double filters);
// Eq. 14: error of a standard filter that has the memory of the whole series, s · m bits.
double standard_same_memory_fpr(const DynamicShape& shape, double keys);

// --- a series that tightens ----------------------------------------------------------------------

// Error given to the i-th filter, from 0, so that the sum over all is `total` however many there
// will be: total · (1 − r) · r^i, for 0 < r < 1.
double tightened_fpr(double total, double ratio, unsigned index);
// The sum over the first `filters`: total · (1 − r^filters). The chance that any of them errs is
// below it.
double tightened_sum(double total, double ratio, unsigned filters);

// --- §3.5.2: compressed transfer -----------------------------------------------------------------

// The size of `bits` bits after ideal compression, with a share `fill` of ones.
double compressed_bits(double bits, double fill);

// A filter as sent: larger in memory than in transfer, with fewer probes than usual.
struct CompressedShape {
  unsigned probes = 0;
  double bits_per_key = 0;      // in memory
  double transfer_per_key = 0;  // compressed
  double fpr = 0;
};
// For that many probes, the size in memory that compresses to `transfer_per_key` bits per key.
CompressedShape compressed_shape(double transfer_per_key, unsigned probes);
// Of all numbers of probes, the one with the least error that sends at most `transfer_per_key` and
// keeps to `most_bits_per_key` in memory, at least as much. A single probe is the best where
// its large filter fits.
CompressedShape best_compressed_shape(double transfer_per_key, double most_bits_per_key);

}  // namespace sluice::model
