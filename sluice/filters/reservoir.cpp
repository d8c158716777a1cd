#include "sluice/filters/reservoir.hpp"

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
constexpr unsigned kWordsALine = kCacheLineBytes / 8;
constexpr std::uint64_t kMostBytes = std::uint64_t{1} << 46;
constexpr std::uint64_t kStandardBytes = std::uint64_t{16} << 20;
constexpr std::uint64_t kMostKeys = std::uint64_t{1} << 44;
// Filters are half full but for streams of very few keys: at 1/4 all draws miss in 1 of 10⁸ cases.
constexpr int kMostDraws = 64;

// The fill varies around its mean: this margin keeps the error below its target nearly always.
constexpr double kRoom = 0.98;

using Variant = Reservoir::Variant;

constexpr std::string_view kVariants[] = {"biased", "paper"};
constexpr std::string_view kAims[] = {"fpr", "few-false-negatives", "few-false-positives", "mean"};

constexpr ParameterInfo kKnown[] = {
    {"bytes", "size of the table", "8 to 64TiB",
     "what a mean distance of `keys` keys needs, or 16MiB"},
    {"filters", "filters into which it is cut; a key has a bit in each", "1 to 64",
     "what aim says"},
    {"aim",
     "how many filters: those that hold fpr and remember farthest, or one of the paper's three "
     "rules",
     "fpr, few-false-negatives, few-false-positives or mean", "fpr"},
    {"variant", "what is written: all that is judged distinct, or the paper's Algorithm 1",
     "biased or paper", "biased"},
    {"resets", "variant=biased: bits that a key resets in each filter for the one that it sets",
     "1 to 64", "the fewest that hold fpr"},
    {"threshold",
     "variant=paper: from which sampling rate on all that is judged distinct is written",
     "above 0, below 1", "0.03"},
    {"fpr", "the error it is planned for", "above 0, below 1", "`fpr`"},
    {"seed", "of the random draws", "0 to 2^64 − 1", "1"},
};

constexpr const char* kFillsUp =
    "filter 'reservoir' would fill up with one filter and one reset: it takes more of either";

// More than any stream brings; a count of them never wraps around.
constexpr std::uint64_t kMostRecords = std::uint64_t{1} << 61;

const char* what_is_wrong(const Reservoir::Params& params) {
  if (params.bits == 0 || params.bits % 64 != 0 || params.bits / 8 > kMostBytes)
    return "filter 'reservoir' takes a table of 8 bytes to 64 TiB, in whole words of 8 bytes";
  if (params.filters == 0 || params.filters > model::kMostReservoirFilters)
    return "filter 'reservoir' takes 1 to 64 filters";
  if (params.size() == 0) return "filter 'reservoir' takes 8 bytes per filter at least";
  if (params.variant > Variant::paper) return "filter 'reservoir' has no such variant";
  if (params.resets == 0 || params.resets > model::kMostReservoirResets ||
      params.resets > params.size())
    return "filter 'reservoir' takes 1 to 64 resets, and no more than a filter has bits";
  if (params.variant == Variant::paper && params.resets != 1)
    return "filter 'reservoir' has resets with variant=biased only";
  if (params.variant == Variant::biased && params.filters * params.resets == 1) return kFillsUp;
  if (!(params.threshold > 0 && params.threshold < 1))
    return "filter 'reservoir' takes a threshold above 0 and below 1";
  if (!(params.target_fpr > 0 && params.target_fpr < 1))
    return "filter 'reservoir' takes a target error above 0 and below 1";
  return nullptr;
}

unsigned filters_for(std::string_view aim, double fpr) {
  if (aim == "few-false-negatives") return 1;
  if (aim == "few-false-positives") return model::reservoir_most_filters(fpr);
  return model::reservoir_mean_filters(fpr);
}

// Chooses the numbers of filters and resets that were not given.
void choose_shape(Reservoir::Params& params, std::string_view aim) {
  const double fpr = params.target_fpr * kRoom;
  if (params.filters == 0 && params.resets == 0 && aim == "fpr") {
    const model::ForgettingPlan plan = model::reservoir_plan(1 << 20, fpr, params.variant);
    if (plan.filters == 0)
      throw BadParameters("filter 'reservoir' cannot hold that error with 64 filters: raise fpr");
    params.filters = plan.filters;
    params.resets = plan.resets;
    return;
  }
  model::ReservoirShape shape = params.shape();
  if (params.filters == 0 && aim == "fpr") {
    for (shape.filters = 1; shape.filters < model::kMostReservoirFilters; ++shape.filters)
      if (model::reservoir_fpr(shape) <= fpr) break;
    params.filters = shape.filters;
  } else if (params.filters == 0) {
    params.filters = filters_for(aim, params.target_fpr);
  }
  if (params.resets != 0) return;
  shape.filters = params.filters;
  params.resets = model::reservoir_resets(shape, fpr);
  if (params.resets == 0)
    throw BadParameters(
        "filter 'reservoir' cannot hold that error with so few filters: name more, or raise fpr");
}

// Distances grow in proportion to the table.
std::uint64_t bytes_for(const Reservoir::Params& params, double keys) {
  constexpr double kWords = 1 << 20;
  model::ReservoirShape shape = params.shape();
  shape.size = 64 * kWords / params.filters;
  const double words = std::ceil(keys / model::reservoir_memory(shape).mean_distance * kWords);
  if (!(words * 8 <= static_cast<double>(kMostBytes)))
    throw BadParameters(
        "filter 'reservoir' would need more than 64 TiB to remember so many keys: lower `keys`, "
        "or raise `fpr`");
  return static_cast<std::uint64_t>(std::max(words, 8.0)) * 8;
}

}  // namespace

std::span<const ParameterInfo> Reservoir::Params::known() {
  return kKnown;
}

model::ReservoirShape Reservoir::Params::shape() const {
  return {.size = filters == 0 ? 0 : static_cast<double>(size()),
          .filters = filters,
          .variant = variant,
          .resets = resets};
}

Reservoir::Params Reservoir::Params::from(const Wish& wish, const Settings& settings) {
  const SettingsReader reader("reservoir", settings, kKnown);
  Params params;
  params.target_fpr = reader.probability("fpr").value_or(wish.fpr);
  params.variant = reader.choice("variant", kVariants).value_or("biased") == "paper"
                       ? Variant::paper
                       : Variant::biased;
  if (const auto threshold = reader.probability("threshold")) {
    if (params.variant != Variant::paper)
      throw BadParameters("filter 'reservoir' has a threshold with variant=paper only");
    params.threshold = *threshold;
  }
  const auto filters = reader.count("filters", 1, model::kMostReservoirFilters);
  const auto resets = reader.count("resets", 1, model::kMostReservoirResets);
  const auto aim = reader.choice("aim", kAims);
  if (filters && aim)
    throw BadParameters("filter 'reservoir' takes either filters or aim: one follows the other");
  params.filters = static_cast<unsigned>(filters.value_or(0));
  params.resets = static_cast<unsigned>(resets.value_or(0));
  choose_shape(params, aim.value_or("fpr"));
  if (params.variant == Variant::biased && params.filters * params.resets == 1)
    throw BadParameters(kFillsUp);
  params.seed = reader.count("seed", 0, ~std::uint64_t{0}).value_or(1);
  if (const auto bytes = reader.size("bytes", 8, kMostBytes))
    params.bits = *bytes / 8 * 64;
  else if (wish.keys)
    params.bits = 8 * bytes_for(params, static_cast<double>(std::min(*wish.keys, kMostKeys)));
  else
    params.bits = kStandardBytes * 8;
  return params;
}

Settings Reservoir::Params::settings() const {
  Settings settings;
  settings.add("bytes", bits / 8);
  settings.add("filters", std::uint64_t{filters});
  settings.add("variant", kVariants[static_cast<std::size_t>(variant)]);
  if (variant == Variant::paper)
    settings.add("threshold", threshold);
  else
    settings.add("resets", std::uint64_t{resets});
  settings.add("fpr", target_fpr);
  settings.add("seed", seed);
  return settings;
}

namespace {

// The fill of each filter varies around its mean like a sum of that many bits.
double wander(const model::ReservoirShape& shape) {
  const double fill = model::reservoir_fill(shape);
  return model::reservoir_fpr(shape) *
         std::sqrt(shape.filters * std::max(0.0, 1 - fill) / (fill * shape.size));
}

}  // namespace

Forecast Reservoir::Params::brief_forecast(double distance) const {
  if (const char* wrong = what_is_wrong(*this)) throw BadParameters(wrong);
  // The resets of all filters lie side by side.
  const double resets_lines = std::ceil(filters / double{kWordsALine});
  return {.keys = static_cast<std::uint64_t>(model::reservoir_memory(shape()).mean_distance),
          .bytes = bits / 8,
          .fpr = model::reservoir_fpr(shape()),
          .fpr_spread = wander(shape()),
          .fnr = 1 - model::reservoir_caught(shape(), distance),
          .lines = filters + resets_lines};
}

Forecast Reservoir::Params::forecast(double distance) const {
  Forecast made = brief_forecast(distance);
  made.settings = settings();
  return made;
}

double Reservoir::Params::distance_of(double fnr) const {
  return model::reservoir_distance(shape(), fnr);
}

Reservoir Reservoir::make(const Params& params, MemoryResource& memory) {
  if (const char* wrong = what_is_wrong(params)) throw BadParameters(wrong);
  return Reservoir(params, memory);
}

Reservoir::Reservoir(const Params& params, MemoryResource& memory)
    : params_(params),
      size_(params.size()),
      random_(params.seed),
      table_(params.bits / 8, memory) {}

template <class Words>
void Reservoir::set(Words words, std::uint64_t at) noexcept {
  std::uint64_t& word = words.at(at / 64);
  ones_ += (word >> (at % 64) & 1) == 0;
  word |= std::uint64_t{1} << (at % 64);
}

template <class Words>
void Reservoir::reset(Words words, std::uint64_t at) noexcept {
  std::uint64_t& word = words.at(at / 64);
  ones_ -= word >> (at % 64) & 1;
  word &= ~(std::uint64_t{1} << (at % 64));
}

template <class Words>
void Reservoir::reset_a_set_bit(Words words, unsigned filter) noexcept {
  for (int tries = 0; tries < kMostDraws; ++tries) {
    const std::uint64_t at = draw(filter);
    if (has(words, at)) return reset(words, at);
  }
}

// In every filter the bits from `first` on, and from the beginning where it ends.
template <class Words>
void Reservoir::reset_run(Words words, std::uint64_t first) noexcept {
  std::uint64_t left = params_.resets;
  while (left > 0) {
    const std::uint64_t here = std::min(left, 64 - first % 64);
    const std::uint64_t run = ~std::uint64_t{0} >> (64 - here) << (first % 64);
    const std::uint64_t begin = first / 64 * params_.filters;
    for (unsigned filter = 0; filter < params_.filters; ++filter) {
      std::uint64_t& word = words.at(begin + filter);
      ones_ -= static_cast<std::uint64_t>(std::popcount(word & run));
      word &= ~run;
    }
    left -= here;
    first = first + here == size_ ? 0 : first + here;
  }
}

// Resets first, so that a key is remembered for a moment at least.
template <class Words>
void Reservoir::sample(Words words, const std::uint64_t* own) noexcept {
  for (unsigned filter = 0; filter < params_.filters; ++filter) {
    reset(words, draw(filter));
    set(words, own[filter]);
  }
}

template <class Words>
void Reservoir::swap_in(Words words, const std::uint64_t* own) noexcept {
  for (unsigned filter = 0; filter < params_.filters; ++filter) {
    if (has(words, own[filter])) continue;
    reset_a_set_bit(words, filter);
    set(words, own[filter]);
  }
}

// The first s records, then each with chance s/i.
bool Reservoir::is_sampled() noexcept {
  return records_ <= size_ || scale_to(random_.next(), records_) < size_;
}

template <class Words>
Verdict Reservoir::observe(Words words, const Digest& digest) noexcept {
  std::array<std::uint64_t, model::kMostReservoirFilters> own;
  bool known = true;
  for (unsigned filter = 0; filter < params_.filters; ++filter) {
    own[filter] = position(digest, filter);
    known &= has(words, own[filter]);
  }
  ++records_;
  if (params_.variant == Variant::biased) {
    // Drawn also for records that are not written, so that future draws are known ahead.
    const std::uint64_t first = scale_to(random_.next(), size_);
    if (!known) {
      reset_run(words, first);
      for (unsigned filter = 0; filter < params_.filters; ++filter) set(words, own[filter]);
    }
  } else if (is_sampled()) {
    sample(words, own.data());
  } else if (!known &&
             static_cast<double>(size_) <= params_.threshold * static_cast<double>(records_)) {
    swap_in(words, own.data());
  }
  return known ? Verdict::duplicate : Verdict::distinct;
}

template <class Words>
bool Reservoir::holds(Words words, const Digest& digest) const noexcept {
  for (unsigned filter = 0; filter < params_.filters; ++filter)
    if (!has(words, position(digest, filter))) return false;
  return true;
}

Verdict Reservoir::observe(const Digest& digest) noexcept {
  return with_words(table_, [&](auto words) { return observe(words, digest); });
}

bool Reservoir::may_contain(const Digest& digest) const noexcept {
  return with_words(table_, [&](auto words) { return holds(words, digest); });
}

template <class Words>
void Reservoir::observe_ahead(Words words, std::span<const Digest> digests,
                              std::span<Verdict> verdicts) noexcept {
  const unsigned reset_words = params_.variant == Variant::biased ? params_.filters : 0;
  SplitMix64 scout = random_;
  for (std::size_t i = 0; i < kKeysAhead; ++i) scout.next();
  for (std::size_t i = 0; i < digests.size(); ++i) {
    if (i + kKeysAhead < digests.size()) {
      // In place, as in bloom.cpp.
      for (unsigned filter = 0; filter < params_.filters; ++filter)
        __builtin_prefetch(words.address(position(digests[i + kKeysAhead], filter) / 64), 1);
      const std::uint64_t first = scale_to(scout.next(), size_) / 64 * params_.filters;
      for (unsigned word = 0; word < reset_words; word += kWordsALine)
        __builtin_prefetch(words.address(first + word), 1);
    }
    verdicts[i] = observe(words, digests[i]);
  }
}

std::size_t Reservoir::observe(std::span<const Digest> digests,
                               std::span<Verdict> verdicts) noexcept {
  assert(digests.size() == verdicts.size());
  with_words(table_, [&](auto words) {
    if (table_.size() >= kernels::kPrefetchFromBytes)
      return observe_ahead(words, digests, verdicts);
    for (std::size_t i = 0; i < digests.size(); ++i) verdicts[i] = observe(words, digests[i]);
  });
  return digests.size();
}

void Reservoir::may_contain(std::span<const Digest> digests,
                            std::span<Verdict> verdicts) const noexcept {
  ask_each(table_, digests, verdicts,
           [this](auto words, const Digest& digest) { return holds(words, digest); });
}

std::size_t Reservoir::insert(std::span<const Digest> digests) noexcept {
  return insert_each(*this, digests);
}

void Reservoir::clear() noexcept {
  table_.clear();
  records_ = ones_ = 0;
  random_ = SplitMix64(params_.seed);
}

double Reservoir::fill() const noexcept {
  return static_cast<double>(ones_) / static_cast<double>(size_ * params_.filters);
}

FilterStats Reservoir::stats() const {
  return {.keys = ones_ / params_.filters,
          .bytes = bytes(),
          .target_fpr = params_.target_fpr,
          .predicted_fpr = std::pow(fill(), params_.filters),
          .planned_fpr = model::reservoir_fpr(params_.shape())};
}

void Reservoir::encode_header(Encoder& to) const {
  to.u64(params_.bits);
  to.u32(params_.filters);
  to.u8(static_cast<std::uint8_t>(params_.variant));
  to.u32(params_.resets);
  to.f64(params_.threshold);
  to.f64(params_.target_fpr);
  to.u64(params_.seed);
  to.u64(records_);
  to.u64(random_.state());
}

void Reservoir::encode_payload(Encoder& to) const {
  table_.encode(to);
}

Reservoir Reservoir::decode(Decoder& header, Decoder& payload, MemoryResource& memory) {
  Params params;
  params.bits = header.u64();
  params.filters = header.u32();
  params.variant = static_cast<Variant>(header.u8());
  params.resets = header.u32();
  params.threshold = header.f64();
  params.target_fpr = header.f64();
  params.seed = header.u64();
  const std::uint64_t records = header.u64();
  const std::uint64_t state = header.u64();
  if (const char* wrong = what_is_wrong(params)) throw CorruptSnapshot(wrong);
  if (records >= kMostRecords) throw CorruptSnapshot("filter 'reservoir' claims too many records");
  payload.expect_remaining(params.bits / 8, "the table of filter 'reservoir'");
  Reservoir filter(params, memory);
  filter.table_.decode(payload);
  with_words(filter.table_, [&](auto words) {
    for (std::uint64_t at = filter.size_ / 64 * params.filters; at < params.bits / 64; ++at)
      if (words.get(at) != 0)
        throw CorruptSnapshot("filter 'reservoir' has bits set beyond its filters");
  });
  filter.records_ = records;
  filter.ones_ = filter.table_.count_ones();
  filter.random_ = SplitMix64(state);
  return filter;
}

static_assert(Filter<Reservoir>);

}  // namespace sluice
