// A bounded number of keys on their way into a filter, and the bytes of those that have none of
// their own.
#pragma once

#include <cstddef>
#include <cstring>
#include <memory>
#include <string_view>
#include <vector>

namespace sluice::python {

// Bytes that stay where they are until clear().
class Arena {
 public:
  // Where up to `most` bytes can be written; pass their end to keep().
  char* room(std::size_t most) {
    if (static_cast<std::size_t>(end_ - next_) < most) grow(most);
    return next_;
  }
  void keep(const char* end) noexcept {
    used_ += static_cast<std::size_t>(end - next_);
    next_ += end - next_;
  }
  std::size_t used() const noexcept { return used_; }
  void clear() {
    // One block of the usual size is kept: a long key must not stay in memory.
    if (blocks_.size() > 1 || first_ > kBlock) {
      blocks_.clear();
      next_ = end_ = nullptr;
    } else if (!blocks_.empty()) {
      next_ = blocks_.front().get();
    }
    used_ = 0;
  }

 private:
  static constexpr std::size_t kBlock = std::size_t{1} << 20;

  void grow(std::size_t most) {
    const std::size_t size = most > kBlock ? most : kBlock;
    blocks_.push_back(std::make_unique_for_overwrite<char[]>(size));
    if (blocks_.size() == 1) first_ = size;
    next_ = blocks_.back().get();
    end_ = next_ + size;
  }

  std::vector<std::unique_ptr<char[]>> blocks_;
  std::size_t first_ = 0;  // bytes of the first block
  char* next_ = nullptr;
  char* end_ = nullptr;
  std::size_t used_ = 0;
};

struct Slice {
  // Keys that are gathered before they are judged. Their views and 16 bytes for each fit the
  // second-level cache, and the GIL is taken rarely enough not to matter.
  static constexpr std::size_t kMost = 16384;
  // A slice of long keys ends earlier.
  static constexpr std::size_t kMostBytes = std::size_t{4} << 20;

  std::vector<std::string_view> keys = std::vector<std::string_view>(kMost);
  Arena arena;
  std::size_t missing = 0;  // rows without a key: these have no data() at all

  void clear() {
    arena.clear();
    missing = 0;
  }
  void put_missing(std::size_t at) noexcept {
    keys[at] = {};
    ++missing;
  }
  // Copies of keys of about 16 bytes, the most common length, without a call.
  void put_copy(std::size_t at, const char* data, std::size_t size) {
    char* const to = arena.room(size + 1);  // a key of no bytes has a place, too
    if (size >= 8 && size <= 16) {
      std::memcpy(to, data, 8);
      std::memcpy(to + size - 8, data + size - 8, 8);
    } else {
      std::memcpy(to, data, size);
    }
    arena.keep(to + size + (size == 0 ? 1 : 0));
    keys[at] = {to, size};
  }
  // A key that lives longer than the slice.
  void put_view(std::size_t at, const char* data, std::size_t size) noexcept {
    keys[at] = {size == 0 ? "" : data, size};
  }
};

}  // namespace sluice::python
