// The common part of apbf and apbbf: all of a filter except its segments.
//
// `P` are the parameters of one of them. Beside what every filter's have (settings, from, known) it
// has
//   kKind, kVersion, kName
//   k, l                of the ring
//   table_bytes()       of all segments
//   units()             of a segment: what is emptied at once
//   generation_keys()   keys that may be written in one generation: more would break the promise
//                       on the error, so the filter is full then
//   what_is_wrong()     a sentence, or nothing
//   predicted_fpr(keys) from the keys of each generation, youngest first
//   table(memory, stale, youngest), with admit, ask, holds, write and empty (kernels/)
//   encode(to), decode(from)
#pragma once

#include <algorithm>
#include <array>
#include <cassert>
#include <string>
#include <vector>

#include "sluice/base/error.hpp"
#include "sluice/base/line_table.hpp"
#include "sluice/filters/window_contract.hpp"
#include "sluice/kernels/age_partition.hpp"
#include "sluice/model/apbf.hpp"

namespace sluice {

template <class P>
class AgePartitioned {
 public:
  using Params = P;
  static constexpr FilterKind kKind = P::kKind;
  static constexpr std::uint16_t kVersion = P::kVersion;
  static constexpr FilterPromises kPromises{};

  // Throws BadParameters.
  static AgePartitioned make(const Params& params, MemoryResource& memory = default_memory()) {
    if (const char* wrong = params.what_is_wrong()) throw BadParameters(wrong);
    return AgePartitioned(params, memory);
  }

  // The operations of every filter: all in the present generation, nothing ages.
  Verdict observe(const Digest& digest);
  bool may_contain(const Digest& digest) const noexcept;
  void insert(const Digest& digest) { observe(digest); }
  std::size_t observe(std::span<const Digest> digests, std::span<Verdict> verdicts);
  void may_contain(std::span<const Digest> digests, std::span<Verdict> verdicts) const noexcept;
  void may_contain(std::span<const Digest> digests, std::span<Verdict> verdicts,
                   unsigned later) const noexcept;
  std::size_t insert(std::span<const Digest> digests);
  void clear() noexcept;

  unsigned generations() const noexcept { return params_.l; }
  double slack() const noexcept { return model::apbf_slack(params_.k, params_.l); }
  double npws() const noexcept { return model::apbf_npws(params_.k, params_.l); }
  void rotate() noexcept;
  // With `refreshed`, a key that was already written in the present generation is not written again
  // and takes no room.
  std::size_t admit(std::span<const Digest> digests, std::span<Verdict> verdicts,
                    std::uint64_t& budget, Anchor anchor) noexcept;
  std::optional<Verdict> admit_aged(const Digest& digest, unsigned age, Anchor anchor) noexcept;
  // A key that was refreshed counts in each generation in which it was written: bits cannot tell.
  std::uint64_t live_keys() const noexcept { return live_keys_; }
  std::uint64_t room() const noexcept { return room(0); }

  const Params& params() const noexcept { return params_; }
  FilterStats stats() const;
  PlannedFor planned() const noexcept { return {params_.capacity, params_.target_fpr}; }
  std::uint64_t bytes() const noexcept {
    return memory_.taken() + stale_.taken() + taken_by(written_);
  }
  MemoryResource& memory() const noexcept { return memory_.resource(); }
  // The stats().bytes of such a filter, before it is made.
  static std::uint64_t bytes_for(const Params& params) {
    return params.table_bytes() + (params.units() + 63) / 64 * sizeof(std::uint64_t) +
           (params.k + params.l) * sizeof(std::uint64_t);
  }
  // Units of the youngest segment that still hold their old contents.
  std::uint64_t stale_units() const noexcept { return stale_.count_ones(); }

  void encode_header(Encoder& to) const;
  void encode_payload(Encoder& to) const;
  static AgePartitioned decode(Decoder& header, Decoder& payload,
                               MemoryResource& memory = default_memory());

 private:
  AgePartitioned(const Params& params, MemoryResource& memory)
      : params_(params),
        ring_{params.k, params.l, 0},
        written_(params.k + params.l, memory),
        memory_(params.table_bytes(), memory),
        stale_(stale_words() * sizeof(std::uint64_t), memory) {}

  auto table() const noexcept {
    return params_.table(memory_, const_cast<std::uint64_t*>(stale_.template as<std::uint64_t>()),
                         ring_.youngest);
  }
  std::uint64_t stale_words() const noexcept { return (params_.units() + 63) / 64; }
  std::uint64_t& written_at(unsigned age) noexcept { return written_[ring_.physical(age)]; }
  std::uint64_t room(unsigned age) const noexcept {
    const std::uint64_t written = written_[ring_.physical(age)];
    return params_.generation_keys() - std::min(params_.generation_keys(), written);
  }
  void note_written(unsigned age, std::uint64_t keys) noexcept {
    written_at(age) += keys;
    live_keys_ += keys;
  }
  void sweep(std::uint64_t until_word) noexcept;
  void keep_pace() noexcept;

  Params params_;
  kernels::AgeRing ring_;
  std::uint64_t live_keys_ = 0;    // written in generations of age 0 to l
  std::uint64_t swept_words_ = 0;  // of stale_: nothing below is stale
  Vector<std::uint64_t> written_;  // keys by generation, at the physical number of the segment
                                   // that was the youngest in it
  LineTable memory_;
  Memory stale_;  // one bit per unit
};

template <class P>
void AgePartitioned<P>::sweep(std::uint64_t until_word) noexcept {
  auto* words = stale_.template as<std::uint64_t>();
  const auto segments = table();
  for (; swept_words_ < until_word; ++swept_words_) {
    for (std::uint64_t word = words[swept_words_]; word != 0; word &= word - 1)
      segments.empty(swept_words_ * 64 + static_cast<unsigned>(__builtin_ctzll(word)));
    words[swept_words_] = 0;
  }
}

// Keys empty most units when they are written. The rest is swept in the last quarter of a
// generation, with enough units per key that none is left when the generation is full. With 2.2
// keys per unit (apbbf's lines) that is a fifth of the units; sweeping all the time would touch
// them all.
template <class P>
void AgePartitioned<P>::keep_pace() noexcept {
  const std::uint64_t full = params_.generation_keys();
  const std::uint64_t quarter = std::max<std::uint64_t>(1, full / 4);
  const std::uint64_t written = std::min(written_at(0), full);
  if (written + quarter <= full) return;
  const std::uint64_t share = written + quarter - full;
  sweep(static_cast<std::uint64_t>((Uint128{stale_words()} * share + quarter - 1) / quarter));
}

template <class P>
void AgePartitioned<P>::rotate() noexcept {
  sweep(stale_words());
  live_keys_ -= written_at(ring_.l);
  ring_.youngest = ring_.physical(ring_.segments() - 1);
  written_at(0) = 0;
  auto* words = stale_.template as<std::uint64_t>();
  std::fill_n(words, stale_words(), ~std::uint64_t{0});
  if (params_.units() % 64 != 0)
    words[stale_words() - 1] = (std::uint64_t{1} << params_.units() % 64) - 1;
  swept_words_ = 0;
}

template <class P>
std::size_t AgePartitioned<P>::admit(std::span<const Digest> digests, std::span<Verdict> verdicts,
                                     std::uint64_t& budget, Anchor anchor) noexcept {
  assert(digests.size() == verdicts.size());
  kernels::AgeBatch batch;
  batch.digests = digests.data();
  batch.count = digests.size();
  batch.verdicts = verdicts.data();
  batch.refresh = anchor == Anchor::refreshed;
  batch.room = room(0);
  if (batch.refresh)
    batch.count = static_cast<std::size_t>(std::min<std::uint64_t>(batch.count, budget));
  else
    batch.room = std::min(batch.room, budget);
  const std::size_t judged = table().admit(batch);
  budget -= batch.refresh ? judged : batch.written;
  note_written(0, batch.written);
  keep_pace();
  return judged;
}

template <class P>
std::optional<Verdict> AgePartitioned<P>::admit_aged(const Digest& digest, unsigned age,
                                                     Anchor anchor) noexcept {
  assert(age <= ring_.l);
  const bool duplicate = may_contain(digest);
  if (duplicate && (anchor == Anchor::delivered || table().holds(digest, age)))
    return Verdict::duplicate;
  if (room(age) == 0) return std::nullopt;
  table().write(digest, age);
  note_written(age, 1);
  keep_pace();
  return static_cast<Verdict>(duplicate);
}

template <class P>
Verdict AgePartitioned<P>::observe(const Digest& digest) {
  Verdict verdict;
  if (observe(std::span(&digest, 1), std::span(&verdict, 1)) == 1) return verdict;
  // Without a Window nothing ends the generation, so a full filter is an error.
  throw BadParameters("filter '" + std::string(P::kName) + "' is full with " +
                      std::to_string(written_at(0)) +
                      " keys in a generation: plan it for more, or for fewer generations");
}

template <class P>
std::size_t AgePartitioned<P>::observe(std::span<const Digest> digests,
                                       std::span<Verdict> verdicts) {
  std::uint64_t budget = digests.size();
  return admit(digests, verdicts, budget, Anchor::delivered);
}

template <class P>
bool AgePartitioned<P>::may_contain(const Digest& digest) const noexcept {
  Verdict verdict;
  table().ask(&digest, 1, &verdict);
  return verdict == Verdict::duplicate;
}

template <class P>
void AgePartitioned<P>::may_contain(std::span<const Digest> digests,
                                    std::span<Verdict> verdicts) const noexcept {
  assert(digests.size() == verdicts.size());
  table().ask(digests.data(), digests.size(), verdicts.data());
}

// A key that will still be in the window then is of an age that leaves it time for that.
template <class P>
void AgePartitioned<P>::may_contain(std::span<const Digest> digests, std::span<Verdict> verdicts,
                                    unsigned later) const noexcept {
  assert(digests.size() == verdicts.size());
  const auto segments = table();
  std::ranges::transform(digests, verdicts.begin(), [&](const Digest& digest) {
    for (unsigned age = 0; age + std::uint64_t{later} <= ring_.l; ++age)
      if (segments.holds(digest, age)) return Verdict::duplicate;
    return Verdict::distinct;
  });
}

template <class P>
std::size_t AgePartitioned<P>::insert(std::span<const Digest> digests) {
  return insert_by_observing<256>(*this, digests);
}

template <class P>
void AgePartitioned<P>::clear() noexcept {
  memory_.clear();
  stale_.clear();
  ring_.youngest = 0;
  live_keys_ = swept_words_ = 0;
  std::ranges::fill(written_, 0);
}

template <class P>
FilterStats AgePartitioned<P>::stats() const {
  std::vector<double> keys;
  for (unsigned age = 0; age < ring_.segments(); ++age)
    keys.push_back(static_cast<double>(written_[ring_.physical(age)]));
  return {.keys = live_keys_,
          .capacity = params_.capacity,
          .bytes = bytes(),
          .target_fpr = params_.target_fpr,
          .predicted_fpr = params_.predicted_fpr(keys)};
}

template <class P>
void AgePartitioned<P>::encode_header(Encoder& to) const {
  params_.encode(to);
  to.u32(ring_.youngest);
  to.u64(swept_words_);
  for (const std::uint64_t written : written_) to.u64(written);
}

template <class P>
void AgePartitioned<P>::encode_payload(Encoder& to) const {
  memory_.encode(to);
  to.bytes(stale_.bytes());
}

template <class P>
AgePartitioned<P> AgePartitioned<P>::decode(Decoder& header, Decoder& payload,
                                            MemoryResource& memory) {
  const auto refuse = [](bool wrong) {
    if (wrong) throw CorruptSnapshot("no filter '" + std::string(P::kName) + "' has these fields");
  };
  const Params params = Params::decode(header);
  if (const char* wrong = params.what_is_wrong()) throw CorruptSnapshot(wrong);
  const std::uint64_t words = (params.units() + 63) / 64;
  payload.expect_remaining(params.table_bytes() + words * sizeof(std::uint64_t),
                           "the table of an age-partitioned filter");
  AgePartitioned filter(params, memory);
  filter.ring_.youngest = header.u32();
  filter.swept_words_ = header.u64();
  refuse(filter.ring_.youngest >= filter.ring_.segments() || filter.swept_words_ > words);
  for (std::uint64_t& written : filter.written_) {
    written = header.u64();
    refuse(written > params.generation_keys());
  }
  for (unsigned age = 0; age <= params.l; ++age) filter.live_keys_ += filter.written_at(age);
  filter.memory_.decode(payload);
  payload.bytes(filter.stale_.bytes());
  const auto* stale = filter.stale_.template as<std::uint64_t>();
  const auto* unswept = stale + filter.swept_words_;
  refuse(std::any_of(stale, unswept, [](std::uint64_t word) { return word != 0; }));
  refuse(params.units() % 64 != 0 && stale[words - 1] >> (params.units() % 64) != 0);
  return filter;
}

}  // namespace sluice
