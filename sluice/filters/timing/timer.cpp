#include "sluice/filters/timing/timer.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "sluice/base/error.hpp"
#include "sluice/model/bloom.hpp"
#include "sluice/model/cohort.hpp"
#include "sluice/model/timer.hpp"

namespace sluice {
namespace {

constexpr unsigned kStandardGenerations = 24;
constexpr unsigned kStandardSlices = 40;  // sites in the paper's experiments
constexpr unsigned kMostSlices = 1u << 16;
// Numbers 1 to 2^bits − 1, of which one is left for a generation that is not yet swept.
constexpr unsigned most_generations(unsigned timer_bits) {
  return (1u << timer_bits) - 3;
}
// From here on the sweep of 8-bit timers would have fewer generations than the window has.
constexpr unsigned kMostIn8Bits = 126;

constexpr std::string_view kLayouts[] = {"vertical", "plain", "horizontal"};

constexpr ParameterInfo kKnown[] = {
    {"keys", "keys a window holds", "1 to 2^40", "the window, or `rate` times the window"},
    {"fpr", "the error it is planned for, without equal", "above 0, below 1", "`fpr`"},
    {"generations", "generations a window is cut into; slack is one of them", "1 to 65533", "24"},
    {"probes", "timers a key has", "1 to 64", "log₂(1/fpr)"},
    {"timer", "bits of a timer", "8 or 16", "8 up to 126 generations"},
    {"layout", "one part of the table per probe, the whole table, or one slice per key",
     "vertical, plain or horizontal", "vertical"},
    {"slices", "slices of layout=horizontal", "1 to 65536", "40"},
    {"equal",
     "equal timers that a duplicate must have: fewer false positives, some repeats let "
     "through",
     "0 to probes; of 2 or more: generations × probes² up to 131072", "0: need not be equal"},
    {"timers", "timers in all", "1 to 2^46", "what keys and fpr need"},
};

model::TimerTable table_of(const Timer::Params& params) {
  return {.timers = static_cast<double>(params.timers),
          .probes = params.probes,
          .slices = params.slices,
          .vertical = params.layout == Timer::Layout::vertical};
}

unsigned parts_of(const Timer::Params& params) {
  return params.layout == Timer::Layout::vertical ? params.probes : params.slices;
}

}  // namespace

std::span<const ParameterInfo> Timer::Params::known() {
  return kKnown;
}

Timer::Shape Timer::Params::shape() const {
  Shape shape{.range = timers / std::max(1u, parts_of(*this)),
              .slices = slices,
              .vertical = layout == Layout::vertical,
              .probes = probes,
              .bits = timer_bits,
              .generations = generations,
              .capacity = capacity,
              .equal = equal};
  // All numbers that there are.
  if (generations <= most_generations(timer_bits))
    shape.padding = most_generations(timer_bits) - generations;
  return shape;
}

Timer::Params Timer::Params::from(const Wish& wish, const Settings& settings) {
  const SettingsReader reader("timer", settings, kKnown);
  Params params;
  params.capacity =
      reader.count("keys", 1, kMostKeys).value_or(wish.keys.value_or(kStandardCapacity));
  params.target_fpr = reader.probability("fpr").value_or(wish.fpr);
  params.generations = static_cast<unsigned>(
      reader.count("generations", 1, most_generations(16))
          .value_or(std::max(1u, wish.generations.value_or(kStandardGenerations))));
  params.timer_bits = static_cast<unsigned>(
      reader.count("timer", 8, 16).value_or(params.generations <= kMostIn8Bits ? 8 : 16));
  const std::string layout = reader.choice("layout", kLayouts).value_or("vertical");
  params.layout = static_cast<Layout>(std::ranges::find(kLayouts, layout) - std::begin(kLayouts));
  const auto slices = reader.count("slices", 1, kMostSlices);
  if (slices && params.layout != Layout::horizontal)
    throw BadParameters("filter 'timer' has slices with layout=horizontal only");
  if (params.layout == Layout::horizontal)
    params.slices = static_cast<unsigned>(slices.value_or(kStandardSlices));
  const double best = std::round(std::log2(1 / params.target_fpr));
  params.probes = static_cast<unsigned>(
      reader.count("probes", 1, kMostProbes)
          .value_or(static_cast<std::uint64_t>(std::clamp(best, 1.0, double{kMostProbes}))));
  params.equal = static_cast<unsigned>(reader.count("equal", 0, params.probes).value_or(0));
  const auto timers = reader.count("timers", 1, kMostTableBytes);
  const auto live = static_cast<double>(
      Shape::live_capacity(std::min(params.capacity, kMostKeys), params.generations));
  const double needed = timers ? static_cast<double>(*timers)
                               : model::timer_timers_for(table_of(params), live, params.target_fpr);
  const unsigned parts = parts_of(params);
  params.timers = timers.value_or(whole_timers(needed));
  params.timers = (params.timers + parts - 1) / parts * parts;
  return params;
}

Settings Timer::Params::settings() const {
  Settings settings;
  settings.add("keys", capacity);
  settings.add("fpr", target_fpr);
  settings.add("generations", std::uint64_t{generations});
  settings.add("probes", std::uint64_t{probes});
  settings.add("timer", std::uint64_t{timer_bits});
  settings.add("layout", kLayouts[static_cast<std::size_t>(layout)]);
  if (layout == Layout::horizontal) settings.add("slices", std::uint64_t{slices});
  settings.add("equal", std::uint64_t{equal});
  settings.add("timers", timers);
  return settings;
}

Forecast Timer::Params::brief_forecast() const {
  check(*this);
  const auto live = static_cast<double>(shape().live_capacity());
  return {.keys = capacity,
          .bytes = bytes_of(shape()),
          .tables = 2,
          .fpr = equal <= 1 ? model::timer_window_fpr(table_of(*this), live)
                            : model::timer_equal_fpr(table_of(*this), equal, live, generations + 1),
          .fpr_spread = model::bloom_spread(static_cast<double>(timers), probes, live),
          .fnr = model::timer_equal_fnr(table_of(*this), equal, live, generations + 1),
          .lines = static_cast<double>(probes),
          .generations = generations,
          .slack = model::window_slack(generations),
          .npws = model::window_slack(generations)};
}

Forecast Timer::Params::forecast() const {
  Forecast made = brief_forecast();
  made.settings = settings();
  return made;
}

const char* Timer::what_is_wrong(const Params& params) {
  // The model of equal timers takes as many steps: this many take a twentieth of a second, and without a
  // limit a state of a few bytes would take hours.
  constexpr std::uint64_t kMostSteps = 1u << 17;
  if (!(params.target_fpr > 0 && params.target_fpr < 1))
    return "it takes a target error above 0 and below 1";
  if (params.timer_bits != 8 && params.timer_bits != 16) return "its timers have 8 or 16 bits";
  if (params.generations == 0 || params.generations > most_generations(params.timer_bits))
    return "it takes 1 to 253 generations with timers of 8 bits, to 65533 with 16";
  if (params.layout > Layout::horizontal) return "it has no such layout";
  if (params.slices == 0 || params.slices > kMostSlices ||
      (params.slices != 1 && params.layout != Layout::horizontal))
    return "it takes 1 to 65536 slices, more than one with layout=horizontal only";
  if (params.probes == 0 || params.timers % parts_of(params) != 0)
    return "it takes as many timers for each probe or slice";
  if (const char* wrong = StampedWindow::what_is_wrong(params.shape())) return wrong;
  if (params.equal > 1 &&
      std::uint64_t{params.generations} * params.probes * params.probes > kMostSteps)
    return "with equal of 2 or more, generations × probes² is 131072 at most";
  return nullptr;
}

void Timer::check(const Params& params) {
  if (const char* wrong = what_is_wrong(params))
    throw BadParameters(fmt::format("filter 'timer' cannot be made: {}", wrong));
}

Timer Timer::make(const Params& params, MemoryResource& memory) {
  check(params);
  return Timer(params, memory);
}

Timer::Timer(const Params& params, MemoryResource& memory)
    : StampedWindow("timer", params.shape(), memory), params_(params) {}

FilterStats Timer::stats() const {
  const auto live = static_cast<double>(live_keys());
  double predicted = 0;
  if (params_.equal <= 1) {
    predicted = model::timer_window_fpr(table_of(params_), live);
  } else {
    // Keys of one generation share a time.
    double times = 0;
    for (unsigned age = 0; age <= params_.generations; ++age) times += keys_aged(age) > 0;
    predicted = model::timer_equal_fpr(table_of(params_), params_.equal, live, times);
  }
  return {.keys = live_keys(),
          .capacity = params_.capacity,
          .bytes = bytes(),
          .target_fpr = params_.target_fpr,
          .predicted_fpr = predicted};
}

void Timer::encode_header(Encoder& to) const {
  to.u64(params_.timers);
  to.u32(params_.probes);
  to.u32(params_.timer_bits);
  to.u32(params_.generations);
  to.u8(static_cast<std::uint8_t>(params_.layout));
  to.u32(params_.slices);
  to.u32(params_.equal);
  to.u64(params_.capacity);
  to.f64(params_.target_fpr);
  encode_state(to);
}

Timer Timer::decode(Decoder& header, Decoder& payload, MemoryResource& memory) {
  Params params;
  params.timers = header.u64();
  params.probes = header.u32();
  params.timer_bits = header.u32();
  params.generations = header.u32();
  params.layout = static_cast<Layout>(header.u8());
  params.slices = header.u32();
  params.equal = header.u32();
  params.capacity = header.u64();
  params.target_fpr = header.f64();
  if (const char* wrong = what_is_wrong(params))
    throw CorruptSnapshot(fmt::format("there is no such filter 'timer': {}", wrong));
  expect_tables(params.shape(), payload);
  Timer filter(params, memory);
  filter.decode_state(header, payload);
  return filter;
}

static_assert(WindowFilter<Timer>);

}  // namespace sluice
