#include "apps/redis/module_listeners.hpp"

#include <chrono>

namespace sluice::server {
namespace {

// Commands, events and the timer all run on the server's main thread, or while it waits.
bool watching = false;
bool nobody = false;  // as of the last reading, and nothing has happened since

void forget_reading(RedisModuleCtx*, RedisModuleEvent, std::uint64_t, void*) {
  nobody = false;
}

bool read_nobody(RedisModuleCtx* ctx) {
  RedisModuleServerInfoData* const info = RedisModule_GetServerInfo(ctx, "replication");
  const auto is_zero = [info](const char* field) {
    int error = 0;
    return RedisModule_ServerInfoGetFieldUnsigned(info, field, &error) == 0 &&
           error == REDISMODULE_OK;
  };
  const bool none = is_zero("connected_slaves") && is_zero("repl_backlog_active");
  RedisModule_FreeServerInfo(ctx, info);
  return none && (RedisModule_GetContextFlags(ctx) & REDISMODULE_CTX_FLAGS_MASTER) != 0;
}

// Read again also if there was nobody: should a server come to copy its keys in a way that no event tells of, it is
// noticed soon.
void read_sometimes(RedisModuleCtx* ctx, RedisModuleEvent, std::uint64_t, void*) {
  using Clock = std::chrono::steady_clock;
  // To read takes some microseconds; a server calls this 10 times per second, or up to 500 times.
  constexpr auto kApart = std::chrono::milliseconds(90);
  static Clock::time_point last;
  const Clock::time_point now = Clock::now();
  if (now - last < kApart) return;
  last = now;
  nobody = read_nobody(ctx);
}

}  // namespace

void watch_listeners(RedisModuleCtx* ctx) {
  watching = true;
  for (const RedisModuleEvent event :
       {RedisModuleEvent_ForkChild, RedisModuleEvent_ReplicaChange,
        RedisModuleEvent_ReplicationRoleChanged, RedisModuleEvent_Loading})
    watching = watching &&
               RedisModule_SubscribeToServerEvent(ctx, event, forget_reading) == REDISMODULE_OK;
  watching = watching && RedisModule_SubscribeToServerEvent(ctx, RedisModuleEvent_CronLoop,
                                                            read_sometimes) == REDISMODULE_OK;
}

bool somebody_listens(int flags) noexcept {
  constexpr int kListening =
      REDISMODULE_CTX_FLAGS_AOF | REDISMODULE_CTX_FLAGS_CLUSTER | REDISMODULE_CTX_FLAGS_LOADING;
  return !watching || !nobody || (flags & kListening) != 0 ||
         (flags & REDISMODULE_CTX_FLAGS_MASTER) == 0;
}

}  // namespace sluice::server
