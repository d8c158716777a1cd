// Theoretical minimum of bits per key, for comparison.
#pragma once

namespace sluice::model {

// A set with false positives (Carter et al. 1978): log₂(1/ε) bits per key.
double set_lower_bound_bits(double fpr);

// A window with slack (Naor & Yogev 2013): log₂(1/ε) + max(log₂ log₂(1/ε), log₂(window/slack)) bits
// per key, up to a constant per key. `slack` is a share of the window; slack is at least one key or
// none, so give 1/window for no slack.
double window_lower_bound_bits(double fpr, double slack);

// The smallest errors possible with `bits` per key: the inverses in ε. At most 1/2, where the
// second logarithm is 0; for fewer bits there is no bound.
double set_lower_bound_fpr(double bits);
double window_lower_bound_fpr(double bits, double slack);

}  // namespace sluice::model
