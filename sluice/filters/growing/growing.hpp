// Growing filter: a set of any number of keys, at the error that was asked for.
//
// Source   Ours. Growth by one bucket at a time is from linear hashing (Litwin 1980). Fingerprints
//          that give up one bit per doubling, while new keys get full ones, are from expandable
//          filters. The two buckets of a fingerprint are from cuckoo filters.
// Cost     Up to kMostListed keys: a binary search, 24 bytes per key, no memory without keys.
//          Beyond, observe: two cache lines, and one bucket split per dozen keys; now and then an
//          occupant moves. 47 bits per key with 32-bit slots, up to 59 where huge pages begin
//          (docs/filters/growing.md). The table grows at its end, without a copy; an insertion may
//          take memory. Memory of a host comes in pages of 64 KiB, and is cleared as it is
//          reached. Where memory is mapped, a short-lived thread fetches it from 8 MiB on.
// Errors   None as a list. As a table, `duplicate` may be wrong (model::growing_fpr; each doubling
//          adds a constant, and growing_fpr_bound bounds it for all sizes). `distinct` never is.
// Use it   when the number of keys is not known: it is the default without --expect
//          and --window.
// Avoid    when it is known: a blocked Bloom filter takes one cache line and fewer bits.
// Format   snapshot kind 6, version 1.
//
// It starts as a short list of exact digests (short_list.hpp), since most filters in a server have
// few keys. When one more key would make the list larger than the smallest table, all keys move to
// a table (growing_buckets.hpp) and stay there until clear(). A filter that is told to expect more
// keys than a list holds starts with its table. It never forgets a key that it was not told to.
#pragma once

#include "sluice/filters/contract.hpp"
#include "sluice/filters/forecast.hpp"
#include "sluice/filters/growing/growing_buckets.hpp"
#include "sluice/filters/short_list.hpp"

namespace sluice {

class Growing {
 public:
  static constexpr FilterKind kKind = FilterKind::growing;
  static constexpr std::uint16_t kVersion = 1;
  static constexpr FilterPromises kPromises{.fixed_memory = false};

  // The smallest table takes two blocks of 4 KiB and 2.5 kB for itself: less than a list with room
  // for one more key. The limit does not depend on the memory resource, so snapshots do not either.
  static constexpr std::size_t kMostListed = 376;

  struct Params {
    unsigned slot_bits = 32;          // 16, 32 or 64
    std::uint64_t expected_keys = 0;  // room from the start; more is taken as needed
    double target_fpr = 0;            // the error it is planned for

    static Params from(const Wish& wish, const Settings& settings);
    static std::span<const ParameterInfo> known();
    Settings settings() const;
    Forecast forecast() const;
    friend bool operator==(const Params&, const Params&) = default;
  };

  // Throws BadParameters.
  static Growing make(const Params& params, MemoryResource& memory = default_memory());

  Verdict observe(const Digest& digest) {
    return table_ ? table_->observe(digest) : observe_listed(digest);
  }
  bool may_contain(const Digest& digest) const noexcept {
    return table_ ? table_->may_contain(digest) : list_.find(digest).has_value();
  }
  void insert(const Digest& digest) { observe(digest); }
  std::size_t observe(std::span<const Digest> digests, std::span<Verdict> verdicts) {
    return table_ ? table_->observe(digests, verdicts) : observe_listed(digests, verdicts);
  }
  void may_contain(std::span<const Digest> digests, std::span<Verdict> verdicts) const noexcept;
  std::size_t insert(std::span<const Digest> digests);
  void clear() noexcept;

  // Takes a key back. If several traces in a table match it, the one with the most known bits is
  // removed: that is the key's own, or as good as its own.
  bool forget(const Digest& digest) noexcept;
  // Takes in what `other` remembers; slot width and target error must be the same. Two tables are
  // united in a third one, so that nothing has changed if memory runs out on the way.
  void merge(const Growing& other);

  // Whether its keys are still in a short list: verdicts are then exact.
  bool listed() const noexcept { return table_ == nullptr; }

  const Params& params() const noexcept { return params_; }
  FilterStats stats() const;
  std::uint64_t bytes() const noexcept {
    return list_.bytes() + (table_ ? table_->bytes() + taken_by(table_) : 0);
  }
  MemoryResource& memory() const noexcept { return list_.memory(); }
  // Of its table, so far: occupants moved, and cache lines read or written (two per key, two per
  // split, and those searched for room).
  std::uint64_t moves() const noexcept { return table_ ? table_->table().moves : 0; }
  std::uint64_t lines_touched() const noexcept {
    return table_ ? table_->table().lines_touched : 0;
  }

  void encode_header(Encoder& to) const;
  void encode_payload(Encoder& to) const;
  static Growing decode(Decoder& header, Decoder& payload,
                        MemoryResource& memory = default_memory());

 private:
  Growing(const Params& params, MemoryResource& memory) noexcept : params_(params), list_(memory) {}
  Verdict observe_listed(const Digest& digest);
  std::size_t observe_listed(std::span<const Digest> digests, std::span<Verdict> verdicts);
  Owned<GrowingBuckets> table_of_list() const;
  void take(Owned<GrowingBuckets> table) noexcept;
  void merge_lists(const Growing& other);

  Params params_;
  ShortList list_;  // empty once there is a table; its stamps are 0
  Owned<GrowingBuckets> table_;
  std::uint64_t forgotten_ = 0, forget_misses_ = 0;
};

}  // namespace sluice
