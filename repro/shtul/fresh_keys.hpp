// Age-partitioned filters under streams of fresh keys, and what they say of others.
#pragma once

#include <algorithm>
#include <cmath>
#include <vector>

#include "sluice/base/random.hpp"
#include "sluice/filters/apbf/apbbf.hpp"
#include "sluice/filters/apbf/apbf.hpp"

namespace sluice::repro::shtul {

// A filter whose slices, or blocks, hold `keys` a window or a little more: they are whole cache
// lines, so the window is what they hold.
ApbfParams apbf_of(unsigned k, unsigned l, std::uint64_t keys, unsigned slices = 1);
ApbbfParams apbbf_of(unsigned k, unsigned l, unsigned block, unsigned bits, std::uint64_t keys);

template <class Params>
class FreshKeys {
 public:
  FreshKeys(const Params& params, std::uint64_t seed)
      : filter_(AgePartitioned<Params>::make(params)), random_(seed) {}

  const AgePartitioned<Params>& filter() const { return filter_; }
  AgePartitioned<Params>& filter() { return filter_; }
  std::uint64_t a_generation() const { return filter_.params().generation_keys(); }

  std::vector<Digest> fresh(std::size_t count) {
    std::vector<Digest> digests(count);
    for (Digest& digest : digests) digest = {random_.next(), random_.next()};
    return digests;
  }

  // Writes all of them, as the paper has it, in the present generation.
  void write(std::span<const Digest> keys) {
    verdicts_.resize(keys.size());
    std::uint64_t budget = keys.size();
    filter_.admit(keys, verdicts_, budget, Anchor::refreshed);
  }

  // Fills the present generation.
  void fill() { write(fresh(a_generation())); }

  // So many full generations; the last is not shifted away.
  void run(unsigned count) {
    for (unsigned i = 0; i < count; ++i) {
      if (i > 0) filter_.rotate();
      fill();
    }
  }

  std::uint64_t reported(std::span<const Digest> keys) {
    verdicts_.resize(keys.size());
    filter_.may_contain(keys, verdicts_);
    return static_cast<std::uint64_t>(std::ranges::count(verdicts_, Verdict::duplicate));
  }

  // For that many keys never written.
  std::uint64_t false_positives(std::uint64_t probes) {
    std::uint64_t sum = 0;
    for (std::uint64_t done = 0; done < probes;) {
      const std::size_t count = std::min<std::uint64_t>(1024, probes - done);
      asked_.resize(count);
      for (Digest& digest : asked_) digest = {random_.next(), random_.next()};
      sum += reported(asked_);
      done += count;
    }
    return sum;
  }

 private:
  AgePartitioned<Params> filter_;
  SplitMix64 random_;
  std::vector<Digest> asked_;
  std::vector<Verdict> verdicts_;
};

// An error as a few filters have it just before a shift.
struct MeasuredError {
  double share = 0;
  double tolerance = 0;  // four standard errors and 3 % for the luck of the filters, as a share
};

// `expected` decides how many keys are asked for: so that about `hits` are found, but at most
// `most`.
template <class Params>
MeasuredError measure_error(const Params& params, double expected, double hits, double most,
                            std::uint64_t seed) {
  constexpr unsigned kFilters = 4;
  const auto probes = static_cast<std::uint64_t>(std::clamp(hits / expected, 1e4, most) / kFilters);
  std::uint64_t found = 0;
  SplitMix64 seeds(seed);
  for (unsigned i = 0; i < kFilters; ++i) {
    FreshKeys<Params> stream(params, seeds.next());
    stream.run(params.k + params.l);
    found += stream.false_positives(probes);
  }
  return {static_cast<double>(found) / static_cast<double>(kFilters * probes),
          0.03 + 4 / std::sqrt(std::max<double>(1, static_cast<double>(found)))};
}

// Set bits of each slice, youngest segment first, as a share; after `shifts` shifts of a new
// filter.
std::vector<double> slice_fills(const Apbf& filter, unsigned shifts);

}  // namespace sluice::repro::shtul
