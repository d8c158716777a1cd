#include "tests/support/delta_repair.hpp"

#include <xxhash.h>

#include <algorithm>

namespace sluice::testing_support {
namespace {

constexpr std::size_t kFixed = 26, kBaseAt = 5, kHeaderBytesAt = 22;

template <class Word>
void store(std::byte* at, Word value) {
  for (std::size_t i = 0; i < sizeof(Word); ++i) at[i] = static_cast<std::byte>(value >> (8 * i));
}

std::uint64_t load(const std::byte* at, std::size_t bytes) {
  std::uint64_t value = 0;
  for (std::size_t i = 0; i < bytes; ++i) value |= std::to_integer<std::uint64_t>(at[i]) << (8 * i);
  return value;
}

}  // namespace

void repair_delta(std::span<std::byte> delta, std::uint64_t old_identity) {
  if (delta.size() < kFixed) return;
  const std::size_t header = load(delta.data() + kHeaderBytesAt, 4);
  if (header < 8 || delta.size() - kFixed < header || delta.size() - kFixed - header < 8) return;
  if (delta[kBaseAt] != std::byte{0}) store(delta.data() + kBaseAt + 1, old_identity);
  store(delta.data() + kFixed + header - 8, XXH3_64bits(delta.data() + kFixed, header - 8));
  std::uint64_t checksum = XXH3_64bits(delta.data(), kFixed + header);
  store(delta.data() + kFixed + header, checksum);

  std::span<std::byte> rest = delta.subspan(kFixed + header + 8);
  while (rest.size() > 4) {
    const std::size_t length = load(rest.data(), 4);
    if (rest.size() - 4 < length || rest.size() - 4 - length < 8) return;
    checksum = XXH3_64bits_withSeed(rest.data() + 4, length, checksum);
    store(rest.data() + 4 + length, checksum);
    rest = rest.subspan(12 + length);
  }
}

}  // namespace sluice::testing_support
