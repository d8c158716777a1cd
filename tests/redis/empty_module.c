// What a command with these words costs at least: EMPTY key item [item …] looks at each item, and replies with an
// array of that length. speed.py compares SLUICE.MADD with it.
#include <redismodule.h>

static int empty(RedisModuleCtx* ctx, RedisModuleString** argv, int argc) {
  RedisModule_ReplyWithArray(ctx, argc - 2);
  for (int i = 2; i < argc; ++i) {
    size_t size = 0;
    RedisModule_ReplyWithLongLong(ctx, RedisModule_StringPtrLen(argv[i], &size) == NULL);
  }
  return REDISMODULE_OK;
}

int RedisModule_OnLoad(RedisModuleCtx* ctx, RedisModuleString** argv, int argc) {
  (void)argv;
  (void)argc;
  if (RedisModule_Init(ctx, "empty", 1, REDISMODULE_APIVER_1) != REDISMODULE_OK) return REDISMODULE_ERR;
  return RedisModule_CreateCommand(ctx, "EMPTY", empty, "write", 1, 1, 1);
}
