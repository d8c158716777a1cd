// A stretch of what a filter would write: snapshots by pull, and clones.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

#include "sluice/base/codec.hpp"

namespace sluice {

// Of all bytes that are written, keeps those from number `from` on, as many as fit in `out`.
class StretchEncoder final : public Encoder {
 public:
  StretchEncoder(std::uint64_t from, std::span<std::byte> out)
      : from_(from), until_(from + out.size()), out_(out) {}

  void bytes(std::span<const std::byte> data) override {
    if (skip(data.size())) return;
    const std::uint64_t first = std::max(at_, from_);
    const std::uint64_t last = std::min(at_ + data.size(), until_);
    std::copy_n(data.begin() + static_cast<std::ptrdiff_t>(first - at_), last - first,
                out_.begin() + static_cast<std::ptrdiff_t>(first - from_));
    at_ += data.size();
  }

  bool skip(std::uint64_t count) override {
    if (at_ < until_ && at_ + count > from_) return false;
    at_ += count;
    return true;
  }

  // Whether all of the stretch was written.
  bool whole() const { return at_ >= until_; }

 private:
  std::uint64_t at_ = 0;
  std::uint64_t from_, until_;
  std::span<std::byte> out_;
};

}  // namespace sluice
