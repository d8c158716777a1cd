#include "sluice/hash/hasher.hpp"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <algorithm>
#include <cassert>
#include <cstring>

#include "sluice/base/random.hpp"
#include "sluice/hash/highway.hpp"

namespace sluice {
namespace {

std::uint64_t seed_of(const Secret& secret) noexcept {
  return XXH_readLE64(secret.bytes().data());
}

Digest xxh3(std::uint64_t seed, std::string_view key) noexcept {
  const XXH128_hash_t hash = XXH3_128bits_withSeed(key.data(), key.size(), seed);
  return {hash.low64, hash.high64};
}

constexpr std::size_t kLeastInline = 17, kMostInline = 128;

// The same for keys of lengths that most have, in line: for them the call of the general function
// costs as much as a quarter of the hashing. The seed is added to XXH3's constants once per batch
// instead of once per key, as XXH3 itself does for long keys.
class BatchXxh3 {
 public:
  explicit BatchXxh3(std::uint64_t seed) noexcept : seed_(seed) {
    XXH3_initCustomSecret(secret_, seed);
  }

  Digest operator()(std::string_view key) const noexcept {
    const std::size_t size = key.size();
    if (size - kLeastInline > kMostInline - kLeastInline) return other(key);
    const auto* const begin = reinterpret_cast<const xxh_u8*>(key.data());
    const auto* const end = begin + size;
    XXH128_hash_t sum{size * XXH_PRIME64_1, 0};
    if (size > 32) {
      if (size > 64) {
        if (size > 96) sum = XXH128_mix32B(sum, begin + 48, end - 64, secret_ + 96, 0);
        sum = XXH128_mix32B(sum, begin + 32, end - 48, secret_ + 64, 0);
      }
      sum = XXH128_mix32B(sum, begin + 16, end - 32, secret_ + 32, 0);
    }
    sum = XXH128_mix32B(sum, begin, end - 16, secret_, 0);
    const std::uint64_t high =
        sum.low64 * XXH_PRIME64_1 + sum.high64 * XXH_PRIME64_4 + (size - seed_) * XXH_PRIME64_2;
    return {XXH3_avalanche(sum.low64 + sum.high64), 0 - XXH3_avalanche(high)};
  }

 private:
  // Long keys use the prepared secret; from a seed alone XXH3 would derive it again for each key.
  Digest other(std::string_view key) const noexcept {
    if (key.size() <= XXH3_MIDSIZE_MAX) return xxh3(seed_, key);
    const XXH128_hash_t hash =
        XXH3_128bits_withSecret(key.data(), key.size(), secret_, sizeof secret_);
    return {hash.low64, hash.high64};
  }

  std::uint64_t seed_;
  alignas(64) xxh_u8 secret_[XXH3_SECRET_DEFAULT_SIZE];
};

void highway(const Secret& secret, std::span<const std::string_view> keys,
             std::span<Digest> digests) noexcept {
  hashing::HighwayKey key;
  static_assert(sizeof(key) == Secret::kBytes);
  std::memcpy(key, secret.bytes().data(), sizeof(key));
  hashing::highway(key, keys, digests);
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
  if (kind_ == HashKind::xxh3) return xxh3(seed_of(secret_), key);
  Digest digest;
  highway(secret_, {&key, 1}, {&digest, 1});
  return digest;
}

void Hasher::digest(std::span<const std::string_view> keys,
                    std::span<Digest> digests) const noexcept {
  assert(keys.size() == digests.size());
  if (kind_ == HashKind::highway) {
    highway(secret_, keys, digests);
  } else {
    const BatchXxh3 hash(seed_of(secret_));
    for (std::size_t i = 0; i < keys.size(); ++i) digests[i] = hash(keys[i]);
  }
}

}  // namespace sluice
