// The commands of the server: arguments in, reply out. commands() is the table of all of them.
//
// A handler reads all its words, does its work through effects.hpp, and only then replies: whatever it
// throws becomes an error reply, and nothing was said before.
#pragma once

#include <exception>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "apps/redis/host.hpp"
#include "apps/redis/reply.hpp"

namespace sluice::server {

struct Call {
  std::span<const std::string_view> words;  // the name of the command first
  Host& host;
  Reply& reply;
};

// What a command that writes does to its keys, for ACLs and clients.
enum class KeyUse : std::uint8_t {
  changed,
  made,    // it must not exist
  merged,  // the first is changed, the others are read
};

struct Command {
  const char* name;
  void (*run)(const Call& call);
  // As RedisModule_CreateCommand takes them: "write deny-oom".
  const char* flags;
  int arity;  // words with the name; negative: at least so many
  int first_key, last_key, key_step;
  const char* usage;    // the words after the name
  const char* summary;  // one sentence, for COMMAND DOCS
  const char* complexity;
  bool internal = false;  // only from the primary or the append-only file
  bool secret = false;    // tells the secret of a key
  KeyUse use = KeyUse::changed;
};

// All of ours, in the order in which to show them; then those under the names of RedisBloom.
std::span<const Command> commands();
std::span<const Command> bf_commands();
// By name, in any case; null if there is none.
const Command* command_named(std::string_view name);

// Runs a command. Throws nothing: every error becomes a reply.
void run(const Command& command, const Call& call) noexcept;

// The reply is its text, without a code before it.
class Verbatim : public Error {
 public:
  using Error::Error;
};

// The key holds something else.
class WrongType : public Verbatim {
 public:
  WrongType() : Verbatim("WRONGTYPE Operation against a key holding the wrong kind of value") {}
};

// --- For the sources that hold handlers

// The entry of a key that must exist. Throws BadParameters, with what to do about it.
constexpr const char* kMakeIt =
    "make it with SLUICE.RESERVE, or add with SLUICE.INSERT, which makes it if it is missing";
Entry& existing(Place& place, const char* remedy = kMakeIt);
// Keeps seeds out of the server's logs, whatever else is wrong with the words from number `first` on.
void redact_seeds(const Call& call, std::size_t first);
// The value of AT, for a key with this window. Throws BadParameters if the window is not one of time, or if
// the time is further ahead than a window.
std::int64_t read_at(std::string_view word, const std::optional<WindowSpec>& window,
                     std::int64_t now_ms);
// Refuses items of a command that end as if AT were an option there: `AT 1795098152178`. `where`: where AT goes in this
// command, or which one takes it.
void check_items(std::span<const std::string_view> items, const char* where);
std::optional<WindowSpec> window_of(const Entry& entry);
// Throws NoMemory unless the server may take so many bytes more, and one key so many.
void check_room(Host& host, std::uint64_t bytes);
// Throws NoMemory if the entry takes more than one key may. Only for new items: replicas follow their
// primary, whatever they are configured for.
void check_memory(const Host& host, const Entry& entry);
std::string why_over_limit(const Host& host, const Entry& entry);
// What is replied if this is thrown.
std::string error_text(const std::exception& error);

// Throws BadParameters with `why` and how the command is written.
[[noreturn]] void refuse_words(const Command& command, const std::string& why);

void help(const Call& call);
void reserve(const Call& call);
void plan_only(const Call& call);
void info(const Call& call);
void add(const Call& call);
void madd(const Call& call);
void insert(const Call& call);
void exists(const Call& call);
void mexists(const Call& call);
void age(const Call& call);
void forget(const Call& call);
void mforget(const Call& call);
void claim(const Call& call);
void mclaim(const Call& call);
void confirm(const Call& call);
void mconfirm(const Call& call);
void release(const Call& call);
void mrelease(const Call& call);
void merge_keys(const Call& call);
void scandump(const Call& call);
void loadchunk(const Call& call);
void effect(const Call& call);

}  // namespace sluice::server
