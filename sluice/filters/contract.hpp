// What every filter is: one set of verbs, checked by the compiler and by tests/conformance.
//
//   make          from parameters, with memory from a resource
//   observe       ask and remember: the verdict on an event
//   may_contain   ask only
//   insert        remember only
//   clear         forget everything: equal to a new filter of the same parameters
//   params, stats its parameters and its state
//   bytes         all the memory that it has taken from its resource; the object itself is not
//   counted encode_header, encode_payload, decode
//                 state to bytes and back (small fields, then tables)
//
// Some can do more, each with a concept of its own below:
//
//   forget        take a key back
//   merge         take in the keys of another filter with the same parameters
//
// observe, may_contain and insert also take batches. A batch is judged in order, exactly as its
// keys would be one by one. observe and insert return how many keys they judged: all, unless there
// is no room for the next one. Then the keys before it are judged and remembered, and the rest are
// untouched; observing the next key alone throws an error that says why. Filters do no I/O, read no
// clock and own no global randomness.
#pragma once

#include <algorithm>
#include <array>
#include <concepts>
#include <cstdint>
#include <span>
#include <string_view>

#include "sluice/base/codec.hpp"
#include "sluice/base/memory_resource.hpp"
#include "sluice/base/verdict.hpp"
#include "sluice/filters/settings.hpp"
#include "sluice/hash/digest.hpp"

namespace sluice {

// Part of the snapshot format: a number is never reused.
enum class FilterKind : std::uint16_t {
  exact = 1,
  bloom = 2,
  blocked_bloom = 3,
  counting = 4,
  dynamic = 5,
  growing = 6,
  stable = 7,
  reservoir = 8,
  sharded = 9,
  exact_window = 16,
  cohort = 17,
  apbf = 18,
  apbbf = 19,
  timing = 20,
  timer = 21,
  sharded_window = 22,
  window = 32,
  none = 255
};

struct FilterStats {
  std::uint64_t keys = 0;      // keys remembered: each insertion that changed the filter
  std::uint64_t capacity = 0;  // keys it was planned for; 0: any number
  std::uint64_t bytes = 0;     // as bytes()
  double target_fpr = 0;       // the error it was planned for; 0: none given
  double predicted_fpr = 0;    // chance that a key never seen is judged duplicate, at this fill
  double planned_fpr = 0;      // the same at the planned fill; 0: equals target_fpr
  std::uint64_t stash = 0;     // keys kept beside the table, if the filter has a stash
  std::uint64_t listed =
      0;  // keys in a short list, exact: all of them, or none once there is a table
  // Since it was made or loaded: keys taken back, and keys to be taken back that were not found. Of
  // keys that were never written, a share predicted_fpr is found by mistake: expect
  // predicted_fpr / (1 − predicted_fpr) of these per miss. Each erases the trace of one other key, in
  // filters of counters those of several (docs/filters/counting.md).
  std::uint64_t forgotten = 0;
  std::uint64_t forget_misses = 0;
  // Keys that were not removed, because it was not clear whose trace they were.
  std::uint64_t forget_kept = 0;
  // For a window with `max_ahead`: records whose times were too far ahead to be believed.
  std::uint64_t disbelieved = 0;
  // The error is above target_fpr: at this fill (set by AnyFilter and Window), or when full,
  // because a stage of growth could not keep its share of the error.
  bool over_target = false;
};

// What a filter was made for. Cheap, unlike stats(), which may evaluate a model.
struct PlannedFor {
  std::uint64_t capacity = 0;  // as in FilterStats
  double fpr = 0;              // planned_fpr, or target_fpr where that is 0
};

// What a filter promises. The conformance suite holds it to that.
struct FilterPromises {
  bool no_false_negatives = true;  // a key observed or inserted is a duplicate from then on, or as
                                   // long as its window lasts
  bool no_false_positives = false;
  bool fixed_memory = true;  // hot operations allocate nothing
};

// kPromises holds for every filter of a class. If it depends on parameters, the filter has a member
// promises().
template <class F>
FilterPromises promises_of(const F& filter) noexcept {
  if constexpr (requires {
                  { filter.promises() } -> std::same_as<FilterPromises>;
                })
    return filter.promises();
  else
    return F::kPromises;
}

template <class F>
concept Filter = std::movable<F> &&
    requires(F filter, const F& constant, const Digest& digest, std::span<const Digest> digests,
             std::span<Verdict> verdicts, const typename F::Params& params, Encoder& encoder,
             Decoder& decoder, MemoryResource& memory) {
  { F::kKind } -> std::convertible_to<FilterKind>;
  { F::kVersion } -> std::convertible_to<std::uint16_t>;
  { F::kPromises } -> std::convertible_to<FilterPromises>;
  { F::make(params) } -> std::same_as<F>;
  { F::make(params, memory) } -> std::same_as<F>;

  { filter.observe(digest) } -> std::same_as<Verdict>;
  { constant.may_contain(digest) }
  noexcept->std::same_as<bool>;
  { filter.insert(digest) } -> std::same_as<void>;
  { filter.observe(digests, verdicts) } -> std::same_as<std::size_t>;
  { constant.may_contain(digests, verdicts) } -> std::same_as<void>;
  { filter.insert(digests) } -> std::same_as<std::size_t>;
  { filter.clear() }
  noexcept;

  { constant.params() } -> std::convertible_to<typename F::Params>;
  { constant.params().settings() } -> std::same_as<Settings>;
  { constant.stats() } -> std::same_as<FilterStats>;
  // Takes a time that does not depend on its size.
  { constant.bytes() }
  noexcept->std::same_as<std::uint64_t>;
  { constant.memory() }
  noexcept->std::same_as<MemoryResource&>;

  { constant.encode_header(encoder) } -> std::same_as<void>;
  { constant.encode_payload(encoder) } -> std::same_as<void>;
  { F::decode(decoder, decoder) } -> std::same_as<F>;
  { F::decode(decoder, decoder, memory) } -> std::same_as<F>;
};

// The batch form of insert, for filters that must ask first so as not to write a key twice.
template <std::size_t kAtOnce, class F>
std::size_t insert_by_observing(F& filter, std::span<const Digest> digests) {
  std::array<Verdict, kAtOnce> unread;
  std::size_t done = 0;
  while (done < digests.size()) {
    const std::size_t count = std::min(digests.size() - done, unread.size());
    const std::size_t judged =
        filter.observe(digests.subspan(done, count), std::span(unread).first(count));
    done += judged;
    if (judged < count) break;
  }
  return done;
}

// Takes a key back. Returns whether there was a trace of it. Forgetting a key that was never
// written may erase another key's trace, at the rate of false positives; FilterStats counts these.
// If parameters decide whether a filter can forget, it has a member can_forget().
template <class F>
concept ForgettingFilter = Filter<F> && requires(F filter, const Digest& digest) {
  { filter.forget(digest) } -> std::same_as<bool>;
};

// Takes in what `other` remembers: from then on it judges duplicate every key that either of them
// did. Throws BadParameters when their parameters do not fit, or NoMemory; then nothing has
// changed. If parameters decide whether a filter can merge, it has a member can_merge().
template <class F>
concept MergingFilter = Filter<F> && requires(F filter, const F& other) {
  { filter.merge(other) } -> std::same_as<void>;
};

template <class F>
bool can_forget(const F& filter) noexcept {
  if constexpr (requires {
                  { filter.can_forget() } -> std::same_as<bool>;
                })
    return filter.can_forget();
  else
    return ForgettingFilter<F>;
}

// The same for merge.
template <class F>
bool can_merge(const F& filter) noexcept {
  if constexpr (requires {
                  { filter.can_merge() } -> std::same_as<bool>;
                })
    return filter.can_merge();
  else
    return MergingFilter<F>;
}

}  // namespace sluice
