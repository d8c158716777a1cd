#include "sluice/filters/dynamic/bit_matrix.hpp"

#include <algorithm>
#include <bit>
#include <cassert>

#include "sluice/base/checked.hpp"

namespace sluice {
namespace {

constexpr unsigned kWidths[] = {1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64};

unsigned width_for(std::size_t columns) {
  assert(columns <= SlicedGroup::kMostColumns);
  return *std::ranges::lower_bound(kWidths, columns);
}

// A word more than the rows: the last one is read as a whole word too.
std::uint64_t bytes_at(std::uint64_t rows, unsigned width) {
  return checked_multiply(rows, width, "the slices of filter 'dynamic'") / 8 + 16;
}

unsigned step_for(unsigned width) {
  return std::has_single_bit(width) ? 6 : 3;
}

}  // namespace

Memory SlicedGroup::table(std::uint64_t rows, unsigned width, MemoryResource& memory) {
  return Memory(bytes_at(rows, width), memory);
}

std::uint64_t SlicedGroup::bytes_for(std::uint64_t rows, unsigned columns) {
  return bytes_at(rows, width_for(columns));
}

SlicedGroup::SlicedGroup(std::uint64_t rows, unsigned columns, MemoryResource& memory)
    : rows_(rows),
      width_(width_for(columns)),
      step_(step_for(width_)),
      memory_(table(rows, width_, memory)) {}

void SlicedGroup::widen(unsigned columns) {
  const unsigned width = width_for(columns);
  if (width <= width_) return;
  Memory wider = table(rows_, width, memory_.resource());
  const std::uint64_t mask = columns_mask();
  for (std::uint64_t at = 0; at < rows_; ++at) {
    const std::uint64_t bits = row(at) & mask;
    if (bits == 0) continue;
    // From the byte in which the row begins it needs at most 7 + 48 bits.
    const std::uint64_t bit = at * width;
    std::uint64_t word = 0;
    std::memcpy(&word, wider.data() + bit / 8, sizeof word);
    word |= bits << (bit % 8);
    std::memcpy(wider.data() + bit / 8, &word, sizeof word);
  }
  memory_ = std::move(wider);
  width_ = width;
  step_ = step_for(width);
}

void SlicedGroup::clear_column(unsigned column) noexcept {
  for (std::uint64_t at = 0; at < rows_; ++at) {
    const std::uint64_t bit = at * width_ + column;
    memory_.data()[bit / 8] &= static_cast<std::byte>(~(1u << (bit % 8)));
  }
}

std::uint64_t SlicedGroup::gather(unsigned column, std::uint64_t word) const noexcept {
  std::uint64_t bits = 0;
  for (unsigned i = 0; i < 64; ++i) bits |= (row(word * 64 + i) >> column & 1) << i;
  return bits;
}

void SlicedGroup::scatter(unsigned column, std::uint64_t word, std::uint64_t bits) noexcept {
  for (; bits != 0; bits &= bits - 1)
    set(word * 64 + static_cast<unsigned>(std::countr_zero(bits)), column);
}

void BitMatrix::reserve(std::size_t filters) {
  constexpr std::size_t kMost = SlicedGroup::kMostColumns;
  for (std::size_t group = 0; group * kMost < filters; ++group) {
    const auto columns = static_cast<unsigned>(std::min(filters - group * kMost, kMost));
    if (group < groups_.size())
      groups_[group].widen(columns);
    else
      groups_.emplace_back(rows_, columns, memory());
  }
}

std::uint64_t BitMatrix::bytes() const noexcept {
  std::uint64_t bytes = 0;
  for (const SlicedGroup& group : groups_) bytes += group.bytes();
  return bytes;
}

std::uint64_t BitMatrix::taken() const noexcept {
  std::uint64_t bytes = taken_by(groups_);
  for (const SlicedGroup& group : groups_) bytes += group.taken();
  return bytes;
}

std::uint64_t BitMatrix::bytes_for(std::uint64_t rows, std::size_t filters) {
  constexpr std::size_t kMost = SlicedGroup::kMostColumns;
  std::uint64_t bytes = 0;
  for (std::size_t first = 0; first < filters; first += kMost)
    bytes += SlicedGroup::bytes_for(rows, static_cast<unsigned>(std::min(filters - first, kMost)));
  return bytes;
}

void BitMatrix::gather(std::size_t filter, std::uint64_t first_word,
                       std::span<std::uint64_t> out) const noexcept {
  const SlicedGroup& group = group_of(filter);
  for (std::size_t i = 0; i < out.size(); ++i)
    out[i] = group.gather(column_of(filter), first_word + i);
}

void BitMatrix::scatter(std::size_t filter, std::span<const std::uint64_t> table) noexcept {
  SlicedGroup& group = group_of(filter);
  for (std::size_t i = 0; i < table.size(); ++i) group.scatter(column_of(filter), i, table[i]);
}

void BitMatrix::join(std::size_t into, std::size_t from) noexcept {
  SlicedGroup& to = group_of(into);
  const SlicedGroup& other = group_of(from);
  for (std::uint64_t word = 0; word < rows_ / 64; ++word)
    to.scatter(column_of(into), word, other.gather(column_of(from), word));
}

void BitMatrix::clear(std::size_t filter) noexcept {
  group_of(filter).clear_column(column_of(filter));
}

void BitMatrix::clear() noexcept {
  if (groups_.size() > 1) groups_.erase(groups_.begin() + 1, groups_.end());
  for (SlicedGroup& group : groups_) group.clear();
}

}  // namespace sluice
