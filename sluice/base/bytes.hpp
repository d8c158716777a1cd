// Encoding into memory and decoding from it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "sluice/base/codec.hpp"

namespace sluice {

class BytesEncoder final : public Encoder {
 public:
  void bytes(std::span<const std::byte> data) override {
    written_.insert(written_.end(), data.begin(), data.end());
  }

  std::span<const std::byte> written() const noexcept { return written_; }
  std::vector<std::byte> take() noexcept { return std::exchange(written_, {}); }

 private:
  std::vector<std::byte> written_;
};

// Reads from bytes that it does not own.
class BytesDecoder final : public Decoder {
 public:
  explicit BytesDecoder(std::span<const std::byte> data) noexcept : data_(data) {}

  void bytes(std::span<std::byte> out) override;
  std::uint64_t remaining() const override { return data_.size() - position_; }

  // How many bytes were read.
  std::uint64_t position() const noexcept { return position_; }
  // The next `size` bytes, without a copy.
  std::span<const std::byte> view(std::uint64_t size);

 private:
  std::span<const std::byte> data_;
  std::size_t position_ = 0;
};

}  // namespace sluice
