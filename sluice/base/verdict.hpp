// The verdict on an event: one byte, also in batches.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

namespace sluice {

// `distinct`: let it through. `duplicate`: hold it back. `pending`: somebody is delivering an event
// of this key; wait for the outcome. Only a Judge with claims returns it, never a filter. One byte,
// so that a batch of verdicts is a plain array which SIMD code can write.
enum class Verdict : std::uint8_t { distinct = 0, duplicate = 1, pending = 2 };

// Counts the duplicates. It adds them up in bytes, which compilers turn into vector code.
inline std::size_t count_duplicates(std::span<const Verdict> verdicts) noexcept {
  constexpr std::size_t kTogether = 192;  // fit a byte
  std::size_t duplicates = 0;
  while (!verdicts.empty()) {
    const auto part = verdicts.first(std::min(kTogether, verdicts.size()));
    std::uint8_t sum = 0;
    for (const Verdict verdict : part)
      sum = static_cast<std::uint8_t>(sum + (static_cast<std::uint8_t>(verdict) & 1));
    duplicates += sum;
    verdicts = verdicts.subspan(part.size());
  }
  return duplicates;
}

}  // namespace sluice
