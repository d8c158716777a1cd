// Reads the members of one JSON object where that is easy, and says so where it is not.
//
// Most records are short objects without escapes. Of those the members that make a key are found,
// and all the rest is checked, from the places of quotes and digits alone: no tree is built, and no
// string or number that is not wanted is touched. And most records have the same members as the one
// before: what stands between the values is then compared with what stood there, not read again.
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

// Longer documents go to simdjson, which has less to do a byte.
inline constexpr std::size_t kGlanceMostBytes = 1024;

struct GlanceMarks;

// A few bytes that can be compared at once.
class ShortText {
 public:
  static constexpr std::size_t kMostBytes = 32;
  ShortText() = default;
  // Of longer ones only the beginning.
  explicit ShortText(std::string_view text) noexcept;
  std::size_t size() const noexcept { return size_; }
  // Whether `bytes` begin so; kMostBytes of them may be read.
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
  // A member of the object before.
  struct Member {
    ShortText before;       // all from the value before up to this one, and its opening quote
    std::size_t quote = 0;  // where in that the name's quote is
    bool string = false;
    std::size_t wanted = kUnwanted;  // which of the names
  };

  bool follow(const GlanceMarks& marks, std::span<std::string_view> values) const noexcept;
  bool walk(const GlanceMarks& marks, std::span<std::string_view> values) noexcept;
  bool walk_members(const GlanceMarks& marks, std::span<std::string_view> values) noexcept;
  void learn(std::string_view before, std::string_view value, std::size_t wanted) noexcept;

  std::vector<std::string> names_;
  bool unique_;  // no name is there twice: a member has one place to go to
  MarkJson mark_;
  std::array<Member, kMostMembers> shape_;  // of the object before
  std::size_t members_ = 0;                 // none: it cannot be followed
  bool learning_ = false;
  ShortText tail_;
};

}  // namespace sluice
