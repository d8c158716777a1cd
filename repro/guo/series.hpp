// Series of filters as Guo et al. 2010 fill and measure them.
#pragma once

#include <vector>

#include "repro/experiment.hpp"
#include "sluice/base/random.hpp"
#include "sluice/filters/bloom/bloom.hpp"
#include "sluice/filters/dynamic/dynamic.hpp"
#include "sluice/model/dynamic.hpp"

namespace sluice::repro::guo {

// m, k and c of the parameters, as the filters have them. Throws BadParameters.
model::DynamicShape shape_of(const Context& context);
unsigned rounds_of(const Context& context);

// Empty. Without `forget` it writes without asking first, as the paper's Algorithm 1 does, until
// the rule of §3.5.1 says otherwise; ten filters at .0098 stay below that. One that forgets asks.
Dynamic dynamic_of(const model::DynamicShape& shape, bool forget);
// A standard filter of that many bits.
Bloom standard_of(double bits, unsigned probes, double keys);

// How far a mean over rounds may be from a formula that takes all filters for equally full: 5 %, or
// three standard errors of the keys asked for and of filters of a few hundred bits.
Tolerance of_formula(double expected, unsigned rounds);
inline constexpr const char* kLuck =
    "filters of few bits differ by luck, and the formula takes all for equally full: --set rounds "
    "takes the mean of more";
inline constexpr const char* kAsks =
    "where the rule of §3.5.1 says so our filter asks before it writes, and a key that is found is "
    "not written: fewer filters err less; or few rounds (--set rounds)";

Digest next_key(SplitMix64& random);
template <class F>
void write(F& filter, SplitMix64& random, double keys) {
  for (double i = 0; i < keys; ++i) filter.insert(next_key(random));
}
// Share of keys never written that are found.
template <class F>
double found_share(const F& filter, SplitMix64& random, int asked = 2000) {
  int found = 0;
  for (int i = 0; i < asked; ++i) found += filter.may_contain(next_key(random));
  return static_cast<double>(found) / asked;
}

}  // namespace sluice::repro::guo
