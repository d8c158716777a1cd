// Errors and sizes of the growing filter.
#pragma once

#include <cstdint>
#include <span>

namespace sluice::model {

// Chance that a key never seen agrees with a trace in one of its two buckets. by_bits[i] traces are
// there of which `tag_bits` bits of tag and i bits of hash are known: each matches one of the two
// hashes with chance 2^−(tag_bits + i), wherever it is and however often its bucket has been split.
// So only writes change the error, and a doubling adds no more than the first fill did.
double growing_fpr(unsigned tag_bits, std::span<const std::uint64_t> by_bits);

// The most that it can be after growth from `first_buckets` to `buckets`, at `load` of `slots`
// slots per bucket: keys written to a bucket of level l know l + hash_bits bits.
double growing_fpr_bound(unsigned slots, double load, unsigned tag_bits, unsigned hash_bits,
                         double first_buckets, double buckets);

// Bits per key of a table at its planned load.
double growing_bits_per_key(unsigned slot_bits, double load);

// Bits per key of a series of blocked Bloom filters that starts at `first_keys`, each `factor` times
// as large as the one before and planned for `tighten` times its error, all together for `fpr`;
// when it holds `keys`. What the growing filter is compared with.
double tightening_series_bits_per_key(double first_keys, double factor, double tighten, double fpr,
                                      double keys);

}  // namespace sluice::model
