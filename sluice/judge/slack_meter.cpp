#include "sluice/judge/slack_meter.hpp"

#include <algorithm>

#include "sluice/kernels/sample.hpp"

namespace sluice {
namespace {

constexpr std::size_t kMostSlots = 4096;
constexpr Nanoseconds kOldest = -(Nanoseconds{1} << 62);  // no window knows older times
constexpr std::uint64_t kLooksPerSample = std::uint64_t{1} << 15;

}  // namespace

void SlackMeter::look(std::span<const Digest> digests, std::span<const Verdict> verdicts,
                      std::span<const Nanoseconds> times, std::span<const bool> late) {
  const WindowSpec& spec = window_->params().spec;
  if (spec.kind == WindowSpec::Kind::landmark) return;  // has no slack
  const bool by_time = spec.by_time(), refreshed = window_->params().anchor == Anchor::refreshed;
  const Nanoseconds latest = window_->clock().now();
  if (by_time && times.empty()) now_ = latest;
  set_ages();
  std::size_t counted = 0;
  // The number of a record is how many came before it that are remembered.
  const auto count_until = [&](std::size_t end) {
    if (by_time) return;
    now_ += static_cast<std::int64_t>(
        refreshed ? end - counted
                  : end - counted - count_duplicates(verdicts.subspan(counted, end - counted)));
    counted = end;
  };
  // All are in the sample at first.
  const auto next = [&](std::size_t from) {
    return weight_ == 1 ? from : kernels::next_sampled(digests, from, threshold_);
  };
  for (std::size_t at = next(0); at < digests.size(); at = next(at + 1)) {
    count_until(at);
    if (verdicts[at] == Verdict::pending || (!late.empty() && late[at])) continue;
    Nanoseconds time = now_;
    if (by_time && !times.empty()) {
      // A time that is not believed is taken for now.
      time = std::clamp(times[at], kOldest, std::max(kOldest, latest));
      // It is not late, so the window's first time was replaced, and its keys were forgotten.
      if (time <= now_ - past_age_) {
        times_ = Shadow(times_.slots());
        now_ = time;
      }
      now_ = std::max(now_, time);
    }
    judge(digests[at], verdicts[at] == Verdict::duplicate, time);
  }
  count_until(digests.size());
  if (by_time) now_ = latest;
}

// Of a window of n keys, the n-th last is still inside; of one of time, what is as old is not. When a
// generation ends, npws of the window is remembered past it: half a generation more than on average.
void SlackMeter::set_ages() {
  const WindowSpec& spec = window_->params().spec;
  const double kept =
      window_->listed()
          ? 0
          : std::max(0.0, window_->npws() - 0.5 / std::max(1u, window_->generations()));
  past_age_ = static_cast<std::int64_t>(spec.size) + !spec.by_time();
  near_age_ = past_age_ - static_cast<std::int64_t>(kept * static_cast<double>(spec.size));
}

void SlackMeter::judge(const Digest& digest, bool duplicate, std::int64_t written) {
  Shadow::Entry* entry = times_.find(digest);
  if (duplicate && entry != nullptr) {
    const std::int64_t age = now_ - entry->last;
    if (age >= near_age_) (age >= past_age_ ? past_ : before_) += weight_;
  }
  if (!duplicate || window_->params().anchor == Anchor::refreshed) {
    if (entry != nullptr) {
      entry->set(std::max(entry->last, written), false);
    } else {
      if (times_.full()) make_room();
      if (!times_.full() && kernels::sample_word(digest) <= threshold_)
        times_.add(digest, written, false);
    }
  }
  if (++looks_ % kLooksPerSample == 0) halve();
}

// Keys that no window remembers go first, and then there may be more room, or a smaller sample.
void SlackMeter::make_room() {
  const double slack = 1 + window_->slack();
  const auto kept = static_cast<std::int64_t>(
      std::min(slack * static_cast<double>(window_->params().spec.size) + 1, 0x1p62));
  const auto inside = [&](const Shadow::Entry& entry) { return now_ - entry.last <= kept; };
  const std::size_t live = times_.count(inside), slots = times_.slots();
  times_.rebuild(live < slots / 2 || slots == kMostSlots ? slots : 2 * slots, inside);
  if (times_.full()) halve();
}

void SlackMeter::halve() {
  threshold_ /= 2;
  weight_ *= 2;
  times_.rebuild(times_.slots(), [&](const Shadow::Entry& entry) {
    return kernels::sample_word(entry.key) <= threshold_;
  });
}

}  // namespace sluice
