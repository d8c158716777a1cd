#include "sluice/judge/slack_meter.hpp"

#include <algorithm>

#include "sluice/kernels/sample.hpp"

namespace sluice {
namespace {

constexpr std::size_t kMostSlots = 8192;
constexpr std::uint64_t kLooksPerSample = std::uint64_t{1} << 16;

}  // namespace

void SlackMeter::look(std::span<const Digest> digests, std::span<const Verdict> verdicts,
                      std::span<const Nanoseconds> times, std::span<const bool> late) {
  const WindowSpec& spec = window_->params().spec;
  if (spec.kind == WindowSpec::Kind::landmark) return;  // has no slack
  const bool by_time = spec.by_time(), refreshed = window_->params().anchor == Anchor::refreshed;
  if (by_time && times.empty()) now_ = window_->clock().now();
  std::size_t counted = 0;
  // The number of a record is how many came before it that are remembered.
  const auto count_until = [&](std::size_t end) {
    if (by_time) return;
    now_ += static_cast<std::int64_t>(
        refreshed ? end - counted
                  : end - counted - count_duplicates(verdicts.subspan(counted, end - counted)));
    counted = end;
  };
  for (std::size_t at = kernels::next_sampled(digests, 0, threshold_); at < digests.size();
       at = kernels::next_sampled(digests, at + 1, threshold_)) {
    count_until(at);
    if (verdicts[at] == Verdict::pending || (!late.empty() && late[at])) continue;
    // A time that is not believed is taken for now.
    const Nanoseconds most = window_->clock().now();
    if (by_time && !times.empty()) now_ = std::max(now_, std::min(times[at], most));
    judge(digests[at], verdicts[at] == Verdict::duplicate,
          by_time && !times.empty() ? std::min(times[at], now_) : now_);
  }
  count_until(digests.size());
  if (by_time) now_ = window_->clock().now();
}

// Of a window of n keys, the n-th last is still inside; of one of time, what is as old is not.
void SlackMeter::judge(const Digest& digest, bool duplicate, std::int64_t written) {
  const WindowSpec& spec = window_->params().spec;
  Shadow::Entry* entry = times_.find(digest);
  if (duplicate && entry != nullptr) {
    const auto size = static_cast<std::int64_t>(spec.size);
    const std::int64_t age = now_ - entry->last, past = spec.by_time() ? size : size + 1;
    if (age >= past)
      past_ += weight_;
    else if (age >= past - static_cast<std::int64_t>(mean_kept() * static_cast<double>(size)))
      before_ += weight_;
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

// When a generation ends, npws of the window is remembered past it: half a generation more than on
// average.
double SlackMeter::mean_kept() const {
  if (window_->listed()) return 0;
  return std::max(0.0, window_->npws() - 0.5 / std::max(1u, window_->generations()));
}

}  // namespace sluice
