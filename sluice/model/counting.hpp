// When the counters of a counting Bloom filter overflow (Fan et al. 2000, §V.C).
#pragma once

namespace sluice::model {

// Chance that one given counter of `counters` is raised to `limit` or more by `keys` keys of
// `probes` probes: a binomial tail.
double counter_overflow(double counters, unsigned probes, double keys, unsigned limit = 16);

// Bound of the chance that any counter is: m · C(nk, j) / m^j, for j = 16 (four bits) by default.
double counting_overflow_bound(double counters, unsigned probes, double keys, unsigned limit = 16);

// The same for any number of keys up to the one with the least error, k ≤ ln 2 · m/n:
// m · (e · ln 2 / j)^j, which is 1.37·10⁻¹⁵ · m for 16.
double counting_overflow_worst(double counters, unsigned limit = 16);

}  // namespace sluice::model
