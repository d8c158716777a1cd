#include "sluice/base/line_table.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <utility>

namespace sluice {
namespace {

constexpr std::uint64_t kGranuleBytes = LinePages::kGranuleLines * kCacheLineBytes;
constexpr std::uint64_t kPageBytes = LinePages::kPageLines * kCacheLineBytes;

}  // namespace

LineTable::LineTable(std::uint64_t bytes, MemoryResource& resource) : LineTable(resource) {
  if (resource.mapping() != nullptr || bytes <= kPagesFromBytes)
    block_ = Memory(bytes, resource);
  else
    take_pages(bytes);
  bytes_ = bytes;
}

// What was taken before one is refused goes back with the destructor.
void LineTable::take_pages(std::uint64_t bytes) {
  resource().check_left(bytes);
  bytes_ = bytes;
  const std::uint64_t count = (bytes + kPageBytes - 1) / kPageBytes;
  const std::uint64_t granules = (bytes + kGranuleBytes - 1) / kGranuleBytes;
  const std::uint64_t blocks =
      (granules + LinePages::kBlockGranules - 1) / LinePages::kBlockGranules;
  pages_.reserve(count);
  cleared_.reserve(blocks);
  for (std::size_t block = 0; block < blocks; ++block)
    cleared_.push_back(static_cast<std::uint64_t*>(take(bit_bytes(block), alignof(std::uint64_t))));
  set_cleared(false);
  for (std::size_t page = 0; page < count; ++page)
    pages_.push_back(static_cast<std::byte*>(take(page_bytes(page), kCacheLineBytes)));
}

void* LineTable::take(std::uint64_t bytes, std::size_t alignment) {
  void* const block = resource().allocate(bytes, alignment);
  usable_ += resource().usable(block, bytes, alignment);
  return block;
}

// The last one has as many whole granules as are left.
std::uint64_t LineTable::page_bytes(std::size_t page) const noexcept {
  const std::uint64_t left = std::min(kPageBytes, bytes_ - page * kPageBytes);
  return (left + kGranuleBytes - 1) / kGranuleBytes * kGranuleBytes;
}

// The last one has as many whole words as are left.
std::uint64_t LineTable::bit_bytes(std::size_t block) const noexcept {
  const std::uint64_t granules = (bytes_ + kGranuleBytes - 1) / kGranuleBytes;
  const std::uint64_t left =
      std::min(LinePages::kBlockGranules, granules - block * LinePages::kBlockGranules);
  return (left + 63) / 64 * sizeof(std::uint64_t);
}

void LineTable::set_cleared(bool cleared) noexcept {
  for (std::size_t block = 0; block < cleared_.size(); ++block)
    std::memset(cleared_[block], cleared ? 0xFF : 0, bit_bytes(block));
}

void LineTable::release() noexcept {
  for (std::size_t page = 0; page < pages_.size(); ++page)
    resource().deallocate(pages_[page], page_bytes(page), kCacheLineBytes);
  for (std::size_t block = 0; block < cleared_.size(); ++block)
    resource().deallocate(cleared_[block], bit_bytes(block), alignof(std::uint64_t));
  pages_.clear();
  cleared_.clear();
}

LineTable::LineTable(LineTable&& other) noexcept : LineTable(other.resource()) {
  *this = std::move(other);
}

LineTable& LineTable::operator=(LineTable&& other) noexcept {
  std::swap(bytes_, other.bytes_);
  std::swap(block_, other.block_);
  std::swap(pages_, other.pages_);
  std::swap(cleared_, other.cleared_);
  std::swap(usable_, other.usable_);
  return *this;
}

LineTable::~LineTable() {
  release();
}

std::uint64_t LineTable::taken() const noexcept {
  return block_.taken() + usable_ + taken_by(pages_) + taken_by(cleared_);
}

std::uint64_t LineTable::count_ones() const noexcept {
  if (pages_.empty()) return block_.count_ones();
  std::uint64_t ones = 0;
  for (std::uint64_t line = 0; line < lines(); ++line) {
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
    set_cleared(false);
}

void LineTable::encode(Encoder& to, std::uint64_t bytes) const {
  if (pages_.empty()) return to.bytes(block_.bytes().first(bytes));
  static constexpr std::byte kZeros[kGranuleBytes] = {};
  for (std::uint64_t page = 0; page < bytes; page += kPageBytes) {
    const std::uint64_t end = std::min(page + kPageBytes, bytes);
    if (to.skip(end - page)) continue;
    for (std::uint64_t at = page; at < end; at += kGranuleBytes) {
      const std::uint64_t line = at / kCacheLineBytes;
      to.bytes(
          {pages().is_clear(line) ? pages().at(line) : kZeros, std::min(kGranuleBytes, end - at)});
    }
  }
}

void LineTable::decode(Decoder& from, std::uint64_t bytes) {
  if (pages_.empty()) return from.bytes(block_.bytes().first(bytes));
  // What is not read stays zero.
  clear();
  for (std::uint64_t line = bytes / kCacheLineBytes; line < lines(); ++line) to_write(line);
  for (std::uint64_t page = 0; page * kPageBytes < bytes; ++page)
    from.bytes({pages_[page], std::min(kPageBytes, bytes - page * kPageBytes)});
  set_cleared(true);
}

}  // namespace sluice
