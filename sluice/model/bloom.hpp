// Errors and sizes of Bloom filters: numbers in, numbers out.
#pragma once

#include <cstdint>

namespace sluice::model {

// Chance that a key never inserted finds all its `probes` bits set, in a classical filter of `bits`
// bits that holds `keys` keys: (1 − (1 − 1/m)^{kn})^k. Exact but for the dependence between bits,
// which is below 1 % from some hundreds of bits on.
double bloom_fpr(double bits, unsigned probes, double keys);

// The same for a large filter: (1 − e^{−kn/m})^k (Guo et al. 2010, eq. 1), and its inverse in n.
double bloom_fpr_limit(double bits, unsigned probes, double keys);
double bloom_keys_limit(double bits, unsigned probes, double fpr);

// The same without the approximation in bloom_fpr, which uses the mean share of set bits instead of
// the share in each filter: the mean of the k-th power exceeds the power of the mean, by half a
// percent for 1280 bits and 7 probes. Exact up to 24 probes and where it is above 10⁻¹² · 2^k,
// elsewhere to the second order.
double bloom_fpr_exact(double bits, unsigned probes, double keys);

// The number of probes with the least error at `bits` per key: the whole number nearest m/n · ln 2,
// at least 1 and at most `kMostProbes`.
unsigned bloom_probes(double bits, double keys);
inline constexpr unsigned kMostProbes = 64;

// The fewest bits that hold `keys` keys at an error of `fpr` with `probes` probes: the inverse of
// bloom_fpr.
double bloom_bits(unsigned probes, double keys, double fpr);

// Chance that a key finds all its bits set in a block with Poisson(mean) keys, where each key sets
// one bit in each of `bits` lanes of `lane` bits: E[(1 − (1 − 1/lane)^X)^bits].
double uneven_fpr(double mean, double lane, unsigned bits);

// The same for the blocked layout: blocks of 512 bits in `probes` lanes of 512/probes bits, one bit
// per lane. The number of keys X in a block is Poisson of mean keys/blocks, and the error is E[(1 −
// (1 − 1/lane)^X)^probes]: uneven blocks cost more than a classical filter's even bits.
double blocked_bloom_fpr(double blocks, unsigned probes, double keys);
double blocked_bloom_blocks(unsigned probes, double keys, double fpr);

// The same, with a binomial number of keys per block. It spreads less than Poisson's where there are few
// blocks: a single one has all keys, and with 20 of them errs half as often.
double blocked_bloom_fpr_of_few(double blocks, unsigned probes, double keys);

// The standard deviation of the error between filters with the same parameters; the functions above
// give its mean. Chance spreads keys unevenly, which matters in small tables: at 10⁻⁵ and 1,000
// keys it is a quarter of the mean in blocks, a twentieth in a classical filter.
double bloom_spread(double bits, unsigned probes, double keys);
double blocked_bloom_spread(double blocks, unsigned probes, double keys);

// How many keys a table holds before its error passes `fpr`: what capacity to state for a given
// size.
double bloom_keys(double bits, unsigned probes, double fpr);
double blocked_bloom_keys(double blocks, unsigned probes, double fpr);

// How many keys leave that many bits set, on average; infinite when all are set. A lane of the
// blocked layout gets Poisson(keys/blocks) keys, so its expected share of zeros is an exponential
// too.
double bloom_keys_of_ones(double bits, unsigned probes, double ones);
double blocked_bloom_keys_of_ones(double blocks, unsigned probes, double ones);

// The estimated number of keys of two filters merged into a table with that many ones, within its
// limits. Both may hold the same keys, so there are at least as many as in the larger, and at most
// as many as in both together; and every key set a bit.
std::uint64_t merged_keys(std::uint64_t a, std::uint64_t b, std::uint64_t ones, double estimate);

}  // namespace sluice::model
