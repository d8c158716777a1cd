// Posteriors by the age of a cohort's slot, for a batch of keys: with the anchor `delivered` the
// age is all that a slot shows, and there are few ages. What is left for a key is a division, and
// with one prior and one pair of costs for all nothing but a look into a table of verdicts.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "sluice/infer/age_reader.hpp"
#include "sluice/infer/costs.hpp"
#include "sluice/infer/prior.hpp"

namespace sluice {

class AgePosteriors {
 public:
  static constexpr std::size_t kMostAges = 66;  // of 64 generations, the present one, and none

  // For the filter as it is now.
  void prepare(const Cohort& filter, const CohortReader& reader, const Pace& pace) noexcept;

  // What is not remembered is outside of any window.
  std::size_t place(std::uint8_t age) const noexcept {
    return age < ages_ ? std::size_t{age} : ages_;
  }
  // `tail` is the weight of ages that the filter no longer holds (PosteriorCache::tail).
  double within(std::size_t place, double tail) const noexcept {
    return inside_[place] / (length_[place] + beyond_[place] * tail);
  }

  // With one prior and one pair of costs.
  void judge_all(const Prior& prior, const Costs& costs, double tail) noexcept;
  const Judgement& judgement(std::size_t place) const noexcept { return judgements_[place]; }
  std::size_t places() const noexcept { return ages_ + 1; }

 private:
  std::size_t ages_ = 0;
  std::array<double, kMostAges> inside_{}, length_{}, beyond_{};
  std::array<Judgement, kMostAges> judgements_{};
};

}  // namespace sluice
