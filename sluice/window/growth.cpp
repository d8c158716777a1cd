#include "sluice/window/growth.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "sluice/base/error.hpp"
#include "sluice/filters/exact/exact_window.hpp"

namespace sluice {
namespace {

// A successor holds what the present rate would bring in a window, but at most twice what is live:
// a burst is met in a few steps, and a short one does not allocate for a long one. And at least an
// eighth of what is live: a generation that has just begun says little of the rate.
constexpr std::uint64_t kMostSteps = 2;
constexpr std::uint64_t kLeastShare = 8;
// The newest stage is left for a smaller one when the rate of the last generation would fill less
// than a quarter of it: what a burst needed is then freed one window after the burst, not two.
// Rates go up and down, and stages cost time and error: only while there are few.
constexpr std::uint64_t kTooLargeForRate = 4;
constexpr std::size_t kFewStages = 5;
// Or when it is alone, and this many times as large as one for all that is live, a whole window's
// keys, would be. More than the headroom of such a one, or it would be replaced in turn.
constexpr double kTooLargeForLive = 1.3;
constexpr double kHeadroom = 1.25;
// Where memory is limited: the smallest stage worth having, as a part of the first, and by what part
// one that does not fit is made smaller.
constexpr std::uint64_t kLeastPart = 8;
constexpr std::uint64_t kSmallerBy = 8;
// For the blocks of a successor, which may be larger than asked for.
constexpr std::uint64_t kBlockRounding = 256;
// Of `exact-window`.
constexpr std::uint64_t kSlotBytes = sizeof(Digest) + sizeof(std::uint64_t);
// Below this no filter distinguishes budgets.
constexpr double kLeastFpr = 1e-12;

// The keys of one generation, if all have the same number and the stages are full.
std::uint32_t generation_share(const Growth& growth) {
  constexpr std::uint64_t kMost = std::uint64_t{1} << 30;
  std::uint64_t capacity = 0;
  for (std::size_t i = 0; i < growth.stage_count(); ++i)
    capacity += growth.stage(i).planned().capacity;
  return static_cast<std::uint32_t>(
      std::clamp<std::uint64_t>(capacity / (growth.generations() + 1), 1, kMost));
}

// Generations that pass one by one in less time than it takes to clear a table.
constexpr unsigned kMostIdleSteps = 1024;

}  // namespace

Growth::Growth(std::shared_ptr<const Make> make, const Plan& plan, MemoryResource& memory)
    : make_(std::move(make)), plan_(plan), stages_(memory) {}

// As planned. Where the resource gives larger blocks than the plan assumes, it may be too large for
// the limit: then as large as fits.
AnyFilter Growth::first_stage() {
  AnyFilter first = (*make_)(plan_.keys, plan_.first_fpr(), memory());
  if (plan_.memory == 0) return first;
  stages_.reserve(1);
  const std::uint64_t least = std::max<std::uint64_t>(plan_.keys / kLeastPart, 1);
  for (std::uint64_t keys = plan_.keys; taken_by(stages_) + first.bytes() > plan_.memory;) {
    keys -= std::min(keys, keys / kSmallerBy + 1);
    if (keys < least) throw NoMemory("`memory` is too small for the table of the window");
    try {
      first = (*make_)(keys, plan_.first_fpr(), memory());
    } catch (const BadParameters&) {
      // Not to be had: a smaller one may be.
    }
  }
  return first;
}

void Growth::start() {
  Stage first{first_stage(), 0};
  stages_.clear();
  stages_.push_back(std::move(first));
  count_older();
  generation_keys_ = successor_keys_ = 0;
  afresh_.reset();
  ++changes_;
}

void Growth::start_again() noexcept {
  // A stage is never planned smaller than the first; that a snapshot says so is no reason to
  // reserve more than it brought.
  const std::uint64_t capacity = newest().planned().capacity;
  const bool other = capacity > plan_.keys || (capacity == plan_.keys && stages_.size() > 1);
  if (!other && !afresh_) return keep_newest();
  try {
    start();
  } catch (const std::exception&) {
    keep_newest();
    afresh_ = 0;
  }
}

void Growth::keep_newest() noexcept {
  stages_.erase(stages_.begin(), std::prev(stages_.end()));
  stages_.back().filter.clear();
  stages_.back().written = 0;
  count_older();
  generation_keys_ = successor_keys_ = 0;
  ++changes_;
}

// A rotation touches no more than a few lines of a table. A filter of bits takes some generations more
// than the window until nothing is left of a key: its slack.
void Growth::expire() {
  const double beyond = newest().slack() * std::max(1u, generations());
  const unsigned all = generations() + 1 + static_cast<unsigned>(std::lround(beyond));
  if (all > kMostIdleSteps) return start_again();
  for (unsigned step = 0; step < all; ++step) rotate();
}

void Growth::clear() noexcept {
  try {
    start();
  } catch (const std::exception&) {
    keep_newest();
    afresh_ = 0;
  }
  growths_ = forgotten_ = forget_misses_ = 0;
  forgotten_early_ = 0;
  writable_ = kAnyNumber;
  used_up_ = false;
}

// Makes the stage for the next key. Throws NoMemory; nothing has changed then.
void Growth::settle() {
  if (afresh_) {
    const std::uint32_t generations = *afresh_;
    start();
    for (std::uint32_t i = 0; i < generations; ++i) stages_.back().filter.rotate();
  }
  if (successor_keys_ == 0) return;
  try {
    AnyFilter smaller = (*make_)(successor_keys_, share_left(), memory());
    if (fits(smaller)) adopt(std::move(smaller));
  } catch (const NoMemory&) {
    throw;
  } catch (const BadParameters&) {
    // At its share of the error a smaller one cannot be had: the large one does.
  }
  successor_keys_ = 0;
}

// At most half of the budget that is left, so that there is always some for the next.
double Growth::share_left() const {
  double left = plan_.fpr;
  for (const Stage& stage : stages_) left -= stage.filter.planned().fpr;
  return std::max(left / 2, kLeastFpr);
}

double Growth::share_after(const Plan& plan, double first_fpr) noexcept {
  return std::max((plan.fpr - first_fpr) / 2, kLeastFpr);
}

void Growth::adopt(AnyFilter filter) {
  stages_.push_back({std::move(filter), 0});
  count_older();
  ++growths_;
  ++changes_;
}

// As good as its share of the error, or as good as can be; of the size that is wished for, or of
// the first one's. That one was made once, so only memory can be wanting.
AnyFilter Growth::best_stage(std::uint64_t keys) const {
  for (const std::uint64_t size : {keys, plan_.keys}) {
    for (double fpr = share_left(); fpr < 1; fpr *= kWorseBy) {
      try {
        return (*make_)(size, fpr, memory());
      } catch (const NoMemory&) {
        throw;
      } catch (const BadParameters&) {
        // Not to be had: the next one may be.
      }
    }
  }
  return (*make_)(plan_.keys, plan_.first_fpr(), memory());
}

void Growth::add_stage(std::uint64_t keys) {
  if (plan_.memory == 0) return adopt(best_stage(keys));
  const std::uint64_t least = std::max<std::uint64_t>(plan_.keys / kLeastPart, 1);
  for (std::uint64_t size = std::min(keys, keys_that_fit()); size >= least;
       size -= size / kSmallerBy + 1) {
    AnyFilter stage = best_stage(size);
    if (fits(stage)) return adopt(std::move(stage));
  }
  refuse();
}

void Growth::refuse() {
  used_up_ = true;
  throw NoMemory(kUsedUp);
}

std::uint64_t Growth::memory_of_successors() const noexcept {
  return plan_.memory - std::min(plan_.memory, sizeof(Stage) + kBlockRounding);
}

// How many of these keys, from the first, the newest stage may get before the limit is checked
// again. Filters of fixed memory: all. `exact-window` removes expired keys while it gets new ones.
// With at most half of its slots live it needs no larger table: one sweep over all slots takes as
// many insertions as 7/32 of them, and 1/2 + 7/32 is less than the three quarters at which it grows.
// With more it moves, sooner or later, to a table of twice the slots.
std::size_t Growth::keys_within_limit(std::span<const Digest> digests) const noexcept {
  if (plan_.memory == 0 || newest().kind() != FilterKind::exact_window) return digests.size();
  const auto& exact = *newest().as<ExactWindow>();
  const std::uint64_t live = exact.live_keys(), half = exact.slots() / 2;
  if (live < half)
    return static_cast<std::size_t>(std::min<std::uint64_t>(digests.size(), half - live));
  const std::uint64_t next = 2 * exact.slots() * kSlotBytes;
  // A host may give a larger block, of the next size class.
  const std::uint64_t rounding = memory().mapping() == nullptr ? next / 4 + kCacheLineBytes : 0;
  return bytes() + next + rounding <= plan_.memory || exact.may_contain(digests[0]) ? 1 : 0;
}

// The list of stages may double.
bool Growth::fits(const AnyFilter& stage) const noexcept {
  if (plan_.memory == 0) return true;
  const std::uint64_t listed = 2 * (stages_.size() + 1) * sizeof(Stage);
  return bytes() + stage.bytes() + listed <= memory_of_successors();
}

// If the next takes as much for each as the newest does.
std::uint64_t Growth::keys_that_fit() const {
  const std::uint64_t limit = memory_of_successors();
  const std::uint64_t room = limit - std::min(limit, bytes());
  const auto each = static_cast<double>(newest().bytes()) /
                    static_cast<double>(std::max<std::uint64_t>(newest().stats().capacity, 1));
  return static_cast<std::uint64_t>(static_cast<double>(room) / each);
}

std::uint64_t Growth::next_keys() const {
  const std::uint64_t at_this_rate = generation_keys_ * std::max(1u, generations());
  const std::uint64_t live = live_keys();
  return std::clamp(at_this_rate, std::max(plan_.keys, live / kLeastShare), most_keys_of_next());
}

std::uint64_t Growth::most_keys_after(std::uint64_t live) noexcept {
  return live * kMostSteps;
}

std::uint64_t Growth::most_keys_of_next() const {
  return std::max({plan_.keys, most_keys_after(live_keys()), successor_keys_});
}

double Growth::worst_planned_fpr() const {
  double worst = 0;
  for (const Stage& stage : stages_) worst = std::max(worst, stage.filter.planned().fpr);
  return worst;
}

std::uint64_t Growth::room(const Stage& stage) const {
  constexpr std::uint64_t kAny = std::numeric_limits<std::uint64_t>::max();
  if (plan_.by == By::density) return kAny;
  const std::uint64_t capacity = stage.filter.planned().capacity;
  return capacity == 0 ? kAny : capacity - std::min(capacity, stage.written);
}

std::size_t Growth::admit(std::span<const Digest> digests, std::span<Verdict> verdicts,
                          std::uint64_t& budget, Anchor anchor) {
  std::size_t judged = 0;
  used_up_ = false;
  while_memory_lasts([&] {
    while (judged < digests.size() && budget > 0) {
      settle();
      Stage& stage = stages_.back();
      const std::uint64_t allowed = std::min(budget, room(stage));
      std::uint64_t left = allowed;
      const std::size_t count = keys_within_limit(digests.subspan(judged));
      if (count == 0) refuse();
      const auto rest = digests.subspan(judged, count);
      const auto rest_verdicts = verdicts.subspan(judged, count);
      const std::size_t done = stages_.size() == 1
                                   ? stage.filter.admit(rest, rest_verdicts, left, anchor)
                                   : admit_with_older(rest, rest_verdicts, left, anchor);
      judged += done;
      stage.written += allowed - left;
      generation_keys_ += allowed - left;
      budget -= allowed - left;
      if (judged == digests.size() || budget == 0) break;
      if (done == count) continue;
      // A filter that takes memory as it grows is never full: it was refused some.
      if (left > 0 && !stage.filter.promises().fixed_memory) break;
      add_stage(next_keys());
    }
  });
  return judged;
}

std::size_t Growth::admit_paced(std::span<const Digest> digests, std::span<Verdict> verdicts,
                                Anchor anchor) {
  const bool any = writable_ == kAnyNumber;
  std::uint64_t budget = any ? std::numeric_limits<std::uint64_t>::max() : writable_;
  const std::size_t judged = admit(digests, verdicts, budget, anchor);
  if (any) return judged;
  writable_ = static_cast<std::uint32_t>(budget);
  used_up_ |= budget == 0 && judged < digests.size();
  return judged;
}

// The older stages do not change while the newest takes a batch, so they can be asked first, all at
// once.
std::size_t Growth::admit_with_older(std::span<const Digest> digests, std::span<Verdict> verdicts,
                                     std::uint64_t& budget, Anchor anchor) {
  std::size_t judged = 0;
  while (judged < digests.size()) {
    const std::size_t count = std::min(kTogether, digests.size() - judged);
    const std::size_t done =
        admit_part(digests.subspan(judged, count), verdicts.subspan(judged, count), budget, anchor);
    judged += done;
    if (done < count) break;
  }
  return judged;
}

std::size_t Growth::admit_part(std::span<const Digest> digests, std::span<Verdict> verdicts,
                               std::uint64_t& budget, Anchor anchor) {
  ask(std::span(stages_).first(stages_.size() - 1), digests, verdicts);
  AnyFilter& filter = stages_.back().filter;
  // One key alone needs no lists, which take longer to clear than it takes to judge.
  if (digests.size() == 1 && anchor == Anchor::delivered)
    return verdicts[0] == Verdict::duplicate ? 1 : filter.admit(digests, verdicts, budget, anchor);
  std::array<Verdict, kTogether> answers;
  if (anchor == Anchor::refreshed) {
    // Every arrival is written again in the newest stage.
    const std::size_t judged =
        filter.admit(digests, std::span(answers).first(digests.size()), budget, anchor);
    for (std::size_t i = 0; i < judged; ++i)
      if (answers[i] == Verdict::duplicate) verdicts[i] = Verdict::duplicate;
    return judged;
  }
  std::array<Digest, kTogether> fresh;
  std::size_t count = 0;
  for (std::size_t i = 0; i < digests.size(); ++i)
    if (verdicts[i] == Verdict::distinct) fresh[count++] = digests[i];
  const std::size_t judged =
      filter.admit(std::span(fresh).first(count), std::span(answers).first(count), budget, anchor);
  std::size_t next = 0;
  for (std::size_t i = 0; i < digests.size(); ++i) {
    if (verdicts[i] == Verdict::duplicate) continue;
    if (next == judged) return i;
    verdicts[i] = answers[next++];
  }
  return digests.size();
}

// verdicts[i]: whether any of the stages may contain digests[i].
void Growth::ask(std::span<const Stage> stages, std::span<const Digest> digests,
                 std::span<Verdict> verdicts, unsigned later) const {
  std::ranges::fill(verdicts, Verdict::distinct);
  // One key alone: the newest stages, which hold most keys, first, and no more than necessary.
  if (digests.size() == 1 && later == 0) {
    for (std::size_t i = stages.size(); i > 0 && verdicts[0] == Verdict::distinct; --i)
      stages[i - 1].filter.may_contain(digests, verdicts);
    return;
  }
  std::array<Verdict, kTogether> answers;
  for (std::size_t at = 0; at < digests.size(); at += answers.size()) {
    const std::size_t count = std::min(answers.size(), digests.size() - at);
    for (const Stage& stage : stages) {
      const auto some = digests.subspan(at, count);
      const auto known = std::span(answers).first(count);
      if (later == 0)
        stage.filter.may_contain(some, known);
      else
        stage.filter.may_contain(some, known, later);
      for (std::size_t i = 0; i < count; ++i)
        if (answers[i] == Verdict::duplicate) verdicts[at + i] = Verdict::duplicate;
    }
  }
}

std::optional<Verdict> Growth::admit_aged(const Digest& digest, unsigned age, Anchor anchor) {
  used_up_ = false;
  if (!while_memory_lasts([&] { settle(); })) return std::nullopt;
  Verdict older = Verdict::distinct;
  if (stages_.size() > 1)
    ask(std::span(stages_).first(stages_.size() - 1), std::span(&digest, 1), std::span(&older, 1));
  if (older == Verdict::duplicate && anchor == Anchor::delivered) return older;
  for (;;) {
    if (room(stages_.back()) > 0) {
      used_up_ = keys_within_limit(std::span(&digest, 1)) == 0;
      if (used_up_) return std::nullopt;
      if (const auto verdict = stages_.back().filter.admit_aged(digest, age, anchor)) {
        if (*verdict == Verdict::distinct) {
          ++stages_.back().written;
          ++generation_keys_;
        }
        return older == Verdict::duplicate ? older : *verdict;
      }
      if (!newest().promises().fixed_memory) return std::nullopt;  // it was refused memory
    }
    // A full stage may still know the key; it becomes an older stage from here on.
    if (older == Verdict::distinct)
      ask(std::span(stages_).last(1), std::span(&digest, 1), std::span(&older, 1));
    if (older == Verdict::duplicate && anchor == Anchor::delivered) return older;
    if (!while_memory_lasts([&] { add_stage(next_keys()); })) return std::nullopt;
  }
}

void Growth::may_contain(std::span<const Digest> digests, std::span<Verdict> verdicts,
                         unsigned later) const {
  ask(stages_, digests, verdicts, later);
}

void Growth::rotate() {
  if (writable_ != kAnyNumber) {
    // While more keys come than fit, generations are to have an equal share of them: this rotation is
    // one of those that are due.
    const std::uint32_t share = generation_share(*this);
    writable_ = generation_keys_ < share ? kAnyNumber : std::min(writable_ + share, 2 * share);
  }
  if (afresh_) {
    afresh_ = std::min(*afresh_ + 1, kMostOwed);
    return;
  }
  age_stages();
  const std::uint64_t at_this_rate = generation_keys_ * std::max(1u, generations());
  generation_keys_ = 0;
  successor_keys_ = smaller_keys(at_this_rate);
  // What a burst needed is not held for a stream that has ended.
  if (successor_keys_ > 0 && live_keys() == 0) start_again();
}

void Growth::forget_oldest() {
  const std::uint64_t live = live_keys();
  writable_ = generation_share(*this);
  if (!afresh_) age_stages();
  forgotten_early_ += live - live_keys();
}

// Stages that nothing is left in are freed.
void Growth::age_stages() {
  for (Stage& stage : stages_) stage.filter.rotate();
  const auto last = std::prev(stages_.end());
  const auto freed = std::remove_if(
      stages_.begin(), last, [](const Stage& stage) { return stage.filter.live_keys() == 0; });
  changes_ += freed != last;
  stages_.erase(freed, last);
  count_older();
}

bool Growth::can_forget() const noexcept {
  return std::ranges::all_of(stages_, [](const Stage& stage) { return stage.filter.can_forget(); });
}

// The stages' own counts would take a key that one of them held for a miss in each of the others.
bool Growth::forget(const Digest& digest) noexcept {
  bool found = false;
  for (Stage& stage : stages_) found |= stage.filter.forget(digest);
  ++(found ? forgotten_ : forget_misses_);
  return found;
}

// How many keys a smaller successor should be for; 0: the newest is not too large.
std::uint64_t Growth::smaller_keys(std::uint64_t at_this_rate) const {
  const std::uint64_t capacity = newest().planned().capacity;
  if (capacity <= plan_.keys) return 0;
  // A forged state may say any number of keys: no double leaves the range.
  const auto fitting = [&](std::uint64_t keys) {
    constexpr double kMost = 0x1p62;
    return keys <= plan_.keys
               ? plan_.keys
               : static_cast<std::uint64_t>(std::min(kHeadroom * static_cast<double>(keys), kMost));
  };
  // A stage has room for a generation more than the window: that much over the plan still fits it.
  const std::uint64_t generations = std::max(1u, this->generations());
  const std::uint64_t window_keys = live_keys() * generations / (generations + 1);
  if (stages_.size() == 1 &&
      static_cast<double>(capacity) > kTooLargeForLive * static_cast<double>(fitting(window_keys)))
    return fitting(window_keys);
  if (stages_.size() < kFewStages && capacity / kTooLargeForRate > fitting(at_this_rate))
    return fitting(at_this_rate);
  return 0;
}

std::uint64_t Growth::live_keys() const {
  std::uint64_t keys = 0;
  for (const Stage& stage : stages_) keys += stage.filter.live_keys();
  return keys;
}

std::uint64_t Growth::sum_of_older() const noexcept {
  std::uint64_t bytes = 0;
  for (std::size_t i = 0; i + 1 < stages_.size(); ++i) bytes += stages_[i].filter.bytes();
  return bytes;
}

FilterStats Growth::stats() const {
  FilterStats all{.bytes = bytes(),
                  .target_fpr = plan_.fpr,
                  .forgotten = forgotten_,
                  .forget_misses = forget_misses_};
  double right = 1;
  double planned_right = 1;
  for (const Stage& stage : stages_) {
    const FilterStats stats = stage.filter.stats();
    all.keys += stats.keys;
    all.capacity += stats.capacity;
    all.stash += stats.stash;
    right *= 1 - stats.predicted_fpr;
    planned_right *= 1 - stage.filter.planned().fpr;
    all.predicted_fpr = stats.predicted_fpr;
  }
  // One stage speaks for itself: 1 − (1 − p) would round.
  if (stages_.size() == 1) {
    all.planned_fpr = newest().planned().fpr;
  } else {
    all.predicted_fpr = 1 - right;
    all.planned_fpr = 1 - planned_right;
  }
  constexpr double kRounding = 1e-6;
  all.over_target = growths_ > 0 && all.planned_fpr > plan_.fpr * (1 + kRounding);
  return all;
}

}  // namespace sluice
