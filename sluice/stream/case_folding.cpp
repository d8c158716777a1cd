#include "sluice/stream/case_folding.hpp"

#include <algorithm>
#include <cstring>

#include "sluice/stream/case_folding_table.hpp"

namespace sluice {
namespace {

// Eight bytes at a time: most keys are a few words long, shorter than what wider registers pay for.
constexpr std::size_t kWord = sizeof(std::uint64_t);
constexpr std::uint64_t kHighs = 0x8080808080808080;

std::uint64_t load(const char* from) {
  std::uint64_t word;
  std::memcpy(&word, from, kWord);
  return word;
}

constexpr std::uint64_t repeated(std::uint64_t byte) {
  return byte * 0x0101010101010101;
}

// The high bit of each byte that is a capital of ASCII. The sums stay within their bytes, whose high
// bits are cleared first.
std::uint64_t capitals(std::uint64_t word) {
  const std::uint64_t low = word & ~kHighs;
  const std::uint64_t from_a = low + repeated(0x80 - 'A');
  const std::uint64_t past_z = low + repeated(0x7F - 'Z');
  return from_a & ~past_z & ~word & kHighs;
}

char lower(char byte) {
  return byte >= 'A' && byte <= 'Z' ? static_cast<char>(byte + ('a' - 'A')) : byte;
}

// A character of UTF-8 beyond ASCII at the front of a text, and its bytes; no bytes if it is not valid.
struct Character {
  std::uint32_t code = 0;
  std::size_t size = 0;
};

Character first_character(std::string_view text) {
  const auto byte = [text](std::size_t at) {
    return at < text.size() ? static_cast<unsigned char>(text[at]) : 0U;
  };
  const auto follows = [&](std::size_t at) { return (byte(at) & 0xC0) == 0x80; };
  const unsigned lead = byte(0);
  if (lead >= 0xC2 && lead < 0xE0 && follows(1)) return {(lead & 0x1F) << 6 | (byte(1) & 0x3F), 2};
  if (lead >= 0xE0 && lead < 0xF0 && follows(1) && follows(2)) {
    const std::uint32_t code = (lead & 0xF) << 12 | (byte(1) & 0x3F) << 6 | (byte(2) & 0x3F);
    if (code >= 0x800 && (code < 0xD800 || code > 0xDFFF)) return {code, 3};
  }
  if (lead >= 0xF0 && lead < 0xF5 && follows(1) && follows(2) && follows(3)) {
    const std::uint32_t code =
        (lead & 7) << 18 | (byte(1) & 0x3F) << 12 | (byte(2) & 0x3F) << 6 | (byte(3) & 0x3F);
    if (code >= 0x10000 && code <= 0x10FFFF) return {code, 4};
  }
  return {};
}

char* put_character(std::uint32_t code, char* to) {
  const auto put = [&to](std::uint32_t byte) { *to++ = static_cast<char>(byte); };
  if (code < 0x80) {
    put(code);
  } else if (code < 0x800) {
    put(0xC0 | code >> 6);
    put(0x80 | (code & 0x3F));
  } else if (code < 0x10000) {
    put(0xE0 | code >> 12);
    put(0x80 | (code >> 6 & 0x3F));
    put(0x80 | (code & 0x3F));
  } else {
    put(0xF0 | code >> 18);
    put(0x80 | (code >> 12 & 0x3F));
    put(0x80 | (code >> 6 & 0x3F));
    put(0x80 | (code & 0x3F));
  }
  return to;
}

}  // namespace

bool may_fold(std::string_view text) noexcept {
  std::size_t at = 0;
  for (; at + kWord <= text.size(); at += kWord) {
    const std::uint64_t word = load(text.data() + at);
    if (((word & kHighs) | capitals(word)) != 0) return true;
  }
  return std::any_of(text.begin() + static_cast<std::ptrdiff_t>(at), text.end(), [](char byte) {
    return static_cast<unsigned char>(byte) >= 0x80 || lower(byte) != byte;
  });
}

bool is_ascii(std::string_view text) noexcept {
  std::size_t at = 0;
  for (; at + kWord <= text.size(); at += kWord)
    if ((load(text.data() + at) & kHighs) != 0) return false;
  return std::none_of(text.begin() + static_cast<std::ptrdiff_t>(at), text.end(),
                      [](char byte) { return static_cast<unsigned char>(byte) >= 0x80; });
}

std::uint32_t folded(std::uint32_t code) noexcept {
  if (code < 0x80) return static_cast<unsigned char>(lower(static_cast<char>(code)));
  const auto after = std::ranges::upper_bound(kFoldRanges, code, {}, &FoldRange::first);
  if (after == kFoldRanges.begin()) return code;
  const FoldRange& range = *(after - 1);
  if (code > range.last || (code - range.first) % range.step != 0) return code;
  return static_cast<std::uint32_t>(static_cast<std::int64_t>(code) + range.distance);
}

char* fold_case(std::string_view text, char* to) noexcept {
  while (!text.empty()) {
    if (text.size() >= kWord) {
      std::uint64_t word = load(text.data());
      if ((word & kHighs) == 0) {
        word |= capitals(word) >> 2;  // 'a' - 'A' is a quarter of the high bit
        std::memcpy(to, &word, kWord);
        to += kWord;
        text.remove_prefix(kWord);
        continue;
      }
    }
    if (static_cast<unsigned char>(text.front()) < 0x80) {
      *to++ = lower(text.front());
      text.remove_prefix(1);
      continue;
    }
    const Character character = first_character(text);
    if (character.size == 0) {
      *to++ = text.front();
      text.remove_prefix(1);
      continue;
    }
    to = put_character(folded(character.code), to);
    text.remove_prefix(character.size);
  }
  return to;
}

}  // namespace sluice
