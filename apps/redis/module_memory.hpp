// All memory of the module comes from the server's allocator: operator new does, too.
#pragma once

#include <cstdint>

#include "sluice/base/memory_resource.hpp"

namespace sluice::server {

// Made on first use, which must come after RedisModule_Init; never destroyed.
MemoryResource& server_memory();
// All bytes that the module has: those of server_memory(), and those of operator new.
std::uint64_t server_bytes();
// How often the server's allocator had no memory.
std::uint64_t server_refusals() noexcept;

}  // namespace sluice::server
