#include "sluice/filters/timing/timing.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "sluice/base/error.hpp"
#include "sluice/model/bloom.hpp"
#include "sluice/model/cohort.hpp"
#include "sluice/model/timing.hpp"

namespace sluice {
namespace {

constexpr unsigned kMostPlannedProbes = 30;

constexpr ParameterInfo kKnown[] = {
    {"keys", "keys a window holds", "1 to 2^40", "the window, or `rate` times the window"},
    {"fpr", "the error it is planned for", "above 0, below 1", "`fpr`"},
    {"generations", "generations (blocks) a window is cut into; slack is one of them", "1 to 2^24",
     "as many as the timers' bits can tell"},
    {"probes", "timers a key has", "1 to 64", "what takes the fewest bits"},
    {"timer", "bits of a timer", "3 to 32",
     "the fewest for generations; without these max(probes, 3)"},
    {"padding", "extra timestamps: more of them mean less work per key", "0 to 2^32",
     "as much as leaves one timer per probe to look at"},
    {"timers", "timers in all", "1 to 2^49", "what keys and fpr need"},
    {"bytes", "size of the table, instead of timers", "8 to 64TiB", "what keys and fpr need"},
};

// The parameters that were given; the others are planned.
struct Asked {
  std::uint64_t keys;
  double fpr;
  std::optional<std::uint64_t> generations, timer_bits, padding, timers, bytes;
};

[[noreturn]] void refuse_bits(std::uint64_t bits, std::uint64_t generations) {
  throw BadParameters(fmt::format(
      "filter 'timing' cannot tell {} generations with timers of {} bits: take more bits or fewer "
      "generations",
      generations, bits));
}

// Bits, generations and padding of a table of `timers` timers.
void cut(Timing::Params& params, const Asked& asked) {
  const std::uint64_t most = StampedWindow::kMostGenerations;
  if (asked.generations) {
    const std::uint64_t generations = *asked.generations;
    const std::uint64_t block = (asked.keys + generations - 1) / generations;
    std::uint64_t padding =
        asked.padding.value_or(model::timing_padding(params.timers, params.probes, block));
    std::uint64_t bits = asked.timer_bits.value_or(3);
    const auto room = [&] { return (std::uint64_t{1} << bits) - 3; };
    while (!asked.timer_bits && bits < StampedWindow::kMostBits && generations + padding > room())
      ++bits;
    if (generations > room() || (asked.padding && generations + padding > room()))
      refuse_bits(bits, generations);
    padding = std::min(padding, room() - generations);
    params.timer_bits = static_cast<unsigned>(bits);
    params.generations = static_cast<unsigned>(generations);
    params.padding = static_cast<unsigned>(padding);
    return;
  }
  params.timer_bits =
      static_cast<unsigned>(asked.timer_bits.value_or(model::timing_bits(params.probes)));
  const unsigned bits = std::min(params.timer_bits, StampedWindow::kMostBits);
  const model::TimingShape shape =
      model::timing_shape(asked.keys, params.timers, params.probes, bits);
  params.timer_bits = bits;
  params.generations = static_cast<unsigned>(std::min(shape.generations, most));
  const std::uint64_t room = (std::uint64_t{1} << bits) - 3 - params.generations;
  params.padding = static_cast<unsigned>(std::min(asked.padding.value_or(shape.padding), room));
}

// A table for a given number of probes.
Timing::Params plan(unsigned probes, const Asked& asked) {
  Timing::Params params;
  params.probes = probes;
  params.capacity = asked.keys;
  params.target_fpr = asked.fpr;
  params.generations = static_cast<unsigned>(asked.generations.value_or(1));
  // The table depends on how many keys are live, that on the generations, and these on the table:
  // a few rounds settle it. More than needed is never wrong.
  for (int round = 0; round < 8; ++round) {
    const Timing::Params before = params;
    const auto live =
        static_cast<double>(StampedWindow::Shape::live_capacity(asked.keys, params.generations));
    if (asked.timers) {
      params.timers = *asked.timers;
    } else if (asked.bytes) {
      const std::uint64_t bits = asked.timer_bits.value_or(
          params.timer_bits != 0 ? params.timer_bits : model::timing_bits(probes));
      params.timers = std::max<std::uint64_t>(1, *asked.bytes * 8 / bits);
    } else {
      params.timers =
          StampedWindow::whole_timers(model::timing_timers_for(probes, live, asked.fpr));
    }
    cut(params, asked);
    if (asked.generations || params == before) break;
  }
  return params;
}

double planned_fpr(const Timing::Params& params) {
  return model::timing_window_fpr(static_cast<double>(params.timers), params.probes,
                                  static_cast<double>(params.shape().live_capacity()));
}

// The fewest bits; of tables of a given size, the least error.
double cost(const Timing::Params& params, const Asked& asked) {
  if (asked.timers || asked.bytes) return planned_fpr(params);
  return static_cast<double>(params.timers) * params.timer_bits;
}

// A lower bound for plans with that many probes, which is faster to compute.
double least_cost(unsigned probes, const Asked& asked) {
  if (asked.timers || asked.bytes) return 0;
  const double bits = asked.timer_bits    ? static_cast<double>(*asked.timer_bits)
                      : asked.generations ? std::log2(static_cast<double>(*asked.generations + 3))
                                          : model::timing_bits(probes);
  return bits * model::timing_timers_for(probes, static_cast<double>(asked.keys), asked.fpr);
}

}  // namespace

std::span<const ParameterInfo> Timing::Params::known() {
  return kKnown;
}

Timing::Shape Timing::Params::shape() const {
  return {.range = timers,
          .probes = probes,
          .bits = timer_bits,
          .generations = generations,
          .padding = padding,
          .capacity = capacity};
}

Timing::Params Timing::Params::from(const Wish& wish, const Settings& settings) {
  const SettingsReader reader("timing", settings, kKnown);
  Asked asked{};
  asked.keys = reader.count("keys", 1, kMostKeys).value_or(wish.keys.value_or(kStandardCapacity));
  if (asked.keys == 0 || asked.keys > kMostKeys)
    throw BadParameters("filter 'timing' takes 1 to 2^40 keys per window");
  asked.fpr = reader.probability("fpr").value_or(wish.fpr);
  asked.generations = reader.count("generations", 1, kMostGenerations);
  if (!asked.generations && wish.generations) asked.generations = std::max(1u, *wish.generations);
  asked.timer_bits = reader.count("timer", 3, kMostBits);
  asked.padding = reader.count("padding", 0, std::uint64_t{1} << 32);
  asked.timers = reader.count("timers", 1, std::uint64_t{1} << 49);
  asked.bytes = reader.size("bytes", 8, kMostTableBytes);
  if (asked.timers && asked.bytes)
    throw BadParameters("filter 'timing' takes timers or bytes, not both: give one");
  const auto probes = reader.count("probes", 1, kMostProbes);
  if (probes) return plan(static_cast<unsigned>(*probes), asked);
  // Those that cannot cost less than a likely one are not planned.
  constexpr double kLikelyProbesPerBit = 0.8;
  const auto likely = static_cast<unsigned>(
      std::clamp(-kLikelyProbesPerBit * std::log2(asked.fpr), 1.0, double{kMostPlannedProbes}));
  const double enough = cost(plan(likely, asked), asked);
  std::optional<Params> best;
  for (unsigned each = 1; each <= kMostPlannedProbes; ++each) {
    const double least = least_cost(each, asked);
    if (least > enough || (best && least >= cost(*best, asked))) continue;
    const Params other = plan(each, asked);
    if (!best || cost(other, asked) < cost(*best, asked)) best = other;
  }
  return best ? *best : plan(1, asked);
}

Settings Timing::Params::settings() const {
  Settings settings;
  settings.add("keys", capacity);
  settings.add("fpr", target_fpr);
  settings.add("generations", std::uint64_t{generations});
  settings.add("probes", std::uint64_t{probes});
  settings.add("timer", std::uint64_t{timer_bits});
  settings.add("padding", std::uint64_t{padding});
  settings.add("timers", timers);
  return settings;
}

Forecast Timing::Params::brief_forecast() const {
  check(*this);
  return {.keys = capacity,
          .bytes = bytes_of(shape()),
          .tables = 2,
          .fpr = planned_fpr(*this),
          .fpr_spread = model::bloom_spread(static_cast<double>(timers), probes,
                                            static_cast<double>(shape().live_capacity())),
          .lines = static_cast<double>(probes),
          .generations = generations,
          .slack = model::window_slack(generations),
          .npws = model::window_slack(generations)};
}

Forecast Timing::Params::forecast() const {
  Forecast made = brief_forecast();
  made.settings = settings();
  return made;
}

const char* Timing::what_is_wrong(const Params& params) {
  if (!(params.target_fpr > 0 && params.target_fpr < 1))
    return "it takes a target error above 0 and below 1";
  if (params.generations == 0) return "it takes 1 to 2^24 generations";
  return StampedWindow::what_is_wrong(params.shape());
}

void Timing::check(const Params& params) {
  if (const char* wrong = what_is_wrong(params))
    throw BadParameters(fmt::format("filter 'timing' cannot be made: {}", wrong));
}

Timing Timing::make(const Params& params, MemoryResource& memory) {
  check(params);
  return Timing(params, memory);
}

Timing::Timing(const Params& params, MemoryResource& memory)
    : StampedWindow("timing", params.shape(), memory), params_(params) {}

FilterStats Timing::stats() const {
  return {
      .keys = live_keys(),
      .capacity = params_.capacity,
      .bytes = bytes(),
      .target_fpr = params_.target_fpr,
      .predicted_fpr = model::timing_window_fpr(static_cast<double>(params_.timers), params_.probes,
                                                static_cast<double>(live_keys()))};
}

void Timing::encode_header(Encoder& to) const {
  to.u64(params_.timers);
  to.u32(params_.probes);
  to.u32(params_.timer_bits);
  to.u32(params_.generations);
  to.u32(params_.padding);
  to.u64(params_.capacity);
  to.f64(params_.target_fpr);
  encode_state(to);
}

Timing Timing::decode(Decoder& header, Decoder& payload, MemoryResource& memory) {
  Params params;
  params.timers = header.u64();
  params.probes = header.u32();
  params.timer_bits = header.u32();
  params.generations = header.u32();
  params.padding = header.u32();
  params.capacity = header.u64();
  params.target_fpr = header.f64();
  if (const char* wrong = what_is_wrong(params))
    throw CorruptSnapshot(fmt::format("there is no such filter 'timing': {}", wrong));
  expect_tables(params.shape(), payload);
  Timing filter(params, memory);
  filter.decode_state(header, payload);
  return filter;
}

static_assert(WindowFilter<Timing>);

}  // namespace sluice
