// Compressed texts.
#pragma once

#include <string>
#include <string_view>

#include "connectors/files/packing.hpp"

namespace sluice::testing_support {

// One member with this text.
inline std::string packed(Packing packing, std::string_view text) {
  std::string bytes;
  Packer::make(packing)->pack(text, Packer::Until::ended,
                              [&](std::string_view made) { bytes += made; });
  return bytes;
}

// A zstd frame with this text, which must be short, that asks for a window of 2^log bytes.
inline std::string zstd_with_window(std::string_view text, unsigned log) {
  std::string frame("\x28\xb5\x2f\xfd\x00", 5);
  frame += static_cast<char>((log - 10) << 3);
  const std::size_t block = text.size() << 3 | 1;  // the last one, not compressed
  for (const unsigned shift : {0u, 8u, 16u}) frame += static_cast<char>(block >> shift);
  return frame.append(text);
}

// Lines that can be packed to about a third.
inline std::string some_text(std::size_t size) {
  std::string text;
  for (std::uint64_t i = 0; text.size() < size; ++i)
    text += std::to_string(i * 0x9E3779B97F4A7C15u % 1'000'003) + "\n";
  text.resize(size);
  return text;
}

}  // namespace sluice::testing_support
