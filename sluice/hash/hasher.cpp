#include "sluice/hash/hasher.hpp"

#define XXH_INLINE_ALL
#include <highwayhash/highwayhash_target.h>
#include <highwayhash/instruction_sets.h>
#include <xxhash.h>

#include <algorithm>
#include <cassert>
#include <cstring>

#include "sluice/base/random.hpp"

namespace sluice {
namespace {

// XXH3 takes a secret of at least XXH3_SECRET_SIZE_MIN bytes; ours is as long as its own.
static_assert(Secret::kBytes == XXH3_SECRET_DEFAULT_SIZE);

Digest xxh3(const Secret& secret, std::string_view key) noexcept {
  const XXH128_hash_t hash =
      XXH3_128bits_withSecret(key.data(), key.size(), secret.bytes().data(), Secret::kBytes);
  return {hash.low64, hash.high64};
}

constexpr std::size_t kLeastInline = 17, kMostInline = 128;

// The same for keys of lengths that most have, in line: for them the call of the general function
// costs as much as a quarter of the hashing.
inline Digest xxh3_inline(const Secret& secret, std::string_view key) noexcept {
  const auto* const bytes = reinterpret_cast<const xxh_u8*>(key.data());
  const auto* const from = reinterpret_cast<const xxh_u8*>(secret.bytes().data());
  if (key.size() - kLeastInline > kMostInline - kLeastInline) return xxh3(secret, key);
  const XXH128_hash_t hash = XXH3_len_17to128_128b(bytes, key.size(), from, Secret::kBytes, 0);
  return {hash.low64, hash.high64};
}

Digest highway(const Secret& secret, std::string_view key) noexcept {
  alignas(32) highwayhash::HHKey hh_key;
  static_assert(sizeof(hh_key) <= Secret::kBytes);
  std::memcpy(hh_key, secret.bytes().data(), sizeof(hh_key));
  highwayhash::HHResult128 hash;
  highwayhash::InstructionSets::Run<highwayhash::HighwayHash>(hh_key, key.data(), key.size(),
                                                              &hash);
  return {hash[0], hash[1]};
}

}  // namespace

std::string_view name_of(HashKind kind) noexcept {
  return kind == HashKind::highway ? "highway" : "xxh3";
}

Secret Secret::random() {
  Secret secret;
  system_entropy(secret.bytes_);
  return secret;
}

Secret Secret::from_seed(std::uint64_t seed) {
  Secret secret;
  SplitMix64 generator(seed);
  for (std::size_t at = 0; at < kBytes; at += 8) {
    const std::uint64_t word = generator.next();
    for (std::size_t i = 0; i < 8; ++i)
      secret.bytes_[at + i] = static_cast<std::byte>(word >> (8 * i));
  }
  return secret;
}

Secret Secret::from_bytes(std::span<const std::byte, kBytes> bytes) {
  Secret secret;
  std::copy(bytes.begin(), bytes.end(), secret.bytes_.begin());
  return secret;
}

Digest Hasher::digest(std::string_view key) const noexcept {
  return kind_ == HashKind::highway ? highway(secret_, key) : xxh3(secret_, key);
}

void Hasher::digest(std::span<const std::string_view> keys,
                    std::span<Digest> digests) const noexcept {
  assert(keys.size() == digests.size());
  if (kind_ == HashKind::highway) {
    for (std::size_t i = 0; i < keys.size(); ++i) digests[i] = highway(secret_, keys[i]);
  } else {
    for (std::size_t i = 0; i < keys.size(); ++i) digests[i] = xxh3_inline(secret_, keys[i]);
  }
}

}  // namespace sluice
