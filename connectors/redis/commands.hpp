// Commands as servers read them: each is an array of texts, one after the other in one buffer, so
// that a batch is one write and no command an allocation.
#pragma once

#include <fmt/format.h>

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

namespace sluice::redis {

class Commands {
 public:
  // Begins a command of that many words, which follow.
  void begin(std::size_t words) {
    starts_.push_back(text_.size());
    fmt::format_to(std::back_inserter(text_), FMT_STRING("*{}\r\n"), words);
  }
  void word(std::string_view word) {
    fmt::format_to(std::back_inserter(text_), FMT_STRING("${}\r\n"), word.size());
    text_ += word;
    text_ += "\r\n";
  }
  // Words as begin() and word() would make them, ready.
  void raw(std::string_view text) { text_ += text; }

  void add(std::initializer_list<std::string_view> words) {
    begin(words.size());
    for (const std::string_view each : words) word(each);
  }

  std::size_t size() const noexcept { return starts_.size(); }
  std::string_view operator[](std::size_t i) const noexcept {
    const std::size_t end = i + 1 < starts_.size() ? starts_[i + 1] : text_.size();
    return std::string_view(text_).substr(starts_[i], end - starts_[i]);
  }
  void clear() noexcept {
    text_.clear();
    starts_.clear();
  }

 private:
  std::string text_;
  std::vector<std::size_t> starts_;
};

}  // namespace sluice::redis
