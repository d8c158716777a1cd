#include "sluice/plan/memory_plan.hpp"

#include <fmt/format.h>

#include <cmath>

#include "sluice/base/error.hpp"
#include "sluice/base/quantity.hpp"
#include "sluice/filters/cohort.hpp"
#include "sluice/model/reservoir.hpp"

namespace sluice {
namespace {

// Down to three digits: a number that a person can read costs at most a hundredth.
std::uint64_t readable(std::uint64_t keys) {
  std::uint64_t unit = 1;
  while (keys / unit >= 1000) unit *= 10;
  return keys / unit * unit;
}

std::uint64_t cohort_keys(std::uint64_t bytes, double fpr) {
  Settings settings;
  settings.add("bytes", bytes);
  return readable(Cohort::Params::from({.fpr = fpr}, settings).capacity);
}

}  // namespace

MemoryPlan plan_for_memory(std::uint64_t memory, double fpr) {
  if (memory < kLeastMemory)
    throw BadParameters(
        fmt::format("--memory {} is too little: the process alone takes {}; give {} or more",
                    memory, format_size(kProcessBytes), format_size(kLeastMemory)));
  if (memory > kMostMemory)
    throw BadParameters(fmt::format("--memory {} is more than any filter takes: give {} or less",
                                    format_size(memory), format_size(kMostMemory)));
  MemoryPlan plan;
  plan.memory = memory;
  plan.bytes = memory - kProcessBytes;
  const std::uint64_t window = cohort_keys(plan.bytes, fpr);
  const model::ForgettingPlan random = model::reservoir_plan(8 * static_cast<double>(plan.bytes),
                                                             fpr, model::ReservoirVariant::biased);
  plan.window_keys = static_cast<double>(window);
  plan.random_keys = random.mean_distance;
  const auto keys = [](double count) { return format_count(static_cast<std::uint64_t>(count)); };
  const std::string both = fmt::format(
      "a window that fits holds the last {} keys for sure, forgetting at random would "
      "hold a key for {} in the mean",
      keys(plan.window_keys), keys(plan.random_keys));
  if (plan.window_keys >= plan.random_keys) {
    plan.filter = "cohort";
    plan.window = window;
    plan.reason = fmt::format("the most recent past (cohort), because {}", both);
  } else {
    plan.filter = fmt::format("reservoir,bytes={}", plan.bytes);
    plan.reason = fmt::format("forgetting at random (reservoir), because {}", both);
  }
  return plan;
}

}  // namespace sluice
