// The bytes of a key that is no plain view of its record, and where they are kept.
//
// Digests are taken of these bytes and outlive the process in snapshots: changing a form means that
// every state file forgets what it has seen. The tests pin them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace sluice {

// A length in 7-bit groups, the lowest first, the high bit set on all but the last (LEB128): no
// length is the beginning of another, so that what follows it cannot be misread.
inline void append_length(std::size_t length, std::string& out) {
  for (; length >= 0x80; length >>= 7) out += static_cast<char>(length | 0x80);
  out += static_cast<char>(length);
}

// Fields of one key are told apart by their lengths: `a` and `bc` is not `ab` and `c`.
inline void append_part(std::string_view part, std::string& out) {
  append_length(part.size(), out);
  out += part;
}

// The built keys of a batch, one behind the other in one block that is used again and again. The
// block may move while it grows, so that keys become views only when the batch is done.
class KeyBuffer {
 public:
  void clear() {
    bytes_.clear();
    built_.clear();
  }
  // The end of these bytes is the key that is being built.
  std::string& bytes() { return bytes_; }
  // What was appended since the last key is the key of this record.
  void keep(std::size_t record) {
    const std::size_t begin = begin_of_next();
    built_.push_back({record, begin, bytes_.size()});
  }
  // What was appended since the last key is no key.
  void drop() { bytes_.resize(begin_of_next()); }
  // The batch is done. The views live until the next clear().
  void place(std::span<std::string_view> keys) const {
    for (const Built& key : built_)
      keys[key.record] = std::string_view(bytes_).substr(key.begin, key.end - key.begin);
  }

 private:
  struct Built {
    std::size_t record;
    std::size_t begin;
    std::size_t end;
  };
  std::size_t begin_of_next() const { return built_.empty() ? 0 : built_.back().end; }

  std::string bytes_;
  std::vector<Built> built_;
};

}  // namespace sluice
