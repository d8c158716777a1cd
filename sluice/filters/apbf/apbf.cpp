#include "sluice/filters/apbf/apbf.hpp"

#include <fmt/format.h>

#include <cmath>
#include <numbers>

#include "sluice/filters/apbf/age_partitioned_inl.hpp"
#include "sluice/model/apbf.hpp"
#include "sluice/model/bloom.hpp"

namespace sluice {
namespace {

constexpr std::uint64_t kMostKeys = std::uint64_t{1} << 44;
constexpr std::uint64_t kMostBytes = std::uint64_t{1} << 46;
constexpr unsigned kMostMatching = 64;
// If l is not given: more generations save almost nothing and cost more reads.
constexpr unsigned kMostStandardGenerations = 64;

constexpr ParameterInfo kKnown[] = {
    {"k", "segments a key is written in", "1 to 64", "what fpr needs"},
    {"l", "generations a window is cut into; slack is k of them", "0 to 255",
     "what takes the fewest bits"},
    {"parts", "bit arrays per segment; a key has a bit in each", "1 to 16", "1"},
    {"keys", "keys a window holds", "1 to 2^44", "the window, or `rate` times the window"},
    {"bytes", "size of the table", "64 to 64TiB", "what keys and fpr need"},
    {"fpr", "the error it is planned for", "above 0, below 1", "`fpr`"},
};

unsigned most_generations(unsigned k, unsigned parts) {
  return std::min(kMostStandardGenerations, kernels::kMostParts / parts - k);
}

// The greatest l in [least, most] for which k segments keep the error, if any: the error rises with
// l.
std::optional<unsigned> most_generations_at(unsigned k, unsigned least, unsigned most,
                                            unsigned parts, double fpr) {
  const std::vector<double> errors = model::apbf_fprs(k, most, parts);
  const auto above = std::upper_bound(errors.begin() + least, errors.end(), fpr);
  if (above == errors.begin() + least) return std::nullopt;
  return static_cast<unsigned>(above - errors.begin()) - 1;
}

// No smaller k will do. With l of k − 1 or more there is a run of k full parts, which match with
// 2^−k; with fewer, runs of younger parts do with 2^−2.5k or more (with l = 0 and many parts,
// 2^−2.2k). What takes the fewest bits is above the first.
unsigned least_matching(std::optional<std::uint64_t> l, unsigned parts, double fpr) {
  const double full = -std::log2(fpr) / parts;
  const bool runs = full < kMostMatching && (!l || static_cast<double>(*l) + 1 >= full);
  return static_cast<unsigned>(std::clamp(runs ? full : full / 2.5, 1.0, 1.0 + kMostMatching));
}

struct Cut {
  unsigned k, l;
};

Cut cut_for(std::optional<std::uint64_t> k, std::optional<std::uint64_t> l, unsigned parts,
            double fpr) {
  if (k && l) return {static_cast<unsigned>(*k), static_cast<unsigned>(*l)};
  const unsigned most_k = std::min(kMostMatching, kernels::kMostParts / parts - 1);
  std::optional<Cut> best;
  for (unsigned each = k ? 1 : least_matching(l, parts, fpr); each <= most_k; ++each) {
    if (k && each != *k) continue;
    const unsigned low = static_cast<unsigned>(l.value_or(1));
    const unsigned high = l ? low : most_generations(each, parts);
    if ((each + low) * parts > kernels::kMostParts) continue;
    // More segments take more bits, however many generations there are.
    if (best && model::apbf_bits(each, high) >= model::apbf_bits(best->k, best->l)) break;
    const auto cut = most_generations_at(each, low, high, parts, fpr);
    if (cut && (!best || model::apbf_bits(each, *cut) < model::apbf_bits(best->k, best->l)))
      best = Cut{each, *cut};
  }
  if (!best)
    throw BadParameters(
        fmt::format("filter 'apbf' cannot reach an error of {} with these k, l and parts: leave "
                    "one of them out",
                    fpr));
  return *best;
}

}  // namespace

std::span<const ParameterInfo> ApbfParams::known() {
  return kKnown;
}

ApbfParams ApbfParams::from(const Wish& wish, const Settings& settings) {
  const SettingsReader reader("apbf", settings, kKnown);
  ApbfParams params;
  params.target_fpr = reader.probability("fpr").value_or(wish.fpr);
  params.parts = static_cast<unsigned>(reader.count("parts", 1, 16).value_or(1));
  auto l = reader.count("l", 0, kernels::kMostParts - 1);
  if (!l && wish.generations) l = *wish.generations;
  const Cut cut = cut_for(reader.count("k", 1, kMostMatching), l, params.parts, params.target_fpr);
  params.k = cut.k;
  params.l = cut.l;
  const std::uint64_t generations = std::max(1u, params.l);
  const auto bytes = reader.size("bytes", 64, kMostBytes);
  auto keys = reader.count("keys", 1, kMostKeys);
  if (!keys) keys = wish.keys;
  if (bytes) {
    const std::uint64_t all = std::uint64_t{params.k + params.l} * params.parts;
    params.part_bits = *bytes / all / kernels::kPartUnitBytes * kernels::kPartUnitBits;
    if (!keys) keys = std::max<std::uint64_t>(1, generations * params.generation_keys());
  }
  params.capacity = keys.value_or(kStandardCapacity);
  if (!bytes) {
    const std::uint64_t a_generation = (params.capacity + generations - 1) / generations;
    const double bits = static_cast<double>(a_generation) * params.k / std::numbers::ln2;
    params.part_bits =
        (static_cast<std::uint64_t>(bits) / kernels::kPartUnitBits + 1) * kernels::kPartUnitBits;
  }
  return params;
}

Settings ApbfParams::settings() const {
  Settings settings;
  settings.add("k", std::uint64_t{k});
  settings.add("l", std::uint64_t{l});
  settings.add("parts", std::uint64_t{parts});
  settings.add("keys", capacity);
  settings.add("bytes", table_bytes());
  settings.add("fpr", target_fpr);
  return settings;
}

Forecast ApbfParams::brief_forecast() const {
  if (const char* wrong = what_is_wrong()) throw BadParameters(wrong);
  const std::uint64_t a_generation = (capacity + std::max(1u, l) - 1) / std::max(1u, l);
  const std::vector<double> full(k + l, static_cast<double>(a_generation));
  const double fpr = predicted_fpr(full, {});
  return {.keys = capacity,
          .bytes = Apbf::bytes_for(*this),
          .tables = Apbf::kTables,
          .fpr = fpr,
          // Of half-full parts; a run of k of them has to match.
          .fpr_spread = fpr * std::sqrt(k * parts) *
                        model::bloom_spread(static_cast<double>(part_bits), 1,
                                            static_cast<double>(part_bits) * std::numbers::ln2) /
                        0.5,
          .generations = l,
          .slack = model::apbf_slack(k, l),
          .npws = npws()};
}

Forecast ApbfParams::forecast() const {
  Forecast made = brief_forecast();
  const auto matches = model::segment_matches(k, l, model::Fills::exact, parts);
  made.lines = k * parts + model::negative_accesses(matches, k);
  made.settings = settings();
  return made;
}

std::uint64_t ApbfParams::generation_keys() const noexcept {
  return static_cast<std::uint64_t>(static_cast<double>(part_bits) * std::numbers::ln2 / k);
}

const char* ApbfParams::what_is_wrong() const {
  if (k < 1 || k > kMostMatching) return "filter 'apbf' takes a k of 1 to 64";
  if (parts < 1 || parts > 16) return "filter 'apbf' takes 1 to 16 parts per segment";
  if (l >= kernels::kMostParts || (k + l) * parts > kernels::kMostParts)
    return "filter 'apbf' takes at most 256 parts: (k + l) times parts";
  if (part_bits == 0 || part_bits % kernels::kPartUnitBits != 0)
    return "filter 'apbf' takes a table of at least 64 bytes per part, of which it has (k + l) "
           "times parts";
  if (part_bits > kMostBytes || table_bytes() > kMostBytes)
    return "filter 'apbf' takes a table of at most 64 TiB";
  if (capacity == 0 || capacity > kMostKeys) return "filter 'apbf' takes 1 to 2^44 keys per window";
  if (!(target_fpr > 0 && target_fpr < 1))
    return "filter 'apbf' takes a target error above 0 and below 1";
  // It would be full before a generation ends, and so would all its successors.
  if (generation_keys() < (capacity + std::max(1u, l) - 1) / std::max(1u, l))
    return "filter 'apbf' has no room for the keys of a generation in these bytes: give it more "
           "bytes, or fewer keys";
  return nullptr;
}

double ApbfParams::npws() const noexcept {
  return model::apbf_npws(k, l, std::pow(0.5, parts));
}

std::vector<double> ApbfParams::matches(std::span<const double> generations,
                                        std::span<const double> again) const {
  std::vector<double> matches = model::keys_in_segments(generations, k, again);
  const double log_zero = std::log1p(-1 / static_cast<double>(part_bits));
  double before = -1, chance = 0;  // most segments hold as much as the one before
  for (double& match : matches) {
    if (match != before) chance = std::pow(-std::expm1((before = match) * log_zero), parts);
    match = chance;
  }
  return matches;
}

double ApbfParams::predicted_fpr(std::span<const double> generations,
                                 std::span<const double> again) const {
  return std::clamp(model::run_of_matches(matches(generations, again), k), 0.0, 1.0);
}

void ApbfParams::encode(Encoder& to) const {
  to.u32(k);
  to.u32(l);
  to.u32(parts);
  to.u64(part_bits);
  to.u64(capacity);
  to.f64(target_fpr);
}

ApbfParams ApbfParams::decode(Decoder& from) {
  ApbfParams params;
  params.k = from.u32();
  params.l = from.u32();
  params.parts = from.u32();
  params.part_bits = from.u64();
  params.capacity = from.u64();
  params.target_fpr = from.f64();
  return params;
}

namespace {

// Calls act(partition).
template <class Act>
[[gnu::always_inline]] inline decltype(auto) with_partition(const ApbfParams::Table& table,
                                                            Act act) {
  return with_words(table.memory, [&](auto words) {
    const kernels::BitSegments segments(words, table.part_bits, table.parts);
    return act(kernels::AgePartition(segments, table.ring, table.stale));
  });
}

// The same where the sweep is behind; apart, so that the compiler does the usual case well.
template <class Act>
[[gnu::noinline]] decltype(auto) with_behind(const ApbfParams::Table& table, Act act) {
  return with_words(table.memory, [&](auto words) {
    const kernels::BitSegments segments(words, table.part_bits, table.parts);
    return act(kernels::AgePartition(segments, table.ring, table.strips));
  });
}

}  // namespace

std::size_t ApbfParams::Table::admit(kernels::AgeBatch& batch) const noexcept {
  const auto act = [&](const auto& partition) { return partition.admit(batch, memory.size()); };
  return strips ? with_behind(*this, act) : with_partition(*this, act);
}

void ApbfParams::Table::ask(const Digest* digests, std::size_t count,
                            Verdict* verdicts) const noexcept {
  const auto act = [&](const auto& partition) {
    partition.ask(digests, count, verdicts, memory.size());
  };
  strips ? with_behind(*this, act) : with_partition(*this, act);
}

bool ApbfParams::Table::holds(const Digest& digest, unsigned age) const noexcept {
  const auto act = [&](const auto& partition) { return partition.holds(digest, age); };
  return strips ? with_behind(*this, act) : with_partition(*this, act);
}

void ApbfParams::Table::write(const Digest& digest, unsigned age) const noexcept {
  const auto act = [&](const auto& partition) { partition.write(digest, age); };
  strips ? with_behind(*this, act) : with_partition(*this, act);
}

void ApbfParams::Table::empty(std::uint64_t unit) const noexcept {
  with_words(memory, [&](auto words) {
    kernels::BitSegments(words, part_bits, parts).empty(ring.youngest, unit);
  });
}

void ApbfParams::Table::sweep(std::uint64_t strip) const noexcept {
  with_words(memory, [&](auto words) {
    strips.sweep(kernels::BitSegments(words, part_bits, parts), strip);
  });
}

template class AgePartitioned<ApbfParams>;
static_assert(WindowFilter<Apbf>);

}  // namespace sluice
