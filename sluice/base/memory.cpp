#include "sluice/base/memory.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <bit>
#include <cstring>
#include <string>
#include <utility>

#include "sluice/base/error.hpp"

namespace sluice {
namespace {

constexpr std::size_t kHugePageBytes = std::size_t{2} << 20;

// A table larger than the machine would be given, page by page, until the kernel kills the process
// in mid-stream: better to refuse it now. Also keeps the rounding below from wrapping.
std::uint64_t most_bytes() {
  static const std::uint64_t physical = static_cast<std::uint64_t>(sysconf(_SC_PHYS_PAGES)) *
                                        static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
  return physical;
}

}  // namespace

Memory::Memory(std::uint64_t bytes) {
  if (bytes == 0) return;
  const bool huge = bytes >= kHugePageBytes;
  const std::size_t alignment = huge ? kHugePageBytes : kCacheLineBytes;
  if (bytes <= most_bytes()) {
    bytes_ = static_cast<std::size_t>(bytes);
    mapping_bytes_ = bytes_ + alignment;
    void* mapping = mmap(nullptr, mapping_bytes_, PROT_READ | PROT_WRITE,
                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (mapping != MAP_FAILED) mapping_ = mapping;
  }
  if (mapping_ == nullptr)
    throw NoMemory("the system cannot give " + std::to_string(bytes) +
                   " bytes of memory for one table, it has " + std::to_string(most_bytes()) +
                   ": ask for a smaller filter");
  const auto address = reinterpret_cast<std::uintptr_t>(mapping_);
  const std::uintptr_t aligned = (address + alignment - 1) / alignment * alignment;
  data_ = static_cast<std::byte*>(mapping_) + (aligned - address);
#ifdef MADV_HUGEPAGE
  // Advice only: a kernel without huge pages serves small ones. The tail that does not fill a huge
  // page is left out, so that the resident size stays within a page of what was asked for.
  if (huge) madvise(data_, bytes_ / kHugePageBytes * kHugePageBytes, MADV_HUGEPAGE);
#endif
}

Memory::Memory(Memory&& other) noexcept {
  *this = std::move(other);
}

Memory& Memory::operator=(Memory&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(bytes_, other.bytes_);
  std::swap(mapping_, other.mapping_);
  std::swap(mapping_bytes_, other.mapping_bytes_);
  return *this;
}

Memory::~Memory() {
  if (mapping_ != nullptr) munmap(mapping_, mapping_bytes_);
}

std::uint64_t Memory::count_ones() const noexcept {
  std::uint64_t ones = 0;
  std::size_t at = 0;
  for (; at + sizeof(std::uint64_t) <= bytes_; at += sizeof(std::uint64_t)) {
    std::uint64_t word;
    std::memcpy(&word, data_ + at, sizeof word);
    ones += static_cast<std::uint64_t>(std::popcount(word));
  }
  for (; at < bytes_; ++at)
    ones += static_cast<std::uint64_t>(std::popcount(std::to_integer<unsigned>(data_[at])));
  return ones;
}

void Memory::clear() noexcept {
  if (bytes_ == 0) return;  // memset wants an address even for nothing
  if (bytes_ < kHugePageBytes || madvise(mapping_, mapping_bytes_, MADV_DONTNEED) != 0)
    std::memset(data_, 0, bytes_);
}

}  // namespace sluice
