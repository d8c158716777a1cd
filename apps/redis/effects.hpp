// Effects: what happened to a key, for replicas and the append-only file.
//
// A command is judged once, on the primary. What it did then travels as SLUICE.EFFECT key effect: the
// digests instead of the items, with the time and the secret of the primary. Doing the same to the same
// entry gives the same bytes, so that a replica never judges a limit, a clock or chance by itself.
//
//   effect = kind (1 byte), fields (little-endian), then digests of 16 bytes to the end
//
// Where the primary had no memory, the effect says so (Fates, sluice/base/fates.hpp).
#pragma once

#include <cstdint>
#include <exception>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "apps/redis/chunks.hpp"
#include "apps/redis/entry.hpp"
#include "apps/redis/host.hpp"

namespace sluice::server {

// The numbers are part of the format of append-only files.
enum class EffectKind : std::uint8_t {
  make = 1,
  judge = 2,
  forget = 3,
  claim = 4,
  confirm = 5,
  release = 6,
  tend = 7,
  merge = 8,
  chunk = 9,  // of a key that is loaded
  drop = 10,  // what was loaded is no key
};

// Each does it to the entry, and says so to the host.
//
// The word with number `key` of the command names the entry's key.

// Whether the entry takes more memory than one key may (sluice.key-memory-limit).
bool over_limit(const Config& config, const Entry& entry) noexcept;

// Makes an entry and puts it there. Throws BadParameters and NoMemory.
Entry& make_entry(Host& host, Place& place, std::size_t key, const Making& making);
// As Entry::judge. Of many items it judges a few hundred at a time, and stops when the key is over its limit.
std::size_t judge(Host& host, Place& place, std::size_t key, std::span<const Digest> digests,
                  const Entry::When& when, std::span<Verdict> verdicts);
void forget(Host& host, Place& place, std::size_t key, std::span<const Digest> digests,
            std::int64_t now_ms, std::span<Verdict> verdicts);
// Items of one claimant. Claiming stops before the first item for which there is no room or no memory.
struct Claimant {
  Claims::Token token;
  Entry::When when;
  std::int64_t lease_ms = 0;
};
struct Claimed {
  std::size_t answered = 0;
  std::exception_ptr problem = {};  // why the next one has no answer
};
Claimed claim(Host& host, Place& place, std::size_t key, const Claimant& claimant,
              std::span<const Digest> digests, std::span<ClaimAnswer> answers);
void confirm(Host& host, Place& place, std::size_t key, const Claimant& claimant,
             std::span<const Digest> digests, std::span<ConfirmAnswer> answers);
void release(Host& host, Place& place, std::size_t key, const Claimant& claimant,
             std::span<const Digest> digests, std::span<bool> answers);
// Takes in what the keys that are the words `sources` remember. Throws BadParameters and NoMemory; nothing
// has changed then.
void merge(Host& host, Place& place, std::size_t key, std::span<const std::size_t> sources,
           std::int64_t now_ms);

// Loads one more chunk; the first one also in place of those that came before. The last one makes the entry.
// Throws BadParameters, which changes nothing, and what Partial::finish does: the key is gone then.
void load_chunk(Host& host, Place& place, std::size_t key, const Chunk& chunk, std::int64_t now_ms);

// A key has come by RESTORE, also from MIGRATE, with this expiry. The journey has moved it by the time that it
// took and by the difference of two clocks: it is still the module's own, and moves with each write. Replicas
// and append-only files restore with the same expiry, so they do the same without being told.
void restored(Entry& entry, std::optional<std::int64_t> expiry_ms);

// The effects that make a key from nothing, in order, each of less than 1 MiB: for an append-only file. All
// but its expiry.
using TakeEffect = std::function<void(std::span<const std::byte>)>;
void rewrite(const Entry& entry, const TakeEffect& take);
void rewrite(const Partial& partial, const TakeEffect& take);

// Does what an effect says. `sources`: the numbers of the words that follow it. Throws BadParameters,
// NoMemory and CorruptSnapshot.
void apply(Host& host, std::size_t key, std::span<const std::byte> effect,
           std::span<const std::size_t> sources);

}  // namespace sluice::server
