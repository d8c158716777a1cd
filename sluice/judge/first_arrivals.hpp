// How many keys came for the first time: for filters that forget, where a key that is let through
// need not be new.
//
// Source   HyperLogLog (Flajolet et al. 2007) with the estimate of Cohen 2015 and Ting 2014: a key
//          that changes a register is surely new, and counts as 1/q, where q was the chance that a
//          new key changes one. Counts can be taken at any time, and add up.
// Cost     a key: one byte of 4 KiB is read.
// Errors   The count is right on average; its standard error is 1.3 %.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <span>
#include <vector>

#include "sluice/hash/digest.hpp"

namespace sluice {

class FirstArrivals {
 public:
  FirstArrivals() : registers_(kRegisters, 0) {}

  // About how many of these keys were never counted before.
  double count(std::span<const Digest> digests) noexcept {
    double fresh = 0;
    for (const Digest& digest : digests) {
      std::uint8_t& known = registers_[digest.lo % kRegisters];
      const auto zeros = static_cast<std::uint8_t>(std::countl_zero(digest.hi) + 1);
      if (zeros <= known) [[likely]]
        continue;
      fresh += 1 / change_;
      change_ -= (std::ldexp(1.0, -known) - std::ldexp(1.0, -zeros)) / kRegisters;
      known = zeros;
    }
    return fresh;
  }

  std::uint64_t bytes() const noexcept { return registers_.size(); }

 private:
  static constexpr std::size_t kRegisters = 4096;

  std::vector<std::uint8_t> registers_;  // the most leading zeros of its keys, and one
  double change_ = 1;                    // chance that a new key changes a register
};

}  // namespace sluice
