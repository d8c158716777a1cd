#include "sluice/plan/memory_plan.hpp"

#include <gtest/gtest.h>

#include "sluice/base/error.hpp"
#include "sluice/filters/catalogue.hpp"

namespace sluice {
namespace {

constexpr std::uint64_t kMiB = std::uint64_t{1} << 20;

AnyFilter made(const MemoryPlan& plan, double fpr) {
  return make_filter(plan.filter, {.keys = plan.window, .fpr = fpr});
}

TEST(MemoryPlan, IsKeptByTheFilterItNames) {
  for (const std::uint64_t memory : {9 * kMiB, 16 * kMiB, 64 * kMiB, 1000 * kMiB})
    for (const double fpr : {1e-9, 1e-6, 1e-4, 1e-2, 0.05, 0.1, 0.3}) {
      const MemoryPlan plan = plan_for_memory(memory, fpr);
      const FilterStats stats = made(plan, fpr).stats();
      EXPECT_EQ(plan.bytes + kProcessBytes, memory);
      EXPECT_LE(stats.bytes, plan.bytes + 4096) << memory << " " << fpr;
      // A hundredth goes to a readable number of keys, the rest to whole buckets.
      EXPECT_GE(static_cast<double>(stats.bytes), 0.98 * static_cast<double>(plan.bytes))
          << memory << " " << fpr;
      EXPECT_LE(std::max(stats.planned_fpr, stats.predicted_fpr), fpr);
      EXPECT_EQ(plan.window.has_value(), plan.window_keys >= plan.random_keys);
    }
}

// Bits hold more keys at random than slots hold for sure only where large errors are allowed.
TEST(MemoryPlan, ForgetsAtRandomWhereThatReachesFurther) {
  for (const double fpr : {1e-9, 1e-6, 1e-3, 0.02})
    EXPECT_TRUE(plan_for_memory(64 * kMiB, fpr).window) << fpr;
  for (const double fpr : {0.1, 0.2, 0.4})
    EXPECT_FALSE(plan_for_memory(64 * kMiB, fpr).window) << fpr;
}

TEST(MemoryPlan, GrowsWithTheMemory) {
  double last = 0;
  for (std::uint64_t memory = 9 * kMiB; memory < 4000 * kMiB; memory *= 2) {
    const MemoryPlan plan = plan_for_memory(memory, 1e-6);
    EXPECT_GT(plan.window_keys, last);
    last = plan.window_keys;
  }
}

TEST(MemoryPlan, SaysWhatIsTooLittle) {
  EXPECT_THROW(plan_for_memory(kLeastMemory - 1, 1e-6), BadParameters);
  EXPECT_NO_THROW(plan_for_memory(kLeastMemory, 1e-6));
}

}  // namespace
}  // namespace sluice
