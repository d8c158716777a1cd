#include "sluice/judge/slack_meter.hpp"

#include <algorithm>

#include "sluice/filters/apbf/apbbf.hpp"
#include "sluice/filters/apbf/apbf.hpp"
#include "sluice/kernels/sample.hpp"

namespace sluice {
namespace {

constexpr std::size_t kMostSlots = 4096;
constexpr Nanoseconds kOldest = -(Nanoseconds{1} << 62);  // no window knows older times
constexpr std::uint64_t kLooksPerSample = std::uint64_t{1} << 15;

// How long a key is kept past the window on average, as a share of the window. When a generation ends, npws
// of the window is remembered past it: half a generation more than on average. Filters of bits keep the
// longer, the fuller they are.
double kept_past(const Window& window) {
  const AnyFilter& filter = window.growth().newest();
  const double half = 0.5 / std::max(1u, window.generations());
  double npws = window.npws();
  if (const auto* apbf = filter.as<Apbf>()) npws += apbf->present_npws() - apbf->npws();
  if (const auto* apbbf = filter.as<Apbbf>()) npws += apbbf->present_npws() - apbbf->npws();
  return std::max(0.0, npws - half);
}

}  // namespace

SlackMeter::SlackMeter(const Window& window) : window_(&window) {
  if (window.stats().keys > 0) missed_keys();
}

void SlackMeter::missed_keys() {
  if (window_->params().spec.by_time()) now_ = window_->clock().now();
  const std::int64_t stay = longest_stay();
  all_known_from_ = std::min(now_, std::numeric_limits<std::int64_t>::max() - stay) + stay;
}

void SlackMeter::look(std::span<const Digest> digests, std::span<const Verdict> verdicts,
                      std::span<const Nanoseconds> times, std::span<const bool> late) {
  const WindowSpec& spec = window_->params().spec;
  if (spec.kind == WindowSpec::Kind::landmark) return;  // has no slack
  const bool by_time = spec.by_time(), refreshed = window_->params().anchor == Anchor::refreshed;
  const Nanoseconds latest = window_->clock().now();
  if (by_time && times.empty()) now_ = latest;
  Times timed{.all = by_time ? times : std::span<const Nanoseconds>(), .latest = latest};
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
    if (!timed.all.empty() && times[at] <= now_ - past_age_) start_afresh(at, timed);
    judge(digests[at], verdicts[at] == Verdict::duplicate, at, timed);
  }
  count_until(digests.size());
  if (by_time) now_ = latest;
  records_ += digests.size();
}

// Of a window of n keys, the n-th last is still inside; of one of time, what is as old is not. How long a
// key is kept changes slowly, and takes long to compute for some filters.
void SlackMeter::set_ages() {
  constexpr std::uint64_t kMostBetween = 8192;
  const WindowSpec& spec = window_->params().spec;
  if (window_->listed()) {
    kept_ = 0;
    due_ = records_;
  } else if (records_ >= due_) {
    kept_ = kept_past(*window_);
    due_ = records_ + std::clamp<std::uint64_t>(records_, 1, kMostBetween);
  }
  past_age_ = static_cast<std::int64_t>(spec.size) + !spec.by_time();
  near_age_ = past_age_ - static_cast<std::int64_t>(kept_ * static_cast<double>(spec.size));
}

// A record of that age is not late, so the window's first time was replaced, and its keys were forgotten.
void SlackMeter::start_afresh(std::size_t at, Times& times) {
  times_ = Shadow(times_.slots());
  now_ = std::max(times.all[at], kOldest);
  times.passed = at;
  all_known_from_ = std::numeric_limits<std::int64_t>::min();
}

// By then nothing is left of a key.
std::int64_t SlackMeter::longest_stay() const {
  const double slack = 1 + window_->slack();
  return static_cast<std::int64_t>(
      std::min(slack * static_cast<double>(window_->params().spec.size) + 1, 0x1p62));
}

// A time beyond the latest is not believed, and does not move the clock.
void SlackMeter::pass(Times& times, std::size_t end) noexcept {
  for (; times.passed < end; ++times.passed)
    if (times.all[times.passed] <= times.latest) now_ = std::max(now_, times.all[times.passed]);
}

// When a key is written: at its own time, or now if that is not believed.
std::int64_t SlackMeter::time_of(std::size_t at, Times& times) noexcept {
  if (times.all.empty()) return now_;
  if (times.all[at] > times.latest) pass(times, at);
  return std::min(times.all[at], now_);
}

// It is now as late as the latest of all records so far, in the sample or not. These are asked for only
// if it matters.
void SlackMeter::count(const Shadow::Entry& entry, std::size_t at, Times& times) {
  Age age = age_at(now_, entry.last);
  if (!times.all.empty() && age != age_at(times.latest, entry.last)) {
    pass(times, at);
    age = age_at(now_, entry.last);
  }
  if (age == Age::past) past_ += weight_;
  if (age == Age::near_end) before_ += weight_;
}

void SlackMeter::judge(const Digest& digest, bool duplicate, std::size_t at, Times& times) {
  if (!times.all.empty() && times.all[at] <= times.latest) now_ = std::max(now_, times.all[at]);
  Shadow::Entry* entry = times_.find(digest);
  if (duplicate && entry != nullptr) count(*entry, at, times);
  // A list has no slack.
  if (duplicate && entry == nullptr && now_ < all_known_from_ && !window_->listed())
    unknown_ += weight_;
  if (!duplicate || window_->params().anchor == Anchor::refreshed) {
    const std::int64_t written = time_of(at, times);
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
  const std::int64_t kept = longest_stay();
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
