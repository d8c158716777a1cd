// What a window filter is: a filter whose keys age by generations.
//
// A key is written in the present generation and stays for that one and `generations()` more; then
// it is forgotten. Window (window/) decides when a generation ends: after a number of keys, or at a
// tick of a clock. Filters know nothing about counts and clocks.
//
//   rotate        everything is a generation older
//   admit         observe a batch until its budget is spent or the filter is full
//   admit_aged    observe one key that happened some generations ago
//   live_keys     keys written in generations that are still remembered
//   may_contain   also as it will be after some more generations, without changing anything
//
// A filter that is full by count also has room(): how many keys can be written in the present
// generation before it is full.
#pragma once

#include <optional>

#include "sluice/filters/contract.hpp"

namespace sluice {

// Where a key's window starts: at its last delivered event, or at its last arrival, delivered or
// not.
enum class Anchor : std::uint8_t { delivered, refreshed };

// Counts of rotations and sweeps end here. No filter gets this far: a rotation per nanosecond would
// take a century. A forged state may claim it; the filter then starts as new, or counts from a lower
// number, so that every state that was read can be written and read again.
inline constexpr std::uint64_t kMostRotations = std::uint64_t{1} << 62;

template <class F>
concept WindowFilter = Filter<F> &&
    requires(F filter, const F& constant, const Digest& digest, std::span<const Digest> digests,
             std::span<Verdict> verdicts, std::uint64_t& budget, Anchor anchor, unsigned age,
             unsigned later) {
  // For how many generations after the one in which it was written a key stays.
  { constant.generations() } -> std::same_as<unsigned>;
  { filter.rotate() }
  noexcept;

  // Judges digests in order and writes the distinct ones in the present generation; with
  // `refreshed` it also rewrites duplicates there. Every key written takes one from `budget`; with
  // `refreshed`, every key judged does. Stops before a key for which there is no budget or no room,
  // and returns how many were judged: less than all with budget left means that the filter is full.
  { filter.admit(digests, verdicts, budget, anchor) }
  noexcept->std::same_as<std::size_t>;

  // The same for one key that happened `age` generations ago (at most generations()): it leaves the
  // window at the right time. A key that is held with a later time keeps it. Returns nothing when
  // the filter is full.
  { filter.admit_aged(digest, age, anchor) }
  noexcept->std::same_as<std::optional<Verdict>>;

  // The answers of may_contain() after `later` rotations.
  { constant.may_contain(digests, verdicts, later) } -> std::same_as<void>;

  { constant.live_keys() }
  noexcept->std::same_as<std::uint64_t>;
};

}  // namespace sluice
