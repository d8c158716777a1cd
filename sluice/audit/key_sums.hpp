// What an audit counts per sampled key, and error rates of all keys estimated from it.
//
// Keys are what is sampled, so keys are what is independent: the events of one key are not. The
// intervals therefore come from sums over keys, each key being one draw however many events it has
// (the variance of a ratio clustered by key).
//
// A stream may have a few keys with most of its duplicates, and a sample has none of them, most
// likely. That would spoil a rate per sampled event. But verdicts are counted over all keys, at no
// cost: `Totals`. All that is estimated from the sample are the differences between verdicts and
// truth, which no key has many of:
//
//   duplicates held back = all records held back - lost records and undecided ones (sampled)
//   duplicates passed    = sampled ones × N, corrected by how many records were let through: all,
//                          against those of the sample × N. The weight of the correction is that
//                          of least variance.
#pragma once

#include <array>
#include <cstdint>

#include "sluice/audit/rate.hpp"

namespace sluice {

// Fractions, since each halving of the sample halves them. A float is exact up to 2^24, and a key
// with more events stays there: in both of two numbers that are subtracted.
struct KeyCounts {
  static constexpr float kMost = 0x1p24;

  float distinct = 0;    // events that were, and of those:
  float lost = 0;        //   held back
  float duplicates = 0;  // events that were, and of those:
  float passed = 0;      //   let through
  // Verdicts, decided or not, while all keys were known: the part of Totals of this key.
  float let_through = 0;
  float held = 0;

  void add(const KeyCounts& other) noexcept;
  void halve() noexcept;
};

// Verdicts over all keys, while all keys were known.
struct Totals {
  double let_through = 0;
  double held = 0;
};

// Sums over sampled keys: of their counts, and of products of two counts of one key.
class KeySums {
 public:
  static constexpr std::size_t kNumbers = 17;

  void add(const KeyCounts& key) noexcept;
  // For a sample of half the size: the keys so far get half the weight.
  void halve() noexcept;

  // False positives among distinct events, and false negatives among duplicates: of all keys, from
  // a sample of one in `sample`.
  Rate positives(double sample) const noexcept;
  Rate negatives(double sample, const Totals& totals) const noexcept;

  const std::array<double, kNumbers>& numbers() const noexcept { return sums_; }
  void set_numbers(const std::array<double, kNumbers>& numbers) noexcept { sums_ = numbers; }
  // Whether such numbers can come from counts. If so, they still can after any add() of counts that
  // are at most KeyCounts::kMost, and after halve().
  bool plausible() const noexcept;

 private:
  std::array<double, kNumbers> sums_{};
};

}  // namespace sluice
