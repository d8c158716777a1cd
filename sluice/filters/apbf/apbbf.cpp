#include "sluice/filters/apbf/apbbf.hpp"

#include <fmt/format.h>

#include <cmath>

#include "sluice/filters/apbf/age_partitioned_inl.hpp"
#include "sluice/model/bloom.hpp"
#include "sluice/model/memo.hpp"

namespace sluice {
namespace {

using Layout = kernels::ApbbfLayout;
using model::BlockShape;

constexpr std::uint64_t kMostKeys = std::uint64_t{1} << 44;
constexpr std::uint64_t kMostBytes = std::uint64_t{1} << 46;
constexpr unsigned kMostMatching = 16;
constexpr unsigned kMostGenerations = 128;
// Limits if k or l is not given: beyond these a query reads too many blocks.
constexpr unsigned kMostStandardMatching = 8;
constexpr unsigned kMostStandardGenerations = 24;

constexpr std::string_view kLayouts[] = {"segment", "column", "line"};
constexpr unsigned kLineSegments[] = {8, 16, 32};

constexpr ParameterInfo kKnown[] = {
    {"layout", "where a key's blocks lie: apart, side by side, or all in one cache line",
     "segment, column or line", "segment"},
    {"k", "segments a key is written in", "1 to 16; line: to 31", "what fpr needs"},
    {"l", "generations a window is cut into; slack is k of them",
     "0 to 128; line: k + l is 8, 16 or 32", "what takes the fewest bits"},
    {"block", "bits of a block (not of line)", "64 or 512", "512"},
    {"bits", "bits per key in a block (not of line)", "4 or 8", "what takes the fewest bits"},
    {"keys", "keys a window holds", "1 to 2^44", "the window, or `rate` times the window"},
    {"bytes", "size of the table", "64 to 64TiB", "what keys and fpr need"},
    {"fpr", "the error it is planned for", "above 0, below 1", "`fpr`"},
};

constexpr unsigned most_matching(Layout layout) {
  return layout == Layout::line ? 31 : kMostMatching;
}

BlockShape line_shape(unsigned segments) {
  return {512 / segments, 32 / segments};
}

struct Candidate {
  unsigned k, l;
  BlockShape shape;
  double bits_per_key;
};

struct Asked {
  Layout layout;
  std::optional<std::uint64_t> k, l, block, bits;
  double fpr;
};

double error_of(Layout layout, unsigned k, unsigned l, const BlockShape& shape) {
  return layout == Layout::segment ? model::apbbf_fpr(k, l, shape) : model::column_fpr(k, l, shape);
}

// Calls visit(k, least l, most l, shape) for all shapes that fit the request, apart from the error.
template <class Visit>
void for_each_shape(const Asked& asked, Visit visit) {
  const auto asked_k = [&](unsigned k) { return !asked.k || *asked.k == k; };
  if (asked.layout == Layout::line) {
    for (const unsigned segments : kLineSegments)
      for (unsigned k = 1; k < segments; ++k)
        if (asked_k(k) && (!asked.l || *asked.l == segments - k))
          visit(k, segments - k, segments - k, line_shape(segments));
    return;
  }
  const unsigned most_k = asked.k ? kMostMatching : kMostStandardMatching;
  const auto least_l = static_cast<unsigned>(asked.l.value_or(1));
  const auto most_l = static_cast<unsigned>(asked.l.value_or(kMostStandardGenerations));
  for (const unsigned bits : {4u, 8u}) {
    if (asked.bits && *asked.bits != bits) continue;
    const BlockShape shape{static_cast<unsigned>(asked.block.value_or(512)), bits};
    for (unsigned k = 1; k <= most_k; ++k)
      if (asked_k(k)) visit(k, least_l, most_l, shape);
  }
}

// The fewest bits that keep the error. More generations take fewer bits and have a higher error.
Candidate candidate_for(const Asked& asked) {
  // If everything is given, nothing is chosen.
  const bool given = asked.k && asked.l;
  const bool one = given && (asked.layout == Layout::line || asked.bits);
  std::optional<Candidate> best, largest;
  for_each_shape(asked, [&](unsigned k, unsigned low, unsigned high, const BlockShape& shape) {
    const auto reaches = [&](unsigned l) {
      return one || error_of(asked.layout, k, l, shape) <= asked.fpr;
    };
    const auto take = [&](std::optional<Candidate>& to, unsigned l, bool fewer) {
      const double bits = model::apbbf_bits(k, l, shape);
      if (!to || (fewer ? bits < to->bits_per_key : bits >= to->bits_per_key))
        to = Candidate{k, l, shape, bits};
    };
    if (given) take(largest, low, false);
    if (!reaches(low)) return;
    while (low < high) {
      const unsigned middle = low + (high - low + 1) / 2;
      if (reaches(middle))
        low = middle;
      else
        high = middle - 1;
    }
    take(best, low, true);
  });
  if (best) return *best;
  if (largest) return *largest;
  throw BadParameters(fmt::format(
      "filter 'apbbf' with layout={} cannot reach an error of {} with these k, l, block and bits: "
      "leave one of them out, or take another layout",
      kLayouts[static_cast<unsigned>(asked.layout)], asked.fpr));
}

// Blocks of a segment are whole cache lines together.
std::uint64_t block_group(const ApbbfParams& params) {
  return params.layout == Layout::segment ? 512 / params.block : 1;
}

}  // namespace

std::span<const ParameterInfo> ApbbfParams::known() {
  return kKnown;
}

ApbbfParams ApbbfParams::from(const Wish& wish, const Settings& settings) {
  const SettingsReader reader("apbbf", settings, kKnown);
  Asked asked;
  const auto layout = reader.choice("layout", kLayouts);
  asked.layout = !layout               ? Layout::segment
                 : *layout == "column" ? Layout::column
                 : *layout == "line"   ? Layout::line
                                       : Layout::segment;
  asked.fpr = reader.probability("fpr").value_or(wish.fpr);
  asked.k = reader.count("k", 1, most_matching(asked.layout));
  asked.l = reader.count("l", 0, kMostGenerations);
  if (!asked.l && wish.generations) asked.l = *wish.generations;
  asked.block = reader.count("block", 64, 512);
  asked.bits = reader.count("bits", 4, 8);
  if (asked.layout == Layout::line && (asked.block || asked.bits))
    throw BadParameters(
        "parameters 'block' and 'bits' of filter 'apbbf' cannot be used with layout=line: there "
        "they "
        "follow from k and l");
  if (asked.layout == Layout::line && asked.k && asked.l &&
      std::ranges::find(kLineSegments, *asked.k + *asked.l) == std::end(kLineSegments))
    throw BadParameters("filter 'apbbf' with layout=line takes k and l that make 8, 16 or 32");

  const Candidate chosen = candidate_for(asked);
  ApbbfParams params;
  params.layout = asked.layout;
  params.k = chosen.k;
  params.l = chosen.l;
  params.block = chosen.shape.block;
  params.bits = chosen.shape.bits;
  params.target_fpr = asked.fpr;
  const std::uint64_t generations = std::max(1u, params.l);
  const std::uint64_t group = block_group(params);
  const auto bytes = reader.size("bytes", 64, kMostBytes);
  auto keys = reader.count("keys", 1, kMostKeys);
  if (!keys) keys = wish.keys;
  if (bytes) {
    const std::uint64_t a_group = std::uint64_t{params.k + params.l} * params.block / 8 * group;
    params.blocks = *bytes / a_group * group;
    if (!keys) keys = std::max<std::uint64_t>(1, generations * params.generation_keys());
  }
  params.capacity = keys.value_or(kStandardCapacity);
  if (!bytes) {
    const std::uint64_t a_generation = (params.capacity + generations - 1) / generations;
    const double blocks =
        static_cast<double>(a_generation) * params.k / model::block_capacity(params.shape());
    params.blocks = (static_cast<std::uint64_t>(blocks) / group + 1) * group;
  }
  return params;
}

Settings ApbbfParams::settings() const {
  Settings settings;
  settings.add("layout", kLayouts[static_cast<unsigned>(layout)]);
  settings.add("k", std::uint64_t{k});
  settings.add("l", std::uint64_t{l});
  if (layout != Layout::line) {
    settings.add("block", std::uint64_t{block});
    settings.add("bits", std::uint64_t{bits});
  }
  settings.add("keys", capacity);
  settings.add("bytes", table_bytes());
  settings.add("fpr", target_fpr);
  return settings;
}

namespace {

// Relative standard deviation of the error between filters: k segments must match, and if one
// number chooses all their blocks, a block that is crowded in one segment is crowded in the others.
double match_spread(const ApbbfParams& params) {
  const double lane = params.shape().lane();
  const double mean = model::block_capacity(params.shape());
  // One lane of a block, as a filter with one bit per key; lanes of a block share its keys.
  const double one = model::bloom_spread(lane, 1, mean) / 0.5 / std::sqrt(params.blocks);
  const double uneven = std::sqrt(mean / static_cast<double>(params.blocks)) / lane;
  const double segment = std::sqrt(params.bits) * one + params.bits * uneven;
  return segment * (params.layout == Layout::segment ? std::sqrt(params.k) : params.k);
}

// For a new key. A column's blocks are adjacent: several small ones share a line.
double lines_per_key(const ApbbfParams& params) {
  if (params.layout == Layout::line) return 1;
  const unsigned segments = params.k + params.l;
  if (params.layout == Layout::column && segments <= kernels::kMostWholeColumn)
    return 1 + (segments - 1) * params.block / 512.0;
  const auto matches = model::block_matches(params.k, params.l, params.shape());
  return params.k + model::negative_accesses(matches, params.k);
}

// `match`: the chance that a segment with that many keys matches a key that it does not hold.
template <class Match>
std::vector<double> matches_of(const ApbbfParams& params, std::span<const double> generations,
                               std::span<const double> again, Match match) {
  std::vector<double> matches = model::keys_in_segments(generations, params.k, again);
  double before = -1, chance = 0;  // most segments hold as much as the one before
  for (double& each : matches) {
    if (each != before) chance = match(before = each);
    each = chance;
  }
  return matches;
}

double fpr_of(std::span<const double> matches, unsigned k) {
  return std::clamp(model::run_of_matches(matches, k), 0.0, 1.0);
}

}  // namespace

Forecast ApbbfParams::brief_forecast() const {
  if (const char* wrong = what_is_wrong()) throw BadParameters(wrong);
  const std::uint64_t a_generation = (capacity + std::max(1u, l) - 1) / std::max(1u, l);
  const std::vector<double> full(k + l, static_cast<double>(a_generation));
  // Of columns, what is known of full ones: the table is no fuller.
  const double fpr = layout == Layout::segment
                         ? fpr_of(matches_of(*this, full, {},
                                             [&](double keys) {
                                               return model::block_match(
                                                   shape(), keys / static_cast<double>(blocks));
                                             }),
                                  k)
                         : model::column_fpr(k, l, shape());
  return {.keys = capacity,
          .bytes = Apbbf::bytes_for(*this),
          .tables = Apbbf::kTables,
          .fpr = fpr,
          .fpr_spread = fpr * match_spread(*this),
          .generations = l,
          .slack = model::apbf_slack(k, l),
          .npws = npws()};
}

Forecast ApbbfParams::forecast() const {
  Forecast made = brief_forecast();
  made.lines = lines_per_key(*this);
  made.settings = settings();
  return made;
}

std::uint64_t ApbbfParams::generation_keys() const noexcept {
  return static_cast<std::uint64_t>(static_cast<double>(blocks) * model::block_capacity(shape()) /
                                    k);
}

const char* ApbbfParams::what_is_wrong() const {
  if (layout > Layout::line) return "filter 'apbbf' has the layouts segment, column and line";
  if (k < 1 || k > most_matching(layout))
    return "filter 'apbbf' takes a k of 1 to 16, with layout=line to 31";
  if (l > kMostGenerations) return "filter 'apbbf' takes at most 128 generations";
  if (layout == Layout::line) {
    if (std::ranges::find(kLineSegments, k + l) == std::end(kLineSegments))
      return "filter 'apbbf' with layout=line takes k and l that make 8, 16 or 32";
    if (block != line_shape(k + l).block || bits != line_shape(k + l).bits)
      return "filter 'apbbf' with layout=line has 32 cells of 16 bits per line";
  } else {
    if (block != 64 && block != 512) return "filter 'apbbf' takes blocks of 64 or 512 bits";
    if (bits != 4 && bits != 8) return "filter 'apbbf' takes 4 or 8 bits per key in a block";
  }
  if (blocks == 0 || blocks > kMostBytes || blocks % block_group(*this) != 0)
    return "filter 'apbbf' takes a table of at least a block a segment, in whole cache lines";
  if (table_bytes() > kMostBytes) return "filter 'apbbf' takes a table of at most 64 TiB";
  if (capacity == 0 || capacity > kMostKeys)
    return "filter 'apbbf' takes 1 to 2^44 keys per window";
  if (!(target_fpr > 0 && target_fpr < 1))
    return "filter 'apbbf' takes a target error above 0 and below 1";
  // It would be full before a generation ends, and so would all its successors.
  if (generation_keys() < (capacity + std::max(1u, l) - 1) / std::max(1u, l))
    return "filter 'apbbf' has no room for the keys of a generation in these bytes: give it more "
           "bytes, or fewer keys";
  return nullptr;
}

// Planners ask again and again.
double ApbbfParams::npws() const noexcept {
  thread_local model::Memo<2, double> memo;
  const double full = memo({static_cast<double>(block), static_cast<double>(bits)}, [&] {
    return model::block_match(shape(), model::block_capacity(shape()));
  });
  return model::apbf_npws(k, l, full);
}

// Of a column, each segment by itself: how crowded the others are does not change its chance.
std::vector<double> ApbbfParams::matches(std::span<const double> generations,
                                         std::span<const double> again) const {
  return matches_of(*this, generations, again, [&](double keys) {
    return model::block_match(shape(), keys, static_cast<double>(blocks));
  });
}

double ApbbfParams::predicted_fpr(std::span<const double> generations,
                                  std::span<const double> again) const {
  // No generation gets more keys than fill the table as planned.
  if (layout != Layout::segment)
    return std::min(model::column_fpr_at(model::without_again(generations, k, again), k, shape(),
                                         static_cast<double>(blocks)),
                    model::column_fpr(k, l, shape()));
  return fpr_of(matches(generations, again), k);
}

void ApbbfParams::encode(Encoder& to) const {
  to.u8(static_cast<std::uint8_t>(layout));
  to.u32(k);
  to.u32(l);
  to.u32(block);
  to.u32(bits);
  to.u64(blocks);
  to.u64(capacity);
  to.f64(target_fpr);
}

ApbbfParams ApbbfParams::decode(Decoder& from) {
  ApbbfParams params;
  params.layout = static_cast<Layout>(from.u8());
  params.k = from.u32();
  params.l = from.u32();
  params.block = from.u32();
  params.bits = from.u32();
  params.blocks = from.u64();
  params.capacity = from.u64();
  params.target_fpr = from.f64();
  return params;
}

template class AgePartitioned<ApbbfParams>;
static_assert(WindowFilter<Apbbf>);

}  // namespace sluice
