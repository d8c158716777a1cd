#include "sluice/count/timeline.hpp"

#include <algorithm>
#include <array>
#include <cmath>

namespace sluice {
namespace {

constexpr std::int64_t kMillisecond = 1'000'000, kSecond = 1000 * kMillisecond,
                       kMinute = 60 * kSecond, kHour = 60 * kMinute, kDay = 24 * kHour;
constexpr std::array kTimes = {
    kMillisecond, 10 * kMillisecond, 100 * kMillisecond, kSecond,      5 * kSecond,
    15 * kSecond, kMinute,           5 * kMinute,        15 * kMinute, kHour,
    3 * kHour,    6 * kHour,         12 * kHour,         kDay};
// Records with a time far from the others: at most this share, on both sides together.
constexpr std::uint64_t kFarShare = 500;
// They are far away if the rest takes less than this share of the whole span.
constexpr std::int64_t kFarSpan = 10;

}  // namespace

Estimate Timeline::Point::duplicate_share() const noexcept {
  if (records == 0) return {};
  const auto all = static_cast<double>(records);
  return {std::clamp(1 - distinct / all, 0.0, 1.0),
          std::sqrt(variance + kUnseenCases * one_in * (one_in - 1)) / all};
}

void Timeline::Point::add(const Point& other) noexcept {
  records += other.records;
  distinct += other.distinct;
  variance += other.variance;
  one_in = std::max(one_in, other.one_in);
}

std::int64_t Timeline::length_of(Axis axis, unsigned step) {
  if (axis == Axis::time) {
    if (step < kTimes.size()) return kTimes[step];
    return kTimes.back() << std::min<std::size_t>(step - kTimes.size() + 1, 16);
  }
  std::int64_t length = 1;
  for (unsigned i = 0; i < std::min(step, 34U); ++i) length *= i % 2 == 0 ? 2 : 5;
  return length;
}

std::int64_t Timeline::begin_of(std::int64_t position, std::int64_t length) noexcept {
  const std::int64_t past = position % length;
  return position - (past < 0 ? past + length : past);
}

void Timeline::find(std::int64_t position) {
  begin_ = begin_of(position, length_);
  if (points_.size() == kMost && !points_.contains(begin_)) {
    coarsen();
    begin_ = begin_of(position, length_);
  }
  current_ = &points_[begin_];
  current_->begin = begin_;
}

// The longest stretches are longer than the range of times divided by kMost: this ends.
void Timeline::coarsen() {
  while (points_.size() >= kMost) {
    length_ = length_of(axis_, ++step_);
    std::unordered_map<std::int64_t, Point> merged;
    for (const auto& [begin, point] : points_) {
      Point& to = merged[begin_of(begin, length_)];
      to.begin = begin_of(begin, length_);
      to.add(point);
    }
    points_ = std::move(merged);
  }
}

std::vector<Timeline::Point> Timeline::sorted() const {
  std::vector<Point> points;
  for (const auto& [begin, point] : points_) points.push_back(point);
  std::ranges::sort(points, {}, &Point::begin);
  return points;
}

Timeline::Range Timeline::range_of(const std::vector<Point>& sorted) const {
  const Range all{sorted.front().begin, sorted.back().begin, 0};
  std::uint64_t records = 0;
  for (const Point& point : sorted) records += point.records;
  // From each side, as many as are half of those that may be left out.
  std::uint64_t before = 0, after = 0;
  std::size_t first = 0, last = sorted.size() - 1;
  while (before + sorted[first].records <= records / kFarShare / 2)
    before += sorted[first++].records;
  while (after + sorted[last].records <= records / kFarShare / 2) after += sorted[last--].records;
  const std::int64_t span = sorted[last].begin - sorted[first].begin + length_;
  if (span / length_ >= ((all.last - all.first) / length_ + 1) / kFarSpan) return all;
  // What is nearer to the rest than that is long belongs to it.
  while (first > 0 && sorted[first].begin - sorted[first - 1].begin <= span)
    before -= sorted[--first].records;
  while (last + 1 < sorted.size() && sorted[last + 1].begin - sorted[last].begin <= span)
    after -= sorted[++last].records;
  return {sorted[first].begin, sorted[last].begin, before + after};
}

Timeline::Points Timeline::points(std::size_t most) const {
  if (points_.empty()) return {};
  const std::vector<Point> all = sorted();
  const Range range = range_of(all);
  Points result{.length = length_, .outside = range.outside};
  const auto stretches = [&] {
    return (begin_of(range.last, result.length) - begin_of(range.first, result.length)) /
               result.length +
           1;
  };
  for (unsigned step = step_; stretches() > static_cast<std::int64_t>(most);)
    result.length = length_of(axis_, ++step);
  const std::int64_t first = begin_of(range.first, result.length);
  result.points.resize(static_cast<std::size_t>(stretches()));
  for (std::size_t i = 0; i < result.points.size(); ++i)
    result.points[i].begin = first + static_cast<std::int64_t>(i) * result.length;
  for (const Point& point : all) {
    if (point.begin < range.first || point.begin > range.last) continue;
    Point& to = result.points[static_cast<std::size_t>((point.begin - first) / result.length)];
    to.add(point);
  }
  return result;
}

std::int64_t Timeline::span() const {
  if (points_.empty()) return 0;
  const Range range = range_of(sorted());
  return range.last - range.first + length_;
}

}  // namespace sluice
