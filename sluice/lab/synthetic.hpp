// Synthetic streams of digests: keys without text, for comparisons of filters.
//
// Each stream has an exact number of distinct keys. Whether the next record is new is drawn from
// the remaining numbers of both kinds. The shapes differ in which earlier key a repeat has:
//
//   uniform  any earlier key, with equal chance
//   zipf     the key that came r-th in proportion to 1 / r: few keys make most repeats
//   power    the key that came a keys ago in proportion to 1 / a: recent keys are repeated most
//   bursty   stretches of up to kLongestBurst consecutive keys are replayed, as after a failed
//            delivery; they begin among the last kBurstReach keys
//
// The same options give the same digests on every platform, as in generate.hpp. No memory that
// grows with the stream.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "sluice/base/random.hpp"
#include "sluice/hash/digest.hpp"
#include "sluice/lab/zipf.hpp"

namespace sluice {

enum class StreamShape : std::uint8_t { uniform, zipf, power, bursty };

// Throws BadParameters naming `flag`, with the shapes there are.
StreamShape parse_stream_shape(std::string_view flag, std::string_view text);
std::string_view name_of(StreamShape shape) noexcept;

struct SyntheticOptions {
  StreamShape shape = StreamShape::uniform;
  std::uint64_t records = 1'000'000;  // 1 to 2^40
  double distinct = 0.5;              // share of the records whose key is new; above 0, at most 1
  std::uint64_t seed = 1;
};

class SyntheticStream {
 public:
  static constexpr std::uint64_t kLongestBurst = 1024;
  static constexpr std::uint64_t kBurstReach = std::uint64_t{1} << 16;

  // Throws BadParameters, naming the option as its flag (--distinct).
  explicit SyntheticStream(const SyntheticOptions& options);

  // Fills as much of `out` as records are left and returns how many; 0 means the end.
  std::size_t fill(std::span<Digest> out);

  // How many keys the whole stream has: the share of the records, rounded, and at least one.
  std::uint64_t distinct() const noexcept { return new_left_ + seen_; }

 private:
  bool next_is_new();
  bool burst_begins();
  std::uint64_t earlier();
  std::uint64_t replayed();
  Digest digest_of(std::uint64_t key) const noexcept;

  StreamShape shape_;
  std::uint64_t records_left_;
  std::uint64_t new_left_;
  std::uint64_t seen_ = 0;  // keys so far
  SplitMix64 random_;
  std::uint64_t first_;
  ZipfSampler ranks_;
  std::uint64_t burst_begin_ = 0;
  std::uint64_t burst_next_ = 0;
  std::uint64_t burst_left_ = 0;
};

}  // namespace sluice
