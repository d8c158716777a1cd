#include "tests/support/journal_repair.hpp"

#include <xxhash.h>

#include <algorithm>
#include <array>

#include "sluice/base/codec.hpp"
#include "sluice/base/error.hpp"

namespace sluice::testing_support {
namespace {

constexpr std::array<std::uint8_t, 5> kMagicAndVersion = {0xD3, 'S', 'L', 'J', 1};
constexpr std::size_t kHead = 21;

void store(std::span<std::byte> at, std::uint64_t value) {
  for (std::size_t i = 0; i < at.size(); ++i) at[i] = static_cast<std::byte>(value >> (8 * i));
}

}  // namespace

void repair_journal(std::span<std::byte> journal, std::uint64_t identity) try {
  if (journal.size() < kHead) return;
  std::ranges::copy(std::as_bytes(std::span(kMagicAndVersion)), journal.begin());
  store(journal.subspan(5, 8), identity);
  std::uint64_t checksum = XXH3_64bits(journal.data(), kHead - 8);
  store(journal.subspan(kHead - 8, 8), checksum);
  std::span<std::byte> rest = journal.subspan(kHead);
  while (!rest.empty()) {
    BytesDecoder from(rest);
    const std::uint64_t length = from.varint();
    const std::size_t number = rest.size() - from.remaining();
    if (from.remaining() < 2) return;
    store(rest.subspan(number, 2), XXH3_64bits_withSeed(rest.data(), number, checksum));
    rest = rest.subspan(number + 2);
    if (rest.size() < 8 || length > rest.size() - 8) return;
    checksum = XXH3_64bits_withSeed(rest.data(), length, checksum);
    store(rest.subspan(length, 8), checksum);
    rest = rest.subspan(length + 8);
  }
} catch (const CorruptSnapshot&) {
  // No length: what is behind it is torn.
}

}  // namespace sluice::testing_support
