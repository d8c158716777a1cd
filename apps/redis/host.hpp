// What commands need of the server that runs them, and nothing else: time, memory, keys, and a way to tell
// replicas and the append-only file what happened. The adapter of a real server implements it
// (module.cpp), and so do tests.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "apps/redis/chunks.hpp"
#include "apps/redis/entry.hpp"
#include "apps/redis/reply.hpp"
#include "sluice/base/memory_resource.hpp"

namespace sluice::server {

// What an administrator sets. Replicas obey the effects of their primary, whatever these say there.
struct Config {
  static constexpr std::uint64_t kMostClaims = Claims::kMostClaims;

  double default_fpr = 1e-6;                      // of RESERVE and INSERT without FPR and MEMORY
  std::uint64_t key_memory = 0;                   // the most bytes of one key; 0: no limit
  std::uint64_t claims = std::uint64_t{1} << 16;  // the most pending items of one key
};

// A key of the server.
class Place {
 public:
  virtual ~Place() = default;
  // Null: there is no such key. Throws WrongType if it holds something else, and BadParameters if it is
  // still being loaded (refuse_partial).
  virtual Entry* entry() = 0;
  // Null: the key is not one that is being loaded. Throws nothing.
  virtual Partial* partial() = 0;
  // Puts an entry or a part of one there, in place of what there was; an expiry stays.
  virtual void put(Entry::Pointer entry) = 0;
  virtual void put(Partial::Pointer partial) = 0;
  // Deletes the key, if there is one.
  virtual void remove() = 0;
  // When the key expires, in ms since 1970; none: never.
  virtual std::optional<std::int64_t> expiry_ms() const = 0;
  virtual void expire_at(std::int64_t ms) = 0;
  // The entry has changed: for WATCH, client caches and keyspace events, such as "sluice.add".
  virtual void changed(const char* event) = 0;
};

class Host {
 public:
  virtual ~Host() = default;
  virtual std::int64_t now_ms() const = 0;
  virtual MemoryResource& memory() = 0;
  // How often that has refused a block so far.
  virtual std::uint64_t refusals() const = 0;
  // Whether it refuses every block from now on: for a replica, which tries what its primary had no memory for.
  virtual void refuse_memory(bool all) = 0;
  // Bytes that the server may still take; none: it has no limit. May take some microseconds.
  virtual std::optional<std::uint64_t> room() = 0;
  virtual const Config& config() const = 0;
  // Whether the call comes from the primary or from the append-only file: it has happened, and is not
  // judged again.
  virtual bool replayed() const = 0;

  enum class Access { read, write };
  // Opens the key that is word number `word` of the command. The place is valid until the call ends.
  virtual Place& open(std::size_t word, Access access) = 0;
  // The word of the command with this number.
  virtual std::string_view word(std::size_t word) const = 0;
  // Keeps a word of the command out of the server's logs.
  virtual void redact(std::size_t word) = 0;
  // Whether anybody is told what happens: a replica, or the append-only file. It does not change while a command runs.
  virtual bool heard() const = 0;
  // In place of replicate() if nobody is told: something has changed, which counts for the server's save points.
  virtual void count_change() = 0;
  // Tells replicas and the append-only file: SLUICE.EFFECT, the key that is word number `word` of the
  // command, `effect`, and the keys that are the words with the numbers of `sources`.
  virtual void replicate(std::size_t word, std::span<const std::byte> effect,
                         std::span<const std::size_t> sources = {}) = 0;
};

// Counted over all keys, for INFO sluice.
struct Counters {
  std::uint64_t judged = 0;
  std::uint64_t duplicates = 0;
  std::uint64_t late = 0;     // events that came a window or more behind; let through unjudged
  std::uint64_t refused = 0;  // new items that there was no memory for
};
Counters& counters() noexcept;

}  // namespace sluice::server
