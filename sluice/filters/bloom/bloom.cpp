#include "sluice/filters/bloom/bloom.hpp"

#include <algorithm>
#include <bit>
#include <cassert>
#include <cmath>
#include <functional>

#include "sluice/base/error.hpp"
#include "sluice/filters/batches.hpp"
#include "sluice/filters/bloom/bloom_family.hpp"
#include "sluice/kernels/prefetch.hpp"
#include "sluice/model/bloom.hpp"
#include "sluice/model/offered.hpp"

namespace sluice {
namespace {

// Each key brings a line per probe: this many keys ahead fill the processor's queue of misses.
constexpr std::size_t kKeysAhead = 3;

const char* what_is_wrong(const Bloom::Params& params) {
  if (params.bits == 0 || params.bits % 64 != 0 || params.bits > std::uint64_t{1} << 49)
    return "filter 'bloom' takes a table of 8 bytes to 64 TiB, in whole words of 8 bytes";
  if (params.probes == 0 || params.probes > model::kMostProbes)
    return "filter 'bloom' with layout=classic takes 1 to 64 probes";
  if (params.capacity == 0 || params.capacity > kMostBloomKeys)
    return "filter 'bloom' is planned for 1 to 2^44 keys";
  if (!(params.target_fpr > 0 && params.target_fpr < 1))
    return "filter 'bloom' takes a target error above 0 and below 1";
  return nullptr;
}

}  // namespace

Settings Bloom::Params::settings() const {
  Settings settings;
  settings.add("layout", "classic");
  settings.add("bytes", bits / 8);
  settings.add("probes", std::uint64_t{probes});
  settings.add("keys", capacity);
  settings.add("fpr", target_fpr);
  return settings;
}

Forecast Bloom::Params::forecast() const {
  if (const char* wrong = what_is_wrong(*this)) throw BadParameters(wrong);
  return {.keys = capacity,
          .bytes = bits / 8,
          .fpr = model::bloom_fpr(static_cast<double>(bits), probes, static_cast<double>(capacity)),
          .fpr_spread =
              model::bloom_spread(static_cast<double>(bits), probes, static_cast<double>(capacity)),
          .lines = static_cast<double>(probes),
          .settings = settings()};
}

Bloom Bloom::make(const Params& params, MemoryResource& memory) {
  if (const char* wrong = what_is_wrong(params)) throw BadParameters(wrong);
  return Bloom(params, memory);
}

Bloom::Bloom(const Params& params, MemoryResource& memory)
    : params_(params), table_(params.bits / 8, memory) {}

template <class Words>
Verdict Bloom::observe(Words words, const Digest& digest) noexcept {
  std::uint64_t missing = 0;
  for (unsigned probe = 0; probe < params_.probes; ++probe) {
    const std::uint64_t at = position(digest, probe);
    const std::uint64_t mask = std::uint64_t{1} << (at % 64);
    std::uint64_t& word = words.at(at / 64);
    missing |= mask & ~word;
    word |= mask;
  }
  keys_ += missing != 0;
  return missing == 0 ? Verdict::duplicate : Verdict::distinct;
}

template <class Words>
bool Bloom::holds(Words words, const Digest& digest) const noexcept {
  for (unsigned probe = 0; probe < params_.probes; ++probe) {
    const std::uint64_t at = position(digest, probe);
    if ((words.get(at / 64) >> (at % 64) & 1) == 0) return false;
  }
  return true;
}

Verdict Bloom::observe(const Digest& digest) noexcept {
  return with_words(table_, [&](auto words) { return observe(words, digest); });
}

bool Bloom::may_contain(const Digest& digest) const noexcept {
  return with_words(table_, [&](auto words) { return holds(words, digest); });
}

std::size_t Bloom::observe(std::span<const Digest> digests, std::span<Verdict> verdicts) noexcept {
  assert(digests.size() == verdicts.size());
  const bool ahead = table_.size() >= kernels::kPrefetchFromBytes;
  with_words(table_, [&](auto words) {
    for (std::size_t i = 0; i < digests.size(); ++i) {
      if (ahead && i + kKeysAhead < digests.size()) {
        // Written in place, not as a function: GCC assumes that a function that only prefetches has
        // no effect, and drops the call.
        for (unsigned probe = 0; probe < params_.probes; ++probe)
          __builtin_prefetch(words.address(position(digests[i + kKeysAhead], probe) / 64), 1);
      }
      verdicts[i] = observe(words, digests[i]);
    }
  });
  return digests.size();
}

void Bloom::may_contain(std::span<const Digest> digests,
                        std::span<Verdict> verdicts) const noexcept {
  ask_each(table_, digests, verdicts,
           [this](auto words, const Digest& digest) { return holds(words, digest); });
}

std::size_t Bloom::insert(std::span<const Digest> digests) noexcept {
  return insert_each(*this, digests);
}

void Bloom::clear() noexcept {
  table_.clear();
  keys_ = 0;
}

void Bloom::merge(const Bloom& other) {
  if (params_ != other.params_)
    throw BadParameters("filters 'bloom' can be merged when they are made alike, but one has " +
                        params_.settings().text() + " and the other " +
                        other.params_.settings().text());
  join_words(table_, other.table_, std::bit_or<>{});
  const std::uint64_t ones = table_.count_ones();
  const auto bits = static_cast<double>(params_.bits);
  const double offered = model::bloom_keys_of_ones(bits, params_.probes, static_cast<double>(ones));
  keys_ = model::merged_keys(keys_, other.keys_, ones, model::taken_keys(offered, [&](double keys) {
                               return model::bloom_fpr(bits, params_.probes, keys);
                             }));
}

// The model guesses how many keys were lost, and these leave no trace. So beyond the plan, where many
// are, the table itself tells more: the share of ones in a sample of it.
double Bloom::sampled_fpr() const {
  constexpr std::uint64_t kSample = 1 << 14;
  const std::uint64_t count = params_.bits / 64;
  const std::uint64_t step = std::max<std::uint64_t>(1, count / kSample);
  std::uint64_t ones = 0, seen = 0;
  with_words(table_, [&](auto words) {
    for (std::uint64_t at = 0; at < count; at += step, seen += 64)
      ones += static_cast<std::uint64_t>(std::popcount(words.get(at)));
  });
  return std::pow(static_cast<double>(ones) / static_cast<double>(seen), params_.probes);
}

FilterStats Bloom::stats() const {
  return {.keys = keys_,
          .capacity = params_.capacity,
          .bytes = bytes(),
          .target_fpr = params_.target_fpr,
          .predicted_fpr =
              keys_ > params_.capacity
                  ? std::max(classic_fpr(params_.bits, params_.probes, keys_), sampled_fpr())
                  : classic_fpr_of_taken(params_.bits, params_.probes, keys_, params_.capacity)};
}

void Bloom::encode_header(Encoder& to) const {
  const BloomFields fields{params_.bits, params_.probes, params_.capacity, params_.target_fpr,
                           keys_};
  fields.encode(to);
}

void Bloom::encode_payload(Encoder& to) const {
  table_.encode(to);
}

Bloom Bloom::decode(Decoder& header, Decoder& payload, MemoryResource& memory) {
  const BloomFields fields = BloomFields::decode(header);
  const Params params{fields.size, fields.probes, fields.capacity, fields.target_fpr};
  if (const char* wrong = what_is_wrong(params)) throw CorruptSnapshot(wrong);
  payload.expect_remaining(params.bits / 8, "the table of filter 'bloom'");
  Bloom filter(params, memory);
  filter.table_.decode(payload);
  if (fields.keys > filter.table_.count_ones())
    throw CorruptSnapshot("filter 'bloom' claims more keys than its table has bits set");
  filter.keys_ = fields.keys;
  return filter;
}

static_assert(MergingFilter<Bloom>);

}  // namespace sluice
