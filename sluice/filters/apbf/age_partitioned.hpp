// The common part of apbf and apbbf: all of a filter except its segments.
//
// `P` are the parameters of one of them. Beside what every filter's have (settings, from, known) it
// has
//   kKind, kVersion, kName
//   k, l                of the ring
//   table_bytes()       of all segments
//   units()             of a segment: what is emptied at once
//   strips()            of units, which are swept together (kernels/age_strips.hpp)
//   generation_keys()   keys that may be written in one generation: more would break the promise
//                       on the error, so the filter is full then
//   what_is_wrong()     a sentence, or nothing
//   npws()              when full
//   matches(keys, again) of each segment, youngest first: the chance that it matches a key that it does not
//                       hold
//   predicted_fpr(keys, again) from the keys of each generation and the keys that a segment got more than
//                       once, youngest first
//   table(memory, stale, youngest, strips), with admit, ask, holds, write, empty and sweep (kernels/)
//   encode(to), decode(from)
//
// What happens at rotations and in sweeps, and snapshots, are in age_partitioned_inl.hpp.
#pragma once

#include <algorithm>
#include <array>
#include <cassert>
#include <string>
#include <vector>

#include "sluice/base/error.hpp"
#include "sluice/base/line_table.hpp"
#include "sluice/filters/window_contract.hpp"
#include "sluice/kernels/age_strips.hpp"
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
  double npws() const noexcept { return params_.npws(); }
  // The same at the present fill.
  double present_npws() const;
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
    return memory_.taken() + stale_.taken() + next_stale_.taken() + stamps_.taken() +
           taken_by(written_) + taken_by(again_);
  }
  MemoryResource& memory() const noexcept { return memory_.resource(); }
  static constexpr std::uint64_t kTables = 4;
  // The stats().bytes of such a filter, before it is made.
  static std::uint64_t bytes_for(const Params& params) {
    return params.table_bytes() + 2 * stale_words(params) * sizeof(std::uint64_t) +
           stamp_bytes(params) + 2 * (params.k + params.l) * sizeof(std::uint64_t);
  }

  void encode_header(Encoder& to) const;
  void encode_payload(Encoder& to) const;
  static AgePartitioned decode(Decoder& header, Decoder& payload,
                               MemoryResource& memory = default_memory());

 private:
  AgePartitioned(const Params& params, MemoryResource& memory)
      : params_(params),
        ring_{params.k, params.l, 0},
        written_(params.k + params.l, memory),
        again_(params.k + params.l, memory),
        memory_(params.table_bytes(), memory),
        stale_(stale_words(params) * sizeof(std::uint64_t), memory),
        next_stale_(stale_words(params) * sizeof(std::uint64_t), memory),
        stamps_(stamp_bytes(params), memory) {}

  auto table() const noexcept {
    return params_.table(memory_, const_cast<std::uint64_t*>(stale_.template as<std::uint64_t>()),
                         ring_.youngest, behind() ? strips() : kernels::AgeStrips());
  }
  kernels::AgeStrips strips() const noexcept {
    return {const_cast<LineTable*>(&stamps_),
            const_cast<std::uint64_t*>(stale_.template as<std::uint64_t>()),
            taken_,
            floor_,
            ring_,
            params_.strips()};
  }

  // What is left of a segment when its generation ends is emptied at once up to so many units: a
  // filter of few needs no stamps. All segments of it are still few lines.
  static constexpr unsigned kMostAtOnce = 32;
  static std::uint64_t stale_words(const Params& params) noexcept {
    return (params.units() + 63) / 64;
  }
  static std::uint64_t strip_count(const Params& params) noexcept {
    return params.units() <= kMostAtOnce ? 0 : params.strips().strips();
  }
  static std::uint64_t stamp_bytes(const Params& params) noexcept {
    return strip_count(params) * sizeof(std::uint32_t);
  }
  std::vector<double> by_age(const auto& counts) const;
  std::uint64_t& written_at(unsigned age) noexcept { return written_[ring_.physical(age)]; }
  std::uint64_t room(unsigned age) const noexcept {
    const std::uint64_t written = written_[ring_.physical(age)];
    return params_.generation_keys() - std::min(params_.generation_keys(), written);
  }
  void note_written(unsigned age, std::uint64_t keys) noexcept {
    written_at(age) += keys;
    live_keys_ += keys;
  }
  // A key of age `held` was written again at age `at`: segments of both have it already.
  void note_again(unsigned held, unsigned at, std::uint64_t keys) noexcept {
    const unsigned from = std::max(held, at), end = std::min(held, at) + ring_.k;
    for (unsigned age = from; age < end; ++age) again_[ring_.physical(age)] += keys;
  }
  bool behind() const noexcept { return floor_ != taken_; }
  void keep_pace() noexcept {
    if (behind())
      sweep_strips();
    else if (swept_ < stale_words(params_))
      sweep(words_due());
  }
  std::uint64_t words_due() const noexcept;
  void sweep(std::uint64_t until_word) noexcept;
  void sweep_strips() noexcept;
  void make_stale(std::uint64_t word) noexcept;
  bool swept_in_time() noexcept;
  void encode_stamps(Encoder& to) const;
  bool decode_stamps(Decoder& from);
  bool marks_are_sound() const;

  Params params_;
  kernels::AgeRing ring_;
  std::uint64_t live_keys_ = 0;   // written in generations of age 0 to l
  std::uint64_t taken_ = 0;       // rotations so far
  std::uint64_t floor_ = 0;       // the last that found everything swept; the sweep is behind since
  std::uint64_t swept_ = 0;       // since the last rotation: words of stale_; where it is behind,
                                  // strips
  std::uint64_t next_strip_ = 0;  // to be swept
  Vector<std::uint64_t> written_;  // keys by generation, at the physical number of the segment
                                   // that was the youngest in it
  Vector<std::uint64_t> again_;  // of each segment, at its physical number: keys that it got again
  LineTable memory_;
  Memory stale_;       // a bit per unit of the segment that was the youngest at `floor_`
  Memory next_stale_;  // all ones when everything is swept: for the next youngest
  LineTable stamps_;   // of strips (kernels/age_strips.hpp)
};

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
  std::array<std::uint64_t, kernels::kMostParts + 1> again;
  if (batch.refresh) std::fill_n(again.begin(), ring_.k + 1, 0);
  batch.again = again.data();
  const std::size_t judged = table().admit(batch);
  budget -= batch.refresh ? judged : batch.written;
  note_written(0, batch.written);
  for (unsigned age = 1; batch.refresh && age < ring_.k; ++age)
    if (again[age] > 0) note_again(age, 0, again[age]);
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
  if (duplicate) {
    unsigned held = 0;
    while (held < ring_.l && !table().holds(digest, held)) ++held;
    note_again(held, age, 1);
  }
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

}  // namespace sluice
