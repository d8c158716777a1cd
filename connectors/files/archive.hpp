// Files whose bytes are not records: archives, binary tables, and compressed files that we do not unpack
// (packing.hpp has those that we do). Their first bytes tell them.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace sluice {

struct Archive {
  std::string_view signature;  // its first bytes; '?' stands for any byte
  std::string_view is;         // "is compressed with xz": for messages
  std::string_view command;    // writes the contents to standard output; empty: there is none
  std::string_view does = "unpack";
};

// So many bytes are enough to tell all of them.
inline constexpr std::size_t kArchiveBytes = 512;

// What a file with these first bytes is; null if they may be records.
const Archive* archive_of(std::string_view first_bytes) noexcept;

// Whether that, or how they are packed, depends on bytes that are still to come. Never when these hold the end of a record,
// which must not wait.
bool is_archive_start(std::string_view first_bytes) noexcept;

// Why it is not read, and what to do. `file` is empty for standard input; `insist`: the user may say
// that the bytes are records.
std::string refusal_of(const Archive& archive, const std::string& file, bool insist);

}  // namespace sluice
