#include "sluice/filters/cohort/cohort.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "sluice/base/checked.hpp"
#include "sluice/base/error.hpp"
#include "sluice/model/cohort.hpp"

namespace sluice {
namespace {

constexpr unsigned kSlotBits[] = {16, 24, 32, 40, 48};
constexpr std::uint64_t kFewestBuckets = 4;
constexpr std::uint64_t kMostBuckets = std::uint64_t{1} << 40;
constexpr std::uint64_t kMostKeys = std::uint64_t{1} << 44;
constexpr unsigned kStandardGenerations = 24;
constexpr unsigned kStandardGenerations16 = 12;  // 16-bit slots have 4 bits for generations

constexpr ParameterInfo kKnown[] = {
    {"slot", "bits of a slot: fingerprint and generation", "16, 24, 32, 40 or 48",
     "the fewest that hold fpr"},
    {"generations", "generations a window is cut into; slack is one of them", "1 to 61",
     "24; with 16-bit slots 12"},
    {"keys", "keys a window holds", "1 to 2^44", "the window, or `rate` times the window"},
    {"bytes", "size of the table", "256 to 64TiB", "what keys need"},
    {"fpr", "the error it is planned for", "above 0, below 1", "`fpr`"},
};

// Numbers must be left for generations that are dead but not yet swept: two, so that the sweep can
// be spread over one generation at least.
constexpr unsigned most_generations(unsigned generation_bits) {
  return (1u << generation_bits) - 3;
}

unsigned bits_for(unsigned generations) {
  unsigned bits = 4;
  while (bits < 6 && most_generations(bits) < generations) ++bits;
  return bits;
}

double planned_fpr(unsigned slot_bits, unsigned generation_bits) {
  return model::cohort_fpr(kernels::cohort_slots(slot_bits), slot_bits - generation_bits,
                           model::cohort_load(slot_bits));
}

unsigned slot_bits_for(double fpr, unsigned generation_bits) {
  for (const unsigned bits : kSlotBits)
    if (planned_fpr(bits, generation_bits) <= fpr) return bits;
  throw BadParameters(
      fmt::format("filter 'cohort' cannot reach an error of {}: its widest slots reach {:.1e}", fpr,
                  planned_fpr(48, generation_bits)));
}

}  // namespace

std::span<const ParameterInfo> Cohort::Params::known() {
  return kKnown;
}

const char* Cohort::Params::what_is_wrong() const {
  if (std::ranges::find(kSlotBits, slot_bits) == std::end(kSlotBits))
    return "filter 'cohort' takes slots of 16, 24, 32, 40 or 48 bits";
  if (generation_bits < 4 || generation_bits > 6)
    return "filter 'cohort' takes 4 to 6 bits for generations";
  if (generations > most_generations(generation_bits))
    return "filter 'cohort' takes at most 61 generations";
  if (buckets < kFewestBuckets || buckets > kMostBuckets)
    return "filter 'cohort' takes a table of 256 bytes to 64 TiB";
  if (capacity == 0 || capacity > kMostKeys)
    return "filter 'cohort' takes 1 to 2^44 keys per window";
  if (live_capacity() > buckets * kernels::cohort_slots(slot_bits) + Cohort::kMostStrays)
    return "filter 'cohort' has fewer slots in these bytes than keys in the window: give it more "
           "bytes, or fewer keys";
  if (!(target_fpr > 0 && target_fpr < 1))
    return "filter 'cohort' takes a target error above 0 and below 1";
  return nullptr;
}

std::uint64_t Cohort::Params::live_capacity() const {
  if (generations == 0) return capacity;
  return (capacity + generations - 1) / generations * (generations + 1);
}

Cohort::Params Cohort::Params::from(const Wish& wish, const Settings& settings) {
  const SettingsReader reader("cohort", settings, kKnown);
  Params params;
  params.target_fpr = reader.probability("fpr").value_or(wish.fpr);
  auto generations = reader.count("generations", 0, most_generations(6));
  if (!generations && wish.generations) generations = *wish.generations;
  const auto slot = reader.count("slot", 16, 48);
  // The coarser cut of 16-bit slots is chosen only where they are.
  const bool small = slot ? *slot == 16 : planned_fpr(16, 4) <= params.target_fpr;
  params.generations = static_cast<unsigned>(
      generations.value_or(small ? kStandardGenerations16 : kStandardGenerations));
  params.generation_bits = bits_for(params.generations);
  params.slot_bits = slot ? static_cast<unsigned>(*slot)
                          : slot_bits_for(params.target_fpr, params.generation_bits);
  const unsigned slots = kernels::cohort_slots(params.slot_bits);
  const double load = model::cohort_load(params.slot_bits);
  const auto bytes = reader.size("bytes", kFewestBuckets * 64, std::uint64_t{1} << 46);
  auto keys = reader.count("keys", 1, kMostKeys);
  if (!keys) keys = wish.keys;
  if (bytes) params.buckets = *bytes / kernels::kBucketBytes;
  if (bytes && !keys) {
    const double live = static_cast<double>(params.buckets * slots) * load;
    const double share = params.generations == 0 ? 1 : 1.0 + 1.0 / params.generations;
    keys = std::max<std::uint64_t>(1, static_cast<std::uint64_t>(live / share));
  }
  params.capacity = keys.value_or(kStandardCapacity);
  if (!bytes)
    params.buckets = std::max(
        kFewestBuckets, static_cast<std::uint64_t>(
                            std::ceil(static_cast<double>(params.live_capacity()) / slots / load)));
  return params;
}

Settings Cohort::Params::settings() const {
  Settings settings;
  settings.add("slot", std::uint64_t{slot_bits});
  settings.add("generations", std::uint64_t{generations});
  settings.add("keys", capacity);
  settings.add("bytes", buckets * kernels::kBucketBytes);
  settings.add("fpr", target_fpr);
  return settings;
}

Forecast Cohort::Params::brief_forecast() const {
  if (const char* wrong = what_is_wrong()) throw BadParameters(wrong);
  const unsigned slots = kernels::cohort_slots(slot_bits);
  const double load = static_cast<double>(live_capacity()) / (static_cast<double>(buckets) * slots);
  return {.keys = capacity,
          .bytes = buckets * kernels::kBucketBytes + strips(*this) * sizeof(std::uint32_t) +
                   kMostStrays * sizeof(kernels::CohortStray),
          .tables = 2,
          // Small tables have spare room, but promise only what they were planned for.
          .fpr = model::cohort_fpr(slots, slot_bits - generation_bits,
                                   std::max(load, model::cohort_load(slot_bits))),
          .lines = 2,
          .generations = generations,
          .slack = model::window_slack(generations),
          .npws = model::window_slack(generations)};
}

Forecast Cohort::Params::forecast() const {
  Forecast made = brief_forecast();
  made.settings = settings();
  return made;
}

}  // namespace sluice
