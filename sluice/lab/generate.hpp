// Synthetic streams whose truth is known: demonstrations, benchmarks and tests read them.
//
// The same options give the same bytes on every platform: all randomness is SplitMix64 from the
// seed, and floating point is used only where IEEE 754 fixes the result (the four
// operations, comparison, square root; no pow, log or exp). Changing the bytes a seed gives breaks
// recorded results: the tests pin a checksum.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

namespace sluice {

// Clicks on advertisements as NDJSON:
//   {"user":"u48213","ad":"a173","time":1700000000123,"value":0.37}
// The key is (user, ad). A repeat has the user, ad and value of an earlier record and a later time;
// it repeats one of the last kClickMemory distinct pairs, more likely a recent one (the chance is
// proportional to one over the age). Some ads are seen by many users: each user's n-th new ad has a
// number of about n. Memory: 8 bytes per user (touched ones only) and 16 bytes for each of
// kClickMemory pairs.
inline constexpr std::size_t kClickMemory = std::size_t{1} << 18;

struct ClickOptions {
  std::uint64_t records = 1'000'000;
  double duplicates = 1.0 / 3;    // share of the well-formed records that repeat an earlier pair
  double malformed = 0.001;       // share of all records that have no key: cut off, not JSON, or
                                  // without user or ad
  double skew = 1.0;              // the user of rank r clicks in proportion to 1 / r^skew; 0 to 4
  std::uint64_t users = 100'000;  // 1 to 100 million
  std::uint64_t seed = 1;
};

// Lines "evt-<16 hex digits>,<hex digits>" of one exact length. A repeat is equally likely to be
// any earlier line, however long ago. The line is a function of its number: no memory.
struct LineOptions {
  std::uint64_t records = 1'000'000;
  double duplicates = 0.3;  // share of the lines that repeat an earlier one
  std::size_t length = 40;  // bytes without the newline; kLineLengthLeast to kLineLengthMost
  std::uint64_t seed = 1;
};
// "evt-" and the 16 digits that tell lines apart.
inline constexpr std::size_t kLineLengthLeast = 20;
inline constexpr std::size_t kLineLengthMost = std::size_t{1} << 20;

// records == distinct + duplicates + malformed. Exact, not estimates.
struct GenerateCounts {
  std::uint64_t records = 0;
  std::uint64_t distinct = 0;
  std::uint64_t duplicates = 0;
  std::uint64_t malformed = 0;
  std::uint64_t bytes = 0;
};

class Generator {
 public:
  virtual ~Generator() = default;
  // Writes as many whole records as are left and fit, each with its newline, and returns their
  // bytes; 0 means the stream has ended. `out` has room for at least largest_record() bytes.
  virtual std::size_t fill(std::span<char> out) = 0;
  virtual std::size_t largest_record() const noexcept = 0;
  // What has been written so far.
  const GenerateCounts& counts() const noexcept { return counts_; }

 protected:
  GenerateCounts counts_;
};

// Both throw BadParameters when an option is out of its range, naming it as its flag (--skew).
std::unique_ptr<Generator> make_generator(const ClickOptions& options);
std::unique_ptr<Generator> make_generator(const LineOptions& options);

}  // namespace sluice
