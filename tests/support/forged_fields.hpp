// States field by field, and what somebody might make of a field.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <set>
#include <span>
#include <vector>

#include "sluice/base/codec.hpp"

namespace sluice::testing_support {

// Each call of the encoder is a field, but for tables and texts.
class FieldEncoder final : public Encoder {
 public:
  void bytes(std::span<const std::byte> data) override {
    fields.emplace_back(data.begin(), data.end());
  }
  std::vector<std::vector<std::byte>> fields;

  std::vector<std::byte> joined() const {
    std::vector<std::byte> all;
    for (const auto& field : fields) all.insert(all.end(), field.begin(), field.end());
    return all;
  }
};

inline std::vector<std::byte> raw(std::uint64_t value, std::size_t size) {
  std::vector<std::byte> bytes(size);
  for (std::size_t i = 0; i < size; ++i) bytes[i] = static_cast<std::byte>(value >> (8 * i));
  return bytes;
}

// Whole numbers, and what they are when they are read as doubles.
inline std::vector<std::uint64_t> forged_values() {
  std::vector<std::uint64_t> values = {0, 1, 2, 3, 7, 63, 64, 65, 1000};
  for (unsigned bits = 7; bits <= 64; bits += bits < 8 ? 1 : 4) {
    const std::uint64_t power = bits == 64 ? 0 : std::uint64_t{1} << bits;
    values.insert(values.end(), {power - 1, power, power + 1});
  }
  const double nan = std::numeric_limits<double>::quiet_NaN();
  for (const double value :
       {nan, -nan, -1.0, -0.0, 1.0, 2.0, 0.5, 1e-300, 5e-324, 1e300,
        1 - std::numeric_limits<double>::epsilon() / 2, std::numeric_limits<double>::infinity()})
    values.push_back(std::bit_cast<std::uint64_t>(value));
  return values;
}

// All that a field could be instead: the same number of bytes, or a number of any length.
inline std::set<std::vector<std::byte>> forgeries_of(const std::vector<std::byte>& field) {
  std::set<std::vector<std::byte>> all;
  std::uint64_t value = 0;
  for (std::size_t i = 0; i < std::min<std::size_t>(8, field.size()); ++i)
    value |= std::to_integer<std::uint64_t>(field[i]) << (8 * i);
  std::vector<std::uint64_t> values = forged_values();
  values.insert(values.end(), {value - 1, value + 1, value * 2, value / 2, value * 1000, ~value});
  for (const std::uint64_t forged : values) {
    if (std::has_single_bit(field.size()) && field.size() <= 8)
      all.insert(raw(forged, field.size()));
    BytesEncoder number;
    number.varint(forged);
    if (field.size() <= 5) all.insert(number.take());
  }
  // The fields of a stage, or a text: numbers anywhere in it.
  if (field.size() > 10)
    for (const std::size_t width : {1, 8})
      for (std::size_t at = 0; at + width <= std::min<std::size_t>(field.size(), 120); ++at)
        for (const unsigned bits : {0, 20, 44, 64}) {
          const std::uint64_t forged =
              bits == 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << bits) - 1;
          std::vector<std::byte> changed = field;
          std::ranges::copy(raw(forged, width), changed.begin() + static_cast<std::ptrdiff_t>(at));
          all.insert(std::move(changed));
        }
  all.erase(field);
  return all;
}

}  // namespace sluice::testing_support
