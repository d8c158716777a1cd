#include "sluice/base/memory.hpp"

#include <sys/mman.h>

#include <array>
#include <bit>
#include <cstring>
#include <limits>
#include <string>
#include <utility>

#include "sluice/base/error.hpp"

namespace sluice {
namespace {

constexpr std::size_t kHugePageBytes = std::size_t{2} << 20;
// Smaller blocks are not worth a mapping of their own, of which a process has a limited number.
constexpr std::size_t kMapFromBytes = std::size_t{64} << 10;

}  // namespace

Memory::Memory(std::uint64_t bytes, MemoryResource& resource) : resource_(&resource) {
  if (bytes == 0) return;
  if (bytes > std::numeric_limits<std::size_t>::max() - 2 * kHugePageBytes)
    throw NoMemory("no table can take " + std::to_string(bytes) + " bytes: ask for less");
  const auto size = static_cast<std::size_t>(bytes);
  if (resource.mapping() != nullptr && size >= kMapFromBytes) {
    map(size);
  } else {
    data_ = static_cast<std::byte*>(resource.allocate(size, kCacheLineBytes));
    bytes_ = size;
    std::memset(data_, 0, bytes_);
  }
}

// The kernel would grant a table larger than memory, page by page, and kill the process later: the
// resource's budget refuses it at once.
void Memory::map(std::size_t bytes) {
  const bool huge = bytes >= kHugePageBytes;
  const std::size_t alignment = huge ? kHugePageBytes : kCacheLineBytes;
  resource_->charge(bytes);
  void* const mapping = mmap(nullptr, bytes + alignment, PROT_READ | PROT_WRITE,
                             MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (mapping == MAP_FAILED) {
    resource_->discharge(bytes);
    throw NoMemory("the system cannot give " + std::to_string(bytes) +
                   " bytes of memory for one table: ask for a smaller filter");
  }
  mapping_ = mapping;
  mapping_bytes_ = bytes + alignment;
  bytes_ = bytes;
  const auto address = reinterpret_cast<std::uintptr_t>(mapping_);
  const std::uintptr_t aligned = (address + alignment - 1) / alignment * alignment;
  data_ = static_cast<std::byte*>(mapping_) + (aligned - address);
#ifdef MADV_HUGEPAGE
  // Advice only: a kernel without huge pages serves small ones. The tail that does not fill a huge
  // page is left out, so that the resident size stays within a page of what was asked for.
  if (huge && resource_->mapping()->huge_pages)
    madvise(data_, bytes_ / kHugePageBytes * kHugePageBytes, MADV_HUGEPAGE);
#endif
}

Memory::Memory(Memory&& other) noexcept {
  *this = std::move(other);
}

Memory& Memory::operator=(Memory&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(bytes_, other.bytes_);
  std::swap(resource_, other.resource_);
  std::swap(mapping_, other.mapping_);
  std::swap(mapping_bytes_, other.mapping_bytes_);
  return *this;
}

Memory::~Memory() {
  if (mapping_ != nullptr) {
    munmap(mapping_, mapping_bytes_);
    resource_->discharge(bytes_);
  } else if (data_ != nullptr) {
    resource_->deallocate(data_, bytes_, kCacheLineBytes);
  }
}

std::uint64_t Memory::taken() const noexcept {
  if (mapping_ != nullptr || data_ == nullptr) return bytes_;
  return resource_->usable(data_, bytes_, kCacheLineBytes);
}

namespace {

// Of the bits of a word, how many are set in each byte. Plain arithmetic becomes vectors;
// std::popcount, where processors may lack the instruction, becomes a call per word.
std::uint64_t ones_of_bytes(std::uint64_t word) noexcept {
  word -= word >> 1 & 0x5555555555555555;
  word = (word & 0x3333333333333333) + (word >> 2 & 0x3333333333333333);
  return (word + (word >> 4)) & 0x0F0F0F0F0F0F0F0F;
}

}  // namespace

std::uint64_t Memory::count_ones() const noexcept {
  // A byte of their sum holds what 24 words have set there, 8 each at most.
  std::array<std::uint64_t, 24> words;
  std::uint64_t ones = 0;
  std::size_t at = 0;
  for (; at + sizeof words <= bytes_; at += sizeof words) {
    std::memcpy(words.data(), data_ + at, sizeof words);
    std::uint64_t sum = 0;
    for (const std::uint64_t word : words) sum += ones_of_bytes(word);
    sum = (sum & 0x00FF00FF00FF00FF) + (sum >> 8 & 0x00FF00FF00FF00FF);
    ones += sum * 0x0001000100010001 >> 48;
  }
  for (; at < bytes_; ++at)
    ones += static_cast<std::uint64_t>(std::popcount(std::to_integer<unsigned>(data_[at])));
  return ones;
}

void Memory::clear() noexcept {
  if (bytes_ == 0) return;  // memset wants an address even for nothing
  if (mapping_ == nullptr || bytes_ < kHugePageBytes ||
      madvise(mapping_, mapping_bytes_, MADV_DONTNEED) != 0)
    std::memset(data_, 0, bytes_);
}

}  // namespace sluice
