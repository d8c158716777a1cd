// HighwayHash-128 of short keys: the digests of the packaged library in a third of its time, or less.
//
// The rounds of one key wait for each other, so three keys go through them in turns, or three pairs with vectors of
// 512 bits. The library also stores the end of a key in parts and loads it as a whole, for which processors wait
// longer than for the rounds.
//
// Cost     a key of up to 31 bytes: 7 rounds, of about 14 instructions per vector. No allocation. Keys whose neighbours
//          are longer or shorter by a packet of 32 bytes are hashed alone.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "sluice/hash/digest.hpp"

namespace sluice::hashing {

// A key of HighwayHash, as the library has it.
using HighwayKey = std::uint64_t[4];

// digests[i] is the digest of keys[i]; the spans have equal length.
void highway(const HighwayKey& secret, std::span<const std::string_view> keys,
             std::span<Digest> digests) noexcept;

// The same by the library, one key at a time.
Digest highway_portable(const HighwayKey& secret, std::string_view key) noexcept;

}  // namespace sluice::hashing
