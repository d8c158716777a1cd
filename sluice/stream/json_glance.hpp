// A fast reader of the members of one JSON object. It handles the easy cases and reports all
// others.
//
// Most records are short objects without escapes. In these it finds the members of a key and checks
// all the rest from the positions of quotes and digits alone: it builds no tree and touches no
// string or number that is not needed. Most records also have the same members as the previous one:
// then the text between the values is compared with the previous record's, not parsed again.
//
// Anything else (escapes, tabs between tokens, text that is not UTF-8, long or deep documents,
// errors) is left to a full parser; what is accepted here is accepted by it, with the same values.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sluice/kernels/marks.hpp"

namespace sluice {

// Longer documents go to simdjson, which needs less work per byte.
inline constexpr std::size_t kGlanceMostBytes = 1024;

struct GlanceMarks;

// A few bytes that can be compared at once.
class ShortText {
 public:
  static constexpr std::size_t kMostBytes = 32;
  ShortText() = default;
  // Of longer texts only the beginning is kept.
  explicit ShortText(std::string_view text) noexcept;
  std::size_t size() const noexcept { return size_; }
  // Whether `bytes` begin with this text; kMostBytes of them may be read.
  bool begins(const char* bytes) const noexcept;

 private:
  std::array<std::uint64_t, kMostBytes / 8> words_ = {}, masks_ = {};
  std::size_t size_ = 0;
};

class JsonGlance {
 public:
  // What is looked for.
  explicit JsonGlance(std::vector<std::string> names);
  // Before each batch: chooses the instruction set.
  void start() noexcept { mark_ = json_marker(); }
  // False: ask a full parser. True: `text` is one valid JSON object, and values[i] is the text of
  // the first of its members that has the i-th name, as written, or empty when there is none.
  // `text` is followed by kPaddingBytes that may be read.
  bool read(std::string_view text, std::span<std::string_view> values) noexcept;

 private:
  static constexpr std::size_t kMostMembers = 16;
  static constexpr std::size_t kUnwanted = static_cast<std::size_t>(-1);
  // A member of the previous object.
  struct Member {
    ShortText before;  // the text between the previous value and this one, with its opening quote
    std::size_t quote = 0;  // position of the name's quote in it
    bool string = false;
    std::size_t wanted = kUnwanted;  // which of the names
  };

  bool follow(const GlanceMarks& marks, std::span<std::string_view> values) const noexcept;
  bool walk(const GlanceMarks& marks, std::span<std::string_view> values) noexcept;
  bool walk_members(const GlanceMarks& marks, std::span<std::string_view> values) noexcept;
  void learn(std::string_view before, std::string_view value, std::size_t wanted) noexcept;

  std::vector<std::string> names_;
  bool unique_;  // all names differ: a member has only one place to go to
  MarkJson mark_;
  std::array<Member, kMostMembers> shape_;  // of the previous object
  std::size_t members_ = 0;                 // 0: cannot be compared with it
  bool learning_ = false;
  ShortText tail_;
};

}  // namespace sluice
