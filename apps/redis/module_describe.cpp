#include "apps/redis/module_describe.hpp"

#include <array>
#include <deque>
#include <string_view>
#include <vector>

#include "apps/redis/arguments.hpp"

namespace sluice::server {
namespace {

// Categories of a module's own came after Redis 7.0; Valkey 8 has them.
using AddCategory = int (*)(RedisModuleCtx* ctx, const char* name);
using SetCategories = int (*)(RedisModuleCommand* command, const char* names);
AddCategory add_category = nullptr;
SetCategories set_categories = nullptr;

constexpr const char* kCategory = "sluice";

// The arrays that the server takes, each with an empty one at its end.
class ServerArguments {
 public:
  explicit ServerArguments(const std::vector<Argument>& arguments) { all_ = convert(arguments); }
  RedisModuleCommandArg* all() const { return all_; }

 private:
  static RedisModuleCommandArgType type_of(Argument::Type type) {
    switch (type) {
      case Argument::Type::text:
        return REDISMODULE_ARG_TYPE_STRING;
      case Argument::Type::integer:
        return REDISMODULE_ARG_TYPE_INTEGER;
      case Argument::Type::real:
        return REDISMODULE_ARG_TYPE_DOUBLE;
      case Argument::Type::key:
        return REDISMODULE_ARG_TYPE_KEY;
      case Argument::Type::token:
        return REDISMODULE_ARG_TYPE_PURE_TOKEN;
      case Argument::Type::one_of:
        return REDISMODULE_ARG_TYPE_ONEOF;
      case Argument::Type::block:
        break;
    }
    return REDISMODULE_ARG_TYPE_BLOCK;
  }

  RedisModuleCommandArg* convert(const std::vector<Argument>& arguments) {
    if (arguments.empty()) return nullptr;
    std::vector<RedisModuleCommandArg> made;
    for (const Argument& each : arguments) {
      RedisModuleCommandArg argument{};
      argument.name = each.name.c_str();
      argument.type = type_of(each.type);
      argument.key_spec_index = each.type == Argument::Type::key ? keys_++ : -1;
      if (!each.token.empty()) argument.token = each.token.c_str();
      argument.flags = (each.optional ? REDISMODULE_CMD_ARG_OPTIONAL : 0) |
                       (each.multiple ? REDISMODULE_CMD_ARG_MULTIPLE : 0);
      argument.subargs = convert(each.parts);
      made.push_back(argument);
    }
    made.push_back({});
    return arrays_.emplace_back(std::move(made)).data();
  }

  std::deque<std::vector<RedisModuleCommandArg>> arrays_;
  RedisModuleCommandArg* all_ = nullptr;
  int keys_ = 0;  // each key argument has the key spec of its number
};

// As the server's own commands have them. What shows the secret is dangerous.
std::string categories_of(const Command& command) {
  const std::string_view flags = command.flags;
  std::string categories = kCategory;
  categories += flags.starts_with("write") ? " write" : " read";
  categories += flags.find("fast") != std::string_view::npos ? " fast" : " slow";
  return command.secret ? categories + " dangerous" : categories;
}

std::uint64_t key_flags(const Command& command) {
  if (!std::string_view(command.flags).starts_with("write"))
    return REDISMODULE_CMD_KEY_RO | REDISMODULE_CMD_KEY_ACCESS;
  if (command.use == KeyUse::made) return REDISMODULE_CMD_KEY_OW | REDISMODULE_CMD_KEY_INSERT;
  return REDISMODULE_CMD_KEY_RW | REDISMODULE_CMD_KEY_ACCESS | REDISMODULE_CMD_KEY_UPDATE;
}

// `last`: relative to the first; negative: from the end.
RedisModuleCommandKeySpec keys_at(int first, int last, int step, std::uint64_t flags) {
  RedisModuleCommandKeySpec keys{};
  keys.flags = flags;
  keys.begin_search_type = REDISMODULE_KSPEC_BS_INDEX;
  keys.bs.index.pos = first;
  keys.find_keys_type = REDISMODULE_KSPEC_FK_RANGE;
  keys.fk.range.lastkey = last;
  keys.fk.range.keystep = step;
  return keys;
}

}  // namespace

bool add_categories(RedisModuleCtx* ctx) {
  if (RedisModule_GetApi("RedisModule_AddACLCategory", reinterpret_cast<void**>(&add_category)) !=
          REDISMODULE_OK ||
      RedisModule_GetApi("RedisModule_SetCommandACLCategories",
                         reinterpret_cast<void**>(&set_categories)) != REDISMODULE_OK) {
    set_categories = nullptr;
    return true;
  }
  return add_category(ctx, kCategory) == REDISMODULE_OK;
}

bool describe(RedisModuleCtx* ctx, const Command& command) {
  RedisModuleCommand* const made = RedisModule_GetCommand(ctx, command.name);
  if (made == nullptr) return false;
  // The last one is empty.
  std::array<RedisModuleCommandKeySpec, 3> keys{};
  if (command.use == KeyUse::merged) {
    keys[0] = keys_at(command.first_key, 0, 1, key_flags(command));
    keys[1] =
        keys_at(command.first_key + 1, -1, 1, REDISMODULE_CMD_KEY_RO | REDISMODULE_CMD_KEY_ACCESS);
  } else if (command.first_key != 0) {
    keys[0] =
        keys_at(command.first_key,
                command.last_key < 0 ? command.last_key : command.last_key - command.first_key,
                command.key_step, key_flags(command));
  }
  const std::vector<Argument> arguments = arguments_of(command.usage);
  const ServerArguments shown(arguments);
  RedisModuleCommandInfo info{};
  info.version = REDISMODULE_COMMAND_INFO_VERSION;
  info.summary = command.summary;
  info.complexity = command.complexity;
  info.since = SLUICE_VERSION;
  info.arity = command.arity;
  if (command.first_key != 0) info.key_specs = keys.data();
  // Not for clients, so nobody needs hints.
  if (!command.internal) info.args = shown.all();
  if (RedisModule_SetCommandInfo(made, &info) != REDISMODULE_OK) return false;
  return set_categories == nullptr ||
         set_categories(made, categories_of(command).c_str()) == REDISMODULE_OK;
}

}  // namespace sluice::server
