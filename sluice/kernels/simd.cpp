#include "sluice/kernels/simd.hpp"

// clang-format off
#include "sluice/base/targets.hpp"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "sluice/kernels/simd.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>
// clang-format on

#include "sluice/base/error.hpp"

HWY_BEFORE_NAMESPACE();
namespace sluice::HWY_NAMESPACE {
// The compiled-in name of the code that really runs, not what the processor claims.
std::int64_t running_target() {
  return HWY_TARGET;
}
}  // namespace sluice::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace sluice {
namespace {

HWY_EXPORT(running_target);

struct Level {
  std::int64_t target;
  std::string_view name;
};
constexpr Level kLevels[] = {{HWY_AVX3, "avx512"}, {HWY_AVX2, "avx2"}, {HWY_NEON, "neon"}};
constexpr std::int64_t kPortableTargets = HWY_SCALAR | HWY_EMU128;

std::int64_t built_and_supported() {
  // What the processor has, regardless of what was forced before.
  static const std::int64_t supported = hwy::SupportedTargets();
  return supported & HWY_TARGETS;
}

}  // namespace

std::string_view simd_level() {
  const std::int64_t running = HWY_DYNAMIC_DISPATCH(running_target)();
  for (const Level& level : kLevels)
    if (level.target == running) return level.name;
  return "portable";
}

std::vector<std::string_view> simd_levels() {
  std::vector<std::string_view> names;
  for (const Level& level : kLevels)
    if (built_and_supported() & level.target) names.push_back(level.name);
  names.push_back("portable");
  return names;
}

void force_simd_level(std::string_view name) {
  const std::int64_t supported = built_and_supported();
  std::int64_t target = name == "portable" ? kPortableTargets : 0;
  for (const Level& level : kLevels)
    if (level.name == name) target = level.target & supported;
  if (target == 0) {
    std::string known;
    for (const std::string_view each : simd_levels())
      known += (known.empty() ? "" : ", ") + std::string(each);
    throw BadParameters("no instruction set '" + std::string(name) + "' here: this processor has " +
                        known);
  }
  hwy::SetSupportedTargetsForTest(target);
  hwy::GetChosenTarget().Update(target);
}

}  // namespace sluice
#endif  // HWY_ONCE
