#include "sluice/base/bytes.hpp"

#include <algorithm>
#include <string>

#include "sluice/base/error.hpp"

namespace sluice {

std::span<const std::byte> BytesDecoder::view(std::uint64_t size) {
  if (size > remaining())
    throw CorruptSnapshot(std::to_string(size) + " bytes were expected, but only " +
                          std::to_string(remaining()) + " are there");
  const auto seen = data_.subspan(position_, static_cast<std::size_t>(size));
  position_ += seen.size();
  return seen;
}

void BytesDecoder::bytes(std::span<std::byte> out) {
  std::ranges::copy(view(out.size()), out.begin());
}

}  // namespace sluice
