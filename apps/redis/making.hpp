// From the words of RESERVE to what is made: the planner decides what they leave open.
//
// A Making is everything that making a key depends on: the plan's choice, the secret, the time. Replicas
// and the append-only file get it as it is, and make the same filter from it without planning.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "apps/redis/words.hpp"
#include "sluice/base/codec.hpp"
#include "sluice/filters/any_filter.hpp"
#include "sluice/hash/hasher.hpp"
#include "sluice/plan/plan.hpp"

namespace sluice::server {

struct Config;

struct Making {
  Secret secret;
  HashKind hash = HashKind::highway;
  std::int64_t made_ms = 0;
  std::uint64_t audit = 0;  // one item in so many is audited; 0: none
  std::string filter = {};  // name and settings: the filter, or the stages of the window
  std::optional<std::uint64_t> keys = {};
  double fpr = 0;
  std::optional<unsigned> generations = {};
  std::optional<WindowSpec> window = {};
  Anchor anchor = Anchor::delivered;
  bool listed = false;                       // a window that starts as a short list
  std::optional<std::uint64_t> memory = {};  // the limit of a window that grows
  std::uint16_t expansion = 0;               // Entry::expansion()

  void encode(Encoder& to) const;
  // Throws CorruptSnapshot.
  static Making decode(Decoder& from);
  // Throws BadParameters and NoMemory.
  AnyFilter make(MemoryResource& memory) const;
};

// What RESERVE was asked for.
struct Wanted {
  PlanRequest request;
  bool window_given = false;  // also WINDOW FOREVER
  std::string filter = {};    // FILTER: name and settings; empty: the planner chooses
  std::optional<std::uint64_t> seed = {};
  std::uint64_t audit = 0;
};

// What was decided.
struct Decided {
  Plan plan;
  std::string reason;  // why this filter
  // The least that must be free for it: what it takes at once, or will take for the keys that were asked
  // for. What grows as keys come, and was told no number, counts as it starts.
  std::uint64_t bytes = 0;
};

// Reads one option and its value, if the next word is one. Returns false if it is none. Throws
// BadParameters.
bool read_option(Words& words, Wanted& wanted);
// All of them, for messages.
inline constexpr std::string_view kOptionNames =
    "WINDOW, FPR, EXPECT, RATE, MEMORY, SLACK, FILTER, REFRESH, SEED, AUDIT";
// Throws BadParameters if it cannot be had; the sentence names the nearest that can. Quick for what was
// asked for before. `costs`: of the memory in which it will be made.
Decided decide(const Wanted& wanted, const Config& config, const BlockCosts& costs);
// With a random secret, unless a seed was given.
Making making_of(const Wanted& wanted, const Decided& decided, std::int64_t now_ms);

// The words of a command for the fields that messages of the library name.
std::string in_command_words(std::string_view message);

}  // namespace sluice::server
