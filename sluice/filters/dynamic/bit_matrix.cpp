#include "sluice/filters/dynamic/bit_matrix.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cassert>
#include <cstring>
#include <utility>

#include "sluice/base/checked.hpp"
#include "sluice/base/error.hpp"

namespace sluice {
namespace {

constexpr unsigned kWidths[] = {1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64};
constexpr unsigned kWordBits = 64;

unsigned width_for(std::size_t columns) {
  assert(columns <= MatrixGroup::kMostColumns);
  return *std::ranges::lower_bound(kWidths, columns);
}

// A word more than the rows: the last one is read as a whole word too.
std::uint64_t bytes_at(std::uint64_t rows, unsigned width) {
  return checked_multiply(rows, width, "the bit matrix of filter 'dynamic'") / 8 + 16;
}

using Woven = std::array<std::uint64_t, MatrixGroup::kMostWoven>;

// Exchanges the bits of `a` under mask << shift with those of `b` under mask.
void exchange(std::uint64_t& a, std::uint64_t& b, unsigned shift, std::uint64_t mask) {
  const std::uint64_t differ = (a >> shift ^ b) & mask;
  b ^= differ;
  a ^= differ << shift;
}

// An 8 × 8 matrix of bits, a row per byte, turned.
std::uint64_t transposed(std::uint64_t x) {
  const auto turn = [&](unsigned shift, std::uint64_t mask) {
    const std::uint64_t differ = (x ^ x >> shift) & mask;
    x ^= differ ^ differ << shift;
  };
  turn(7, 0x00AA00AA00AA00AA);
  turn(14, 0x0000CCCC0000CCCC);
  turn(28, 0x00000000F0F0F0F0);
  return x;
}

// In: for each of eight filters a word of 64 positions. Out: for each position a byte, with a bit
// per filter.
void transpose(Woven& words) {
  for (unsigned i = 0; i < 4; ++i) exchange(words[i], words[i + 4], 32, 0x00000000FFFFFFFF);
  for (const unsigned i : {0, 1, 4, 5}) exchange(words[i], words[i + 2], 16, 0x0000FFFF0000FFFF);
  for (const unsigned i : {0, 2, 4, 6}) exchange(words[i], words[i + 1], 8, 0x00FF00FF00FF00FF);
  for (std::uint64_t& word : words) word = transposed(word);
}

// Eight bytes of which only the low `width` bits are used, without what lies between.
std::uint64_t packed(std::uint64_t bytes, unsigned width) {
  const auto close = [&](unsigned lane, unsigned used, std::uint64_t low) {
    bytes = (bytes & low) | (bytes >> lane & low) << used;
  };
  close(8, width, 0x00FF00FF00FF00FF);
  close(16, 2 * width, 0x0000FFFF0000FFFF);
  close(32, 4 * width, 0x00000000FFFFFFFF);
  return bytes;
}

}  // namespace

// --- a group ------------------------------------------------------------------------------------

MatrixGroup::Table::Table(std::uint64_t rows, unsigned columns, MemoryResource& resource)
    : width(width_for(columns)),
      step(std::has_single_bit(width) ? 6 : 3),
      memory(bytes_at(rows, width), resource) {}

MatrixGroup::MatrixGroup(std::uint64_t rows, unsigned columns, MemoryResource& memory)
    : rows_(rows), now_(rows, columns, memory) {}

std::uint64_t MatrixGroup::bytes_for(std::uint64_t rows, unsigned columns, unsigned widened) {
  return bytes_at(rows, width_for(columns)) +
         (widened != 0 && widened < width_for(columns) ? bytes_at(rows, width_for(widened)) : 0);
}

void MatrixGroup::widen(unsigned columns) {
  if (width_for(columns) <= now_.width) return;
  Table wider(rows_, columns, now_.memory.resource());
  if (widening()) widen_some(rows_);
  old_ = std::exchange(now_, std::move(wider));
  moved_ = 0;
}

void MatrixGroup::widen_some(std::uint64_t rows) noexcept {
  const std::uint64_t until = moved_ + std::min(rows, rows_ - moved_);
  // From the byte in which it begins a row needs at most 7 + 48 bits. What the loop needs stands in
  // variables of its own: a store through words might change any member.
  const auto move = [first = moved_, until, width = now_.width, old_width = old_.width,
                     old_mask = old_.mask()](auto words, auto old_words) {
    std::uint64_t bit = first * width, old_bit = first * old_width;
    for (std::uint64_t at = first; at < until; ++at, bit += width, old_bit += old_width) {
      const std::uint64_t bits = old_words.load(old_bit / 8) >> (old_bit % 8) & old_mask;
      if (bits != 0) words.store(bit / 8, words.load(bit / 8) | bits << (bit % 8));
    }
  };
  with_words(now_.memory, [&](auto words) {
    // Where the wider table is one block, so is the narrower.
    if constexpr (std::is_same_v<decltype(words), FlatWords>)
      move(words, FlatWords::of(old_.memory));
    else
      with_words(old_.memory, [&](auto old_words) { move(words, old_words); });
  });
  moved_ = until;
  if (moved_ < rows_) return;
  old_ = {};
  moved_ = kAll;
}

void MatrixGroup::clear() noexcept {
  old_ = {};
  moved_ = kAll;
  now_.memory.clear();
}

void MatrixGroup::clear_column(unsigned column) noexcept {
  if (widening()) widen_some(rows_);
  with_words(now_.memory, [&](auto words) {
    for (std::uint64_t at = 0; at < rows_; ++at) {
      const std::uint64_t bit = at * now_.width + column, mask = std::uint64_t{1} << (bit % 64);
      if ((words.get(bit / 64) & mask) != 0) words.at(bit / 64) &= ~mask;
    }
  });
}

std::uint64_t MatrixGroup::gather(unsigned column, std::uint64_t block) const noexcept {
  return with_words(now_.memory, [&](auto words) {
    std::uint64_t bits = 0;
    for (unsigned i = 0; i < kWordBits; ++i)
      bits |= (row(words, block * kWordBits + i) >> column & 1) << i;
    return bits;
  });
}

void MatrixGroup::weave(unsigned column, std::uint64_t block,
                        std::span<const std::uint64_t> bits) noexcept {
  with_words(now_.memory, [&](auto words) { weave(words, column, block, bits); });
}

// 64 rows take `width` whole words.
template <class Words>
void MatrixGroup::weave(Words words, unsigned column, std::uint64_t block,
                        std::span<const std::uint64_t> bits) noexcept {
  if (column % kMostWoven != 0) {
    assert(bits.size() == 1);
    for (std::uint64_t left = bits[0]; left != 0; left &= left - 1)
      set(words, block * kWordBits + static_cast<unsigned>(std::countr_zero(left)), column);
    return;
  }
  assert(bits.size() <= kMostWoven);
  const unsigned width = now_.width;
  const std::uint64_t first = block * width;
  const auto add = [&](std::uint64_t at, std::uint64_t word) {
    if (word != 0) words.at(first + at) |= word;
  };
  if (width == 1) return add(0, bits[0]);
  Woven rows{};
  std::ranges::copy(bits, rows.begin());
  transpose(rows);
  if (width <= kMostWoven) {
    // Eight rows take `width` bytes. Put together first: a word in memory is added to once.
    std::array<std::byte, 2 * kWordBits> together;
    for (unsigned i = 0; i < rows.size(); ++i) {
      const std::uint64_t eight = packed(rows[i], width);
      std::memcpy(&together[i * width], &eight, sizeof eight);
    }
    for (unsigned i = 0; i < width; ++i) {
      std::uint64_t word = 0;
      std::memcpy(&word, &together[i * sizeof word], sizeof word);
      add(i, word);
    }
  } else if (width % 8 == 0) {
    unsigned bit = column;
    for (const std::uint64_t eight : rows)
      for (unsigned i = 0; i < kWordBits; i += 8, bit += width)
        add(bit / kWordBits, (eight >> i & 0xFF) << (bit % kWordBits));
  } else {
    // Twelve: rows begin in the middle of a byte. Put together first, as above.
    std::array<std::uint64_t, kMostColumns + 1> together{};
    for (unsigned i = 0; i < kWordBits; ++i) {
      const unsigned bit = i * width + column, shift = bit % kWordBits;
      const std::uint64_t byte = rows[i / 8] >> (i % 8 * 8) & 0xFF;
      together[bit / kWordBits] |= byte << shift;
      if (shift > kWordBits - 8) together[bit / kWordBits + 1] |= byte >> (kWordBits - shift);
    }
    for (unsigned i = 0; i < width; ++i) add(i, together[i]);
  }
}

// --- all groups ---------------------------------------------------------------------------------

void BitMatrix::reserve(std::size_t filters) {
  constexpr std::size_t kMost = MatrixGroup::kMostColumns;
  for (std::size_t group = 0; group * kMost < filters; ++group) {
    const auto columns = static_cast<unsigned>(std::min(filters - group * kMost, kMost));
    if (group < groups_.size()) {
      groups_[group].widen(columns);
      continue;
    }
    MatrixGroup next(rows_, columns, memory());
    groups_.reserve(groups_.size() + 1);
    // Only the last one is looked after.
    if (widening()) widen_some(rows_);
    if (!groups_.empty()) settled_ += groups_.back().taken();
    groups_.push_back(std::move(next));
  }
}

std::uint64_t BitMatrix::bytes() const noexcept {
  std::uint64_t bytes = 0;
  for (const MatrixGroup& group : groups_) bytes += group.bytes();
  return bytes;
}

std::uint64_t BitMatrix::bytes_for(std::uint64_t rows, std::size_t filters, bool widening) {
  constexpr std::size_t kMost = MatrixGroup::kMostColumns;
  std::uint64_t bytes = 0;
  for (std::size_t first = 0; first < filters; first += kMost) {
    const auto columns = static_cast<unsigned>(std::min(filters - first, kMost));
    const bool last = first + kMost >= filters;
    bytes += MatrixGroup::bytes_for(rows, columns, last && widening ? columns - 1 : 0);
  }
  return bytes;
}

void BitMatrix::gather(std::size_t filter, std::uint64_t first_word,
                       std::span<std::uint64_t> out) const noexcept {
  const MatrixGroup& group = group_of(filter);
  for (std::size_t i = 0; i < out.size(); ++i)
    out[i] = group.gather(column_of(filter), first_word + i);
}

void BitMatrix::weave(std::size_t first, std::span<const LineTable* const> tables) noexcept {
  MatrixGroup& group = group_of(first);
  std::array<std::uint64_t, MatrixGroup::kMostWoven> bits;
  for (std::uint64_t block = 0; block < rows_ / kWordBits; ++block) {
    for (std::size_t i = 0; i < tables.size(); ++i)
      bits[i] = with_words(*tables[i], [&](auto words) { return words.get(block); });
    group.weave(column_of(first), block, std::span(bits).first(tables.size()));
  }
}

void BitMatrix::join(std::size_t into, std::size_t from) noexcept {
  MatrixGroup& to = group_of(into);
  const MatrixGroup& other = group_of(from);
  for (std::uint64_t block = 0; block < rows_ / kWordBits; ++block) {
    const std::uint64_t bits = other.gather(column_of(from), block);
    to.weave(column_of(into), block, std::span(&bits, 1));
  }
}

void BitMatrix::clear(std::size_t filter) noexcept {
  group_of(filter).clear_column(column_of(filter));
}

// As new: a row is as narrow as one filter's again, unless there is no memory for that.
void BitMatrix::clear() noexcept {
  groups_.erase(groups_.begin() + 1, groups_.end());
  settled_ = 0;
  try {
    if (groups_[0].columns_mask() != 1) groups_[0] = MatrixGroup(rows_, 1, memory());
  } catch (const Error&) {
  }
  groups_[0].clear();
}

}  // namespace sluice
