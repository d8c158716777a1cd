// Errors of interleaved segments, from samples: columns of blocks with random numbers of keys.
#include <algorithm>
#include <cmath>
#include <map>

#include "sluice/base/random.hpp"
#include "sluice/model/apbf.hpp"

namespace sluice::model {
namespace {

constexpr std::uint64_t kSeed = 0x636F6C756D6EULL;
constexpr double kEndless = 0x1p60;  // columns: Poisson numbers of keys

// How many of a generation's keys a column has: a key chooses one of `columns`. With `raised`, each
// key in a column makes it so many times as likely to be drawn.
class Crowd {
 public:
  Crowd(double keys, double columns, double raised = 1) {
    if (columns <= 1) {
      least_ = static_cast<std::size_t>(keys);
      below_ = {1};
      return;
    }
    const double chance = raised / (columns - 1 + raised), mean = keys * chance;
    const double deviation = std::sqrt(mean * (1 - chance));
    const double from = std::max(0.0, std::floor(mean - 9 * deviation - 2));
    least_ = static_cast<std::size_t>(std::min(from, keys));
    const double odds = chance / (1 - chance);
    // Relative to the least: what they sum up to is 1.
    double each = 1, sum = 0;
    for (double x = static_cast<double>(least_); x <= keys; ++x) {
      below_.push_back(sum += each);
      if (x > mean && each < 1e-15 * sum) break;
      each *= odds * (keys - x) / (x + 1);
    }
    for (double& below : below_) below /= sum;
  }
  std::size_t operator()(double unit) const noexcept {
    const auto at = std::ranges::upper_bound(below_, unit) - below_.begin();
    return least_ + std::min(static_cast<std::size_t>(at), below_.size() - 1);
  }

 private:
  std::size_t least_ = 0;
  std::vector<double> below_;  // chances of at most least_, least_ + 1, … keys
};

// Chances that a block with 0, 1, 2, … keys matches another.
class Matches {
 public:
  explicit Matches(const BlockShape& shape) : kept_(1 - 1 / shape.lane()), bits_(shape.bits) {}
  double operator[](std::size_t keys) {
    for (; matches_.size() <= keys; zero_ *= kept_) matches_.push_back(std::pow(1 - zero_, bits_));
    return matches_[keys];
  }

 private:
  double kept_, zero_ = 1;
  unsigned bits_;
  std::vector<double> matches_;
};

double plain_sample(std::span<const double> generations, unsigned k, const BlockShape& shape,
                    double columns, unsigned samples) {
  const std::size_t segments = generations.size();
  std::map<double, Crowd> crowds;
  std::vector<const Crowd*> crowd_of;  // by generation
  for (const double keys : generations)
    crowd_of.push_back(&crowds.try_emplace(keys, keys, columns).first->second);
  Matches match_of(shape);
  SplitMix64 random(kSeed);
  std::vector<std::size_t> drawn(segments);
  std::vector<double> matches(segments);
  double sum = 0;
  for (unsigned sample = 0; sample < samples; ++sample) {
    std::size_t held = 0;
    for (std::size_t i = 0; i < segments; ++i) {
      drawn[i] = (*crowd_of[i])(random.next_unit());
      held += drawn[i];
      if (i >= k) held -= drawn[i - k];
      matches[i] = match_of[held];
    }
    sum += run_of_matches(matches, k);
  }
  return sum / samples;
}

// The chance that k segments match from `start` on, and the one before it does not. Generation j has
// keys in segments j to j + k − 1, so it matters to k − |j − start| of the run. Columns are drawn as if
// each of its keys made them exp(pull) times as likely for each of these, and weighted less by as much.
class Run {
 public:
  Run(std::span<const double> generations, unsigned k, std::size_t start, const BlockShape& shape,
      double columns)
      : k_(k), first_(start >= k ? start - k : 0), start_(start) {
    const std::size_t end = std::min(generations.size(), start + k);
    pull_ = pull_for(generations.subspan(first_, end - first_), shape, columns);
    for (std::size_t j = first_; j < end; ++j) {
      const double raised = std::exp(pull_ * matters(j));
      crowds_.emplace_back(generations[j], columns, raised);
      log_weight_ += generations[j] * std::log1p((raised - 1) / columns);
    }
  }

  double sample(SplitMix64& random, Matches& match_of) {
    drawn_.clear();
    double pulled = 0;
    for (std::size_t i = 0; i < crowds_.size(); ++i) {
      drawn_.push_back(crowds_[i](random.next_unit()));
      pulled += matters(first_ + i) * static_cast<double>(drawn_.back());
    }
    double chance = start_ > 0 ? 1 - match_of[held(start_ - 1)] : 1;
    for (std::size_t i = start_; i < start_ + k_; ++i) chance *= match_of[held(i)];
    return chance * std::exp(log_weight_ - pull_ * pulled);
  }

 private:
  double matters(std::size_t generation) const {
    const std::size_t apart = generation > start_ ? generation - start_ : start_ - generation;
    return apart < k_ ? static_cast<double>(k_ - apart) : 0;
  }
  // Keys in a segment: of its own generation and of the k − 1 before it.
  std::size_t held(std::size_t segment) const {
    std::size_t keys = 0;
    for (std::size_t j = segment + 1 >= k_ ? segment + 1 - k_ : 0; j <= segment; ++j)
      keys += drawn_[j - first_];
    return keys;
  }
  // By how much a match gets likelier with one key more, at the load that columns drawn so have.
  double pull_for(std::span<const double> generations, const BlockShape& shape,
                  double columns) const {
    const double log_kept = -std::log1p(-1 / shape.lane());
    const double most = std::log(20.0) / k_;
    double pull = 0;
    for (int round = 0; round < 6; ++round) {
      double load = 0;
      for (std::size_t i = 0; i < generations.size(); ++i) {
        const double weight = matters(first_ + i), raised = std::exp(pull * weight);
        load += weight / k_ * generations[i] * raised / (columns - 1 + raised);
      }
      const double next = load > 0 ? shape.bits * log_kept / std::expm1(log_kept * load) : most;
      pull = (pull + std::min(next, most)) / 2;
    }
    return pull;
  }

  unsigned k_;
  std::size_t first_, start_;
  double pull_ = 0, log_weight_ = 0;
  std::vector<Crowd> crowds_;  // by generation, from first_ on
  std::vector<std::size_t> drawn_;
};

}  // namespace

double column_fpr_at(std::span<const double> generations, unsigned k, const BlockShape& shape,
                     double columns) {
  constexpr unsigned kSamples = 1024, kPlainSamples = 2048;
  // Above this, runs that have to do with each other are not rare, and plain samples are good enough.
  constexpr double kLarge = 0.02;
  if (std::ranges::max(generations) > 64 * shape.lane() * columns) return 1;
  const std::size_t starts = generations.size() - k + 1;
  Matches match_of(shape);
  SplitMix64 random(kSeed);
  std::vector<double> found;
  for (std::size_t start = 0; start < starts; ++start) {
    Run run(generations, k, start, shape, columns);
    const std::size_t samples = kSamples / starts + 16;
    double sum = 0;
    for (std::size_t sample = 0; sample < samples; ++sample) sum += run.sample(random, match_of);
    const double none = start > k ? 1 - found[start - k - 1] : 1;
    found.push_back((start > 0 ? found.back() : 0) + none * sum / static_cast<double>(samples));
    if (found.back() > kLarge) return plain_sample(generations, k, shape, columns, kPlainSamples);
  }
  return found.back();
}

double sampled_column_fpr(unsigned k, unsigned l, const BlockShape& shape, unsigned samples) {
  const std::vector<double> full(k + l, block_capacity(shape) / k * kEndless);
  return plain_sample(full, k, shape, kEndless, samples);
}

}  // namespace sluice::model
