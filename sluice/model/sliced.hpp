// Errors, costs and sizes of one Bloom filter over many sites (Koloniari et al. 2011, §3 and §5):
// numbers in, numbers out. Equation numbers are the paper's; where it assumes an even load of
// slices, we also have a version with a binomial load, since the even one is too low
// (docs/models.md).
#pragma once

#include <cstdint>
#include <span>

namespace sluice::model {

// How a filter is cut into slices, each at a site of its own.
enum class Slicing : std::uint8_t {
  horizontal,           // a key's slice is chosen by a hash; all its bits are there
  vertical,             // a key's bits are anywhere in the filter, so on up to k slices
  horizontal_vertical,  // h-v diced: horizontal, each of its slices cut vertically
  vertical_horizontal,  // v-h diced: vertical, each of its slices cut horizontally
  general,  // some different slices per key, with equal numbers of bits in each: GeneralSlicing
};

// Not for the general slicing, which has its own functions.
struct SlicedFilter {
  Slicing slicing = Slicing::vertical;
  double bits = 0;      // m, in all
  unsigned probes = 0;  // k
  double keys = 0;      // n, in all
  unsigned slices = 1;  // S
  unsigned inner = 1;   // S′: diced, parts of each slice

  // Sites: S, or S · S′ when diced.
  unsigned sites() const;
  // The number of parts of which a key chooses one for all its bits: S horizontal, 1 vertical.
  unsigned rows() const;
};

// --- all sites alive -----------------------------------------------------------------------------

// Eq. 3 (vertical) is eq. 1: (1 − (1 − 1/m)^{kn})^k. Eq. 4 (horizontal), every slice with n/S keys:
// (1 − (1 − S/m)^{kn/S})^k. h-v diced is eq. 4; v-h diced the same with S · S′ parts.
double sliced_fpr_even(const SlicedFilter& filter);

// The same with as many keys in each slice as chance gives it, X binomial: E[(1 − (1 −
// S/m)^{kX})^k] = Σ_j (−1)^j C(k,j) (1 − 1/S + q^j/S)^n with q = (1 − S/m)^k. Simulations agree
// with it. v-h diced is horizontal in S′ parts, since a key goes to the same part of every vertical
// slice.
double sliced_fpr(const SlicedFilter& filter);

// Share of set bits of a filter with error p: ρ = p^{1/k}.
double sliced_density(const SlicedFilter& filter);

// --- Proposition 2: k₁ slices per key, k₂ bits in each -------------------------------------------

struct GeneralSlicing {
  double bits = 0;
  double keys = 0;
  unsigned slices = 1;
  unsigned slices_per_key = 1;  // k₁, different ones: at most S
  unsigned bits_per_slice = 1;  // k₂
};
// With n·k₁/S keys in every slice: (1 − (1 − S/m)^{kn/S})^k, whichever k₁ · k₂ = k.
double general_fpr_even(const GeneralSlicing& slicing);
// With a binomial load: fewer, larger choices are worse.
double general_fpr(const GeneralSlicing& slicing);

// --- f of S sites failed -------------------------------------------------------------------------

// The verdict on a key when some of its bits are unreachable: a duplicate if all readable bits are
// set and at least `least_live` bits are readable. 0: unreachable bits count as set (`duplicate`);
// k: as not set (`distinct`); between: the hybrid rule's x. A count of *set* bits instead, as the
// paper words it, would hold back nearly everything at x = 3.
struct FaultRule {
  unsigned least_live = 0;
  static FaultRule duplicate() { return {0}; }
  static FaultRule distinct(unsigned probes) { return {probes}; }
  static FaultRule hybrid(unsigned x) { return {x}; }
};

struct SlicedErrors {
  double fpr = 0;
  double fnr = 0;
};

// With φ = f/S. Horizontal: eq. 5, φ + (1−φ)p, or (1−φ)p and φ. Vertical: eq. 6 and the hybrid
// rule's two, Σ_{i≥x} C(k,i) (1−φ)^i φ^{k−i} ρ^i and Σ_{i<x} C(k,i) (1−φ)^i φ^{k−i}. Diced: eq. 7,
// which is vertical with S · S′ sites.
SlicedErrors sliced_errors(const SlicedFilter& filter, unsigned failed, FaultRule rule);

// The same for diced filters with randomly placed failed sites: a key's bits are on the sites of
// one row only, of which more or fewer may have failed. Never below eq. 7 by the rule `duplicate`.
// Other slicings have no rows to differ: as sliced_errors.
SlicedErrors diced_errors(const SlicedFilter& filter, unsigned failed, FaultRule rule);

// The same for any filter, or set of filters, with an error of `fpr` while all sites answer: its
// bits and keys do not matter, and its probes only if a key has bits at several sites.
SlicedErrors errors_at(const SlicedFilter& cut, double fpr, unsigned failed, FaultRule rule);

// S_f (Definition 3): into how many sites a filter must be cut so that with f failed ones false
// positives stay at `fpr`, if unreachable bits count as set. Not rounded; infinite when the
// filter's own error is that high. The slicing's `slices` is ignored for vertical; for horizontal p
// is taken from eq. 1, as in the paper. The same for false negatives under any rule.
double fault_tolerance(const SlicedFilter& filter, unsigned failed, double fpr);
double fault_tolerance_fnr(const SlicedFilter& filter, unsigned failed, double fnr, FaultRule rule);
// The same for a filter with an error of `alive` while all sites answer, under any rule: into how
// many horizontal or vertical sites it must be cut, so that with f of them failed, or fewer, false
// positives stay at `fpr`. For the rule `duplicate` it is S_f.
double fault_tolerance_at(const SlicedFilter& cut, double alive, unsigned failed, double fpr,
                          FaultRule rule);

// --- costs ---------------------------------------------------------------------------------------

// Bits of positions that a producer sends: k · log₂ of a slice's bits.
double wire_bits(const SlicedFilter& filter);

// Sites that a key's bits are on, on average: S(1 − (1 − 1/S)^k) vertical, 1 horizontal.
double sites_of_key(const SlicedFilter& filter);

// Sites asked in turn about a key never inserted, until one has a bit that is not set, when a share
// `density` of bits is; and its mean while the filter fills from empty to its keys.
double pipelined_sites(const SlicedFilter& filter, double density);
double pipelined_sites_filling(const SlicedFilter& filter);

// Jain's fairness of loads: (Σx)² / (S·Σx²), 1 when all are equal.
double fairness(std::span<const double> loads);
// What to expect when a key of share p sends its load in equal parts to `slices_per_key` slices of S
// drawn for it: 1 / (1 + (S − 1)·Σp²/k₁). `concentration` is Σp².
double expected_fairness(unsigned slices, unsigned slices_per_key, double concentration);
// Σp² of Zipf's law with this exponent over that many keys.
double zipf_concentration(double keys, double exponent);
// The share of the slice with the highest load on such a stream. It has no closed form: the most
// frequent keys are placed one by one, the rest as a normal load, a few hundred times with a fixed
// seed. Which slices the first keys meet in decides most of it, so one run may be off by
// `deviation`.
struct HighestLoad {
  double mean, deviation;
};
HighestLoad zipf_highest_load(unsigned slices, unsigned slices_per_key, double keys,
                              double exponent);

// --- §5: when a filter is full -------------------------------------------------------------------

// The number of set bits at which its error is `fpr`: z = m · P^{1/k}, and the error of z set bits.
// (Keys instead of bits: bloom_keys.)
double growth_density(double bits, unsigned probes, double fpr);
double growth_density_fpr(double bits, unsigned probes, double set);
// The error of g live filters, each at its threshold: 1 − (1 − P)^g. The paper's bound is P, which
// holds for one.
double growth_fpr(double fpr, unsigned filters);
// The error that each of g may have so that all together keep `fpr`: the inverse.
double growth_share(double fpr, unsigned filters);

}  // namespace sluice::model
