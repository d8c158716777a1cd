#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <mutex>
#include <numbers>

#include "sluice/base/random.hpp"
#include "sluice/model/apbf.hpp"
#include "sluice/model/bloom.hpp"
#include "sluice/model/column_errors.hpp"

namespace sluice::model {
namespace {

// Poisson chances of 0, 1, 2, …, until what is left is below a double's precision.
std::vector<double> poisson(double mean) {
  const double spread = 12 * std::sqrt(mean) + 40;
  std::vector<double> chances(static_cast<std::size_t>(mean + spread) + 1);
  const double log_mean = mean > 0 ? std::log(mean) : 0;
  for (std::size_t i = 0; i < chances.size(); ++i) {
    const double x = static_cast<double>(i);
    chances[i] = mean > 0 ? std::exp(x * log_mean - mean - std::lgamma(x + 1)) : i == 0;
  }
  return chances;
}

// Chance that a block with `keys` keys matches another.
double held_match(const BlockShape& shape, double keys) {
  return std::pow(-std::expm1(keys * std::log1p(-1 / shape.lane())), shape.bits);
}

}  // namespace

double block_capacity(const BlockShape& shape) {
  return std::numbers::ln2 / -std::log1p(-1 / shape.lane());
}

double block_match(const BlockShape& shape, double mean) {
  return uneven_fpr(mean, shape.lane(), shape.bits);
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

std::vector<double> keys_in_segments(std::span<const double> generations, unsigned k) {
  std::vector<double> keys(generations.size());
  for (std::size_t i = 0; i < keys.size(); ++i) {
    // As many come as go.
    if (i >= k && generations[i] == generations[i - k]) {
      keys[i] = keys[i - 1];
      continue;
    }
    for (std::size_t age = i + 1 >= k ? i + 1 - k : 0; age <= i; ++age) keys[i] += generations[age];
  }
  return keys;
}

namespace {

// Draws Poisson numbers. The guide says where to begin to look, so that a look or two are enough.
class PoissonDraw {
 public:
  explicit PoissonDraw(double mean) : below_(poisson(mean)) {
    for (std::size_t i = 1; i < below_.size(); ++i) below_[i] += below_[i - 1];
    for (std::size_t i = 0; i < kGuide; ++i) {
      const double from = static_cast<double>(i) / kGuide;
      guide_[i] = static_cast<std::size_t>(std::ranges::upper_bound(below_, from) - below_.begin());
    }
  }
  std::size_t most() const noexcept { return below_.size(); }
  std::size_t operator()(double unit) const noexcept {
    std::size_t at = guide_[static_cast<std::size_t>(unit * kGuide)];
    while (at < below_.size() && below_[at] <= unit) ++at;
    return std::min(at, below_.size() - 1);
  }

 private:
  static constexpr std::size_t kGuide = 256;
  std::vector<double> below_;  // chances of at most 0, 1, 2, … keys
  std::array<std::size_t, kGuide> guide_ = {};
};

}  // namespace

double column_fpr(std::span<const double> generations, unsigned k, const BlockShape& shape,
                  unsigned samples) {
  const std::size_t segments = generations.size();
  std::map<double, PoissonDraw> draws;      // by mean
  std::vector<const PoissonDraw*> draw_of;  // by generation
  double most = 0;
  for (const double mean : generations) {
    if (mean > 64 * shape.lane()) return 1;
    draw_of.push_back(&draws.try_emplace(mean, mean).first->second);
    most += static_cast<double>(draw_of.back()->most());
  }
  if (std::ranges::all_of(generations, [](double mean) { return mean <= 0; })) return 0;
  std::vector<double> match_of(static_cast<std::size_t>(most) + 1);
  for (std::size_t i = 0; i < match_of.size(); ++i)
    match_of[i] = held_match(shape, static_cast<double>(i));

  SplitMix64 random(0x636F6C756D6EULL);
  std::vector<std::size_t> drawn(segments);
  std::vector<double> matches(segments);
  double sum = 0;
  for (unsigned sample = 0; sample < samples; ++sample) {
    std::size_t held = 0;
    for (std::size_t i = 0; i < segments; ++i) {
      drawn[i] = (*draw_of[i])(random.next_unit());
      held += drawn[i];
      if (i >= k) held -= drawn[i - k];
      matches[i] = match_of[held];
    }
    sum += run_of_matches(matches, k);
  }
  return sum / samples;
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

double sampled_column_fpr(unsigned k, unsigned l, const BlockShape& shape, unsigned samples) {
  const std::vector<double> full(k + l, block_capacity(shape) / k);
  return column_fpr(full, k, shape, samples);
}

}  // namespace sluice::model
