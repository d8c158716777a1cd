// The bytes of a key that is not a plain view of its record, and where they are kept.
//
// Digests are taken of these bytes and outlive the process in snapshots: changing a form means that
// every state file forgets what it has seen. The tests pin them.
#pragma once

#include <algorithm>
#include <array>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sluice/stream/record.hpp"

namespace sluice {

// A length in 7-bit groups, the lowest first, the high bit set on all but the last (LEB128): no
// length is a prefix of another, so that what follows it cannot be misread.
inline void append_length(std::size_t length, std::string& out) {
  for (; length >= 0x80; length >>= 7) out += static_cast<char>(length | 0x80);
  out += static_cast<char>(length);
}
inline char* put_length(std::size_t length, char* to) noexcept {
  for (; length >= 0x80; length >>= 7) *to++ = static_cast<char>(length | 0x80);
  *to++ = static_cast<char>(length);
  return to;
}

// The fields of a key are separated by their lengths: `a`, `bc` differs from `ab`, `c`.
inline void append_part(std::string_view part, std::string& out) {
  append_length(part.size(), out);
  out += part;
}

// A part that is not there, which differs from an empty one: a length of 0 that append_length does not
// write.
inline constexpr std::string_view kAbsentPart{"\x80\0", 2};

// Takes the first part off `form`, which append_part made.
inline std::string_view take_part(std::string_view& form) {
  std::size_t length = 0;
  for (unsigned shift = 0;; shift += 7) {
    const auto byte = static_cast<unsigned char>(form.front());
    form.remove_prefix(1);
    length |= static_cast<std::size_t>(byte & 0x7F) << shift;
    if (byte < 0x80) break;
  }
  const std::string_view part = form.substr(0, length);
  form.remove_prefix(length);
  return part;
}

// The same to a place with room for most_part_bytes bytes; returns where it ends. `part` must be in
// a record, so that the padding after it may be read: then all short copies have the same length.
inline constexpr std::size_t kShortPart = 32;
constexpr std::size_t most_part_bytes(std::size_t size) noexcept {
  return size + 10 + kShortPart;
}
inline char* put_part(std::string_view part, char* to) noexcept {
  to = put_length(part.size(), to);
  if (part.size() <= kShortPart)
    std::memcpy(to, part.data(), kShortPart);
  else
    std::memcpy(to, part.data(), part.size());
  return to + part.size();
}

// The built keys of a batch, one after another in one reused block. The block may move while it
// grows, so keys become views only when the batch is done.
class KeyBuffer {
 public:
  void clear() {
    used_ = 0;
    count_ = 0;
    building_.clear();
    // Releases the memory of a very long record.
    if (building_.capacity() > kKeptBytes) building_ = {};
    if (block_.size() > kKeptBytes) block_ = std::vector<char>(kShortPart);
  }
  // A key is built here, and then kept or dropped.
  std::string& bytes() noexcept { return building_; }
  // Keeps what was built as the key of this record.
  void keep(std::size_t record) {
    char* const to = room(building_.size());
    std::memcpy(to, building_.data(), building_.size());
    keep(record, to + building_.size());
    building_.clear();
  }
  void drop() noexcept { building_.clear(); }
  // Alternatively: where a key of at most that many bytes can be written; pass its end to keep().
  char* room(std::size_t most) {
    if (block_.size() - used_ < most) block_.resize(std::max(2 * block_.size(), used_ + most));
    return block_.data() + used_;
  }
  void keep(std::size_t record, const char* end) noexcept {
    const auto until = static_cast<std::size_t>(end - block_.data());
    assert(count_ < built_.size() && until <= block_.size());
    built_[count_++] = {record, used_, until};
    used_ = until;
  }
  // The batch is done. The views live until the next clear().
  void place(std::span<std::string_view> keys) const noexcept {
    for (const Built& key : std::span(built_).first(count_))
      keys[key.record] = {block_.data() + key.begin, key.end - key.begin};
  }

 private:
  static constexpr std::size_t kKeptBytes = std::size_t{16} << 20;

  struct Built {
    std::size_t record;
    std::size_t begin;
    std::size_t end;
  };

  std::string building_;
  std::vector<char> block_ = std::vector<char>(kShortPart);  // views of no bytes point somewhere
  std::size_t used_ = 0;
  std::array<Built, kBatchRecords> built_;
  std::size_t count_ = 0;
};

}  // namespace sluice
