// All keys of a stream while they fit, then a sample of them chosen by their digests.
//
// Source   adaptive sampling (Wegman; analysed by Flajolet 1990): keys whose sample word is at most a
//          threshold are in. When the table is full, the threshold is halved and the keys above it are
//          taken out. Keys are estimated as in Cohen 2015 (HIP): a new key that comes while one key in N
//          is sampled counts as N.
// Cost     a table of Entries, at most 3/4 full, and half as much again while it grows; one probe per key
//          in the sample, two instructions per key outside (kernels/sample.hpp).
// Errors   none while N is 1. Afterwards the estimate is unbiased, and its variance is the sum of N (N - 1)
//          over the sampled new keys. Whatever an Entry counts of its key is exact: the threshold only
//          falls, so that a key in the sample was in it from its first record on.
// Avoid    for sums over events of which a few keys have most: a sample has none of those keys, most likely.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <span>

#include "sluice/base/memory_resource.hpp"
#include "sluice/filters/exact/digest_table.hpp"
#include "sluice/kernels/prefetch.hpp"
#include "sluice/kernels/sample.hpp"

namespace sluice {

// A number that may be an estimate.
struct Estimate {
  double value = 0;
  double standard_error = 0;  // 0: exact

  bool exact() const noexcept { return standard_error == 0; }
  // 95 %, by the normal distribution.
  double low() const noexcept { return value - 1.96 * standard_error; }
  double high() const noexcept { return value + 1.96 * standard_error; }
};

// What a sample without a single case leaves open, in keys of the sample: with three such keys in the
// stream for each that is sampled, none is in the sample in 5 % of all cases (the rule of three). Added to the
// cases that were seen, it keeps the error of a few of them, or of none, from being nothing.
inline constexpr double kUnseenCases = 3;

// An Entry is as in a DigestTable.
template <class Entry>
class KeySample {
 public:
  static constexpr std::uint64_t kFirstSlots = 1024;

  // `most_bytes`: of the table, while it grows, too. At least kLeastBytes.
  static constexpr std::uint64_t kLeastBytes = kFirstSlots * sizeof(Entry) * 3 / 2;
  explicit KeySample(std::uint64_t most_bytes)
      : most_slots_(std::bit_floor(most_bytes * 2 / 3 / sizeof(Entry))),
        table_(std::min(kFirstSlots, most_slots_), "the table of keys", default_memory()) {}

  // Calls act(i, entry, weight) for each digest i in the sample, in order. The entry is free if the key
  // is new: act must fill it, with its key. `weight` is then the number of keys for which this one
  // counts, otherwise 0. Throws NoMemory.
  template <class Act>
  void observe(std::span<const Digest> digests, Act act) {
    if (is_complete()) {
      kernels::with_prefetch(
          digests.size(), table_.bytes(), [&](std::size_t i) { return table_.home(digests[i]); },
          [&](std::size_t i) {
            if (contains(digests[i])) observe_one(i, digests[i], act);
          },
          kernels::kPrefetchDistance, kPrefetchFromBytes);
      return;
    }
    for (std::size_t i = 0; (i = kernels::next_sampled(digests, i, threshold_)) < digests.size();
         ++i)
      observe_one(i, digests[i], act);
  }

  // The entry of a key, or null.
  const Entry* find(const Digest& key) const noexcept {
    const Entry* const entry = table_.find(key);
    return entry->free() ? nullptr : entry;
  }
  template <class Act>
  void each(Act act) const {
    table_.each(act);
  }

  // All keys are in.
  bool is_complete() const noexcept { return one_in_ == 1; }
  // One key in so many is in.
  std::uint64_t one_in() const noexcept { return one_in_; }
  // All keys of the stream.
  Estimate keys() const noexcept { return {keys_, std::sqrt(variance_)}; }
  std::uint64_t bytes() const noexcept { return table_.bytes(); }

 private:
  // Several tables share the cache.
  static constexpr std::size_t kPrefetchFromBytes = std::size_t{1} << 17;

  bool contains(const Digest& digest) const noexcept {
    return kernels::sample_word(digest) <= threshold_;
  }

  template <class Act>
  void observe_one(std::size_t i, const Digest& digest, Act act) {
    Entry* entry = table_.find_to_write(digest);
    if (!entry->free()) {
      act(i, *entry, std::uint64_t{0});
      return;
    }
    if (4 * (table_.used() + 1) > 3 * table_.slots()) {
      make_room();
      if (!contains(digest)) return;
      entry = table_.find_to_write(digest);
    }
    act(i, *entry, one_in_);
    table_.fill(entry, Entry(*entry));
    const auto weight = static_cast<double>(one_in_);
    keys_ += weight;
    variance_ += weight * (weight - 1);
  }

  void make_room() {
    if (table_.slots() < most_slots_) return table_.rebuild(2 * table_.slots());
    while (4 * (table_.used() + 1) > 3 * table_.slots()) {
      threshold_ /= 2;
      one_in_ *= 2;
      // Taking one out moves others back: into its place, or from there on.
      for (std::uint64_t slot = 0; slot < table_.slots(); ++slot)
        while (!table_.get(slot).free() && !contains(table_.get(slot).key))
          table_.take_out(Digest(table_.get(slot).key));
    }
  }

  std::uint64_t most_slots_;
  DigestTable<Entry> table_;
  std::uint64_t threshold_ = std::numeric_limits<std::uint64_t>::max();
  std::uint64_t one_in_ = 1;
  double keys_ = 0;
  double variance_ = 0;
};

}  // namespace sluice
