// The module: the commands of commands.hpp as those of a Redis or Valkey server.
#define SLUICE_DEFINES_MODULE_API
#include "apps/redis/module_api.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <forward_list>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "apps/redis/commands.hpp"
#include "apps/redis/effects.hpp"
#include "apps/redis/host.hpp"
#include "apps/redis/items.hpp"
#include "apps/redis/module_describe.hpp"
#include "apps/redis/module_listeners.hpp"
#include "apps/redis/module_memory.hpp"
#include "apps/redis/module_type.hpp"
#include "sluice/base/error.hpp"
#include "sluice/base/quantity.hpp"

namespace sluice::server {
namespace {

struct Settings {
  Config config;
  std::string default_fpr = "1e-6";  // as it was given
  bool bf_compat = false;
};
Settings settings;
std::uint64_t told = 0;  // effects

std::string_view view(const RedisModuleString* text) {
  std::size_t size = 0;
  const char* const bytes = RedisModule_StringPtrLen(text, &size);
  return {bytes, size};
}

class ModuleReply final : public Reply {
 public:
  explicit ModuleReply(RedisModuleCtx* ctx) : ctx_(ctx) {}

  void integer(std::int64_t value) override { RedisModule_ReplyWithLongLong(ctx_, value); }
  void boolean(bool value) override { RedisModule_ReplyWithBool(ctx_, value ? 1 : 0); }
  void real(double value) override { RedisModule_ReplyWithDouble(ctx_, value); }
  void text(std::string_view value) override {
    RedisModule_ReplyWithStringBuffer(ctx_, value.data(), value.size());
  }
  void status(std::string_view value) override {
    RedisModule_ReplyWithSimpleString(ctx_, std::string(value).c_str());
  }
  void null() override { RedisModule_ReplyWithNull(ctx_); }
  void array(std::size_t values) override {
    RedisModule_ReplyWithArray(ctx_, static_cast<long>(values));
  }
  void map(std::size_t pairs) override { RedisModule_ReplyWithMap(ctx_, static_cast<long>(pairs)); }
  void error(std::string_view sentence) override {
    RedisModule_ReplyWithError(ctx_, std::string(sentence).c_str());
  }

 private:
  RedisModuleCtx* ctx_;
};

class ModulePlace final : public Place {
 public:
  ModulePlace(RedisModuleCtx* ctx, RedisModuleString* name, Host::Access access)
      : ctx_(ctx), name_(name), key_(RedisModule_OpenKey(ctx, name, mode_of(access))) {}
  ModulePlace(const ModulePlace&) = delete;
  ModulePlace& operator=(const ModulePlace&) = delete;
  ~ModulePlace() override { RedisModule_CloseKey(key_); }

  Entry* entry() override {
    if (entry_ != nullptr) return entry_;
    if (key_ == nullptr || RedisModule_KeyType(key_) == REDISMODULE_KEYTYPE_EMPTY) return nullptr;
    if (RedisModule_ModuleTypeGetType(key_) == entry_type())
      return entry_ = static_cast<Entry*>(RedisModule_ModuleTypeGetValue(key_));
    if (const Partial* const loading = partial()) refuse_partial(*loading);
    throw WrongType();
  }
  Partial* partial() override {
    if (key_ == nullptr || RedisModule_ModuleTypeGetType(key_) != partial_type()) return nullptr;
    return static_cast<Partial*>(RedisModule_ModuleTypeGetValue(key_));
  }
  void put(Entry::Pointer entry) override { put(entry_type(), std::move(entry)); }
  void put(Partial::Pointer partial) override { put(partial_type(), std::move(partial)); }
  void remove() override {
    entry_ = nullptr;
    RedisModule_DeleteKey(key_);
  }
  std::optional<std::int64_t> expiry_ms() const override {
    const mstime_t ms = RedisModule_GetAbsExpire(key_);
    return ms == REDISMODULE_NO_EXPIRE ? std::nullopt : std::optional<std::int64_t>(ms);
  }
  void expire_at(std::int64_t ms) override { RedisModule_SetAbsExpire(key_, ms); }
  void changed(const char* event) override {
    RedisModule_NotifyKeyspaceEvent(ctx_, REDISMODULE_NOTIFY_MODULE, event, name_);
  }

 private:
  template <class Value>
  void put(RedisModuleType* type, Owned<Value> value) {
    entry_ = nullptr;
    void* old = nullptr;
    if (RedisModule_ModuleTypeReplaceValue(key_, type, value.get(), &old) == REDISMODULE_OK) {
      static_cast<void>(value.release());
      ResourceDelete<Value>{&server_memory()}(static_cast<Value*>(old));
      return;
    }
    // There is none, or one of the other type, which is freed with its expiry.
    const mstime_t expiry = RedisModule_GetAbsExpire(key_);
    RedisModule_ModuleTypeSetValue(key_, type, value.release());
    if (expiry != REDISMODULE_NO_EXPIRE) RedisModule_SetAbsExpire(key_, expiry);
  }
  static int mode_of(Host::Access access) {
    return access == Host::Access::read ? REDISMODULE_READ : REDISMODULE_READ | REDISMODULE_WRITE;
  }
  RedisModuleCtx* ctx_;
  RedisModuleString* name_;
  RedisModuleKey* key_;
  Entry* entry_ = nullptr;  // once it was asked for: a command asks several times
};

class ModuleHost final : public Host {
 public:
  // `flags`: those of the context.
  ModuleHost(RedisModuleCtx* ctx, int flags, RedisModuleString** argv)
      : ctx_(ctx), flags_(flags), argv_(argv) {}

  std::int64_t now_ms() const override { return RedisModule_Milliseconds(); }
  MemoryResource& memory() override { return server_memory(); }
  std::uint64_t refusals() const override { return server_refusals(); }
  void refuse_memory(bool all) override { refuse_server_memory(all); }
  std::optional<std::uint64_t> room() override {
    RedisModuleServerInfoData* const info = RedisModule_GetServerInfo(ctx_, "memory");
    const auto field = [info](const char* name) {
      int error = 0;
      const std::uint64_t value = RedisModule_ServerInfoGetFieldUnsigned(info, name, &error);
      return error == REDISMODULE_OK ? value : 0;
    };
    const std::uint64_t most = field("maxmemory"), used = field("used_memory");
    const std::uint64_t machine = field("total_system_memory");
    RedisModule_FreeServerInfo(ctx_, info);
    const auto beside_used = [used](std::uint64_t all) { return all - std::min(all, used); };
    // More than the machine has would end the server.
    const std::uint64_t left =
        machine == 0 ? std::numeric_limits<std::uint64_t>::max() : beside_used(machine);
    if (most == 0) return machine == 0 ? std::nullopt : std::optional(left);
    // A cache is always full: before its next command it evicts what is too much.
    const bool evicts = (flags_ & REDISMODULE_CTX_FLAGS_EVICT) != 0;
    return evicts ? std::min(most, left) : beside_used(most);
  }
  const Config& config() const override { return settings.config; }
  bool replayed() const override {
    return (flags_ & (REDISMODULE_CTX_FLAGS_REPLICATED | REDISMODULE_CTX_FLAGS_LOADING)) != 0;
  }
  Place& open(std::size_t word, Access access) override {
    if (!first_) return first_.emplace(ctx_, argv_[word], access);
    return others_.emplace_front(ctx_, argv_[word], access);
  }
  std::string_view word(std::size_t word) const override { return view(argv_[word]); }
  void redact(std::size_t word) override {
    RedisModule_RedactClientCommandArgument(ctx_, static_cast<int>(word));
  }
  bool heard() const override { return somebody_listens(flags_); }
  // The server counts the change and, as nobody listens, drops the command. Should we be wrong, a replica
  // gets the command itself, and not nothing.
  void count_change() override { RedisModule_ReplicateVerbatim(ctx_); }
  void replicate(std::size_t word, std::span<const std::byte> effect,
                 std::span<const std::size_t> sources) override {
    ++told;
    const auto* const bytes = reinterpret_cast<const char*>(effect.data());
    if (sources.empty()) {
      RedisModule_Replicate(ctx_, "SLUICE.EFFECT", "sb", argv_[word], bytes, effect.size());
      return;
    }
    // They stand one after the other.
    RedisModule_Replicate(ctx_, "SLUICE.EFFECT", "sbv", argv_[word], bytes, effect.size(),
                          argv_ + sources.front(), sources.size());
  }

 private:
  RedisModuleCtx* ctx_;
  int flags_;
  RedisModuleString** argv_;
  std::optional<ModulePlace> first_;
  std::forward_list<ModulePlace> others_;  // allocates nothing while it is empty
};

void call(const Command& command, bool deny_oom, RedisModuleCtx* ctx, RedisModuleString** argv,
          int argc) noexcept {
  ModuleReply reply(ctx);
  try {
    Room<std::string_view> words(static_cast<std::size_t>(argc));
    for (int i = 0; i < argc; ++i) words.all()[static_cast<std::size_t>(i)] = view(argv[i]);
    // Asked for once: the server puts them together each time.
    const int flags = RedisModule_GetContextFlags(ctx);
    ModuleHost host(ctx, flags, argv);
    const Writing writing(ctx, flags, deny_oom);
    run(command, {.words = words.all(), .host = host, .reply = reply});
  } catch (...) {
    reply.error("OOM the server has no memory for this command");
  }
}

// The server calls a command without saying which: each has a function of its own.
constexpr std::size_t kMostCommands = 48;
template <std::size_t kIndex>
int call_numbered(RedisModuleCtx* ctx, RedisModuleString** argv, int argc) {
  const std::size_t ours = commands().size();
  static const Command& command = kIndex < ours ? commands()[kIndex] : bf_commands()[kIndex - ours];
  static const bool deny_oom =
      std::string_view(command.flags).find("deny-oom") != std::string_view::npos;
  call(command, deny_oom, ctx, argv, argc);
  return REDISMODULE_OK;
}
template <std::size_t... kIndices>
constexpr std::array<RedisModuleCmdFunc, sizeof...(kIndices)> callers(
    std::index_sequence<kIndices...>) {
  return {call_numbered<kIndices>...};
}
constexpr auto kCallers = callers(std::make_index_sequence<kMostCommands>());

bool add_command(RedisModuleCtx* ctx, const Command& command, std::size_t number) {
  return RedisModule_CreateCommand(ctx, command.name, kCallers.at(number), command.flags,
                                   command.first_key, command.last_key,
                                   command.key_step) == REDISMODULE_OK &&
         describe(ctx, command);
}

bool add_commands(RedisModuleCtx* ctx) {
  for (std::size_t i = 0; i < commands().size(); ++i) {
    const Command& command = commands()[i];
    if (add_command(ctx, command, i)) continue;
    RedisModule_Log(ctx, "warning", "sluice: the server refuses the command %s", command.name);
    return false;
  }
  return true;
}

// Another module may have these names already: then they stay with it, all of them if it has the first.
void add_bf_commands(RedisModuleCtx* ctx) {
  const std::size_t ours = commands().size();
  for (std::size_t i = 0; i < bf_commands().size(); ++i) {
    const Command& command = bf_commands()[i];
    if (add_command(ctx, command, ours + i)) continue;
    RedisModule_Log(
        ctx, "notice",
        "sluice: bf-compat: the server has a command %s already, which is left as it is%s",
        command.name, i == 0 ? "; no BF command is added" : "");
    if (i == 0) return;
  }
}

// RESTORE has set the expiry of a key that came from another server.
int on_event(RedisModuleCtx* ctx, int, const char* event, RedisModuleString* name) {
  if (std::string_view(event) != "restore") return REDISMODULE_OK;
  auto* const key = static_cast<RedisModuleKey*>(
      RedisModule_OpenKey(ctx, name, REDISMODULE_READ | REDISMODULE_OPEN_KEY_NOTOUCH));
  if (key == nullptr) return REDISMODULE_OK;
  if (RedisModule_ModuleTypeGetType(key) == entry_type()) {
    const mstime_t ms = RedisModule_GetAbsExpire(key);
    restored(*static_cast<Entry*>(RedisModule_ModuleTypeGetValue(key)),
             ms == REDISMODULE_NO_EXPIRE ? std::nullopt : std::optional<std::int64_t>(ms));
  }
  RedisModule_CloseKey(key);
  return REDISMODULE_OK;
}

// --- CONFIG

RedisModuleString* get_fpr(const char*, void*) {
  return RedisModule_CreateString(nullptr, settings.default_fpr.data(),
                                  settings.default_fpr.size());
}

int set_fpr(const char*, RedisModuleString* value, void*, RedisModuleString** problem) {
  try {
    settings.config.default_fpr = parse_probability("sluice.default-fpr", view(value));
    settings.default_fpr = view(value);
    return REDISMODULE_OK;
  } catch (const std::exception& error) {
    *problem = RedisModule_CreateStringPrintf(nullptr, "%s", error.what());
    return REDISMODULE_ERR;
  }
}

long long get_number(const char*, void* field) {
  return static_cast<long long>(*static_cast<std::uint64_t*>(field));
}

int set_number(const char*, long long value, void* field, RedisModuleString**) {
  *static_cast<std::uint64_t*>(field) = static_cast<std::uint64_t>(value);
  return REDISMODULE_OK;
}

int get_flag(const char*, void* field) {
  return *static_cast<bool*>(field) ? 1 : 0;
}

int set_flag(const char*, int value, void* field, RedisModuleString**) {
  *static_cast<bool*>(field) = value != 0;
  return REDISMODULE_OK;
}

bool add_configs(RedisModuleCtx* ctx) {
  Config& config = settings.config;
  constexpr long long kMost = std::numeric_limits<long long>::max();
  return RedisModule_RegisterStringConfig(ctx, "default-fpr", "1e-6", REDISMODULE_CONFIG_DEFAULT,
                                          get_fpr, set_fpr, nullptr, nullptr) == REDISMODULE_OK &&
         RedisModule_RegisterNumericConfig(ctx, "key-memory-limit", 0, REDISMODULE_CONFIG_MEMORY, 0,
                                           kMost, get_number, set_number, nullptr,
                                           &config.key_memory) == REDISMODULE_OK &&
         RedisModule_RegisterNumericConfig(
             ctx, "claims-limit", static_cast<long long>(config.claims), REDISMODULE_CONFIG_DEFAULT,
             1, static_cast<long long>(Config::kMostClaims), get_number, set_number, nullptr,
             &config.claims) == REDISMODULE_OK &&
         RedisModule_RegisterBoolConfig(ctx, "bf-compat", 0, REDISMODULE_CONFIG_IMMUTABLE, get_flag,
                                        set_flag, nullptr, &settings.bf_compat) == REDISMODULE_OK;
}

// `loadmodule sluice.so bf-compat yes`, beside the server's own way of setting options.
bool read_arguments(RedisModuleCtx* ctx, RedisModuleString** argv, int argc) {
  for (int i = 0; i < argc; i += 2) {
    const std::string_view name = view(argv[i]);
    const std::string_view value = i + 1 < argc ? view(argv[i + 1]) : std::string_view();
    if (name == "bf-compat" && (value == "yes" || value == "no")) {
      settings.bf_compat = value == "yes";
      continue;
    }
    if (name == "bf-compat")
      RedisModule_Log(ctx, "warning", "sluice: bf-compat is '%.60s': give yes or no",
                      std::string(value).c_str());
    else
      RedisModule_Log(
          ctx, "warning",
          "sluice: '%.60s' is no argument of the module: the only one is bf-compat yes|no, and "
          "other settings are sluice.NAME in the server's configuration",
          std::string(name).c_str());
    return false;
  }
  return true;
}

// --- INFO

void add_info(RedisModuleInfoCtx* ctx, int) {
  const Counters& count = counters();
  RedisModule_InfoAddSection(ctx, nullptr);
  RedisModule_InfoAddFieldCString(ctx, "version", SLUICE_VERSION);
  RedisModule_InfoAddFieldULongLong(ctx, "memory_bytes", server_bytes());
  RedisModule_InfoAddFieldULongLong(ctx, "judged_items", count.judged);
  RedisModule_InfoAddFieldULongLong(ctx, "duplicate_items", count.duplicates);
  RedisModule_InfoAddFieldULongLong(ctx, "late_items", count.late);
  RedisModule_InfoAddFieldULongLong(ctx, "refused_items", count.refused);
  RedisModule_InfoAddFieldULongLong(ctx, "effects_told", told);
}

bool load_module(RedisModuleCtx* ctx, RedisModuleString** argv, int argc) {
  // A short read of an RDB file or a RESTORE is an error, and does not end the server.
  RedisModule_SetModuleOptions(ctx, REDISMODULE_OPTIONS_HANDLE_IO_ERRORS);
  if (!make_types(ctx) || !add_configs(ctx)) return false;
  if (RedisModule_LoadConfigs(ctx) != REDISMODULE_OK || !read_arguments(ctx, argv, argc))
    return false;
  if (!add_categories(ctx) || !add_commands(ctx)) return false;
  if (settings.bf_compat) add_bf_commands(ctx);
  watch_listeners(ctx);
  if (RedisModule_SubscribeToKeyspaceEvents(ctx, REDISMODULE_NOTIFY_GENERIC, on_event) !=
      REDISMODULE_OK)
    return false;
  return RedisModule_RegisterInfoFunc(ctx, add_info) == REDISMODULE_OK;
}

}  // namespace
}  // namespace sluice::server

extern "C" __attribute__((visibility("default"))) int RedisModule_OnLoad(RedisModuleCtx* ctx,
                                                                         RedisModuleString** argv,
                                                                         int argc) {
  if (RedisModule_Init(ctx, "sluice", 1, REDISMODULE_APIVER_1) != REDISMODULE_OK)
    return REDISMODULE_ERR;
  if (RedisModule_TryAlloc == nullptr || RedisModule_RegisterBoolConfig == nullptr) {
    RedisModule_Log(ctx, "warning", "sluice: the server is too old: Redis 7.0 or Valkey is needed");
    return REDISMODULE_ERR;
  }
  try {
    return sluice::server::load_module(ctx, argv, argc) ? REDISMODULE_OK : REDISMODULE_ERR;
  } catch (...) {
    return REDISMODULE_ERR;
  }
}
