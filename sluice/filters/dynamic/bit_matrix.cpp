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

// Eight bits that stand `stride` apart, from the lowest on, side by side.
class CloseEight {
 public:
  explicit CloseEight(unsigned stride) : step_(stride - 1) {
    for (unsigned i = 0; i < 8; ++i) {
      ones_ |= std::uint64_t{1} << (i * stride);
      pairs_ |= std::uint64_t{1} << (i / 2 * 2 * stride + i % 2);
      fours_ |= std::uint64_t{1} << (i / 4 * 4 * stride + i % 4);
    }
  }
  std::uint64_t operator()(std::uint64_t bits) const {
    bits &= ones_;
    bits = (bits | bits >> step_) & pairs_;
    bits = (bits | bits >> 2 * step_) & fours_;
    return (bits | bits >> 4 * step_) & 0xFF;
  }

 private:
  unsigned step_;
  std::uint64_t ones_ = 0, pairs_ = 0, fours_ = 0;
};

// Four of them, at least five apart: each is multiplied to its place, and no two products meet.
class CloseFour {
 public:
  explicit CloseFour(unsigned stride) : shift_(3 * (stride - 1)) {
    for (unsigned i = 0; i < 4; ++i) {
      ones_ |= std::uint64_t{1} << (i * stride);
      factor_ |= std::uint64_t{1} << (shift_ - i * (stride - 1));
    }
  }
  std::uint64_t operator()(std::uint64_t bits) const {
    return (bits & ones_) * factor_ >> shift_ & 0xF;
  }

 private:
  unsigned shift_;
  std::uint64_t ones_ = 0, factor_ = 0;
};

// The lowest bit of each byte.
std::uint64_t lowest_of_bytes(std::uint64_t bytes) {
  return (bytes & 0x0101010101010101) * 0x0102040810204080 >> 56;
}

// A column of a table whose rows are `width` wide, 64 rows a word, from word `first` on.
template <class Words>
void gather_column(Words words, unsigned width, unsigned column, std::uint64_t first,
                   std::span<std::uint64_t> out) {
  // 64 rows take `width` words.
  const auto for_words = [&](auto word_at) {
    for (std::size_t i = 0; i < out.size(); ++i) out[i] = word_at((first + i) * width * 8);
  };
  if (width == 1) {
    for_words([&](std::uint64_t byte) { return words.load(byte); });
  } else if (width <= 8) {
    // Eight rows take `width` bytes.
    const CloseEight close(width);
    for_words([&](std::uint64_t byte) {
      std::uint64_t bits = 0;
      for (unsigned i = 0; i < 8; ++i)
        bits |= close(words.load(byte + i * width) >> column) << (8 * i);
      return bits;
    });
  } else if (width <= 16) {
    // Twelve or sixteen: four rows take six or eight bytes.
    const CloseFour close(width);
    for_words([&](std::uint64_t byte) {
      std::uint64_t bits = 0;
      for (unsigned i = 0; i < 16; ++i)
        bits |= close(words.load(byte + i * width / 2) >> column) << (4 * i);
      return bits;
    });
  } else {
    const unsigned stride = width / 8, bit = column % 8;
    for_words([&](std::uint64_t byte) {
      byte += column / 8;
      std::uint64_t bits = 0;
      for (unsigned i = 0; i < 8; ++i) {
        std::uint64_t eight = 0;
        for (unsigned row = 0; row < 8; ++row, byte += stride)
          eight |= words.byte(byte) << (8 * row);
        bits |= lowest_of_bytes(eight >> bit) << (8 * i);
      }
      return bits;
    });
  }
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

void MatrixGroup::gather(unsigned column, std::uint64_t first,
                         std::span<std::uint64_t> out) const noexcept {
  with_words(now_.memory, [&](auto words) {
    // Rows that are still in the narrower table too, one by one.
    const std::uint64_t settled = moved_ / kWordBits;
    std::size_t at = 0;
    if (first < settled) {
      at = static_cast<std::size_t>(std::min<std::uint64_t>(out.size(), settled - first));
      gather_column(words, now_.width, column, first, out.first(at));
    }
    for (; at < out.size(); ++at) {
      out[at] = 0;
      for (unsigned i = 0; i < kWordBits; ++i)
        out[at] |= (row(words, (first + at) * kWordBits + i) >> column & 1) << i;
    }
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
  const auto add_words = [&](std::span<const std::byte> together) {
    for (unsigned i = 0; i < width; ++i) {
      std::uint64_t word = 0;
      std::memcpy(&word, &together[i * sizeof word], sizeof word);
      add(i, word);
    }
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
    add_words(together);
  } else if (width % 8 == 0) {
    unsigned bit = column;
    for (const std::uint64_t eight : rows)
      for (unsigned i = 0; i < kWordBits; i += 8, bit += width)
        add(bit / kWordBits, (eight >> i & 0xFF) << (bit % kWordBits));
  } else {
    // Twelve: four rows take six bytes. Put together first, as above.
    assert(width == 12);
    std::array<std::byte, 2 * kWordBits> together;
    std::size_t at = 0;
    for (const std::uint64_t eight : rows)
      for (const std::uint64_t four : {eight & 0xFFFFFFFF, eight >> 32}) {
        const std::uint64_t apart = (four & 0xFF) | (four & 0xFF00) << 4 | (four & 0xFF0000) << 8 |
                                    (four & 0xFF000000) << 12;
        const std::uint64_t shifted = apart << column;
        std::memcpy(&together[at], &shifted, sizeof shifted);
        at += 6;
      }
    add_words(together);
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
  group_of(filter).gather(column_of(filter), first_word, out);
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
    std::uint64_t bits = 0;
    other.gather(column_of(from), block, std::span(&bits, 1));
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
