#include "sluice/base/memory_resource.hpp"

#include <cstring>
#include <string>

#include "sluice/base/error.hpp"
#include "sluice/base/machine_memory.hpp"

namespace sluice {
namespace {

// What every allocator of a host aligns to.
constexpr std::size_t kHostAlignment = 8;

// A block that needs more alignment than the host gives is allocated larger by that much. The
// address to free is stored right before it.
std::size_t padding_of(std::size_t alignment) {
  return alignment > kHostAlignment ? alignment : 0;
}

void* raw_block(const void* block) {
  void* raw;
  std::memcpy(&raw, static_cast<const std::byte*>(block) - sizeof raw, sizeof raw);
  return raw;
}

[[noreturn]] void refuse(std::uint64_t bytes, const MemoryResource& resource,
                         bool one_block = true) {
  std::string text = "there is no memory for " + std::to_string(bytes) +
                     " bytes more: " + std::to_string(resource.taken()) + " are taken";
  if (resource.budget() != MemoryResource::kNoBudget)
    text += " of " + std::to_string(resource.budget());
  if (one_block && bytes > resource.largest_block())
    text += ", and a block takes at most " + std::to_string(resource.largest_block());
  throw NoMemory(text);
}

}  // namespace

void MemoryResource::check_largest_block() const {
  if (largest_block() < kLeastLargest)
    throw BadParameters("`largest_block` of the memory resource is " +
                        std::to_string(largest_block()) + ": it must be " +
                        std::to_string(kLeastLargest) + " or more");
}

void MemoryResource::check_left(std::uint64_t bytes) const {
  if (bytes > left()) refuse(bytes, *this, false);
}

void MemoryResource::charge(std::uint64_t bytes, std::uint64_t blocks) {
  const std::uint64_t before = taken_.fetch_add(bytes, std::memory_order_relaxed);
  if (bytes > budget_ || before > budget_ - bytes) {
    taken_.fetch_sub(bytes, std::memory_order_relaxed);
    refuse(bytes, *this);
  }
  blocks_.fetch_add(blocks, std::memory_order_relaxed);
}

void MemoryResource::discharge(std::uint64_t bytes, std::uint64_t blocks) noexcept {
  taken_.fetch_sub(bytes, std::memory_order_relaxed);
  blocks_.fetch_sub(blocks, std::memory_order_relaxed);
}

void* MemoryResource::do_allocate(std::size_t bytes, std::size_t alignment) {
  // Checked before the allocator is called: it may promise what the budget does not allow.
  if (bytes > largest_block() || bytes > left()) refuse(bytes, *this);
  void* const block = get(bytes, alignment);
  if (block == nullptr) refuse(bytes, *this);
  try {
    charge(usable(block, bytes, alignment));
  } catch (...) {
    put(block, bytes, alignment);
    throw;
  }
  return block;
}

void MemoryResource::do_deallocate(void* block, std::size_t bytes, std::size_t alignment) {
  discharge(usable(block, bytes, alignment));
  put(block, bytes, alignment);
}

SystemMemory::SystemMemory(const Options& options)
    : MemoryResource(options.budget == 0 ? machine_memory() : options.budget),
      mapping_(options.mapping) {}

void* SystemMemory::get(std::size_t bytes, std::size_t alignment) noexcept {
  return ::operator new(bytes, std::align_val_t(alignment), std::nothrow);
}

void SystemMemory::put(void* block, std::size_t, std::size_t alignment) noexcept {
  ::operator delete(block, std::align_val_t(alignment));  // clang has none that takes the size
}

HostMemory::HostMemory(const Calls& calls, std::uint64_t budget)
    : MemoryResource(budget), calls_(calls) {
  if (calls.allocate == nullptr)
    throw BadParameters("`allocate` of a HostMemory is missing: give a function such as malloc");
  if (calls.free == nullptr)
    throw BadParameters("`free` of a HostMemory is missing: give the one that fits `allocate`");
}

std::size_t HostMemory::usable(const void* block, std::size_t bytes,
                               std::size_t alignment) const noexcept {
  const std::size_t padding = padding_of(alignment);
  if (calls_.usable == nullptr) return bytes + padding;
  return calls_.usable(padding == 0 ? const_cast<void*>(block) : raw_block(block));
}

void* HostMemory::get(std::size_t bytes, std::size_t alignment) noexcept {
  const std::size_t padding = padding_of(alignment);
  if (bytes + padding > kLargest) return nullptr;
  void* const raw = calls_.allocate(bytes + padding);
  if (raw == nullptr || padding == 0) return raw;
  // Between 8 bytes and `alignment` behind the raw address.
  const auto address = reinterpret_cast<std::uintptr_t>(raw) + sizeof raw;
  auto* const block =
      reinterpret_cast<std::byte*>((address + alignment - 1) / alignment * alignment);
  std::memcpy(block - sizeof raw, &raw, sizeof raw);
  return block;
}

void HostMemory::put(void* block, std::size_t, std::size_t alignment) noexcept {
  calls_.free(padding_of(alignment) == 0 ? block : raw_block(block));
}

MemoryResource& default_memory() noexcept {
  // Never destroyed: filters of static storage may outlive any other static.
  static auto* const memory = new SystemMemory;
  return *memory;
}

}  // namespace sluice
