// What the server knows about a command beside its name: for COMMAND DOCS, cluster clients and ACLs.
#pragma once

#include "apps/redis/commands.hpp"
#include "apps/redis/module_api.hpp"

namespace sluice::server {

// Once, before commands are described. False if the server refuses.
bool add_categories(RedisModuleCtx* ctx);
// False if the server refuses.
bool describe(RedisModuleCtx* ctx, const Command& command);

}  // namespace sluice::server
