#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <mutex>
#include <numbers>

#include "sluice/model/apbf.hpp"
#include "sluice/model/bloom.hpp"
#include "sluice/model/column_errors.hpp"

namespace sluice::model {

double block_capacity(const BlockShape& shape) {
  return std::numbers::ln2 / -std::log1p(-1 / shape.lane());
}

double block_match(const BlockShape& shape, double mean) {
  return uneven_fpr(mean, shape.lane(), shape.bits);
}

// E[(1 − q^X)^bits] by inclusion and exclusion, where E[z^X] = (1 − (1 − z) / blocks)^keys. What is
// left of the terms below the limit would be rounding.
double block_match(const BlockShape& shape, double keys, double blocks) {
  constexpr double kLeast = 1e-9, kMany = 4096;
  if (keys <= 0) return 0;
  if (blocks < kMany) {
    const double log_kept = std::log1p(-1 / shape.lane());
    double match = 0, ways = 1;
    for (unsigned missing = 0; missing <= shape.bits; ++missing) {
      const double touched = -std::expm1(missing * log_kept) / blocks;
      match += (missing % 2 == 0 ? ways : -ways) * std::exp(keys * std::log1p(-touched));
      ways *= static_cast<double>(shape.bits - missing) / (missing + 1);
    }
    if (match > kLeast) return std::min(match, 1.0);
  }
  return block_match(shape, keys / blocks);
}

namespace {

std::vector<double> computed_matches(unsigned k, unsigned l, const BlockShape& shape) {
  std::vector<double> matches;
  for (unsigned i = 0; i < k; ++i)
    matches.push_back(block_match(shape, block_capacity(shape) * (i + 1) / k));
  matches.resize(k + l, matches.back());
  return matches;
}

// What a planner asks again and again: matches and errors of blocks of 512 bits, computed once.
class StandardBlocks {
 public:
  static constexpr unsigned kMostK = 16, kMostL = 128;

  static const StandardBlocks* find(unsigned k, unsigned l, const BlockShape& shape) {
    if (shape.block != 512 || k == 0 || k > kMostK || l > kMostL) return nullptr;
    static const StandardBlocks four({512, 4}), eight({512, 8});
    return shape.bits == 4 ? &four : shape.bits == 8 ? &eight : nullptr;
  }
  std::span<const double> matches(unsigned k) const { return matches_[k - 1]; }
  double fpr(unsigned k, unsigned l) const { return found_[k - 1][k + l - 1]; }

 private:
  explicit StandardBlocks(const BlockShape& shape) {
    for (unsigned k = 1; k <= kMostK; ++k) {
      matches_.push_back(computed_matches(k, kMostL, shape));
      found_.push_back(runs_of_matches(matches_.back(), k));
    }
  }
  std::vector<std::vector<double>> matches_, found_;  // by k and segment
};

}  // namespace

std::vector<double> block_matches(unsigned k, unsigned l, const BlockShape& shape) {
  const StandardBlocks* known = StandardBlocks::find(k, l, shape);
  if (known == nullptr) return computed_matches(k, l, shape);
  const auto matches = known->matches(k).first(k + l);
  return {matches.begin(), matches.end()};
}

double apbbf_fpr(unsigned k, unsigned l, const BlockShape& shape) {
  if (const StandardBlocks* known = StandardBlocks::find(k, l, shape)) return known->fpr(k, l);
  return run_of_matches(computed_matches(k, l, shape), k);
}

double apbbf_bits(unsigned k, unsigned l, const BlockShape& shape) {
  return static_cast<double>(k + l) * k / std::max(l, 1u) * shape.block / block_capacity(shape);
}

std::vector<double> keys_in_segments(std::span<const double> generations, unsigned k,
                                     std::span<const double> again) {
  std::vector<double> keys(generations.size());
  for (std::size_t i = 0; i < keys.size(); ++i) {
    // As many come as go.
    if (i >= k && generations[i] == generations[i - k]) {
      keys[i] = keys[i - 1];
      continue;
    }
    for (std::size_t age = i + 1 >= k ? i + 1 - k : 0; age <= i; ++age) keys[i] += generations[age];
  }
  for (std::size_t i = 0; i < again.size(); ++i) keys[i] = std::max(0.0, keys[i] - again[i]);
  return keys;
}

std::vector<double> without_again(std::span<const double> generations, unsigned k,
                                  std::span<const double> again) {
  std::vector<double> keys(generations.begin(), generations.end());
  if (std::ranges::all_of(again, [](double each) { return each == 0; })) return keys;
  const std::vector<double> all = keys_in_segments(generations, k);
  const std::vector<double> once = keys_in_segments(generations, k, again);
  for (std::size_t i = 0; i < keys.size(); ++i) {
    const std::size_t end = std::min(keys.size(), i + k);
    double before = 0, left = 0;
    for (std::size_t segment = i; segment < end; ++segment)
      before += all[segment], left += once[segment];
    if (before > 0) keys[i] *= left / before;
  }
  return keys;
}

double column_fpr(unsigned k, unsigned l, const BlockShape& shape) {
  if (const auto known = tabled_column_fpr(k, l, shape)) return *known;
  // It takes some 10 ms, and is asked again and again.
  using Asked = std::array<unsigned, 4>;
  static std::mutex mutex;
  static std::map<Asked, double> sampled;
  const Asked asked{k, l, shape.block, shape.bits};
  {
    const std::lock_guard lock(mutex);
    if (const auto found = sampled.find(asked); found != sampled.end()) return found->second;
  }
  const double fpr = sampled_column_fpr(k, l, shape);
  const std::lock_guard lock(mutex);
  return sampled.emplace(asked, fpr).first->second;
}

}  // namespace sluice::model
