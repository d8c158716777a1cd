#include "sluice/filters/counting.hpp"

#include <algorithm>
#include <cassert>
#include <cmath>

#include "sluice/base/error.hpp"
#include "sluice/filters/batches.hpp"
#include "sluice/filters/bloom/bloom_family.hpp"
#include "sluice/filters/nibbles.hpp"
#include "sluice/kernels/prefetch.hpp"
#include "sluice/model/bloom.hpp"

namespace sluice {
namespace {

constexpr std::uint64_t kMostBytes = std::uint64_t{1} << 46;
constexpr std::uint64_t kWord = 16;  // counters per word

// As in bloom.cpp: each key brings a line per probe.
constexpr std::size_t kKeysAhead = 3;

constexpr ParameterInfo kKnown[] = {
    {"bytes", "size of the table, two counters per byte", "8 to 64TiB", "what keys and fpr need"},
    {"probes", "counters per key", "1 to 64", "the best for the size"},
    {"keys", "distinct keys it is planned for", "1 to 2^44", "`keys`; 8M, or what bytes hold"},
    {"fpr", "the error it is planned for", "above 0, below 1", "`fpr`"},
};

const char* what_is_wrong(const Counting::Params& params) {
  if (params.counters == 0 || params.counters % kWord != 0 || params.counters / 2 > kMostBytes)
    return "filter 'counting' takes a table of 8 bytes to 64 TiB, in whole words of 8 bytes";
  if (params.probes == 0 || params.probes > model::kMostProbes)
    return "filter 'counting' takes 1 to 64 probes";
  if (params.capacity == 0 || params.capacity > kMostBloomKeys)
    return "filter 'counting' is planned for 1 to 2^44 keys";
  if (!(params.target_fpr > 0 && params.target_fpr < 1))
    return "filter 'counting' takes a target error above 0 and below 1";
  return nullptr;
}

}  // namespace

std::span<const ParameterInfo> Counting::Params::known() {
  return kKnown;
}

Counting::Params Counting::Params::from(const Wish& wish, const Settings& settings) {
  const SettingsReader reader("counting", settings, kKnown);
  BloomWish asked{.fpr = reader.probability("fpr").value_or(wish.fpr),
                  .keys = wish.keys,
                  .probes = reader.count("probes", 1, model::kMostProbes),
                  .standard_keys = kStandardCapacity};
  if (const auto keys = reader.count("keys", 1, kMostBloomKeys)) asked.keys = keys;
  if (const auto bytes = reader.size("bytes", 8, kMostBytes)) asked.places = *bytes * 2;
  const BloomSize size = bloom_size("counting", asked, kWord, kMostBytes * 2);
  return {.counters = size.places,
          .probes = size.probes,
          .capacity = size.capacity,
          .target_fpr = asked.fpr};
}

Settings Counting::Params::settings() const {
  Settings settings;
  settings.add("bytes", counters / 2);
  settings.add("probes", std::uint64_t{probes});
  settings.add("keys", capacity);
  settings.add("fpr", target_fpr);
  return settings;
}

Forecast Counting::Params::forecast() const {
  if (const char* wrong = what_is_wrong(*this)) throw BadParameters(wrong);
  return {.keys = capacity,
          .bytes = counters / 2,
          .fpr = classic_fpr(counters, probes, capacity),
          .fpr_spread = model::bloom_spread(static_cast<double>(counters), probes,
                                            static_cast<double>(capacity)),
          .lines = static_cast<double>(probes),
          .settings = settings()};
}

Counting Counting::make(const Params& params, MemoryResource& memory) {
  if (const char* wrong = what_is_wrong(params)) throw BadParameters(wrong);
  return Counting(params, memory);
}

Counting::Counting(const Params& params, MemoryResource& memory)
    : params_(params), table_(params.counters / 2, memory) {}

template <class Words>
bool Counting::holds(Words words, const Digest& digest) const noexcept {
  for (unsigned probe = 0; probe < params_.probes; ++probe)
    if (nibbles::get(words, position(digest, probe)) == 0) return false;
  return true;
}

template <class Words>
Verdict Counting::observe(Words words, const Digest& digest) noexcept {
  if (holds(words, digest)) return Verdict::duplicate;
  for (unsigned probe = 0; probe < params_.probes; ++probe)
    nibbles::raise(words, position(digest, probe));
  ++keys_;
  return Verdict::distinct;
}

bool Counting::may_contain(const Digest& digest) const noexcept {
  return with_words(table_, [&](auto words) { return holds(words, digest); });
}

Verdict Counting::observe(const Digest& digest) noexcept {
  return with_words(table_, [&](auto words) { return observe(words, digest); });
}

bool Counting::forget(const Digest& digest) noexcept {
  if (!may_contain(digest)) {
    ++forget_misses_;
    return false;
  }
  with_words(table_, [&](auto words) {
    for (unsigned probe = 0; probe < params_.probes; ++probe)
      nibbles::lower(words, position(digest, probe));
  });
  keys_ -= keys_ > 0;
  ++forgotten_;
  return true;
}

void Counting::merge(const Counting& other) {
  if (params_ != other.params_)
    throw BadParameters(
        "filters 'counting' of different bytes, probes, keys or fpr cannot be merged: make both "
        "with the same ones");
  if (&other == this) return;  // it holds nothing that this one does not
  join_words(table_, other.table_, nibbles::sum);
  keys_ += other.keys_;
  find_doubles();
}

std::uint64_t Counting::nonzero() const noexcept {
  return with_words(table_, [&](auto words) {
    std::uint64_t taken = 0;
    for (std::uint64_t at = 0; at < params_.counters / kWord; ++at)
      taken += nibbles::nonzero(words.get(at));
    return taken;
  });
}

// Keys that both filters of a merge held raise no new counters. What the counters tell is less sure
// than the count of keys: only a difference that chance cannot explain is believed.
void Counting::find_doubles() noexcept {
  constexpr double kDeviations = 4;
  const auto counters = static_cast<double>(params_.counters), keys = static_cast<double>(keys_);
  const double taken = static_cast<double>(nonzero());
  const double load = params_.probes * keys / counters, zero = std::exp(-load);
  const double deviation = std::sqrt(counters * zero * std::max(0.0, 1 - (1 + load) * zero));
  doubles_ = 0;
  if (taken >= counters * (1 - zero) - kDeviations * deviation - 1) return;
  const double seen = model::bloom_keys_of_ones(counters, params_.probes, taken);
  if (seen < keys) doubles_ = keys_ - static_cast<std::uint64_t>(std::ceil(seen));
}

std::size_t Counting::observe(std::span<const Digest> digests,
                              std::span<Verdict> verdicts) noexcept {
  assert(digests.size() == verdicts.size());
  const bool ahead = table_.size() >= kernels::kPrefetchFromBytes;
  with_words(table_, [&](auto words) {
    for (std::size_t i = 0; i < digests.size(); ++i) {
      if (ahead && i + kKeysAhead < digests.size()) {
        for (unsigned probe = 0; probe < params_.probes; ++probe)
          __builtin_prefetch(words.address(position(digests[i + kKeysAhead], probe) / kWord), 1);
      }
      verdicts[i] = observe(words, digests[i]);
    }
  });
  return digests.size();
}

void Counting::may_contain(std::span<const Digest> digests,
                           std::span<Verdict> verdicts) const noexcept {
  ask_each(table_, digests, verdicts,
           [this](auto words, const Digest& digest) { return holds(words, digest); });
}

std::size_t Counting::insert(std::span<const Digest> digests) noexcept {
  return insert_each(*this, digests);
}

void Counting::clear() noexcept {
  table_.clear();
  keys_ = doubles_ = forgotten_ = forget_misses_ = 0;
}

// As in bloom.cpp: beyond the plan, where many keys are lost without a trace, the table itself
// tells more than the count of keys. A small one is read whole.
double Counting::sampled_fpr() const {
  constexpr std::uint64_t kSample = 1 << 14;
  const std::uint64_t count = params_.counters / kWord;
  const std::uint64_t step = std::max<std::uint64_t>(1, count / kSample);
  std::uint64_t taken = 0, seen = 0;
  with_words(table_, [&](auto words) {
    for (std::uint64_t at = 0; at < count; at += step, seen += kWord)
      taken += nibbles::nonzero(words.get(at));
  });
  return std::pow(static_cast<double>(taken) / static_cast<double>(seen), params_.probes);
}

FilterStats Counting::stats() const {
  const std::uint64_t keys = keys_ - std::min(doubles_, keys_);
  return {.keys = keys_,
          .capacity = params_.capacity,
          .bytes = bytes(),
          .target_fpr = params_.target_fpr,
          .predicted_fpr =
              keys > params_.capacity
                  ? std::max(classic_fpr(params_.counters, params_.probes, keys), sampled_fpr())
                  : classic_fpr_of_taken(params_.counters, params_.probes, keys, params_.capacity),
          .forgotten = forgotten_,
          .forget_misses = forget_misses_};
}

void Counting::encode_header(Encoder& to) const {
  const BloomFields fields{params_.counters, params_.probes, params_.capacity, params_.target_fpr,
                           keys_};
  fields.encode(to);
}

void Counting::encode_payload(Encoder& to) const {
  table_.encode(to);
}

// Each key adds one per probe and removes as much again, except for stuck counters, which stay.
bool Counting::can_hold(std::uint64_t keys) const noexcept {
  return with_words(table_, [&](auto words) {
    std::uint64_t sum = 0;
    for (std::uint64_t at = 0; at < params_.counters / kWord; ++at) {
      if (nibbles::any_stuck(words.get(at))) return true;
      sum += nibbles::total(words.get(at));
    }
    return keys <= sum / params_.probes;
  });
}

Counting Counting::decode(Decoder& header, Decoder& payload, MemoryResource& memory) {
  const BloomFields fields = BloomFields::decode(header);
  const Params params{fields.size, fields.probes, fields.capacity, fields.target_fpr};
  if (const char* wrong = what_is_wrong(params)) throw CorruptSnapshot(wrong);
  payload.expect_remaining(params.counters / 2, "the table of filter 'counting'");
  Counting filter(params, memory);
  filter.table_.decode(payload);
  if (!filter.can_hold(fields.keys))
    throw CorruptSnapshot("filter 'counting' claims more keys than its counters");
  filter.keys_ = fields.keys;
  filter.find_doubles();
  return filter;
}

static_assert(ForgettingFilter<Counting> && MergingFilter<Counting>);

}  // namespace sluice
