#include "tests/support/snapshot_repair.hpp"

#include <xxhash.h>

#include <algorithm>
#include <cstdint>

#include "sluice/base/codec.hpp"
#include "sluice/base/error.hpp"

namespace sluice::testing_support {
namespace {

constexpr std::size_t kHeaderLengthAt = 5, kSecret = 32, kChunk = std::size_t{1} << 20;

void store(std::byte* at, std::uint64_t value) {
  for (std::size_t i = 0; i < 8; ++i) at[i] = static_cast<std::byte>(value >> (8 * i));
}

// Makes the header say that the payload has that many bytes, where the number takes as many as the
// one that is there. Throws CorruptSnapshot when the header is none.
void repair_payload_bytes(std::span<std::byte> header, std::uint64_t payload) {
  BytesDecoder from(header);
  from.varint();
  from.varint();
  from.view(from.varint());
  const std::size_t at = header.size() - from.remaining();
  from.varint();
  const std::size_t end = header.size() - from.remaining();
  from.view(1 + kSecret);
  for (std::uint64_t texts = 2 * from.varint(); texts != 0; --texts) from.view(from.varint());
  for (std::uint64_t sections = from.varint(); sections != 0; --sections) {
    from.u8();
    from.view(from.varint());
    payload -= std::min(payload, from.varint());
  }
  BytesEncoder number;
  number.varint(payload);
  if (number.written().size() == end - at)
    std::ranges::copy(number.written(), header.begin() + static_cast<std::ptrdiff_t>(at));
}

}  // namespace

void repair_snapshot(std::span<std::byte> snapshot) try {
  if (snapshot.size() < kHeaderLengthAt) return;
  BytesDecoder from(snapshot.subspan(kHeaderLengthAt));
  const std::uint64_t length = from.varint();
  const std::size_t header_at = snapshot.size() - from.remaining();
  from.view(length);
  if (from.remaining() < 8) return;
  std::span<std::byte> rest = snapshot.subspan(header_at + length + 8);
  const std::size_t chunks = (rest.size() + kChunk + 7) / (kChunk + 8);
  if (rest.size() >= 8 * chunks) {
    try {
      repair_payload_bytes(snapshot.subspan(header_at, length), rest.size() - 8 * chunks);
    } catch (const CorruptSnapshot&) {
      // The checksums are made right all the same.
    }
  }
  std::uint64_t checksum = XXH3_64bits(snapshot.data(), header_at + length);
  store(snapshot.data() + header_at + length, checksum);
  while (rest.size() > 8) {
    const std::size_t size = std::min(rest.size() - 8, kChunk);
    checksum = XXH3_64bits_withSeed(rest.data(), size, checksum);
    store(rest.data() + size, checksum);
    rest = rest.subspan(size + 8);
  }
} catch (const CorruptSnapshot&) {
  // So short or so broken that there is nothing to repair.
}

}  // namespace sluice::testing_support
