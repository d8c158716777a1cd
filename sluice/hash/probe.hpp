// Where a key's probes fall: part of the snapshot format of every filter of scattered bits, cells
// or counters.
#pragma once

#include "sluice/base/bits.hpp"
#include "sluice/hash/digest.hpp"

namespace sluice {

// A uniform word for probe i of a digest: one fold-multiply.
constexpr std::uint64_t probe_word(const Digest& digest, unsigned probe) noexcept {
  return fold_multiply(digest.lo + probe * 0x9E3779B97F4A7C15ULL,
                       digest.hi ^ 0xD6E8FEB86659FD93ULL);
}

// Probe i of a digest, in [0, range).
constexpr std::uint64_t probe_position(const Digest& digest, unsigned probe,
                                       std::uint64_t range) noexcept {
  return scale_to(probe_word(digest, probe), range);
}

// The probe words of one key, each computed once and only when needed: filters of any size scale
// the same words.
class ProbeWords {
 public:
  static constexpr unsigned kMost = 64;

  ProbeWords() noexcept = default;
  explicit ProbeWords(const Digest& digest) noexcept : digest_(digest) {}
  void start(const Digest& digest) noexcept {
    digest_ = digest;
    ready_ = 0;
  }
  // A key that is new is usually recognized after one or two probes.
  std::uint64_t operator[](unsigned probe) noexcept {
    while (probe >= ready_) {
      for (unsigned i = ready_; i < ready_ + kStep; ++i) words_[i] = probe_word(digest_, i);
      ready_ += kStep;
    }
    return words_[probe];
  }

 private:
  static constexpr unsigned kStep = 4;

  Digest digest_;
  unsigned ready_ = 0;
  std::uint64_t words_[kMost];
};

}  // namespace sluice
