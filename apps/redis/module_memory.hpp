// All memory of the module comes from the server's allocator: operator new does, too.
#pragma once

#include <cstdint>

#include "apps/redis/module_api.hpp"
#include "sluice/base/memory_resource.hpp"

namespace sluice::server {

// Made on first use, which must come after RedisModule_Init; never destroyed.
MemoryResource& server_memory();
// All bytes that the module has: those of server_memory(), and those of operator new.
std::uint64_t server_bytes();
// How often the server's allocator had no memory, or maxmemory was reached.
std::uint64_t server_refusals() noexcept;
// Whether server_memory() refuses every block from now on.
void refuse_server_memory(bool all) noexcept;

// While a command of a client runs: tables are refused when maxmemory is reached, and to a command that is `deny-oom`
// every large block. Effects of the primary, and what is loaded from disk, have happened and are not refused.
class Writing {
 public:
  // `flags`: those of the context.
  Writing(RedisModuleCtx* ctx, int flags, bool deny_oom) noexcept;
  Writing(const Writing&) = delete;
  Writing& operator=(const Writing&) = delete;
  ~Writing();
};

}  // namespace sluice::server
