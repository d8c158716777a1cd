#include "tests/support/snapshot_repair.hpp"

#include <xxhash.h>

#include <algorithm>
#include <cstdint>

namespace sluice::testing_support {
namespace {

constexpr std::size_t kFixed = 16, kFooter = 24, kChunk = std::size_t{1} << 20;

template <class Word>
void store(std::byte* at, Word value) {
  for (std::size_t i = 0; i < sizeof(Word); ++i) at[i] = static_cast<std::byte>(value >> (8 * i));
}

std::uint64_t chained(std::uint64_t link, std::uint64_t word) {
  std::byte pair[16];
  store(pair, link);
  store(pair + 8, word);
  return XXH3_64bits(pair, sizeof pair);
}

}  // namespace

void repair_snapshot(std::span<std::byte> snapshot) {
  if (snapshot.size() < kFixed) return;
  std::size_t header = 0;
  for (std::size_t i = 0; i < 4; ++i)
    header |= std::to_integer<std::size_t>(snapshot[12 + i]) << (8 * i);
  if (snapshot.size() - kFixed < header || snapshot.size() - kFixed - header < 8) return;
  std::uint64_t link = XXH3_64bits(snapshot.data(), kFixed + header);
  store(snapshot.data() + kFixed + header, link);

  std::span<std::byte> rest = snapshot.subspan(kFixed + header + 8);
  if (rest.size() < kFooter) return;
  std::uint64_t chunks = 0, payload = 0;
  while (rest.size() > kFooter) {
    if (rest.size() - kFooter <= 12) return;
    const std::size_t length = std::min(rest.size() - kFooter - 12, kChunk);
    const std::uint64_t checksum = XXH3_64bits_withSeed(rest.data() + 4, length, chunks);
    store(rest.data(), static_cast<std::uint32_t>(length));
    store(rest.data() + 4 + length, checksum);
    link = chained(link, checksum);
    ++chunks;
    payload += length;
    rest = rest.subspan(12 + length);
  }
  store(rest.data(), chunks);
  store(rest.data() + 8, payload);
  store(rest.data() + 16, chained(chained(link, chunks), payload));
}

}  // namespace sluice::testing_support
