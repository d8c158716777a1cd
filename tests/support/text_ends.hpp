// The two ends of a pipeline in memory: a text to read, and what was written.
#pragma once

#include <algorithm>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sluice/stream/io.hpp"

namespace sluice::testing_support {

// Gives a text in reads of the sizes named, over and over, or of one size. 0 as a size means that
// nothing is there yet.
class TextSource final : public ByteSource {
 public:
  TextSource(std::string text, std::vector<std::size_t> sizes)
      : text_(std::move(text)), sizes_(std::move(sizes)) {}
  TextSource(std::string text, std::size_t size)
      : TextSource(std::move(text), std::vector<std::size_t>{size}) {}

  std::size_t read(std::span<char> into) override {
    if (before_read) before_read(reads_);
    const std::size_t size = sizes_.empty() ? into.size() : std::max<std::size_t>(1, next_size());
    ++reads_;
    const std::size_t got = std::min({size, into.size(), text_.size() - at_});
    std::copy_n(text_.begin() + static_cast<std::ptrdiff_t>(at_), got, into.begin());
    at_ += got;
    return got;
  }
  bool would_wait() override {
    if (waits_every > 0) return reads_ % waits_every == waits_every - 1;
    return !sizes_.empty() && next_size() == 0;
  }
  bool wait() override {
    if (in_wait) in_wait(std::string_view(text_).substr(0, at_));
    return true;
  }
  const std::string& name() const override { return name_; }

  std::function<void(std::size_t reads_before)> before_read;
  std::function<void(std::string_view given)> in_wait;
  std::size_t waits_every = 0;  // a wait after this many reads; 0: none

 private:
  std::size_t next_size() const { return sizes_[reads_ % sizes_.size()]; }

  std::string text_, name_ = "input";
  std::vector<std::size_t> sizes_;
  std::size_t reads_ = 0;
  std::size_t at_ = 0;
};

class TextSink final : public ByteSink {
 public:
  void write(std::string_view bytes) override {
    if (before_write) before_write(text.size());
    text += bytes;
    ++writes;
  }

  std::string text;
  int writes = 0;
  std::function<void(std::size_t bytes_before)> before_write;
};

}  // namespace sluice::testing_support
