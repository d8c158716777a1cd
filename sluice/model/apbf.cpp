#include "sluice/model/apbf.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <mutex>
#include <numbers>

#include "sluice/base/random.hpp"

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

// Outcomes of the query from one state on: chances, and accesses weighted by them.
struct Outcome {
  double yes = 0, yes_accesses = 0, no = 0, no_accesses = 0;
};

Outcome blend(double match, const Outcome& hit, const Outcome& miss) {
  Outcome all{match * hit.yes + (1 - match) * miss.yes,
              match * hit.yes_accesses + (1 - match) * miss.yes_accesses,
              match * hit.no + (1 - match) * miss.no,
              match * hit.no_accesses + (1 - match) * miss.no_accesses};
  // The access that told hit from miss.
  all.yes_accesses += all.yes;
  all.no_accesses += all.no;
  return all;
}

// The paper's query as a tree: at segment `at`, after `current` matches in a row and `previous`
// ones before the jump. What is known of a state is kept for one round of match chances.
class QueryTree {
 public:
  QueryTree(std::size_t segments, unsigned k)
      : k_(static_cast<int>(k)), known_(segments * k * k), round_of_(known_.size()) {}

  Outcome ask(std::span<const double> matches) {
    matches_ = matches;
    ++round_;
    return from(0, 0, static_cast<int>(matches.size()) - k_);
  }

 private:
  Outcome from(int previous, int current, int at) {
    if (previous + current == k_) return {.yes = 1};
    if (at < 0) return {.no = 1};
    const auto state = static_cast<std::size_t>((at * k_ + previous) * k_ + current);
    if (round_of_[state] == round_) return known_[state];
    const double match = matches_[static_cast<std::size_t>(at)];
    // A segment that holds the key always matches: no need to follow the rest.
    known_[state] = blend(match, from(previous, current + 1, at + 1),
                          match >= 1 ? Outcome{} : from(current, 0, at - k_));
    round_of_[state] = round_;
    return known_[state];
  }

  std::span<const double> matches_;
  int k_;
  std::vector<Outcome> known_;
  std::vector<unsigned> round_of_;
  unsigned round_ = 0;
};

}  // namespace

std::vector<double> slice_matches(unsigned k, unsigned l, Fills fills, unsigned slices,
                                  double phase) {
  std::vector<double> matches;
  for (unsigned i = 0; i < k + l; ++i) {
    const double share = i < k ? (i + phase) / k : 1;
    const double fill = fills == Fills::linear ? share / 2 : 1 - std::exp2(-share);
    matches.push_back(std::pow(fill, slices));
  }
  return matches;
}

double run_of_matches(std::span<const double> matches, unsigned k) {
  std::vector<double> running(k);  // chance of `i` matches in a row up to here, and no k yet
  running[0] = 1;
  double found = 0;
  for (const double match : matches) {
    double miss = 0;
    for (const double chance : running) miss += chance;
    miss *= 1 - match;
    found += running[k - 1] * match;
    for (unsigned i = k - 1; i > 0; --i) running[i] = running[i - 1] * match;
    running[0] = miss;
  }
  return found;
}

double apbf_fpr(unsigned k, unsigned l, Fills fills, unsigned slices) {
  return run_of_matches(slice_matches(k, l, fills, slices), k);
}

double apbf_mean_fpr(unsigned k, unsigned l, Fills fills, unsigned slices) {
  // Smooth in the phase: Simpson's rule is exact far beyond what is printed.
  constexpr int kSteps = 32;
  double sum = 0;
  for (int step = 0; step <= kSteps; ++step) {
    const double weight = step == 0 || step == kSteps ? 1 : step % 2 == 1 ? 4 : 2;
    const double phase = static_cast<double>(step) / kSteps;
    sum += weight * run_of_matches(slice_matches(k, l, fills, slices, phase), k);
  }
  return sum / (3 * kSteps);
}

unsigned apbf_generations(unsigned k, double fpr, Fills fills) {
  if (apbf_fpr(k, 1, fills) > fpr) return 0;
  unsigned low = 1, high = kMostGenerations;  // the error rises with l
  while (low < high) {
    const unsigned middle = low + (high - low + 1) / 2;
    if (apbf_fpr(k, middle, fills) <= fpr)
      low = middle;
    else
      high = middle - 1;
  }
  return low;
}

unsigned half_full_slices(double fpr) {
  return static_cast<unsigned>(std::max(1.0, std::ceil(-std::log2(fpr))));
}

double half_full_negative_accesses(unsigned k) {
  // Σ i·2^−i up to k, of those that miss: (2 − (k+2)/2^k) / (1 − 2^−k).
  return (2 - std::ldexp(k + 2.0, -static_cast<int>(k))) /
         (1 - std::ldexp(1.0, -static_cast<int>(k)));
}

QueryAccesses query_accesses(std::span<const double> matches, unsigned k) {
  const unsigned l = static_cast<unsigned>(matches.size()) - k;
  QueryTree tree(matches.size(), k);
  const Outcome absent = tree.ask(matches);
  double window = 0;
  for (unsigned age = 0; age < l; ++age) {
    std::vector<double> held(matches.begin(), matches.end());
    std::fill_n(held.begin() + age, k, 1.0);
    window += tree.ask(held).yes_accesses;
  }
  return {window / std::max(l, 1u), absent.yes_accesses / absent.yes,
          absent.no_accesses / absent.no};
}

double apbf_slack(unsigned k, unsigned l) {
  return static_cast<double>(k) / std::max(l, 1u);
}

double apbf_npws(unsigned k, unsigned l, double full) {
  return (1 - std::pow(full, k)) / (1 - full) / std::max(l, 1u);
}

double apbf_bits(unsigned k, unsigned l, unsigned slices) {
  return static_cast<double>(slices) * (k + l) * k / (std::max(l, 1u) * std::numbers::ln2);
}

double apbf_efficiency(unsigned k, unsigned l, double fpr) {
  return -std::log2(fpr) / k * l / (k + l);
}

double block_capacity(const BlockShape& shape) {
  return std::numbers::ln2 / -std::log1p(-1 / shape.lane());
}

double block_match(const BlockShape& shape, double mean) {
  if (mean <= 0) return 0;
  // So full that hardly a bit is left (a share of e⁻⁶⁴); also bounds the sum.
  if (mean > 64 * shape.lane()) return 1;
  const std::vector<double> chances = poisson(mean);
  double sum = 0;
  for (std::size_t held = 0; held < chances.size(); ++held)
    sum += chances[held] * held_match(shape, static_cast<double>(held));
  return std::min(sum, 1.0);
}

std::vector<double> block_matches(unsigned k, unsigned l, const BlockShape& shape) {
  std::vector<double> matches;
  for (unsigned i = 0; i < k; ++i)
    matches.push_back(block_match(shape, block_capacity(shape) * (i + 1) / k));
  matches.resize(k + l, matches.back());
  return matches;
}

double apbbf_fpr(unsigned k, unsigned l, const BlockShape& shape) {
  return run_of_matches(block_matches(k, l, shape), k);
}

double apbbf_bits(unsigned k, unsigned l, const BlockShape& shape) {
  return static_cast<double>(k + l) * k / std::max(l, 1u) * shape.block / block_capacity(shape);
}

std::vector<double> keys_in_segments(std::span<const double> generations, unsigned k) {
  std::vector<double> keys(generations.size());
  for (std::size_t i = 0; i < keys.size(); ++i)
    for (std::size_t age = i + 1 >= k ? i + 1 - k : 0; age <= i; ++age) keys[i] += generations[age];
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

double column_fpr(unsigned k, unsigned l, const BlockShape& shape, unsigned samples) {
  // It takes some 30 ms, and a planner asks the same again and again.
  using Asked = std::array<unsigned, 5>;
  static std::mutex mutex;
  static std::map<Asked, double> known;
  const Asked asked{k, l, shape.block, shape.bits, samples};
  {
    const std::lock_guard lock(mutex);
    if (const auto found = known.find(asked); found != known.end()) return found->second;
  }
  const std::vector<double> full(k + l, block_capacity(shape) / k);
  const double fpr = column_fpr(full, k, shape, samples);
  const std::lock_guard lock(mutex);
  return known.emplace(asked, fpr).first->second;
}

}  // namespace sluice::model
