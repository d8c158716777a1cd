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

SlackMeter::SlackMeter(const Window& window) : window_(&window), times_(window.memory()) {
  set_ages();
  missed_keys();
  if (window.stats().keys == 0) all_known_from_ = std::numeric_limits<std::int64_t>::min();
}

void SlackMeter::missed_keys() {
  follow_window();
  if (window_->params().spec.by_time()) now_ = clock_.now();
  missed_until_ = now_;
  const std::int64_t stay = longest_stay();
  all_known_from_ = std::min(now_, std::numeric_limits<std::int64_t>::max() - stay) + stay;
}

void SlackMeter::forget(const Digest& digest) noexcept {
  clock_.forget(digest);
}

// A list is exact: its repeats are inside the window, whenever their keys came.
std::uint64_t SlackMeter::unknown() const noexcept {
  return window_->listed() ? 0 : unknown_;
}

void SlackMeter::follow_window() noexcept {
  clock_ = window_->clock();
  if (clock_.owes()) clock_.settle();
  disbelieved_ = clock_.disbelieved();
}

void SlackMeter::look(std::span<const Digest> digests, std::span<const Verdict> verdicts,
                      std::span<const Nanoseconds> times, std::span<const bool> late) {
  const WindowSpec& spec = window_->params().spec;
  if (spec.kind == WindowSpec::Kind::landmark) return;  // has no slack
  if (!spec.by_time()) {
    look_by_number(digests, verdicts);
  } else if (times.empty()) {
    follow_window();
    now_ = clock_.now();
    each_sampled(digests, verdicts, {}, [&](std::size_t) { return Moment{now_, nullptr}; });
  } else if (believed_all()) {
    look_at_believed(digests, verdicts, times, late);
  } else {
    read_each(digests, verdicts, times, late);
  }
  records_ += digests.size();
  if (records_ >= due_) set_ages();
}

// Whether the window has believed every time since the last look, and none of them replaced its first
// time: the clock is supported, no time waits to be believed, and the window counts no further one that
// it did not believe.
bool SlackMeter::believed_all() noexcept {
  const std::uint64_t disbelieved = window_->clock().disbelieved();
  return clock_.leap(clock_.now(), window_->limits()) && !clock_.waits() &&
         disbelieved == disbelieved_ && disbelieved < std::numeric_limits<std::uint32_t>::max();
}

// Calls `at` for the records in the sample that were judged, and judges each as of what it returns.
template <class At>
void SlackMeter::each_sampled(std::span<const Digest> digests, std::span<const Verdict> verdicts,
                              std::span<const bool> late, At at) {
  // All are in the sample at first.
  const auto next = [&](std::size_t from) {
    return weight_ == 1 ? from : kernels::next_sampled(digests, from, threshold_);
  };
  for (std::size_t i = next(0); i < digests.size(); i = next(i + 1)) {
    if (verdicts[i] == Verdict::pending || (!late.empty() && late[i])) continue;
    judge(digests[i], verdicts[i] == Verdict::duplicate, at(i));
  }
}

// The number of a record is how many came before it that are remembered.
void SlackMeter::look_by_number(std::span<const Digest> digests,
                                std::span<const Verdict> verdicts) {
  std::size_t counted = 0;
  const auto count_until = [&](std::size_t end) {
    const std::size_t repeats =
        refreshed() ? 0 : count_duplicates(verdicts.subspan(counted, end - counted));
    now_ += static_cast<std::int64_t>(end - counted - repeats);
    counted = end;
  };
  each_sampled(digests, verdicts, {}, [&](std::size_t i) {
    count_until(i);
    return Moment{now_, nullptr};
  });
  count_until(digests.size());
}

// It is now as late as the latest of all records so far, in the sample or not. Those that are not are
// asked for only if it matters.
void SlackMeter::look_at_believed(std::span<const Digest> digests,
                                  std::span<const Verdict> verdicts,
                                  std::span<const Nanoseconds> times, std::span<const bool> late) {
  follow_window();
  Passing passing{.times = times, .latest = clock_.now()};
  each_sampled(digests, verdicts, late, [&](std::size_t i) {
    const Nanoseconds time = std::clamp(times[i], kOldest, passing.latest);
    now_ = std::max(now_, time);
    passing.here = i;
    return Moment{time, &passing};
  });
  now_ = passing.latest;
}

// The same clock reads the same records: now is what it was when the window judged each of them.
void SlackMeter::read_each(std::span<const Digest> digests, std::span<const Verdict> verdicts,
                           std::span<const Nanoseconds> times, std::span<const bool> late) {
  for (std::size_t i = 0; i < digests.size(); ++i) {
    Nanoseconds time = times[i];
    const EventClock::Reading reading = clock_.read(digests[i], time, window_->limits());
    now_ = clock_.now();
    if (reading == EventClock::Reading::replaced) start_afresh();
    if (reading == EventClock::Reading::agreed) believe_claimant();
    if (!sampled(digests[i]) || verdicts[i] == Verdict::pending || (!late.empty() && late[i]))
      continue;
    judge(digests[i], verdicts[i] == Verdict::duplicate, {time, nullptr});
  }
  disbelieved_ = window_->clock().disbelieved();
}

// Of a window of n keys, the n-th last is still inside; of one of time, what is as old is not. How long a
// key is kept changes slowly, and takes long to compute for some filters. A list keeps none, and may
// become a table soon.
void SlackMeter::set_ages() {
  constexpr std::uint64_t kMostBetween = 8192, kMostBetweenLists = 1024;
  const WindowSpec& spec = window_->params().spec;
  if (spec.kind == WindowSpec::Kind::landmark) {
    due_ = std::numeric_limits<std::uint64_t>::max();
    return;
  }
  const bool listed = window_->listed();
  const double kept = listed ? 0 : kept_past(*window_);
  due_ =
      records_ + std::clamp<std::uint64_t>(records_, 1, listed ? kMostBetweenLists : kMostBetween);
  past_age_ = static_cast<std::int64_t>(spec.size) + !spec.by_time();
  near_age_ = past_age_ - static_cast<std::int64_t>(kept * static_cast<double>(spec.size));
}

// The window's first time was replaced, and its keys were forgotten.
void SlackMeter::start_afresh() {
  times_.keep_only([](const Shadow::Entry&) { return false; });
  all_known_from_ = std::numeric_limits<std::int64_t>::min();
}

// By then nothing is left of a key.
std::int64_t SlackMeter::longest_stay() const {
  const double slack = 1 + window_->slack();
  return static_cast<std::int64_t>(
      std::min(slack * static_cast<double>(window_->params().spec.size) + 1, 0x1p62));
}

// It came when it said.
void SlackMeter::believe_claimant() {
  if (const auto claimant = clock_.claimant(); claimant && sampled(*claimant))
    write(*claimant, std::min(clock_.claimed(), now_));
  clock_.settle();
}

void SlackMeter::pass(Passing* passing) noexcept {
  if (passing == nullptr) return;
  for (; passing->passed < passing->here; ++passing->passed)
    now_ = std::max(now_, std::min(passing->times[passing->passed], passing->latest));
}

void SlackMeter::count(const Shadow::Entry& entry, Passing* passing) {
  Age age = age_at(now_, entry.last);
  if (passing != nullptr && age != age_at(passing->latest, entry.last)) {
    pass(passing);
    age = age_at(now_, entry.last);
  }
  if (age == Age::past) past_ += weight_;
  if (age == Age::near_end) before_ += weight_;
}

void SlackMeter::judge(const Digest& digest, bool duplicate, const Moment& moment) {
  const Shadow::Entry* entry = times_.find(digest);
  bool known = true;
  if (duplicate && entry != nullptr) {
    count(*entry, moment.passing);
  } else if (duplicate && now_ < all_known_from_) {
    pass(moment.passing);
    known = now_ >= all_known_from_;
    if (!known) unknown_ += weight_;
  }
  // The key that was missed may be later than a record out of order, but not later than now was then.
  if (!duplicate || (refreshed() && (known || moment.written >= missed_until_)))
    write(digest, moment.written);
  if (++looks_ % kLooksPerSample == 0) halve();
}

void SlackMeter::write(const Digest& digest, std::int64_t written) {
  if (Shadow::Entry* entry = times_.find(digest)) {
    entry->set(std::max(entry->last, written), false);
    return;
  }
  if (times_.full()) make_room();
  if (!times_.full() && sampled(digest)) times_.add(digest, written, false);
}

bool SlackMeter::sampled(const Digest& digest) const noexcept {
  return kernels::sample_word(digest) <= threshold_;
}

// Keys that no window remembers go first, and then there may be more room, or a smaller sample.
void SlackMeter::make_room() {
  const std::int64_t kept = longest_stay();
  const auto inside = [&](const Shadow::Entry& entry) { return now_ - entry.last <= kept; };
  const std::size_t live = times_.count(inside), slots = times_.slots();
  times_.keep_only(inside);
  // If there is no memory for that, the sample is smaller.
  if (live >= slots / 2 && slots < kMostSlots) times_.grow();
  if (times_.full()) halve();
}

void SlackMeter::halve() {
  threshold_ /= 2;
  weight_ *= 2;
  times_.keep_only([&](const Shadow::Entry& entry) { return sampled(entry.key); });
}

}  // namespace sluice
