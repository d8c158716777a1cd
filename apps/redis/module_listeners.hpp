// Who is told what commands do: replicas, and the append-only file.
//
// To tell it takes the server longer than to judge an item, even if nobody listens. So it is left out while it is
// certain that nobody does, and that whoever begins to listen starts with a copy of the keys made later:
//
// - the append-only file is off, by the flags of the call itself;
// - the server is a primary without replicas and without a backlog for partial resyncs, by its INFO, and has not
//   changed its role since that was read;
// - no child process was born since: a replica gets its copy from one.
//
// In a cluster slots move to servers that INFO does not list, so there somebody always listens.
#pragma once

#include "apps/redis/module_api.hpp"

namespace sluice::server {

// Begins to watch. Without it, and on a server that does not report these events, somebody always listens.
void watch_listeners(RedisModuleCtx* ctx);

// `flags`: those of the call's context.
bool somebody_listens(int flags) noexcept;

}  // namespace sluice::server
