// Randomness as a value: generators are seeded by the caller, and only `system_entropy` asks the
// operating system.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace sluice {

// SplitMix64 (Steele, Lea & Flood 2014): one add and one mix per word; every seed is good, and the
// state is one word. For streams, tests and secrets derived from --seed; not for cryptography.
class SplitMix64 {
 public:
  explicit constexpr SplitMix64(std::uint64_t seed) noexcept : state_(seed) {}

  constexpr std::uint64_t next() noexcept {
    state_ += 0x9E3779B97F4A7C15ULL;
    std::uint64_t z = state_;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ULL;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBULL;
    return z ^ (z >> 31);
  }

  // Uniform in [0, 1) with 53 random bits.
  constexpr double next_unit() noexcept { return static_cast<double>(next() >> 11) * 0x1.0p-53; }

  constexpr std::uint64_t state() const noexcept { return state_; }

 private:
  std::uint64_t state_;
};

// Fills `out` from the kernel's generator. Throws IoError when there is none.
void system_entropy(std::span<std::byte> out);

}  // namespace sluice
