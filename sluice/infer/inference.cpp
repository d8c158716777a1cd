#include "sluice/infer/inference.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <utility>

#include "sluice/base/error.hpp"
#include "sluice/filters/catalogue.hpp"

namespace sluice {
namespace {

// Priors are learnt in ticks of their own where time passes: fine enough for any window.
constexpr std::uint64_t kLearntTicks = std::uint64_t{1} << 16;
// A set forgets nothing.
constexpr std::uint64_t kForever = std::uint64_t{1} << 62;

bool by_time(const Window* window) {
  return window != nullptr && window->params().spec.by_time();
}

Anchor anchor_of(const Window* window) {
  // For a set: a key that has arrived is in it from then on, delivered or not.
  return window == nullptr ? Anchor::refreshed : window->params().anchor;
}

LearntPriors::Params learnt_for(const Window* window) {
  LearntPriors::Params params{.window = kForever, .anchor = anchor_of(window)};
  if (window == nullptr) return params;
  params.by_time = by_time(window);
  params.window = params.by_time ? kLearntTicks : window->params().spec.size;
  return params;
}

}  // namespace

std::optional<std::string> Inference::refusal(const AnyFilter& filter) {
  const Window* window = filter.window();
  if (window == nullptr) {
    if (filter.kind() == FilterKind::bloom || filter.kind() == FilterKind::blocked_bloom) return {};
    return fmt::format(
        "filter '{}' does not show how sure it is: bloom does, and with a window cohort and timing",
        name_of(filter.kind()));
  }
  if (WindowEvidence::can_read(*window)) return {};
  if (window->generations() == 0)
    return "a window that starts afresh every hour or day shows no ages: give one that slides, by "
           "count or by time";
  return fmt::format("filter '{}' does not show how old a key is: cohort and timing do",
                     window->filter_name());
}

Inference::Inference(AnyFilter& filter, const PriorTable* table, bool learn)
    : filter_(filter), window_(filter.window()), table_(table), set_(filter.stats().keys) {
  if (const auto why = refusal(filter)) throw BadParameters(*why);
  if (learn) learnt_.emplace(learnt_for(window_));
  if (window_ == nullptr) return;
  window_->make_table();
  evidence_.emplace(*window_);
  const auto block = static_cast<double>(window_->generation_size());
  posteriors_.emplace(static_cast<double>(window_->params().spec.size), block,
                      window_->generations(), window_->params().anchor);
  until_measured_ = block;
  // A tick of a count window is a key written, so there is at least one arrival per tick.
  if (!by_time(window_)) writes_a_tick_ = 1;
}

std::size_t Inference::observe(std::span<const Digest> digests, const Known& known,
                               std::span<Verdict> verdicts,
                               std::span<std::optional<double>> posteriors) {
  begin({digests, {}, known, verdicts, {}, posteriors});
  const std::size_t judged =
      window_ == nullptr
          ? observe_set()
          : window_->observe(digests, verdicts, [this](std::size_t i) { return weigh(i); });
  settle_until(judged);
  return judged;
}

std::size_t Inference::judge(std::span<const Digest> digests, std::span<const Nanoseconds> times,
                             const Known& known, std::span<Verdict> verdicts, std::span<bool> late,
                             std::span<std::optional<double>> posteriors) {
  assert(window_ != nullptr);
  begin({digests, times, known, verdicts, late, posteriors});
  const std::size_t judged =
      window_->judge(digests, times, verdicts, late, [this](std::size_t i) { return weigh(i); });
  settle_until(judged);
  return judged;
}

void Inference::begin(const AtHand& batch) {
  assert(batch.digests.size() == batch.verdicts.size() &&
         batch.digests.size() == batch.posteriors.size() && !batch.known.costs.empty());
  batch_ = batch;
  std::ranges::fill(batch.posteriors, std::nullopt);
}

// In parts that end where the error is asked for, so that batches make no difference.
std::size_t Inference::observe_set() {
  std::size_t at = 0;
  while (at < batch_.digests.size()) {
    set_.weigh(filter_);
    const std::size_t part =
        std::min<std::uint64_t>(batch_.digests.size() - at, set_.until_weighed());
    const std::size_t judged =
        filter_.observe(batch_.digests.subspan(at, part), batch_.verdicts.subspan(at, part));
    for (const std::size_t end = at + judged; at < end; ++at) {
      if (batch_.verdicts[at] == Verdict::duplicate) batch_.verdicts[at] = weigh(at);
      set_.arrive();
    }
    if (judged < part) break;
  }
  return at;
}

const Costs& Inference::costs_of(std::size_t i) const {
  return batch_.known.costs[batch_.known.costs.size() == 1 ? 0 : i];
}

// The record's own, or the table's. By time, a chance of an arrival says nothing before it is known
// how many there are.
Prior Inference::given_prior(std::size_t i) const {
  const std::span<const Prior> priors = batch_.known.priors;
  Prior prior = priors.empty() ? Prior{} : priors[priors.size() == 1 ? 0 : i];
  if (!prior.known() && table_ != nullptr) prior = table_->of(batch_.digests[i]);
  const bool no_rate = window_ != nullptr && writes_a_tick_ == 0;
  return prior.kind == Prior::Kind::arrival && no_rate ? Prior{} : prior;
}

double Inference::posterior_of(const Prior& prior) {
  if (window_ == nullptr) return set_.of(prior);
  return posteriors_->within(prior, *sight_, pace_.position, pace_.window, writes_a_tick_);
}

// Of a key that the filter takes for a duplicate.
Verdict Inference::weigh(std::size_t i) {
  settle_until(i);
  if (window_ != nullptr) {
    pace_ = evidence_->pace(time_of(i), keys_a_tick_);
    sight_ = evidence_->read(batch_.digests[i], pace_);
    assert(sight_ && "the filter has a trace of it");
  }
  const Digest& digest = batch_.digests[i];
  const Prior prior = learnt_ ? learnt_->of(digest) : given_prior(i);
  const Verdict verdict = weigh_known(i, prior);
  Verdict inferred = verdict;
  // While priors are not used, what they would have said must still be recorded.
  if (learnt_ && !prior.known())
    if (const Prior estimate = learnt_->estimate(digest); estimate.known())
      inferred = least_cost(posterior_of(estimate), costs_of(i));
  batch_.verdicts[i] = verdict;
  settle(i, Verdict::duplicate, inferred);
  return verdict;
}

Verdict Inference::weigh_known(std::size_t i, const Prior& prior) {
  if (!prior.known()) {
    ++stats_.without_prior;
    batch_.posteriors[i].reset();
    return Verdict::duplicate;
  }
  const double posterior = posterior_of(prior);
  const Costs& costs = costs_of(i);
  const Verdict verdict = least_cost(posterior, costs);
  const bool passed = verdict == Verdict::distinct;
  const double held_back = costs.lost * (1 - posterior);
  ++stats_.inferred;
  stats_.passed += passed;
  stats_.filter_cost += held_back;
  stats_.cost += passed ? costs.duplicate * posterior : held_back;
  (passed ? stats_.duplicates : stats_.lost) += passed ? posterior : 1 - posterior;
  batch_.posteriors[i] = posterior;
  outside_ += 1 - posterior;
  outside_passed_ += passed ? 1 - posterior : 0;
  return verdict;
}

// In order: what is learnt of one arrival is known to the next. Those before `i` are judged, and
// those that were weighed are settled. Of the others, the filter knows to be distinct what it let
// through.
void Inference::settle_until(std::size_t i) {
  while (batch_.settled < i) {
    const std::size_t at = batch_.settled;
    const Verdict verdict = batch_.verdicts[at];
    if (!batch_.late.empty() && batch_.late[at]) {
      ++batch_.settled;
      continue;
    }
    if (verdict == Verdict::distinct) {
      batch_.posteriors[at] = 0;
      outside_ += 1;
      outside_passed_ += 1;
    }
    settle(at, verdict, verdict);
  }
}

// What came of it, and what the filter and priors alone would have said.
void Inference::settle(std::size_t i, Verdict filter, Verdict inferred) {
  const bool delivered = batch_.verdicts[i] == Verdict::distinct;
  batch_.settled = i + 1;
  if (window_ != nullptr) measure(i, delivered);
  if (learnt_)
    learnt_->learn(
        batch_.digests[i],
        {.delivered = delivered, .filter = filter, .inferred = inferred, .costs = costs_of(i)});
}

Nanoseconds Inference::time_of(std::size_t i) const {
  return batch_.times.empty() ? window_->clock().now() : batch_.times[i];
}

// How much comes in a tick: looked at once a generation, over about the last window.
void Inference::measure(std::size_t i, bool delivered) {
  arrivals_ += 1;
  delivered_ += delivered;
  const bool refreshed = window_->params().anchor == Anchor::refreshed;
  const double passed = by_time(window_) ? time_passed(time_of(i)) : refreshed || delivered;
  ticks_ += passed;
  until_measured_ -= passed;
  if (until_measured_ <= 0) measure_now();
}

void Inference::measure_now() {
  until_measured_ = static_cast<double>(window_->generation_size());
  keys_a_tick_ = delivered_ / ticks_;
  if (window_->params().anchor == Anchor::refreshed)
    writes_a_tick_ = arrivals_ / ticks_;
  else if (outside_ > 0)
    writes_a_tick_ = arrivals_ / ticks_ * (outside_passed_ / outside_);
  if (ticks_ < static_cast<double>(window_->params().spec.size)) return;
  for (double* recent : {&arrivals_, &delivered_, &ticks_, &outside_, &outside_passed_})
    *recent /= 2;
}

// Since the latest record before. One that is far ahead is believed with the next.
double Inference::time_passed(Nanoseconds time) {
  const Nanoseconds now = std::min(time, window_->clock().now());
  if (!std::exchange(started_, true)) start_ = now_ = now;
  // The first clock was wrong and is set back: start again.
  if (now < start_) start_ = now_ = now;
  if (now <= now_) return 0;
  const double passed = static_cast<double>(now - now_);
  now_ = now;
  const double of_window =
      static_cast<double>(now_ - start_) / static_cast<double>(window_->params().spec.size);
  if (learnt_)
    learnt_->arrive(static_cast<std::uint64_t>(
        std::min(of_window * static_cast<double>(kLearntTicks), static_cast<double>(kForever))));
  return passed;
}

}  // namespace sluice
