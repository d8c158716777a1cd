// The table of the growing filter: cache-line buckets of fingerprints that are split one at a time.
// The filter itself is growing.hpp, the inner loops and the layout are kernels/growing.hpp.
//
// If both buckets of a key are full, an occupant is moved to its other bucket. If a search finds no
// room, the key is kept in a small stash until a split makes some.
#pragma once

#include <array>
#include <span>

#include "sluice/base/codec.hpp"
#include "sluice/base/growable_memory.hpp"
#include "sluice/kernels/growing.hpp"

namespace sluice {

// Where a trace is held: in a slot, or as a stray.
struct GrowingPlace {
  std::uint64_t bucket = 0;
  unsigned slot = 0;
  std::size_t stray = kernels::kGrowingMostStrays;
  unsigned bits = 0;  // known of its hash
};

class GrowingBuckets {
 public:
  static std::uint64_t buckets_for(const kernels::GrowingShape& shape, std::uint64_t entries);

  // Throws NoMemory.
  GrowingBuckets(const kernels::GrowingShape& shape, std::uint64_t buckets, MemoryResource& memory);
  GrowingBuckets(GrowingBuckets&& other) noexcept;
  GrowingBuckets& operator=(GrowingBuckets&& other) noexcept;

  // As in contract.hpp.
  Verdict observe(const Digest& digest);
  std::size_t observe(std::span<const Digest> digests, std::span<Verdict> verdicts);
  bool may_contain(const Digest& digest) const noexcept;
  void may_contain(std::span<const Digest> digests, std::span<Verdict> verdicts) const noexcept;
  bool forget(const Digest& digest) noexcept;

  // Writes a key that is not held, without asking: it gets a trace of its own even where another
  // one agrees with it. Throws NoMemory.
  void write(const Digest& digest);
  // Takes in what `other` holds. If memory runs out on the way, only a part of it was taken in, and
  // nothing of this one is lost.
  void merge(const GrowingBuckets& other);
  void merge(std::span<const Digest> digests);
  // Empties it, with `buckets` buckets, at most as many as now.
  void reset(std::uint64_t buckets) noexcept;

  std::uint64_t keys() const noexcept { return keys_; }
  const kernels::GrowingTable& table() const noexcept { return table_; }
  double predicted_fpr() const;
  // All the memory that it has taken from its resource, without the object itself.
  std::uint64_t bytes() const noexcept { return memory_[0].taken() + memory_[1].taken(); }

  void encode_header(Encoder& to) const;
  void encode_payload(Encoder& to) const;
  // Requires at least `fewest` buckets. Throws CorruptSnapshot before it allocates more than the
  // payload has.
  static GrowingBuckets decode(const kernels::GrowingShape& shape, std::uint64_t fewest,
                               Decoder& header, Decoder& payload, MemoryResource& memory);

 private:
  // Buckets with anything in them, for one who writes them all.
  struct ToBeWritten {};
  GrowingBuckets(const kernels::GrowingShape& shape, std::uint64_t buckets, MemoryResource& memory,
                 ToBeWritten);
  MemoryResource& memory() const noexcept { return memory_[0].resource(); }
  void allocate(std::uint64_t buckets);
  void adopt_memory() noexcept;
  void observe(std::span<const Digest> digests, std::span<Verdict> verdicts, std::size_t& judged);
  void make_way(unsigned attempt);
  bool add(const kernels::GrowingTrace& trace);
  void erase(const GrowingPlace& place) noexcept;
  void add_all_of(const GrowingBuckets& other);
  bool take_count() noexcept;
  template <class Part>
  void in_order_of_growth(Part part) const;

  kernels::GrowingTable table_;
  std::array<GrowableMemory, 2> memory_;  // of the table's halves
  std::uint64_t keys_ = 0;
};

}  // namespace sluice
