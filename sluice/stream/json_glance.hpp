// Reads the members of one JSON object where that is easy, and says so where it is not.
//
// Most records are short objects without escapes. Of those the members that make a key are found,
// and all the rest is checked, from the places of quotes and digits alone: no tree is built, and no
// string or number that is not wanted is touched. Anything else (escapes, tabs between tokens,
// text that is not UTF-8, long or deep documents, errors) is left to a full parser; what is
// accepted here is accepted by it, with the same values.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>

#include "sluice/kernels/marks.hpp"

namespace sluice {

// Longer documents go to simdjson, which has less to do a byte.
inline constexpr std::size_t kGlanceMostBytes = 1024;

// The name of a member that is looked for.
class GlanceName {
 public:
  explicit GlanceName(std::string name);
  // `other` is followed by 8 bytes that may be read.
  [[gnu::always_inline]] bool is(std::string_view other) const noexcept {
    std::uint64_t head;
    std::memcpy(&head, other.data(), sizeof head);
    if (other.size() != size_ || ((head ^ head_) & mask_) != 0) return false;
    return size_ <= sizeof head || other == name_;
  }

 private:
  std::uint64_t head_ = 0, mask_ = 0;  // its first 8 bytes, and which there are
  std::size_t size_;
  std::string name_;
};

// False: ask a full parser. True: `text` is one valid JSON object, and values[i] is the text of the
// first of its members that is named names[i], as written, or empty when there is none. `text` is
// followed by kPaddingBytes that may be read. `mark` is json_marker().
bool glance_at_json(MarkJson mark, std::string_view text, std::span<const GlanceName> names,
                    std::span<std::string_view> values) noexcept;

}  // namespace sluice
