// The data types of the server: an Entry as a value that it saves, loads, copies and frees, and a Partial, which
// is one that is still being loaded.
#pragma once

#include "apps/redis/chunks.hpp"
#include "apps/redis/entry.hpp"
#include "apps/redis/module_api.hpp"

namespace sluice::server {

// False if the server refuses them.
bool make_types(RedisModuleCtx* ctx);
RedisModuleType* entry_type() noexcept;
RedisModuleType* partial_type() noexcept;

}  // namespace sluice::server
