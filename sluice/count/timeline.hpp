// Records and distinct keys over a stream, by record number or by time, in bounded memory.
//
// Stretches that nothing falls into take no memory, so that a few wild times do not coarsen the rest. When
// more than kMost stretches are in use, they become longer: each length is a multiple of the one before
// (1, 2, 10, 20, ... records; 1 ms to 1 s, 5 s, 15 s, 1 min, ... 1 d, 2 d, 4 d, ... of time).
//
// Cost     a record in the same stretch as the one before costs a comparison; another one, a search.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "sluice/count/key_sample.hpp"

namespace sluice {

class Timeline {
 public:
  enum class Axis : std::uint8_t { records, time };
  static constexpr std::size_t kMost = 4096;

  struct Point {
    std::int64_t begin = 0;  // of the stretch
    std::uint64_t records = 0;
    double distinct = 0;
    double variance = 0;  // of `distinct`: N (N - 1) for each key that counts as N
    double one_in = 1;    // one key in so many was counted, at the end of the stretch
    // From 0 to 1, although an estimate of the distinct ones may be too high.
    Estimate duplicate_share() const noexcept;
    void add(const Point& other) noexcept;
  };
  struct Points {
    std::vector<Point> points = {};  // side by side; some may have no records
    std::int64_t length = 0;         // of each
    std::uint64_t outside = 0;       // records with times far from all others
  };

  explicit Timeline(Axis axis) : axis_(axis), length_(length_of(axis, 0)) {}

  // A record at this place, within ±2^61, which counts as `distinct` new keys while one key in `one_in` is
  // counted.
  void add(std::int64_t position, double distinct, double one_in = 1) {
    if (current_ == nullptr || position < begin_ || position - begin_ >= length_) find(position);
    ++current_->records;
    current_->distinct += distinct;
    current_->variance += distinct * (distinct - 1);
    current_->one_in = one_in;
  }

  // At most `most` of them, which is 2 or more, over all records, or over all but 1 in 500 of them if these few are far
  // away from the rest.
  Points points(std::size_t most) const;
  // From the first record to the last, leaving out the same.
  std::int64_t span() const;
  Axis axis() const noexcept { return axis_; }

 private:
  struct Range {
    std::int64_t first = 0, last = 0;  // stretches
    std::uint64_t outside = 0;
  };
  static std::int64_t length_of(Axis axis, unsigned step);
  static std::int64_t begin_of(std::int64_t position, std::int64_t length) noexcept;
  void find(std::int64_t position);
  void coarsen();
  std::vector<Point> sorted() const;
  Range range_of(const std::vector<Point>& sorted) const;

  Axis axis_;
  unsigned step_ = 0;
  std::int64_t length_;
  std::unordered_map<std::int64_t, Point> points_;
  Point* current_ = nullptr;  // of the last record
  std::int64_t begin_ = 0;    // of that one
};

}  // namespace sluice
