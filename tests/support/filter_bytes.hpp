// A filter as bytes and back, without the snapshot around it.
#pragma once

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <utility>
#include <vector>

#include "sluice/base/codec.hpp"
#include "sluice/filters/catalogue.hpp"
#include "sluice/window/window.hpp"

namespace sluice::testing_support {

// Compared as memory: standard libraries compare vectors of std::byte one by one, and in tests, which are
// not optimized, that took longer than what was tested.
struct FilterBytes : std::vector<std::byte> {
  explicit FilterBytes(std::vector<std::byte> bytes) : std::vector<std::byte>(std::move(bytes)) {}

  friend bool operator==(const FilterBytes& one, const std::vector<std::byte>& other) {
    return one.size() == other.size() &&
           (one.empty() || std::memcmp(one.data(), other.data(), one.size()) == 0);
  }
  friend bool operator==(const FilterBytes& one, const FilterBytes& other) {
    return one == static_cast<const std::vector<std::byte>&>(other);
  }
};

// All that a filter (or window) writes: equal bytes are equal filters.
template <class Filter>
FilterBytes bytes_of(const Filter& filter) {
  BytesEncoder to;
  filter.encode_header(to);
  filter.encode_payload(to);
  return FilterBytes(to.take());
}

// Through bytes and back; all of them must be read.
inline AnyFilter copy_of(const AnyFilter& filter) {
  BytesEncoder header, payload;
  filter.encode_header(header);
  filter.encode_payload(payload);
  const std::vector<std::byte> header_bytes = header.take(), payload_bytes = payload.take();
  BytesDecoder from_header(header_bytes), from_payload(payload_bytes);
  AnyFilter copy = filter.window() != nullptr
                       ? AnyFilter(Window::decode(from_header, from_payload))
                       : decode_filter(static_cast<std::uint16_t>(filter.kind()), filter.version(),
                                       from_header, from_payload);
  EXPECT_EQ(from_header.remaining(), 0u) << "the decoder left header bytes unread";
  EXPECT_EQ(from_payload.remaining(), 0u) << "the decoder left payload bytes unread";
  return copy;
}

}  // namespace sluice::testing_support
