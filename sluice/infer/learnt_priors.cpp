#include "sluice/infer/learnt_priors.hpp"

#include <algorithm>
#include <bit>
#include <cmath>

#include "sluice/base/bits.hpp"
#include "sluice/base/error.hpp"

namespace sluice {
namespace {

constexpr double kLong =
    4096;  // sampled arrivals of a class that the steady estimate looks back on
constexpr double kShort = 128;  // and the quick one
constexpr double kFewest = 64;  // fewer say nothing
constexpr double kMargin = 2;   // standard errors
// What a likelihood is trusted with: it is a model's, and a class is not all alike. Odds are raised
// by this factor.
constexpr double kDoubt = 1.5;
constexpr double kAccount = 256;  // mean errors of the filter that the account looks back on

// Priors below are not worth telling apart, and 0 is no prior.
constexpr double kLeastChance = 1e-6;
constexpr double kMostChance = 1 - 1e-6;

}  // namespace

LearntPriors::LearntPriors(const Params& params) : params_(params) {
  if (params.window == 0) throw BadParameters("priors are learnt for a window of 1 tick or more");
  if (params.bytes < (4u << 10) || params.bytes > (std::size_t{1} << 40))
    throw BadParameters("learning priors takes 4 KiB to 1 TiB of memory");
  const std::size_t half = std::bit_floor(params.bytes) / 2;
  // More than a few counters per arrival of a window bring no gain, and all must be halved.
  const std::uint64_t enough = std::bit_ceil(std::min<std::uint64_t>(params.window, half)) * 4;
  counters_.resize(static_cast<std::size_t>(std::min<std::uint64_t>(half, enough)));
  // The spare takes part in every thinning, so it is memory like the other.
  shadow_.resize(half / 2 / sizeof(Shadow));
  spare_.resize(shadow_.size());
}

std::size_t LearntPriors::bytes() const noexcept {
  return counters_.size() + (shadow_.size() + spare_.size()) * sizeof(Shadow);
}

// Independent of the bits that filters use.
std::uint64_t LearntPriors::mix(const Digest& digest) noexcept {
  const std::uint64_t mixed =
      fold_multiply(digest.lo ^ 0xA0761D6478BD642FULL, digest.hi ^ 0xE7037ED1A0B428DBULL);
  return mixed == 0 ? 1 : mixed;
}

unsigned LearntPriors::class_of(std::uint64_t mixed) const noexcept {
  const std::size_t half = counters_.size() / 2;
  const std::uint8_t first = counters_[mixed >> 40 & (half - 1)];
  const std::uint8_t second = counters_[half + (mixed >> 16 & (half - 1))];
  return static_cast<unsigned>(std::bit_width(std::min(first, second)));
}

// The lower of the two counters is raised: the other has more than its share already.
void LearntPriors::count(std::uint64_t mixed) noexcept {
  const std::size_t half = counters_.size() / 2;
  std::uint8_t& first = counters_[mixed >> 40 & (half - 1)];
  std::uint8_t& second = counters_[half + (mixed >> 16 & (half - 1))];
  const std::uint8_t least = std::min(first, second);
  if (least < 255) {
    if (first == least) ++first;
    if (second == least) ++second;
  }
  if (!params_.by_time) fade(1);
}

// One after the other, so that at no time all have just been halved.
void LearntPriors::fade(std::uint64_t ticks) noexcept {
  for (halving_due_ += ticks * counters_.size(); halving_due_ >= params_.window;
       halving_due_ -= params_.window) {
    std::uint8_t& counter = counters_[hand_];
    counter = static_cast<std::uint8_t>(counter / 2);
    hand_ = (hand_ + 1) & (counters_.size() - 1);
  }
}

void LearntPriors::Share::add(bool inside) noexcept {
  const auto add_to = [inside](double& all, double& in, double most) {
    all += 1;
    in += inside;
    if (all >= most) all /= 2, in /= 2;
  };
  add_to(asked, in_window, kLong);
  add_to(asked_lately, in_window_lately, kShort);
  if (asked < kFewest) return;
  const double mean = (in_window + 1) / (asked + 2);
  const double steady = mean + kMargin * std::sqrt(mean * (1 - mean) / asked);
  const double quick = in_window_lately / asked_lately;
  const double share = std::clamp(std::max(steady, quick), kLeastChance, kMostChance);
  chance = kDoubt * share / (1 + (kDoubt - 1) * share);
}

// The most frequent keys are few, and the sample may miss them all. With a prior near 1 only an age
// beyond the window can overrule the filter: that is safe for any key.
Prior LearntPriors::estimate(const Digest& digest) const noexcept {
  const double chance = shares_[class_of(mix(digest))].chance;
  return Prior::in_window(chance == 0 ? kMostChance : chance);
}

Prior LearntPriors::of(const Digest& digest) const noexcept {
  return withheld_ ? Prior{} : estimate(digest);
}

LearntPriors::Shadow* LearntPriors::find(std::uint64_t key) noexcept {
  const std::size_t mask = shadow_.size() - 1;
  for (std::size_t at = (key >> 20) & mask; shadow_[at].key != 0; at = (at + 1) & mask)
    if (shadow_[at].key == key) return &shadow_[at];
  return nullptr;
}

void LearntPriors::write(std::uint64_t key) noexcept {
  if (Shadow* known = find(key)) {
    known->tick = tick_;
    return;
  }
  if (shadows_ >= shadow_.size() / 4 * 3) thin();
  if ((key & sample_mask_) != 0) return;
  const std::size_t mask = shadow_.size() - 1;
  std::size_t at = (key >> 20) & mask;
  while (shadow_[at].key != 0) at = (at + 1) & mask;
  shadow_[at] = {key, tick_};
  ++shadows_;
}

// Without what has left the window; if it is then still more than half full, with half the sample.
void LearntPriors::thin() noexcept {
  const auto live = std::count_if(shadow_.begin(), shadow_.end(), [&](const Shadow& shadow) {
    return shadow.key != 0 && alive(shadow);
  });
  if (static_cast<std::size_t>(live) > shadow_.size() / 2) sample_mask_ = 2 * sample_mask_ + 1;
  shadow_.swap(spare_);
  std::fill(shadow_.begin(), shadow_.end(), Shadow{});
  shadows_ = 0;
  const std::size_t mask = shadow_.size() - 1;
  for (const Shadow& shadow : spare_) {
    if (shadow.key == 0 || !alive(shadow) || (shadow.key & sample_mask_) != 0) continue;
    std::size_t at = (shadow.key >> 20) & mask;
    while (shadow_[at].key != 0) at = (at + 1) & mask;
    shadow_[at] = shadow;
    ++shadows_;
  }
}

// Both costs are halved from time to time, so that recent ones count more; priors that cost no more
// than the filter are kept.
void LearntPriors::account(const Outcome& outcome, bool in_window) noexcept {
  const auto cost = [&](Verdict verdict) {
    if ((verdict == Verdict::duplicate) == in_window) return 0.0;
    return in_window ? outcome.costs.duplicate : outcome.costs.lost;
  };
  filter_cost_ += cost(outcome.filter);
  inferred_cost_ += cost(outcome.inferred);
  const double mean = (outcome.costs.lost + outcome.costs.duplicate) / 2;
  if (std::max(filter_cost_, inferred_cost_) > kAccount * mean) {
    filter_cost_ /= 2;
    inferred_cost_ /= 2;
  }
  withheld_ = inferred_cost_ > filter_cost_;
}

void LearntPriors::learn(const Digest& digest, const Outcome& outcome) noexcept {
  const std::uint64_t mixed = mix(digest);
  const bool written = outcome.delivered || params_.anchor == Anchor::refreshed;
  if ((mixed & sample_mask_) == 0) {
    const Shadow* known = find(mixed);
    const bool in_window = known != nullptr && alive(*known);
    account(outcome, in_window);
    shares_[class_of(mixed)].add(in_window);
    if (written) write(mixed);
  }
  count(mixed);
  if (!params_.by_time) tick_ += written;
}

// After eight windows nothing is left of a counter.
void LearntPriors::arrive(std::uint64_t tick) noexcept {
  if (tick <= tick_) return;
  fade(std::min(tick - tick_, 8 * params_.window));
  tick_ = tick;
}

}  // namespace sluice
