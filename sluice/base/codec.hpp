// How state becomes bytes: filters write fields through an Encoder and read them back through a
// Decoder, and know nothing about files, chunks or checksums (snapshot/ does).
//
// All numbers are little-endian, and of fixed width unless they are varints. Changing what a filter
// writes means a new version of its kind, or old files are misread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace sluice {

class Encoder {
 public:
  virtual ~Encoder() = default;
  virtual void bytes(std::span<const std::byte> data) = 0;
  // True if the next `count` bytes are not needed; they then count as written. A filter whose bytes
  // are costly to make asks this first: a snapshot is pulled in chunks, and each pull passes over
  // the whole payload once (snapshot/pull.hpp).
  virtual bool skip(std::uint64_t count) {
    static_cast<void>(count);
    return false;
  }

  void u8(std::uint8_t value);
  void u16(std::uint16_t value);
  void u32(std::uint32_t value);
  void u64(std::uint64_t value);
  void f64(double value);
  // Seven bits per byte, the low ones first; all bytes but the last have their top bit set.
  void varint(std::uint64_t value);
};

// Every call throws CorruptSnapshot when there are too few bytes.
class Decoder {
 public:
  virtual ~Decoder() = default;
  virtual void bytes(std::span<std::byte> out) = 0;
  // How many bytes are still to come. A decoder of a table compares it with the table's size
  // *before* it allocates: a file cannot make us reserve more memory than its own size.
  virtual std::uint64_t remaining() const = 0;

  std::uint8_t u8();
  std::uint16_t u16();
  std::uint32_t u32();
  std::uint64_t u64();
  double f64();
  // Also throws when the number has more bytes than necessary: a state has only one form.
  std::uint64_t varint();

  // Throws CorruptSnapshot unless exactly `expected` bytes are still to come; `what` names the
  // part.
  void expect_remaining(std::uint64_t expected, const char* what) const;
};

// Bytes in memory: for headers, tests and fuzzing.
class BytesEncoder final : public Encoder {
 public:
  void bytes(std::span<const std::byte> data) override;
  std::span<const std::byte> written() const noexcept { return bytes_; }
  std::vector<std::byte> take() { return std::exchange(bytes_, {}); }

 private:
  std::vector<std::byte> bytes_;
};

class BytesDecoder final : public Decoder {
 public:
  // `data` must outlive the decoder.
  explicit BytesDecoder(std::span<const std::byte> data) : data_(data) {}
  void bytes(std::span<std::byte> out) override;
  std::uint64_t remaining() const override { return data_.size(); }
  // The next `size` bytes, without a copy.
  std::span<const std::byte> view(std::uint64_t size);

 private:
  std::span<const std::byte> data_;
};

// Counts what would be written.
class CountingEncoder final : public Encoder {
 public:
  void bytes(std::span<const std::byte> data) override { count_ += data.size(); }
  bool skip(std::uint64_t count) override {
    count_ += count;
    return true;
  }
  std::uint64_t count() const noexcept { return count_; }

 private:
  std::uint64_t count_ = 0;
};

// Reads the next `length` bytes of another decoder and ends there: for filters within filters.
class PartDecoder final : public Decoder {
 public:
  PartDecoder(Decoder& whole, std::uint64_t length) : whole_(whole), left_(length) {}
  void bytes(std::span<std::byte> out) override;
  std::uint64_t remaining() const override { return left_; }

 private:
  Decoder& whole_;
  std::uint64_t left_;
};

}  // namespace sluice
