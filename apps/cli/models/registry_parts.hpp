// The parts that the registry is put together from, one source per family, and parameters that
// several models share.
#pragma once

#include "apps/cli/models/registry.hpp"

namespace sluice::model {

std::span<const ModelInfo> set_models();      // Bloom filters, lower bounds, cohort
std::span<const ModelInfo> window_models();   // age-partitioned, timing, timer
std::span<const ModelInfo> sliced_models();   // over many sites, growth
std::span<const ModelInfo> dynamic_models();  // series of filters
std::span<const ModelInfo> endless_models();  // forgetting at random, growing
std::span<const ModelInfo> infer_models();    // posteriors, least cost

// Numbers that a table in memory could have; beyond, sums take long and doubles no longer count.
inline constexpr double kMostBits = 1e15;
inline constexpr double kMostKeys = 1e12;

inline constexpr ModelParameter kBits{"m", "bits", Takes::number, "", 2, kMostBits};
inline constexpr ModelParameter kProbes{"k", "probes: bits per key", Takes::whole, "", 1, 64};
inline constexpr ModelParameter kKeys{"n", "keys", Takes::number, "", 0, kMostKeys};
inline constexpr ModelParameter kTarget{"fpr", "the error that sizes are solved for", Takes::chance,
                                        "0.01"};

// For what only parameters together can be wrong in. Throws BadParameters with the sentence.
void refuse_unless(bool right, std::string_view sentence);

}  // namespace sluice::model
