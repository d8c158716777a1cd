#include "sluice/base/growable_memory.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <exception>
#include <limits>
#include <string>
#include <utility>

#include "sluice/base/error.hpp"
#include "sluice/base/signals.hpp"

namespace sluice {
namespace {

constexpr std::size_t kHugePageBytes = std::size_t{2} << 20;
constexpr std::size_t kStepBytes = std::size_t{64} << 10;  // a multiple of every page size in use
// From here on huge pages, and only whole ones: a page that is not all ours when it is first
// touched is given as small pages. The last one is partly unused, at most a quarter of the block,
// and one more may be being fetched.
constexpr std::size_t kHugeFromBytes = std::size_t{8} << 20;
constexpr std::size_t kFirstPageBytes = std::size_t{4} << 10;
constexpr std::size_t kFirstReservation = std::size_t{4} << 20;
// Reserve this many times what is needed. Addresses cost nothing, and moving many small pages takes
// as long as dozens of batches of keys.
constexpr std::size_t kReserveAhead = 16;

std::size_t round_up(std::size_t bytes, std::size_t to) {
  return (bytes + to - 1) / to * to;
}

// From here on where it may be mapped.
constexpr std::size_t kMapFromBytes = (std::size_t{64} << 10) + 1;

// A plain block for `bytes`.
std::size_t small_block(std::size_t bytes) {
  return std::bit_ceil(std::max(bytes, kFirstPageBytes));
}

// A first page for `bytes`: with what aligns it, a power of two.
std::size_t first_page(std::size_t bytes) {
  return std::bit_ceil(std::max(bytes + kCacheLineBytes, kFirstPageBytes)) - kCacheLineBytes;
}

// What is mapped when `bytes` are asked for.
std::size_t with_margin(std::size_t bytes) {
  if (bytes >= kHugeFromBytes) return round_up(bytes, kHugePageBytes);
  const std::size_t step = std::max(bytes / 64 / kStepBytes * kStepBytes, kStepBytes);
  return std::min(round_up(bytes, step), kHugeFromBytes);
}

[[noreturn]] void refuse(std::uint64_t bytes) {
  throw NoMemory("the system cannot give " + std::to_string(bytes) +
                 " bytes of memory for a table that grows");
}

// Moves to reserved addresses and frees the old ones. Only page tables change, if the system can do
// that.
bool move_pages(std::byte* from, std::size_t bytes, std::byte* to) {
  if (bytes == 0) return true;
#ifdef MREMAP_FIXED
  if (mremap(from, bytes, bytes, MREMAP_MAYMOVE | MREMAP_FIXED, to) == to) return true;
#endif
  // Mapped again: a failed mremap may have left a hole.
  if (mmap(to, bytes, PROT_READ | PROT_WRITE,
           MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0) != to)
    return false;
  std::memcpy(to, from, bytes);
  munmap(from, bytes);
  return true;
}

}  // namespace

std::uint64_t GrowableMemory::given_for(std::uint64_t bytes) noexcept {
  const auto wanted = static_cast<std::size_t>(bytes);
  return wanted < kMapFromBytes ? small_block(wanted) : with_margin(wanted);
}

std::uint64_t GrowableMemory::given_in_pages_for(std::uint64_t bytes) noexcept {
  const auto wanted = static_cast<std::size_t>(bytes);
  const std::size_t pages = (wanted + kPageBytes - 1) / kPageBytes;
  return (pages <= 1 ? first_page(wanted) : pages * kPageBytes) + PageList::bytes_for(pages);
}

void GrowableMemory::grow(std::uint64_t wanted) {
  if (wanted <= bytes_) return;
  // Also keeps the rounding from wrapping.
  if (wanted > std::numeric_limits<std::size_t>::max() / (2 * kReserveAhead)) refuse(wanted);
  const std::size_t bytes = with_margin(static_cast<std::size_t>(wanted));
  if (!maps()) return grow_pages(static_cast<std::size_t>(wanted));
  if (wanted < kMapFromBytes && mapping_ == nullptr)
    return grow_small(static_cast<std::size_t>(wanted));
  if (is_small()) return grow_out_of_small(wanted);
  wait_for_page();
  const std::size_t more = bytes > taken_ ? bytes - taken_ : 0;
  if (more > 0) {
    const bool first = taken_ == 0;
    resource_->charge(more, first);
    try {
      if (bytes > reserved_) reserve(bytes);
      if (mprotect(data_ + taken_, more, PROT_READ | PROT_WRITE) != 0) refuse(bytes);
    } catch (...) {
      resource_->discharge(more, first);
      throw;
    }
  }
  if (bytes >= kHugeFromBytes) {
    // A step is small enough for small pages, and the next one is requested in time; a larger block
    // is touched completely anyway.
    const bool step = bytes_ >= kHugeFromBytes && bytes - bytes_ <= 2 * kHugePageBytes;
    advise_huge(0, step ? taken_ : bytes);
    taken_ = std::max(taken_, bytes);
    if (step && resource_->mapping()->fetch_ahead) fetch_page();
  }
  taken_ = std::max(taken_, bytes);
  bytes_ = bytes;
}

void GrowableMemory::grow_small(std::size_t wanted) {
  const std::size_t bytes = small_block(wanted);
  auto* const block = static_cast<std::byte*>(resource_->allocate(bytes, kCacheLineBytes));
  std::memset(block + bytes_, 0, bytes - bytes_);
  if (data_ != nullptr) {
    std::memcpy(block, data_, bytes_);
    resource_->deallocate(data_, bytes_, kCacheLineBytes);
  }
  data_ = block;
  bytes_ = bytes;
  taken_ = resource_->usable(block, bytes, kCacheLineBytes);
}

void GrowableMemory::grow_out_of_small(std::uint64_t wanted) {
  GrowableMemory mapped(*resource_);
  mapped.grow(wanted);
  std::memcpy(mapped.data_, data_, bytes_);
  *this = std::move(mapped);
}

// All pages are whole but a first one that is alone.
std::size_t GrowableMemory::page_bytes(std::size_t page) const noexcept {
  return page == 0 && pages_.size() == 1 ? bytes_ : kPageBytes;
}

void GrowableMemory::grow_first_page(std::size_t wanted) {
  const std::size_t bytes = first_page(wanted);
  pages_.reserve(1);
  auto* const page = static_cast<std::byte*>(resource_->allocate(bytes, kCacheLineBytes));
  if (!pages_.empty()) std::memcpy(page, pages_[0].bytes, bytes_);
  drop_pages(0);
  pages_.push_back(page);
  taken_ = resource_->usable(page, bytes, kCacheLineBytes);
  bytes_ = bytes;
}

void GrowableMemory::grow_pages(std::size_t wanted) {
  if (bytes_ < kPageBytes) grow_first_page(std::min(wanted, kPageBytes));
  const std::size_t before = pages_.size();
  const std::size_t needed = (wanted + kPageBytes - 1) / kPageBytes;
  pages_.reserve(needed);
  try {
    while (bytes_ < wanted) {
      auto* const page = static_cast<std::byte*>(resource_->allocate(kPageBytes, kCacheLineBytes));
      pages_.push_back(page);
      taken_ += resource_->usable(page, kPageBytes, kCacheLineBytes);
      bytes_ += kPageBytes;
    }
  } catch (...) {
    drop_pages(before);
    throw;
  }
}

void GrowableMemory::drop_pages(std::size_t keep) noexcept {
  while (pages_.size() > keep) {
    const std::size_t bytes = page_bytes(pages_.size() - 1);
    std::byte* const page = pages_[pages_.size() - 1].bytes;
    taken_ -= resource_->usable(page, bytes, kCacheLineBytes);
    resource_->deallocate(page, bytes, kCacheLineBytes);
    pages_.pop_back();
    bytes_ -= bytes;
  }
}

void GrowableMemory::zero(std::uint64_t bytes) noexcept {
  if (maps()) {
    if (bytes > 0) std::memset(data_, 0, static_cast<std::size_t>(bytes));
    return;
  }
  if (pages_.size() == 1) {
    std::memset(pages_[0].bytes, 0, static_cast<std::size_t>(bytes));
    pages_[0].cleared = GrownPage::kAllCleared;
    return;
  }
  for (std::size_t page = 0; page * kPageBytes < bytes; ++page) pages_[page].cleared = 0;
}

void GrowableMemory::advise_huge(std::size_t from, std::size_t until) noexcept {
#ifdef MADV_HUGEPAGE
  if (from < until && resource_->mapping()->huge_pages)
    madvise(data_ + from, until - from, MADV_HUGEPAGE);
#endif
}

// Lets the system clear the next huge page, on a separate thread: this may take milliseconds, as
// long as a hundred batches of keys. If any of this fails, the page comes when it is touched.
void GrowableMemory::fetch_page() noexcept {
#ifdef MADV_POPULATE_WRITE
  if (reserved_ - taken_ < kHugePageBytes) return;
  std::byte* const page = data_ + taken_;
  try {
    resource_->charge(kHugePageBytes, 0);
  } catch (const NoMemory&) {
    return;  // the next grow() will say so
  }
  if (mprotect(page, kHugePageBytes, PROT_READ | PROT_WRITE) != 0)
    return resource_->discharge(kHugePageBytes, 0);
  advise_huge(taken_, taken_ + kHugePageBytes);
  taken_ += kHugePageBytes;
  try {
    const SignalsBlocked blocked;
    fetching_ = std::thread([page] { madvise(page, kHugePageBytes, MADV_POPULATE_WRITE); });
  } catch (const std::exception&) {
  }
#endif
}

void GrowableMemory::wait_for_page() noexcept {
  if (fetching_.joinable()) fetching_.join();
}

// Makes a larger reservation with the present pages at its front. If address space is limited, it
// reserves less.
void GrowableMemory::reserve(std::size_t bytes) {
  std::size_t want = std::max(kFirstReservation, round_up(kReserveAhead * bytes, kHugePageBytes));
  void* mapping = MAP_FAILED;
  std::size_t mapping_bytes = 0;
  for (;; want = std::max(bytes, want / 2)) {
    mapping_bytes = want + kHugePageBytes;
    mapping =
        mmap(nullptr, mapping_bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (mapping != MAP_FAILED) break;
    if (want == bytes) refuse(bytes);
  }
  const auto address = reinterpret_cast<std::uintptr_t>(mapping);
  std::byte* const data =
      static_cast<std::byte*>(mapping) + (round_up(address, kHugePageBytes) - address);
  // Only what is one mapping can be moved, and advice divides.
  if (taken_ >= kHugeFromBytes) advise_huge(0, taken_);
  if (!move_pages(data_, taken_, data)) {
    munmap(mapping, mapping_bytes);
    refuse(bytes);
  }
  // Only what is around the moved pages: their old addresses may be in use by others now.
  auto* const front = static_cast<std::byte*>(mapping_);
  if (front != nullptr) {
    if (front < data_) munmap(front, static_cast<std::size_t>(data_ - front));
    munmap(data_ + taken_, mapping_bytes_ - static_cast<std::size_t>(data_ - front) - taken_);
  }
  mapping_ = mapping;
  mapping_bytes_ = mapping_bytes;
  data_ = data;
  reserved_ = want;
}

void GrowableMemory::reset(std::uint64_t bytes) noexcept {
  if (bytes_ == 0) return;
  wait_for_page();
  const std::size_t keep =
      std::min(bytes_, with_margin(std::min<std::size_t>(static_cast<std::size_t>(bytes), bytes_)));
  if (!maps()) {
    drop_pages(
        std::max<std::size_t>(1, (static_cast<std::size_t>(bytes) + kPageBytes - 1) / kPageBytes));
    zero(bytes);
    return;
  }
  if (is_small()) {
    std::memset(data_, 0, bytes_);
    return;
  }
  if (bytes < kMapFromBytes) {
    try {
      GrowableMemory small(*resource_);
      small.grow_small(static_cast<std::size_t>(bytes));
      *this = std::move(small);
      return;
    } catch (const NoMemory&) {
      // Then the front of the mapped block is used.
    }
  }
  if (madvise(data_, taken_, MADV_DONTNEED) != 0) std::memset(data_, 0, taken_);
  // If the system refuses, we keep the rest, zeroed.
  if (keep < taken_ && mprotect(data_ + keep, taken_ - keep, PROT_NONE) == 0) {
    resource_->discharge(taken_ - keep, 0);
    bytes_ = taken_ = keep;
  }
}

GrowableMemory::GrowableMemory(GrowableMemory&& other) noexcept
    : resource_(other.resource_), pages_(*other.resource_) {
  *this = std::move(other);
}

GrowableMemory& GrowableMemory::operator=(GrowableMemory&& other) noexcept {
  std::swap(resource_, other.resource_);
  std::swap(data_, other.data_);
  std::swap(bytes_, other.bytes_);
  std::swap(taken_, other.taken_);
  std::swap(reserved_, other.reserved_);
  std::swap(mapping_, other.mapping_);
  std::swap(mapping_bytes_, other.mapping_bytes_);
  std::swap(fetching_, other.fetching_);
  swap(pages_, other.pages_);
  return *this;
}

GrowableMemory::~GrowableMemory() {
  wait_for_page();
  if (!maps()) {
    drop_pages(0);
  } else if (is_small()) {
    resource_->deallocate(data_, bytes_, kCacheLineBytes);
  } else if (mapping_ != nullptr) {
    munmap(mapping_, mapping_bytes_);
    resource_->discharge(taken_, taken_ > 0);
  }
}

}  // namespace sluice
