// Many Bloom filters of one size, side by side: for each position the bits of all filters lie
// together, so that one read tells which filters have it set.
//
// Source   Guo et al. 2010, §3.5.3 ("bit slices").
//
// A group holds up to 64 filters, one per column. A row is as wide as the columns need, in the steps
// of kWidths, so that at most a third of it is unused. For the next step the rows move to a wider
// table, some at a time: new columns are written there at once, old ones are read from both.
#pragma once

#include <limits>
#include <span>
#include <type_traits>

#include "sluice/base/line_table.hpp"
#include "sluice/hash/probe.hpp"

namespace sluice {

class MatrixGroup {
 public:
  static constexpr unsigned kMostColumns = 64;
  // The most columns that weave() adds together.
  static constexpr unsigned kMostWoven = 8;

  // Throws NoMemory.
  MatrixGroup(std::uint64_t rows, unsigned columns, MemoryResource& memory);

  // What rows are read from and written to, for with_words(): first() is the word of a row's first
  // bit.
  const LineTable& table() const noexcept { return now_.memory; }
  std::uint64_t first(std::uint64_t at) const noexcept { return at * now_.width / 64; }

  // Bit c belongs to filter c; bits from the width on have no meaning. `words` are table()'s.
  template <class Words>
  std::uint64_t row(Words words, std::uint64_t at) const noexcept {
    std::uint64_t bits = now_.row(words, at);
    if (at >= moved_) bits |= old_row(words, at);
    return bits;
  }
  std::uint64_t columns_mask() const noexcept { return now_.mask(); }

  template <class Words>
  void set(Words words, std::uint64_t at, unsigned column) noexcept {
    const std::uint64_t bit = at * now_.width + column;
    words.at(bit / 64) |= std::uint64_t{1} << (bit % 64);
  }

  // Makes room for that many columns. Throws NoMemory; nothing has changed then. Rows may still be
  // in a narrower table: it is widening() until widen_some() has moved them all.
  void widen(unsigned columns);
  bool widening() const noexcept { return moved_ != kAll; }
  void widen_some(std::uint64_t rows) noexcept;

  void clear() noexcept;
  void clear_column(unsigned column) noexcept;
  // 64 positions per word, from 64 · `first` on, of one filter.
  void gather(unsigned column, std::uint64_t first, std::span<std::uint64_t> out) const noexcept;
  // Adds 64 positions, from 64 · `block` on, to each of some filters from `column` on, which must be a
  // multiple of kMostWoven if there are several.
  void weave(unsigned column, std::uint64_t block, std::span<const std::uint64_t> bits) noexcept;

  std::uint64_t bytes() const noexcept { return now_.memory.size() + old_.memory.size(); }
  std::uint64_t taken() const noexcept { return now_.memory.taken() + old_.memory.taken(); }
  // The bytes for that many columns; `widened`: the previous number, while rows still move from
  // there.
  static std::uint64_t bytes_for(std::uint64_t rows, unsigned columns, unsigned widened);

 private:
  static constexpr std::uint64_t kAll = std::numeric_limits<std::uint64_t>::max();

  struct Table {
    unsigned width = 0;
    // Widths that divide 64 are read in aligned words, which never straddle two cache lines; others
    // from the byte in which they begin.
    unsigned step = 0;
    LineTable memory;

    Table() noexcept = default;
    Table(std::uint64_t rows, unsigned columns, MemoryResource& resource);
    std::uint64_t mask() const noexcept { return ~std::uint64_t{0} >> (64 - width); }
    template <class Words>
    std::uint64_t row(Words words, std::uint64_t at) const noexcept {
      const std::uint64_t word = words.load((at * width >> step) << (step - 3));
      return word >> (at * width & ((1u << step) - 1));
    }
  };

  // If the wider table is one block, so is the narrower.
  template <class Words>
  std::uint64_t old_row(Words, std::uint64_t at) const noexcept {
    const auto read = [&](auto words) { return old_.row(words, at) & old_.mask(); };
    if constexpr (std::is_same_v<Words, FlatWords>)
      return read(FlatWords::of(old_.memory));
    else
      return with_words(old_.memory, read);
  }
  template <class Words>
  void weave(Words words, unsigned column, std::uint64_t block,
             std::span<const std::uint64_t> bits) noexcept;

  std::uint64_t rows_;
  Table now_;
  Table old_;                   // the narrower table, while widening
  std::uint64_t moved_ = kAll;  // rows before this one are in now_, all columns
};

class BitMatrix {
 public:
  BitMatrix(std::uint64_t rows, MemoryResource& memory) : rows_(rows), groups_(memory) {}

  // Makes room for that many filters; new ones are empty. Throws NoMemory; answers do not change
  // then.
  void reserve(std::size_t filters);
  // Rows may still have to be moved by widen_some(); if it is not called before the next reserve(),
  // that one is slow.
  bool widening() const noexcept { return !groups_.empty() && groups_.back().widening(); }
  void widen_some(std::uint64_t rows) noexcept { groups_.back().widen_some(rows); }

  bool claims(ProbeWords& words, unsigned probes) const noexcept {
    for (const MatrixGroup& group : groups_)
      if (with_words(group.table(),
                     [&](auto table) { return claimants(group, table, words, probes) != 0; }))
        return true;
    return false;
  }
  void write(std::size_t filter, ProbeWords& words, unsigned probes) noexcept {
    MatrixGroup& group = group_of(filter);
    with_words(group.table(), [&](auto table) {
      for (unsigned probe = 0; probe < probes; ++probe)
        group.set(table, scale_to(words[probe], rows_), column_of(filter));
    });
  }

  std::span<const MatrixGroup> groups() const noexcept { return groups_; }
  std::uint64_t rows() const noexcept { return rows_; }
  std::uint64_t bytes() const noexcept;
  // The memory that it has taken from its resource.
  std::uint64_t taken() const noexcept {
    return taken_by(groups_) + settled_ + (groups_.empty() ? 0 : groups_.back().taken());
  }
  MemoryResource& memory() const noexcept { return groups_.get_allocator().resource(); }
  // The bytes for that many filters, before they are made; `widening`: the last one is so new that
  // rows may still be moving.
  static std::uint64_t bytes_for(std::uint64_t rows, std::size_t filters, bool widening);

  // One filter as the words of a table of its own.
  void gather(std::size_t filter, std::uint64_t first_word,
              std::span<std::uint64_t> out) const noexcept;
  // Adds the tables of filters from `first` on: one, or up to kMostWoven in one group from a multiple
  // of it on.
  void weave(std::size_t first, std::span<const LineTable* const> tables) noexcept;
  void join(std::size_t into, std::size_t from) noexcept;
  void clear(std::size_t filter) noexcept;
  void clear() noexcept;

 private:
  template <class Words>
  std::uint64_t claimants(const MatrixGroup& group, Words table, ProbeWords& words,
                          unsigned probes) const noexcept {
    // Four reads at a time, which wait for memory together.
    std::uint64_t claim = group.columns_mask();
    unsigned probe = 0;
    for (; probe + 4 <= probes && claim != 0; probe += 4) {
      claim &= group.row(table, scale_to(words[probe], rows_)) &
               group.row(table, scale_to(words[probe + 1], rows_)) &
               group.row(table, scale_to(words[probe + 2], rows_)) &
               group.row(table, scale_to(words[probe + 3], rows_));
    }
    for (; probe < probes && claim != 0; ++probe)
      claim &= group.row(table, scale_to(words[probe], rows_));
    return claim;
  }

  MatrixGroup& group_of(std::size_t filter) noexcept {
    return groups_[filter / MatrixGroup::kMostColumns];
  }
  const MatrixGroup& group_of(std::size_t filter) const noexcept {
    return groups_[filter / MatrixGroup::kMostColumns];
  }
  static unsigned column_of(std::size_t filter) noexcept {
    return static_cast<unsigned>(filter % MatrixGroup::kMostColumns);
  }

  std::uint64_t rows_ = 0;
  Vector<MatrixGroup> groups_;
  std::uint64_t settled_ = 0;  // bytes of all groups but the last: they no longer change
};

}  // namespace sluice
