#include "apps/redis/module_memory.hpp"

#include <atomic>
#include <cstddef>
#include <new>

#include "apps/redis/module_api.hpp"

namespace {

std::atomic<std::uint64_t> refusals = 0;
std::atomic<std::uint64_t> outside = 0;  // bytes that are not of server_memory()

RedisModuleCtx* writing = nullptr;
bool takes_memory = false;  // what writes is of those that the server refuses when it is full
bool refuses_all = false;

// The server looks at maxmemory before a command, and what a command allocates after that is its own affair. A few
// items may turn a short list into a table of megabytes, in a transaction or for CONFIRM, which the server does not
// refuse when it is full: so tables are refused here. A server that evicts makes room before the next command. What a command needs for
// itself, as the digests of its items or a chunk, is given to those that work on a full server.
bool over_maxmemory(std::size_t bytes) noexcept {
  constexpr std::size_t kPartOfTable = 32 << 10;
  if (writing == nullptr || bytes < kPartOfTable) return false;
  const int flags = RedisModule_GetContextFlags(writing);
  return (flags & REDISMODULE_CTX_FLAGS_MAXMEMORY) != 0 &&
         (flags & REDISMODULE_CTX_FLAGS_EVICT) == 0 && RedisModule_GetUsedMemoryRatio() >= 1;
}

void* try_allocate(std::size_t bytes, bool table) noexcept {
  const bool possible =
      RedisModule_TryAlloc != nullptr && !((table || takes_memory) && over_maxmemory(bytes));
  void* const block = possible ? RedisModule_TryAlloc(bytes) : nullptr;
  if (block == nullptr) refusals.fetch_add(1, std::memory_order_relaxed);
  return block;
}

}  // namespace

namespace sluice::server {

Writing::Writing(RedisModuleCtx* ctx, int flags, bool deny_oom) noexcept {
  constexpr int kHappened = REDISMODULE_CTX_FLAGS_REPLICATED | REDISMODULE_CTX_FLAGS_LOADING;
  if ((flags & kHappened) != 0) return;
  writing = ctx;
  takes_memory = deny_oom;
}

Writing::~Writing() {
  writing = nullptr;
  takes_memory = false;
}

void refuse_server_memory(bool all) noexcept {
  refuses_all = all;
}

std::uint64_t server_refusals() noexcept {
  return refusals.load(std::memory_order_relaxed);
}

std::uint64_t server_bytes() {
  return server_memory().taken() + outside.load(std::memory_order_relaxed);
}

MemoryResource& server_memory() {
  static auto* const memory =
      new HostMemory({.allocate = [](std::size_t bytes) -> void* {
                        return refuses_all ? nullptr : try_allocate(bytes, true);
                      },
                      .free = [](void* block) { RedisModule_Free(block); },
                      .usable = [](void* block) { return RedisModule_MallocSize(block); }});
  return *memory;
}

}  // namespace sluice::server

namespace {

// Every size that the module asks for is aligned to 16 bytes by the servers' allocators; what needs more
// comes from a MemoryResource.
void* allocate(std::size_t bytes) {
  void* const block = try_allocate(bytes == 0 ? 1 : bytes, false);
  if (block == nullptr) throw std::bad_alloc();
  outside.fetch_add(RedisModule_MallocSize(block), std::memory_order_relaxed);
  return block;
}

void free_block(void* block) noexcept {
  if (block == nullptr) return;
  outside.fetch_sub(RedisModule_MallocSize(block), std::memory_order_relaxed);
  RedisModule_Free(block);
}

}  // namespace

// The other forms of the standard library call these.
void* operator new(std::size_t bytes) {
  return allocate(bytes);
}
void* operator new[](std::size_t bytes) {
  return allocate(bytes);
}
void operator delete(void* block) noexcept {
  free_block(block);
}
void operator delete[](void* block) noexcept {
  free_block(block);
}
void operator delete(void* block, std::size_t) noexcept {
  operator delete(block);
}
void operator delete[](void* block, std::size_t) noexcept {
  operator delete[](block);
}
