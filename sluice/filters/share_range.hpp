// The range of errors and other shares that can be asked for. Outside it, double arithmetic fails:
// a smaller share has too few digits, and the distance of a larger one from 1 is rounded to 0.
#pragma once

namespace sluice {

inline constexpr double kLeastAsked = 1e-300, kMostAsked = 0.999999;
inline constexpr const char* kShareRange = "must lie between 1e-300 and 0.999999";

// Also false for NaN.
constexpr bool can_be_asked(double share) noexcept {
  return share >= kLeastAsked && share <= kMostAsked;
}

}  // namespace sluice
