#include "sluice/filters/stable.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cassert>
#include <cmath>

#include "sluice/base/error.hpp"
#include "sluice/filters/batches.hpp"
#include "sluice/kernels/prefetch.hpp"

namespace sluice {
namespace {

// As in bloom.cpp: each key brings a line per probe.
constexpr std::size_t kKeysAhead = 3;
constexpr std::uint64_t kMostBytes = std::uint64_t{1} << 46;
constexpr std::uint64_t kStandardBytes = std::uint64_t{16} << 20;
constexpr std::uint64_t kMostKeys = std::uint64_t{1} << 44;
constexpr unsigned kMostMax = 15;

// The fill varies around its mean: these margins, the second in standard deviations, keep the error below
// its target nearly always.
constexpr double kRoom = 0.98, kRoomDeviations = 4;

constexpr std::string_view kDraws[] = {"run", "independent"};

constexpr ParameterInfo kKnown[] = {
    {"bytes", "size of the table", "8 to 64TiB",
     "what a mean distance of `keys` keys needs, or 16MiB"},
    {"probes", "cells per key", "1 to 64", "those that remember farthest"},
    {"decrements", "cells that each record reduces", "1 to 65536", "the fewest that hold fpr"},
    {"max", "what a cell is set to; cells have 1, 2 or 4 bits", "1 to 15", "1"},
    {"draws", "which cells are reduced: neighbours, or each by chance", "run or independent",
     "run"},
    {"fpr", "the error it is planned for", "above 0, below 1", "`fpr`"},
    {"seed", "of the random choice of cells to reduce", "0 to 2^64 − 1", "1"},
};

const char* what_is_wrong(const Stable::Params& params) {
  if (params.bits == 0 || params.bits % 64 != 0 || params.bits / 8 > kMostBytes)
    return "filter 'stable' takes a table of 8 bytes to 64 TiB, in whole words of 8 bytes";
  if (params.probes == 0 || params.probes > model::kMostStableProbes)
    return "filter 'stable' takes 1 to 64 probes";
  if (params.max == 0 || params.max > kMostMax)
    return "filter 'stable' takes cells with a maximum of 1 to 15";
  if (params.decrements == 0 || params.decrements > model::kMostStableDecrements ||
      params.decrements > params.cells())
    return "filter 'stable' takes 1 to 65536 decrements, and no more than it has cells";
  if (params.draws > Stable::Draws::independent) return "filter 'stable' has no such draws";
  if (!(params.target_fpr > 0 && params.target_fpr < 1))
    return "filter 'stable' takes a target error above 0 and below 1";
  return nullptr;
}

// Standard deviation of the error at the stable point, as a share of it: the fill varies like a sum of
// that many cells.
double spread_of(const model::StableShape& shape) {
  const double zeros = model::stable_zeros(shape);
  return shape.probes * std::sqrt(zeros / (1 - zeros) / shape.cells);
}

// Chooses the numbers of probes and decrements that were not given.
model::StableShape shape_for(const Stable::Params& params, double fpr) {
  model::StableShape shape = params.shape();
  if (params.probes == 0) {
    shape = model::stable_shape(shape.cells, shape.max, fpr);
    if (shape.probes == 0)
      throw BadParameters("filter 'stable' cannot hold that error with 64 probes: raise fpr");
  } else if (params.decrements == 0) {
    shape.decrements = model::stable_decrements(shape, fpr);
  }
  return shape;
}

// In a small table chance matters more than the first margin.
model::StableShape shape_for(const Stable::Params& params) {
  const model::StableShape shape = shape_for(params, params.target_fpr * kRoom);
  const double room = 1 / (1 + kRoomDeviations * spread_of(shape));
  if (model::stable_fpr(shape) <= params.target_fpr * room) return shape;
  return shape_for(params, params.target_fpr * room);
}

// Distances grow in proportion to the table, and a little more than that in small ones.
std::uint64_t bytes_for(Stable::Params params, double keys) {
  params.bits = std::uint64_t{1} << 24;
  std::uint64_t bytes = 0;
  for (int step = 0; step < 4; ++step) {
    const double distance = model::stable_memory(shape_for(params)).mean_distance;
    const double words = std::ceil(keys / distance * static_cast<double>(params.bits / 64));
    if (!(words * 8 <= static_cast<double>(kMostBytes)))
      throw BadParameters(
          "filter 'stable' would need more than 64 TiB to remember so many keys: lower `keys`, or "
          "raise `fpr`");
    bytes = static_cast<std::uint64_t>(std::max(words, 8.0)) * 8;
    if (bytes >= std::uint64_t{1} << 21) break;
    params.bits = bytes * 8;
  }
  return bytes;
}

}  // namespace

std::span<const ParameterInfo> Stable::Params::known() {
  return kKnown;
}

model::StableShape Stable::Params::shape() const {
  return {.cells = static_cast<double>(cells()),
          .probes = probes,
          .decrements = decrements,
          .max = max};
}

Stable::Params Stable::Params::from(const Wish& wish, const Settings& settings) {
  const SettingsReader reader("stable", settings, kKnown);
  Params params;
  params.target_fpr = reader.probability("fpr").value_or(wish.fpr);
  params.max = static_cast<unsigned>(reader.count("max", 1, kMostMax).value_or(1));
  params.probes =
      static_cast<unsigned>(reader.count("probes", 1, model::kMostStableProbes).value_or(0));
  params.decrements = static_cast<unsigned>(
      reader.count("decrements", 1, model::kMostStableDecrements).value_or(0));
  if (params.decrements != 0 && params.probes == 0)
    throw BadParameters("filter 'stable' takes decrements only together with probes: name both");
  params.seed = reader.count("seed", 0, ~std::uint64_t{0}).value_or(1);
  params.draws =
      static_cast<Draws>(std::ranges::find(kDraws, reader.choice("draws", kDraws).value_or("run")) -
                         std::begin(kDraws));
  const auto bytes = reader.size("bytes", 8, kMostBytes);
  if (bytes)
    params.bits = *bytes / 8 * 64;
  else if (wish.keys)
    params.bits = 8 * bytes_for(params, static_cast<double>(std::min(*wish.keys, kMostKeys)));
  else
    params.bits = kStandardBytes * 8;
  const model::StableShape shape = shape_for(params);
  params.probes = shape.probes;
  params.decrements = shape.decrements;
  return params;
}

Settings Stable::Params::settings() const {
  Settings settings;
  settings.add("bytes", bits / 8);
  settings.add("probes", std::uint64_t{probes});
  settings.add("decrements", std::uint64_t{decrements});
  settings.add("max", std::uint64_t{max});
  settings.add("draws", kDraws[static_cast<std::size_t>(draws)]);
  settings.add("fpr", target_fpr);
  settings.add("seed", seed);
  return settings;
}

Forecast Stable::Params::brief_forecast(double distance) const {
  if (const char* wrong = what_is_wrong(*this)) throw BadParameters(wrong);
  const double fpr = model::stable_fpr(shape());
  return {.keys = static_cast<std::uint64_t>(model::stable_memory(shape()).mean_distance),
          .bytes = bits / 8,
          .fpr = fpr,
          .fpr_spread = fpr * spread_of(shape()),
          .fnr = 1 - model::stable_caught(shape(), distance),
          .lines = draws == Draws::run ? 1.0 + probes : 0.0 + probes + decrements};
}

Forecast Stable::Params::forecast(double distance) const {
  Forecast made = brief_forecast(distance);
  made.settings = settings();
  return made;
}

double Stable::Params::distance_of(double fnr) const {
  return model::stable_distance(shape(), fnr);
}

Stable Stable::make(const Params& params, MemoryResource& memory) {
  if (const char* wrong = what_is_wrong(params)) throw BadParameters(wrong);
  return Stable(params, memory);
}

Stable::Stable(const Params& params, MemoryResource& memory)
    : params_(params),
      cell_bits_(params.cell_bits()),
      mask_((std::uint64_t{1} << cell_bits_) - 1),
      cells_(params.cells()),
      random_(params.seed),
      table_(params.bits / 8, memory) {}

template <class Words>
void Stable::set(Words words, std::uint64_t cell) noexcept {
  const Place at = place(cell);
  std::uint64_t& word = words.at(at.word);
  live_ += (word >> at.shift & mask_) == 0;
  word = (word & ~(mask_ << at.shift)) | std::uint64_t{params_.max} << at.shift;
}

template <class Words>
void Stable::reduce(Words words, std::uint64_t cell) noexcept {
  const Place at = place(cell);
  std::uint64_t& word = words.at(at.word);
  const std::uint64_t old = word >> at.shift & mask_;
  live_ -= old == 1;
  word -= std::uint64_t{old != 0} << at.shift;
}

// Cells from `first` on, and from the beginning where the table ends.
template <class Words>
[[gnu::always_inline]] inline void Stable::reduce_run(Words words, std::uint64_t first) noexcept {
  std::uint64_t left = params_.decrements;
  while (left > 0) {
    const std::uint64_t here = std::min<std::uint64_t>({left, cells_ - first, 64 - first % 64});
    if (cell_bits_ == 1) {
      // A word at a time.
      std::uint64_t& word = words.at(first / 64);
      const std::uint64_t run = ~std::uint64_t{0} >> (64 - here) << (first % 64);
      live_ -= static_cast<std::uint64_t>(std::popcount(word & run));
      word &= ~run;
    } else {
      for (std::uint64_t cell = first; cell < first + here; ++cell) reduce(words, cell);
    }
    left -= here;
    first = first + here == cells_ ? 0 : first + here;
  }
}

template <class Words>
void Stable::reduce_some(Words words) noexcept {
  if (params_.draws == Draws::run) return reduce_run(words, scale_to(random_.next(), cells_));
  for (unsigned draw = 0; draw < params_.decrements; ++draw)
    reduce(words, scale_to(random_.next(), cells_));
}

template <class Words>
Verdict Stable::observe(Words words, const Digest& digest) noexcept {
  std::array<std::uint64_t, model::kMostStableProbes> own;
  bool known = true;
  for (unsigned probe = 0; probe < params_.probes; ++probe) {
    own[probe] = probe_position(digest, probe, cells_);
    known &= value(words, own[probe]) != 0;
  }
  reduce_some(words);
  for (unsigned probe = 0; probe < params_.probes; ++probe) set(words, own[probe]);
  return known ? Verdict::duplicate : Verdict::distinct;
}

template <class Words>
bool Stable::holds(Words words, const Digest& digest) const noexcept {
  for (unsigned probe = 0; probe < params_.probes; ++probe)
    if (value(words, probe_position(digest, probe, cells_)) == 0) return false;
  return true;
}

Verdict Stable::observe(const Digest& digest) noexcept {
  return with_words(table_, [&](auto words) { return observe(words, digest); });
}

bool Stable::may_contain(const Digest& digest) const noexcept {
  return with_words(table_, [&](auto words) { return holds(words, digest); });
}

// Each record draws as often as any other, so what will be drawn is known, too.
template <class Words>
void Stable::observe_ahead(Words words, std::span<const Digest> digests,
                           std::span<Verdict> verdicts) noexcept {
  const unsigned draws = params_.draws == Draws::run ? 1 : params_.decrements;
  SplitMix64 scout = random_;
  for (std::size_t i = 0; i < kKeysAhead * draws; ++i) scout.next();
  for (std::size_t i = 0; i < digests.size(); ++i) {
    if (i + kKeysAhead < digests.size()) {
      // In place, as in bloom.cpp.
      for (unsigned probe = 0; probe < params_.probes; ++probe)
        __builtin_prefetch(
            words.address(place(probe_position(digests[i + kKeysAhead], probe, cells_)).word), 1);
      for (unsigned draw = 0; draw < draws; ++draw)
        __builtin_prefetch(words.address(place(scale_to(scout.next(), cells_)).word), 1);
    }
    verdicts[i] = observe(words, digests[i]);
  }
}

std::size_t Stable::observe(std::span<const Digest> digests, std::span<Verdict> verdicts) noexcept {
  assert(digests.size() == verdicts.size());
  with_words(table_, [&](auto words) {
    if (table_.size() >= kernels::kPrefetchFromBytes)
      return observe_ahead(words, digests, verdicts);
    for (std::size_t i = 0; i < digests.size(); ++i) verdicts[i] = observe(words, digests[i]);
  });
  return digests.size();
}

void Stable::may_contain(std::span<const Digest> digests,
                         std::span<Verdict> verdicts) const noexcept {
  ask_each(table_, digests, verdicts,
           [this](auto words, const Digest& digest) { return holds(words, digest); });
}

std::size_t Stable::insert(std::span<const Digest> digests) noexcept {
  return insert_each(*this, digests);
}

void Stable::clear() noexcept {
  table_.clear();
  live_ = 0;
  random_ = SplitMix64(params_.seed);
}

double Stable::fill() const noexcept {
  return static_cast<double>(live_) / static_cast<double>(cells_);
}

FilterStats Stable::stats() const {
  return {.keys = live_ / params_.probes,
          .bytes = bytes(),
          .target_fpr = params_.target_fpr,
          .predicted_fpr = std::pow(fill(), params_.probes),
          .planned_fpr = model::stable_fpr(params_.shape())};
}

std::uint64_t Stable::count_live() const noexcept {
  if (cell_bits_ == 1) return table_.count_ones();
  std::uint64_t live = 0;
  with_words(table_, [&](auto words) {
    for (std::uint64_t cell = 0; cell < cells_; ++cell) live += value(words, cell) != 0;
  });
  return live;
}

void Stable::encode_header(Encoder& to) const {
  to.u64(params_.bits);
  to.u32(params_.probes);
  to.u32(params_.decrements);
  to.u32(params_.max);
  to.u8(static_cast<std::uint8_t>(params_.draws));
  to.f64(params_.target_fpr);
  to.u64(params_.seed);
  to.u64(random_.state());
}

void Stable::encode_payload(Encoder& to) const {
  table_.encode(to);
}

Stable Stable::decode(Decoder& header, Decoder& payload, MemoryResource& memory) {
  Params params;
  params.bits = header.u64();
  params.probes = header.u32();
  params.decrements = header.u32();
  params.max = header.u32();
  params.draws = static_cast<Draws>(header.u8());
  params.target_fpr = header.f64();
  params.seed = header.u64();
  const std::uint64_t state = header.u64();
  if (const char* wrong = what_is_wrong(params)) throw CorruptSnapshot(wrong);
  payload.expect_remaining(params.bits / 8, "the table of filter 'stable'");
  Stable filter(params, memory);
  filter.table_.decode(payload);
  if (params.max < filter.mask_)
    with_words(filter.table_, [&](auto words) {
      for (std::uint64_t cell = 0; cell < filter.cells_; ++cell)
        if (filter.value(words, cell) > params.max)
          throw CorruptSnapshot("filter 'stable' has a cell above its maximum");
    });
  filter.live_ = filter.count_live();
  filter.random_ = SplitMix64(state);
  return filter;
}

static_assert(Filter<Stable>);

}  // namespace sluice
