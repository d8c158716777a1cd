#include "sluice/base/line_table.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <utility>

#include "sluice/base/checked.hpp"

namespace sluice {
namespace {

// A smaller table is soon cleared, and found without a division.
constexpr std::uint64_t kPagesFromBytes = std::uint64_t{64} << 10;

}  // namespace

LineTable::LineTable(std::uint64_t lines, MemoryResource& resource)
    : lines_(lines), pages_(resource), cleared_(resource) {
  const std::uint64_t bytes = checked_multiply(lines, kCacheLineBytes, "a table");
  if (resource.mapping() != nullptr || bytes <= kPagesFromBytes) {
    block_ = Memory(bytes, resource);
    return;
  }
  try {
    take_pages();
  } catch (...) {
    release();
    throw;
  }
}

void LineTable::take_pages() {
  constexpr std::uint64_t kPageLines = LinePages::kPageLines;
  const std::uint64_t count = lines_ / kPageLines + (lines_ % kPageLines != 0);
  pages_.reserve(count);
  const std::uint64_t granules = (lines_ + LinePages::kGranuleLines - 1) / LinePages::kGranuleLines;
  cleared_.resize((granules + 63) / 64);
  for (std::size_t page = 0; page < count; ++page) {
    const std::uint64_t bytes = page_bytes(page);
    void* const block = resource().allocate(bytes, kCacheLineBytes);
    pages_.push_back(static_cast<std::byte*>(block));
    page_usable_ += resource().usable(block, bytes, kCacheLineBytes);
  }
}

// The last one has as many whole granules as are left.
std::uint64_t LineTable::page_bytes(std::size_t page) const noexcept {
  const std::uint64_t left = lines_ - page * LinePages::kPageLines;
  const std::uint64_t lines = std::min(LinePages::kPageLines, left);
  return (lines + LinePages::kGranuleLines - 1) / LinePages::kGranuleLines *
         LinePages::kGranuleLines * kCacheLineBytes;
}

void LineTable::release() noexcept {
  for (std::size_t page = 0; page < pages_.size(); ++page)
    resource().deallocate(pages_[page], page_bytes(page), kCacheLineBytes);
  pages_.clear();
}

LineTable::LineTable(LineTable&& other) noexcept
    : lines_(0), pages_(other.resource()), cleared_(other.resource()) {
  *this = std::move(other);
}

LineTable& LineTable::operator=(LineTable&& other) noexcept {
  std::swap(lines_, other.lines_);
  std::swap(block_, other.block_);
  std::swap(pages_, other.pages_);
  std::swap(cleared_, other.cleared_);
  std::swap(page_usable_, other.page_usable_);
  return *this;
}

LineTable::~LineTable() {
  release();
}

std::uint64_t LineTable::taken() const noexcept {
  return block_.taken() + page_usable_ + taken_by(pages_) + taken_by(cleared_);
}

std::uint64_t LineTable::count_ones() const noexcept {
  if (pages_.empty()) return block_.count_ones();
  std::uint64_t ones = 0;
  for (std::uint64_t line = 0; line < lines_; ++line) {
    if (!pages().is_clear(line)) continue;
    std::array<std::uint64_t, kCacheLineBytes / sizeof(std::uint64_t)> words;
    std::memcpy(words.data(), pages().at(line), kCacheLineBytes);
    for (const std::uint64_t word : words) ones += static_cast<std::uint64_t>(std::popcount(word));
  }
  return ones;
}

void LineTable::clear() noexcept {
  if (pages_.empty())
    block_.clear();
  else
    std::ranges::fill(cleared_, 0);
}

void LineTable::encode(Encoder& to) const {
  if (pages_.empty()) return to.bytes(block_.bytes());
  static constexpr std::byte kZeros[LinePages::kGranuleLines * kCacheLineBytes] = {};
  for (std::uint64_t page = 0; page < lines_; page += LinePages::kPageLines) {
    const std::uint64_t end = std::min(page + LinePages::kPageLines, lines_);
    if (to.skip((end - page) * kCacheLineBytes)) continue;
    for (std::uint64_t line = page; line < end; line += LinePages::kGranuleLines) {
      const std::uint64_t count = std::min(LinePages::kGranuleLines, end - line);
      to.bytes({pages().is_clear(line) ? pages().at(line) : kZeros, count * kCacheLineBytes});
    }
  }
}

void LineTable::decode(Decoder& from) {
  if (pages_.empty()) return from.bytes(block_.bytes());
  for (std::size_t page = 0; page < pages_.size(); ++page) {
    const std::uint64_t lines =
        std::min(LinePages::kPageLines, lines_ - page * LinePages::kPageLines);
    from.bytes({pages_[page], lines * kCacheLineBytes});
  }
  std::ranges::fill(cleared_, ~std::uint64_t{0});
}

}  // namespace sluice
