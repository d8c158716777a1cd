#include "apps/redis/commands.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <new>
#include <string>
#include <vector>

#include "apps/redis/effects.hpp"
#include "apps/redis/making.hpp"
#include "apps/redis/words.hpp"
#include "sluice/base/error.hpp"
#include "sluice/base/quantity.hpp"

namespace sluice::server {
namespace {

#define SLUICE_OPTIONS                                                                      \
  "[WINDOW count|duration|FOREVER] [FPR probability] [EXPECT items | RATE items/s] "        \
  "[MEMORY bytes] [SLACK share] [FILTER name [parameter value ...]] [REFRESH] [SEED seed] " \
  "[AUDIT 1/n]"

constexpr std::array kCommands = {
    Command{"SLUICE.RESERVE", reserve, "write deny-oom fast", -2, 1, 1, 1, "key " SLUICE_OPTIONS,
            "Makes a filter or a window. The planner decides what is left open.",
            "O(1); the time to clear its table if it has one from the start", false, false,
            KeyUse::made},
    Command{"SLUICE.PLAN", plan_only, "readonly fast", -1, 0, 0, 0, SLUICE_OPTIONS,
            "Says what RESERVE would make from the same words, and why. Makes nothing.", "O(1)"},
    Command{
        "SLUICE.ADD", add, "write deny-oom fast", -3, 1, 1, 1, "key item [AT ms]",
        "Judges an item: 1 if it is distinct, and remembered from now on; 0 if it is a duplicate; "
        "2 if somebody has claimed it.",
        "O(1)"},
    Command{"SLUICE.MADD", madd, "write deny-oom", -3, 1, 1, 1, "key item [item ...]",
            "Judges several items in their order, as ADD does.", "O(n) for n items"},
    Command{
        "SLUICE.INSERT", insert, "write deny-oom", -4, 1, 1, 1,
        "key " SLUICE_OPTIONS " [NOCREATE] [AT ms] ITEMS item [item ...]",
        "Makes the key as RESERVE does if it does not exist, then judges the items as MADD does. "
        "Options that contradict the key are refused.",
        "O(n) for n items"},
    Command{"SLUICE.EXISTS", exists, "readonly fast", -3, 1, 1, 1, "key item [AT ms]",
            "Asks whether an item is remembered, and changes nothing: 1 or 0; 2 if it is pending.",
            "O(1)"},
    Command{"SLUICE.MEXISTS", mexists, "readonly", -3, 1, 1, 1, "key item [item ...]",
            "Asks for several items, as EXISTS does.", "O(n) for n items"},
    Command{"SLUICE.AGE", age, "readonly fast", 3, 1, 1, 1, "key item",
            "Says how long ago an item was remembered: in ms, or in items if the window is one of "
            "items; "
            "null if it is not remembered. A large window gives the least age of the item's "
            "generation.",
            "O(log n) for n generations"},
    Command{"SLUICE.FORGET", forget, "write fast", 3, 1, 1, 1, "key item",
            "Takes an item back: 1 if there was a trace of it, 0 if not.", "O(1)"},
    Command{"SLUICE.MFORGET", mforget, "write", -3, 1, 1, 1, "key item [item ...]",
            "Takes several items back, as FORGET does.", "O(n) for n items"},
    // What is missing of the words of these, their own errors tell.
    Command{
        "SLUICE.CLAIM", claim, "write deny-oom fast", -3, 1, 1, 1,
        "key item TTL ms TOKEN token [AT ms]",
        "Claims an item for delivery: 1 if it is yours to deliver, 0 if it was delivered before, 2 "
        "if somebody else is delivering it.",
        "O(log n) for n pending items"},
    Command{"SLUICE.MCLAIM", mclaim, "write deny-oom", -3, 1, 1, 1,
            "key TTL ms TOKEN token [AT ms] ITEMS item [item ...]",
            "Claims several items, as CLAIM does.", "O(m log n) for m items"},
    Command{"SLUICE.CONFIRM", confirm, "write fast", -3, 1, 1, 1, "key item TOKEN token [AT ms]",
            "Says that an item was delivered: 1 if it is remembered, 2 if it was already, 0 if it "
            "is not "
            "yours or its lease has ended. AT is the event's time, unless the claim has named it.",
            "O(log n) for n pending items"},
    Command{"SLUICE.MCONFIRM", mconfirm, "write", -3, 1, 1, 1,
            "key TOKEN token [AT ms] ITEMS item [item ...]",
            "Confirms several items, as CONFIRM does.", "O(m log n) for m items"},
    Command{"SLUICE.RELEASE", release, "write fast", -3, 1, 1, 1, "key item TOKEN token",
            "Gives a claim back: the item was not delivered. 1 if the claim was yours, 0 if not.",
            "O(log n) for n pending items"},
    Command{"SLUICE.MRELEASE", mrelease, "write", -3, 1, 1, 1,
            "key TOKEN token ITEMS item [item ...]", "Gives several claims back, as RELEASE does.",
            "O(m log n) for m items"},
    Command{"SLUICE.MERGE", merge_keys, "write deny-oom", -3, 1, -1, 1,
            "destination source [source ...]",
            "Takes in what other keys of the same filter, parameters and secret remember.",
            "O(bytes of all keys)", false, false, KeyUse::merged},
    Command{"SLUICE.INFO", info, "readonly fast", -2, 1, 1, 1, "key [field]",
            "Shows parameters, size, fill and errors of a key, or one of these fields.",
            "O(generations)"},
    Command{
        "SLUICE.SCANDUMP", scandump, "readonly", 3, 1, 1, 1, "key cursor",
        "Dumps a key in chunks: the next cursor, and a chunk for LOADCHUNK. Cursor 0 begins, and 0 "
        "comes with an empty chunk at the end. The chunks hold the key's secret: whoever has it "
        "can "
        "choose items that collide.",
        "O(bytes of the chunk); O(bytes of the key) if the key was not dumped in the last minute",
        false, true},
    Command{"SLUICE.LOADCHUNK", loadchunk, "write deny-oom", 4, 1, 1, 1, "key cursor chunk",
            "Loads a chunk of SCANDUMP, with the cursor that came with it, in order. The last one "
            "makes "
            "the key. The chunks hold the key's secret.",
            "O(bytes of the chunk); O(bytes of the key) for the last chunk"},
    Command{"SLUICE.HELP", help, "readonly fast allow-loading allow-stale", -1, 0, 0, 0,
            "[command]", "Lists the commands, or tells how one of them is written.", "O(1)"},
    Command{"SLUICE.EFFECT", effect, "write", -3, 1, 1, 1, "key effect [source ...]",
            "What a primary tells its replicas and its append-only file. Not for clients.",
            "O(n) for n items", true},
};

std::string code_and(std::string_view code, std::string_view sentence) {
  constexpr std::size_t kMost = 900;  // a FILTER of 4096 characters is not repeated
  std::string text = fmt::format("{} {}", code, in_command_words(sentence));
  if (text.size() > kMost) text.replace(kMost, text.size() - kMost, "...");
  return text;
}

void run_checked(const Command& command, const Call& call) {
  const auto words = static_cast<int>(std::min<std::size_t>(call.words.size(), 1 << 30));
  if (command.arity > 0 ? words != command.arity : words < -command.arity)
    refuse_words(command, fmt::format("wrong number of arguments for '{}'", command.name));
  if (command.internal && !call.host.replayed())
    throw BadParameters(
        fmt::format("{} is what a primary tells its replicas, and not for clients", command.name));
  command.run(call);
}

}  // namespace

std::span<const Command> commands() {
  return kCommands;
}

const Command* command_named(std::string_view name) {
  for (const auto all : {commands(), bf_commands()})
    for (const Command& command : all)
      if (same_word(command.name, name)) return &command;
  return nullptr;
}

std::string error_text(const std::exception& error) {
  if (dynamic_cast<const Verbatim*>(&error) != nullptr) return error.what();
  if (dynamic_cast<const std::bad_alloc*>(&error) != nullptr)
    return "OOM the server has no memory for this command";
  return code_and(dynamic_cast<const NoMemory*>(&error) != nullptr ? "OOM" : "ERR", error.what());
}

void run(const Command& command, const Call& call) noexcept {
  try {
    try {
      run_checked(command, call);
    } catch (const std::exception& error) {
      call.reply.error(error_text(error));
    }
  } catch (...) {
    call.reply.error("OOM the server has no memory for this command");
  }
}

Entry& existing(Place& place, const char* remedy) {
  Entry* const entry = place.entry();
  if (entry == nullptr)
    throw BadParameters(fmt::format(
        "there is no such key: {} (a time window expires when nothing was written for its length; "
        "PERSIST keeps it)",
        remedy));
  return *entry;
}

void refuse_words(const Command& command, const std::string& why) {
  throw BadParameters(fmt::format("{}; usage: {} {}", why, command.name, command.usage));
}

void redact_seeds(const Call& call, std::size_t first) {
  for (std::size_t i = first; i + 1 < call.words.size() && !same_word(call.words[i], "ITEMS"); ++i)
    if (same_word(call.words[i], "SEED")) call.host.redact(i + 1);
}

std::int64_t read_at(std::string_view word, const std::optional<WindowSpec>& window,
                     std::int64_t now_ms) {
  // Of the same years as below. No milliseconds have so many digits.
  constexpr std::size_t kMicroseconds = 15, kNanoseconds = 18, kMostDigits = 19;
  if (word.size() >= kMicroseconds && word.size() <= kMostDigits && is_digits(word))
    throw BadParameters(
        fmt::format("AT {} seems to be in {}seconds: give milliseconds since 1970, such as {}",
                    word, word.size() < kNanoseconds ? "micro" : "nano", now_ms));
  const std::int64_t at = whole_number("AT, in ms since 1970,", word, -kFarthestMs, kFarthestMs);
  if (!window || !window->by_time())
    throw BadParameters("AT is for a WINDOW of time: this key has none, so leave it out");
  // A time in seconds would be of the year 1970, and far behind all others; or, as the first of a key, 2 hours
  // of such times would be 7 seconds. No events are of these weeks.
  constexpr std::int64_t kEarliestS = 900'000'000, kLatestS = 4'100'000'000;
  if (at >= kEarliestS && at <= kLatestS)
    throw BadParameters(fmt::format(
        "AT {} seems to be in seconds: give milliseconds since 1970, such as {}", at, now_ms));
  const auto window_ms = static_cast<std::int64_t>(window->size / 1'000'000);
  // A window or more behind, the server's own clock would count as set back.
  if (at > now_ms && at - now_ms >= window_ms)
    throw BadParameters(
        fmt::format("AT {} is a window or more ahead of the server's clock, {}: it would expire "
                    "all items (AT is "
                    "in ms since 1970)",
                    at, now_ms));
  return at;
}

void check_items(std::span<const std::string_view> items, const char* where) {
  constexpr std::size_t kLeastDigits = 9;  // of times: fewer are numbers of anything
  if (items.size() < 2 || !same_word(items[items.size() - 2], "AT")) return;
  const std::string_view time = items.back();
  if (time.size() < kLeastDigits || !is_digits(time)) return;
  throw BadParameters(fmt::format(
      "the last two items are {} and {}, which looks like the option AT: {}. If they are items, "
      "give each to a command of its own",
      quoted(items[items.size() - 2]), quoted(time), where));
}

std::optional<WindowSpec> window_of(const Entry& entry) {
  if (entry.window() == nullptr) return std::nullopt;
  return entry.window()->params().spec;
}

void check_room(Host& host, std::uint64_t bytes) {
  const std::uint64_t most = host.config().key_memory;
  if (most != 0 && bytes > most)
    throw NoMemory(fmt::format("this takes {}, and a key may take {} (sluice.key-memory-limit)",
                               format_size(bytes), format_size(most)));
  // To ask takes longer than to make a small one, for which the server's own check has to do.
  constexpr std::uint64_t kSmall = 64 << 10;
  if (bytes < kSmall) return;
  if (const auto room = host.room(); room && bytes > *room)
    throw NoMemory(fmt::format(
        "this takes {}, and the server has {} for it: what is left below its maxmemory, all of "
        "that if it evicts, or the machine's memory: a larger FPR, fewer items or more memory "
        "would help",
        format_size(bytes), format_size(*room)));
}

void check_memory(const Host& host, const Entry& entry) {
  if (over_limit(host.config(), entry)) throw NoMemory(why_over_limit(host, entry));
}

std::string why_over_limit(const Host& host, const Entry& entry) {
  return fmt::format("this key takes {}, and may take {} (sluice.key-memory-limit)",
                     format_size(entry.bytes()), format_size(host.config().key_memory));
}

// As the HELP of the server's own commands: lines of text.
void help(const Call& call) {
  if (call.words.size() > 2) throw BadParameters("HELP takes the name of one command, or nothing");
  if (call.words.size() == 2) {
    const std::string_view name = call.words[1];
    const Command* command = command_named(name);
    if (command == nullptr)
      command = command_named(
          fmt::format("SLUICE.{}", name.substr(0, std::min<std::size_t>(name.size(), 60))));
    if (command == nullptr || command->internal ||
        !std::string_view(command->name).starts_with("SLUICE."))
      throw BadParameters(
          fmt::format("there is no command {}: SLUICE.HELP lists them", quoted(name)));
    call.reply.array(3);
    call.reply.status(fmt::format("{} {}", command->name, command->usage));
    call.reply.status(command->summary);
    call.reply.status(command->complexity);
    return;
  }
  const auto shown = [](const Command& command) { return !command.internal; };
  call.reply.array(static_cast<std::size_t>(std::ranges::count_if(commands(), shown)) + 1);
  call.reply.status("SLUICE.HELP command shows how a command is written. The commands are:");
  for (const Command& command : commands())
    if (shown(command)) call.reply.status(fmt::format("{}: {}", command.name, command.summary));
}

void effect(const Call& call) {
  const std::string_view bytes = call.words[2];
  std::vector<std::size_t> sources;
  for (std::size_t word = 3; word < call.words.size(); ++word) sources.push_back(word);
  apply(call.host, 1, std::as_bytes(std::span(bytes)), sources);
  call.reply.status("OK");
}

}  // namespace sluice::server
