// Key bytes to digests.
//
// `xxh3`     XXH3-128 with a random 64-bit seed: for keys that no adversary chooses. The seed makes
//            filters differ from each other. It does not protect against chosen keys: an adversary
//            can make keys that collide under every seed.
// `highway`  HighwayHash-128 under a random 256-bit key: for keys an adversary may choose. It is a
//            pseudo-random function.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "sluice/hash/digest.hpp"

namespace sluice {

// The numbers are part of the snapshot format.
enum class HashKind : std::uint8_t { xxh3 = 1, highway = 2 };

std::string_view name_of(HashKind kind) noexcept;

// The secret makes one filter's digests differ from another's. It is stored in snapshots and never
// printed: someone who knows it can choose keys that collide. HighwayHash takes all of it as its
// key, XXH3 the first eight bytes as its seed.
class Secret {
 public:
  static constexpr std::size_t kBytes = 32;

  static Secret random();
  // The same seed gives the same secret: reproducible runs.
  static Secret from_seed(std::uint64_t seed);
  static Secret from_bytes(std::span<const std::byte, kBytes> bytes);

  std::span<const std::byte, kBytes> bytes() const noexcept { return bytes_; }
  friend bool operator==(const Secret&, const Secret&) = default;

 private:
  Secret() = default;
  std::array<std::byte, kBytes> bytes_{};
};

class Hasher {
 public:
  Hasher(HashKind kind, const Secret& secret) noexcept : kind_(kind), secret_(secret) {}

  Digest digest(std::string_view key) const noexcept;
  // digests[i] = digest(keys[i]); the spans have equal length.
  void digest(std::span<const std::string_view> keys, std::span<Digest> digests) const noexcept;

  HashKind kind() const noexcept { return kind_; }
  const Secret& secret() const noexcept { return secret_; }

 private:
  HashKind kind_;
  Secret secret_;
};

}  // namespace sluice
