// Many Bloom filters of one size, side by side: for each position the bits of all filters lie
// together, so that one read tells which of them have it set.
//
// Source   Guo et al. 2010, §3.5.3 ("bit slices").
//
// A group holds up to 64 filters. A row is as wide as the filters need, in the steps of kWidths,
// so that at most a third of it is idle; going to the next step copies the group.
#pragma once

#include <cstring>
#include <span>

#include "sluice/base/memory.hpp"
#include "sluice/hash/probe.hpp"

namespace sluice {

class SlicedGroup {
 public:
  static constexpr unsigned kMostColumns = 64;

  // Throws NoMemory.
  SlicedGroup(std::uint64_t rows, unsigned columns, MemoryResource& memory);

  // Bit c is that of filter c; bits from the width on mean nothing.
  std::uint64_t row(std::uint64_t at) const noexcept {
    std::uint64_t word = 0;
    std::memcpy(&word, address(at), sizeof word);
    return word >> (at * width_ & ((1u << step_) - 1));
  }
  const std::byte* address(std::uint64_t at) const noexcept {
    return memory_.data() + ((at * width_ >> step_) << (step_ - 3));
  }
  std::uint64_t columns_mask() const noexcept { return ~std::uint64_t{0} >> (64 - width_); }

  void set(std::uint64_t at, unsigned column) noexcept {
    const std::uint64_t bit = at * width_ + column;
    memory_.data()[bit / 8] |= static_cast<std::byte>(1u << (bit % 8));
  }
  void widen(unsigned columns);
  void clear() noexcept { memory_.clear(); }
  void clear_column(unsigned column) noexcept;
  // Positions from 64 · `word` on, of one filter: read, and added to.
  std::uint64_t gather(unsigned column, std::uint64_t word) const noexcept;
  void scatter(unsigned column, std::uint64_t word, std::uint64_t bits) noexcept;
  unsigned width() const noexcept { return width_; }
  std::uint64_t bytes() const noexcept { return memory_.size(); }
  std::uint64_t taken() const noexcept { return memory_.taken(); }
  static std::uint64_t bytes_for(std::uint64_t rows, unsigned columns);

 private:
  static Memory table(std::uint64_t rows, unsigned width, MemoryResource& memory);

  std::uint64_t rows_;
  unsigned width_;
  // Widths that divide 64 are read in aligned words, which never straddle two cache lines; others
  // from the byte in which they begin.
  unsigned step_;
  Memory memory_;
};

class BitMatrix {
 public:
  BitMatrix(std::uint64_t rows, MemoryResource& memory) : rows_(rows), groups_(memory) {}

  // Room for so many filters; new ones are empty. Throws NoMemory, and then answers as before.
  void reserve(std::size_t filters);

  bool claims(ProbeWords& words, unsigned probes) const noexcept {
    for (const SlicedGroup& group : groups_)
      if (claimants(group, words, probes) != 0) return true;
    return false;
  }
  void write(std::size_t filter, ProbeWords& words, unsigned probes) noexcept {
    SlicedGroup& group = group_of(filter);
    for (unsigned probe = 0; probe < probes; ++probe)
      group.set(scale_to(words[probe], rows_), column_of(filter));
  }

  std::span<const SlicedGroup> groups() const noexcept { return groups_; }
  std::uint64_t rows() const noexcept { return rows_; }
  std::uint64_t bytes() const noexcept;
  // What it holds of its resource.
  std::uint64_t taken() const noexcept;
  MemoryResource& memory() const noexcept { return groups_.get_allocator().resource(); }
  // Of so many filters, before they are made.
  static std::uint64_t bytes_for(std::uint64_t rows, std::size_t filters);

  // One filter as the words of a table of its own: out, and added to what is there.
  void gather(std::size_t filter, std::uint64_t first_word,
              std::span<std::uint64_t> out) const noexcept;
  void scatter(std::size_t filter, std::span<const std::uint64_t> table) noexcept;
  void join(std::size_t into, std::size_t from) noexcept;
  void clear(std::size_t filter) noexcept;
  void clear() noexcept;

 private:
  std::uint64_t claimants(const SlicedGroup& group, ProbeWords& words,
                          unsigned probes) const noexcept {
    // Four reads at a time, which wait for memory together.
    std::uint64_t claim = group.columns_mask();
    unsigned probe = 0;
    for (; probe + 4 <= probes && claim != 0; probe += 4) {
      claim &= group.row(scale_to(words[probe], rows_)) &
               group.row(scale_to(words[probe + 1], rows_)) &
               group.row(scale_to(words[probe + 2], rows_)) &
               group.row(scale_to(words[probe + 3], rows_));
    }
    for (; probe < probes && claim != 0; ++probe) claim &= group.row(scale_to(words[probe], rows_));
    return claim;
  }

  SlicedGroup& group_of(std::size_t filter) noexcept {
    return groups_[filter / SlicedGroup::kMostColumns];
  }
  const SlicedGroup& group_of(std::size_t filter) const noexcept {
    return groups_[filter / SlicedGroup::kMostColumns];
  }
  static unsigned column_of(std::size_t filter) noexcept {
    return static_cast<unsigned>(filter % SlicedGroup::kMostColumns);
  }

  std::uint64_t rows_ = 0;
  Vector<SlicedGroup> groups_;
};

}  // namespace sluice
