// What no filter can do better than, to compare bits per key with.
#pragma once

namespace sluice::model {

// A set with false positives (Carter et al. 1978): log₂(1/ε) bits per key.
double set_lower_bound_bits(double fpr);

// A window with slack (Naor & Yogev 2013): log₂(1/ε) + max(log₂ log₂(1/ε), log₂(window/slack)) bits
// a key, up to a constant a key. `slack` is a share of the window; a window of so many keys has at
// least one key of slack or none, so give 1/window for no slack.
double window_lower_bound_bits(double fpr, double slack);

// The least errors that `bits` a key allow: the inverses in ε. At most 1/2, where the second
// logarithm is 0; the bound below that many bits says nothing.
double set_lower_bound_fpr(double bits);
double window_lower_bound_fpr(double bits, double slack);

}  // namespace sluice::model
