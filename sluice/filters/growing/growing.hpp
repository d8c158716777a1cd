// Growing filter: a set of any number of keys, at the error that was asked for.
//
// Source   Ours. From linear hashing (Litwin 1980) the growth by one bucket at a time; from filters
//          that expand, the fingerprint that gives up a bit a doubling while new keys get whole
//          ones; from cuckoo filters the two buckets of a fingerprint.
// Cost     observe: two cache lines, and one bucket split a dozen keys; now and then an occupant
//          moves. 47 bits per key with 32-bit slots, up to 59 where huge pages begin
//          (docs/filters/growing.md). The table grows at its end, without a copy; an insertion may
//          take memory. A host's comes in pages of 64 KiB; where memory is mapped, from 8 MiB on a
//          short-lived thread waits for it.
// Errors   `duplicate` may be wrong: model::growing_fpr, which a doubling raises by a constant, and
//          growing_fpr_bound bounds for all sizes. `distinct` never is.
// Use it   when the number of keys is not known: it is the default without --expect
//          and --window.
// Avoid    when it is known: a blocked Bloom filter takes one cache line and fewer bits.
// Format   snapshot kind 6, version 1.
//
// The inner loops and the layout are those of kernels/growing.hpp. A key that finds both of its
// buckets full moves an occupant to its other one; should a search find no room, the key is kept in
// a small stash until a split makes some. It never forgets a key that it was not told to.
#pragma once

#include <array>

#include "sluice/base/growable_memory.hpp"
#include "sluice/filters/contract.hpp"
#include "sluice/filters/forecast.hpp"
#include "sluice/kernels/growing.hpp"

namespace sluice {

// Where a trace is held: in a slot, or as a stray.
struct GrowingPlace {
  std::uint64_t bucket = 0;
  unsigned slot = 0;
  std::size_t stray = kernels::kGrowingMostStrays;
  unsigned bits = 0;  // known of its hash
};

class Growing {
 public:
  static constexpr FilterKind kKind = FilterKind::growing;
  static constexpr std::uint16_t kVersion = 1;
  static constexpr FilterPromises kPromises{.fixed_memory = false};

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
  Growing(Growing&& other) noexcept;
  Growing& operator=(Growing&& other) noexcept;

  Verdict observe(const Digest& digest);
  bool may_contain(const Digest& digest) const noexcept;
  void insert(const Digest& digest) { observe(digest); }
  std::size_t observe(std::span<const Digest> digests, std::span<Verdict> verdicts);
  void may_contain(std::span<const Digest> digests, std::span<Verdict> verdicts) const noexcept;
  std::size_t insert(std::span<const Digest> digests);
  void clear() noexcept;

  // Takes a key back: of several traces that agree with it the one of which most is known, which is
  // its own or stands for its own.
  bool forget(const Digest& digest) noexcept;
  // Takes in what `other` remembers, if its slots are as wide and its error is the same. Should
  // memory end on the way, some of that is taken in, and nothing of this one is lost.
  void merge(const Growing& other);

  const Params& params() const noexcept { return params_; }
  FilterStats stats() const;
  std::uint64_t bytes() const noexcept { return memory_[0].taken() + memory_[1].taken(); }
  MemoryResource& memory() const noexcept { return memory_[0].resource(); }
  std::uint64_t moves() const noexcept { return table_.moves; }
  // Cache lines read or written so far: two a key, two a split, those searched for room.
  std::uint64_t lines_touched() const noexcept { return table_.lines_touched; }

  void encode_header(Encoder& to) const;
  void encode_payload(Encoder& to) const;
  static Growing decode(Decoder& header, Decoder& payload,
                        MemoryResource& memory = default_memory());

 private:
  Growing(const Params& params, std::uint64_t buckets, MemoryResource& memory);
  void allocate(std::uint64_t buckets);
  void adopt_memory() noexcept;
  void observe(std::span<const Digest> digests, std::span<Verdict> verdicts, std::size_t& judged);
  void make_way(unsigned attempt);
  bool add(const kernels::GrowingTrace& trace);
  void erase(const GrowingPlace& place) noexcept;
  void add_all_of(const Growing& other);
  bool take_count() noexcept;
  template <class Part>
  void in_order_of_growth(Part part) const;

  Params params_;
  kernels::GrowingTable table_;
  std::array<GrowableMemory, 2> memory_;  // of the table's halves
  std::uint64_t keys_ = 0;
  std::uint64_t forgotten_ = 0, forget_misses_ = 0;
};

}  // namespace sluice
