#include "sluice/audit/audit.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cassert>
#include <cmath>
#include <cstring>
#include <utility>

#include "sluice/base/error.hpp"

namespace sluice {
namespace {

EventClock clock_of(const Window* window) {
  return window == nullptr ? EventClock() : window->clock();
}

std::int64_t floor_divide(std::int64_t a, std::int64_t b) {
  return a / b - (a % b < 0);
}

static_assert(static_cast<int>(Verdict::distinct) == 0);
static_assert(static_cast<int>(Verdict::duplicate) == 1);

std::uint64_t eight_at(const void* bytes) noexcept {
  std::uint64_t eight;
  std::memcpy(&eight, bytes, sizeof eight);
  return eight;
}

// How many are 0, where each is 0 or 1: in one list, or in both at the same place. Eight are added at
// once, each in a byte of its own, as often as a byte can count; then all bytes are added.
template <class Bytes, class... More>
std::int64_t count_zeros(const Bytes& bytes, const More&... more) noexcept {
  constexpr std::size_t kMost = 255;
  constexpr std::uint64_t kEvenBytes = 0x00FF00FF00FF00FF;
  std::uint64_t ones = 0;
  std::size_t i = 0;
  while (i + 8 <= bytes.size()) {
    const std::size_t words = std::min(kMost, (bytes.size() - i) / 8);
    std::uint64_t sums = 0;
    for (std::size_t word = 0; word < words; ++word, i += 8)
      sums += (eight_at(bytes.data() + i) | ... | eight_at(more.data() + i));
    sums = (sums & kEvenBytes) + (sums >> 8 & kEvenBytes);
    ones += (sums * 0x0001000100010001) >> 48;
  }
  for (; i < bytes.size(); ++i)
    ones += (static_cast<bool>(bytes[i]) || ... || static_cast<bool>(more[i]));
  return static_cast<std::int64_t>(bytes.size() - ones);
}

}  // namespace

Audit::Audit(const Params& params, const AnyFilter& filter)
    : params_(params),
      filter_(filter),
      window_(filter.window()),
      passes_duplicates_(!filter.promises().no_false_negatives),
      knows_all_(params.fresh),
      threshold_(0),
      clock_(clock_of(window_)),
      shadow_(filter.memory()),
      ghosts_(params.seed, params.fresh) {
  if (params.sample == 0 || params.sample > kMostSample)
    throw BadParameters(fmt::format("an audit takes one key in 1 to {}, not one in {}", kMostSample,
                                    params.sample));
  if (params.most_bytes < kLeastBytes)
    throw BadParameters(
        fmt::format("an audit needs {} bytes, not {}", kLeastBytes, params.most_bytes));
  counts_.sample = params.sample;
  threshold_ = threshold_of(params.sample);
  if (window_ == nullptr) return;
  refreshed_ = window_->params().anchor == Anchor::refreshed;
  constexpr auto kLongest = std::uint64_t{1} << 62;
  size_ = static_cast<std::int64_t>(std::min(window_->params().spec.size, kLongest));
  if (window_->params().spec.by_time()) start_ = now_ = clock_.now();
  look_at_slack();
}

// Rounded up, so that only keys surely outside are counted as such. No age is beyond what a
// snapshot may say, and none is less than without slack, which is below 0 by rounding only.
std::int64_t Audit::age_past(double slack) const noexcept {
  const double age = std::ceil(static_cast<double>(size_) * (1 + std::max(0.0, slack))) + 1;
  return age < 0x1p62 ? static_cast<std::int64_t>(age) : kFarthest;
}

// It may change when a window grows.
void Audit::look_at_slack() {
  if (window_ != nullptr) outside_age_ = std::max(outside_age_, age_past(window_->slack()));
}

bool Audit::inside(std::int64_t last, std::int64_t now) const noexcept {
  if (window_ == nullptr) return true;
  switch (window_->params().spec.kind) {
    case WindowSpec::Kind::count:
      return now - last <= size_;
    case WindowSpec::Kind::time:
      return now - last < size_;
    case WindowSpec::Kind::landmark:
      break;
  }
  return floor_divide(now, size_) <= floor_divide(last, size_);
}

bool Audit::outside(std::int64_t last, std::int64_t now) const noexcept {
  if (window_ == nullptr) return false;
  if (window_->params().spec.kind == WindowSpec::Kind::landmark) return !inside(last, now);
  return now - last >= outside_age_;
}

Audit::Truth Audit::truth_of(const Shadow::Entry* entry, std::int64_t now) const noexcept {
  if (entry == nullptr) return knows_all(now) ? Truth::distinct : Truth::either;
  if (entry->last == Shadow::kUnknown) return Truth::either;
  if (entry->last == Shadow::kForgotten) return Truth::distinct;
  if (outside(entry->last, now)) return Truth::distinct;
  return inside(entry->last, now) && !entry->lost() ? Truth::duplicate : Truth::either;
}

KeyCounts Audit::count(Truth truth, Verdict verdict) noexcept {
  KeyCounts one;
  const float held = verdict == Verdict::duplicate ? 1 : 0;
  if (truth == Truth::either) {
    ++counts_.undecided;
  } else if (truth == Truth::distinct) {
    one.distinct = 1;
    one.lost = held;
    ++sampled_.distinct;
    sampled_.lost += held;
  } else {
    one.duplicates = 1;
    one.passed = 1 - held;
  }
  if (counts_totals_) {
    one.held = held;
    one.let_through = 1 - held;
  }
  return one;
}

void Audit::judge(const Digest& digest, Verdict verdict, std::int64_t time, std::int64_t now) {
  Shadow::Entry* entry = shadow_.find(digest);
  const Truth truth = truth_of(entry, now);
  const KeyCounts one = count(truth, verdict);
  const bool held = verdict == Verdict::duplicate;
  const bool lost = held && (truth == Truth::distinct || (entry != nullptr && entry->lost()));
  const bool writes = !held || refreshed_ || truth == Truth::distinct;
  if (entry == nullptr) {
    if (writes) entry = remember(digest, time, now, lost);
  } else if (writes && !(held && entry->last == Shadow::kUnknown && time < now)) {
    // Unknown is less than any time, but may be later than one before now. A lost event is not a
    // delivery.
    const bool delivers_lost = entry->lost() && !held;
    entry->set(delivers_lost ? time : std::max(entry->last, time), lost);
  }
  if (entry != nullptr)
    entry->counts.add(one);
  else if (sampled(digest))
    dropped_.add(one);
}

// Null if the key has just left the sample.
Shadow::Entry* Audit::remember(const Digest& digest, std::int64_t time, std::int64_t now,
                               bool lost) {
  if (shadow_.full()) make_room(now);
  return sampled(digest) ? &shadow_.add(digest, time, lost) : nullptr;
}

void Audit::forget(const Digest& digest, bool found) {
  if (!sampled(digest)) return;
  const std::int64_t last = found ? Shadow::kForgotten : Shadow::kUnknown;
  if (Shadow::Entry* known = shadow_.find(digest))
    known->set(last, false);
  else if (found && !knows_all(now_))
    remember(digest, last, now_, false);
}

// The table grows. If it may not, keys that have left the window are dropped; they come back as
// other keys, as far as the sums know, so they stay while there is room. If that is not enough, the
// sample is halved, in place. While the table grows there are two, and both are counted. If there is
// no memory for both, that is as if the limit were reached: no event is left out. Keys that no
// halving drops were chosen by somebody who knows the hash: then the audit starts anew.
void Audit::make_room(std::int64_t now) {
  const std::size_t slots = shadow_.slots();
  if (3 * shadow_.table_bytes() <= params_.most_bytes && grow()) return;
  const bool all = knows_all(now);
  const auto alive = [&](const Shadow::Entry& entry) {
    if (!sampled(entry.key)) return false;
    if (entry.last == Shadow::kForgotten) return !all;  // then no entry says the same
    return entry.last == Shadow::kUnknown || !outside(entry.last, now);
  };
  const auto halvings = halvings_for(slots / 8 * 3, alive);
  if (!halvings) return lose_track(now);
  for (unsigned i = 0; i < *halvings; ++i) halve();
  shadow_.keep_only([&](const Shadow::Entry& entry) {
    const bool stays = alive(entry);
    if (!stays) dropped_.add(entry.counts);
    return stays;
  });
}

bool Audit::grow() noexcept {
  if (fates_ != nullptr && !fates_->may_take()) return false;
  const bool grown = shadow_.grow();
  if (fates_ != nullptr) fates_->could_take(grown);
  return grown;
}

// How often to halve the sample until at most `most` keys are left. Nothing: more often than digests
// ever need. A table that is full has at most twice as many keys as fit, so two or three are usual.
template <class Alive>
std::optional<unsigned> Audit::halvings_for(std::size_t most, const Alive& alive) const {
  constexpr unsigned kMostHalvings = 16;
  const auto room = static_cast<unsigned>(std::countl_zero(counts_.sample));
  for (unsigned halvings = 0; halvings <= std::min(kMostHalvings, room); ++halvings) {
    const std::uint64_t sample = counts_.sample << halvings;
    const std::size_t left = shadow_.count(
        [&](const Shadow::Entry& entry) { return in_sample(entry.key, sample) && alive(entry); });
    if (left <= most) return halvings;
  }
  return std::nullopt;
}

// The keys that are still in the sample, too: so the sums of squares stay what they should be.
void Audit::halve() {
  counts_.sample *= 2;
  ++counts_.doublings;
  threshold_ = threshold_of(counts_.sample);
  counts_.undecided /= 2;
  dropped_.halve();
  shadow_.each([](Shadow::Entry& entry) { entry.counts.halve(); });
}

// The sample is dropped, and nothing is known about keys from before `now`. Either a clock was set
// back: keys keep their ages, so their times move with the clock. Or the sample cannot be halved.
// Or its keys are no digests.
void Audit::lose_track(std::int64_t now) {
  std::as_const(shadow_).each([&](const Shadow::Entry& entry) { dropped_.add(entry.counts); });
  shadow_.clear();
  knows_all_ = false;
  start_ = now;
}

void Audit::observe(std::span<const Digest> digests, std::span<const Verdict> verdicts,
                    std::span<const Nanoseconds> times, std::span<const bool> late) {
  assert(digests.size() == verdicts.size());
  counts_totals_ = knows_all(now_);
  sampled_ = {};
  settle(window_ == nullptr || !window_->params().spec.by_time()
             ? observe_counted(digests, verdicts)
         : times.empty() ? observe_arrived(digests, verdicts)
                         : observe_timed(digests, verdicts, times, late));
}

// The distinct events are those let through and those lost; the sample tells how many were lost. Where
// duplicates may pass, the sample also tells which of those let through were distinct.
void Audit::settle(const Verdicts& verdicts) {
  if (counts_totals_) {
    totals_.let_through += static_cast<double>(verdicts.distinct);
    totals_.held += static_cast<double>(verdicts.duplicate);
  }
  const auto records = static_cast<std::uint64_t>(verdicts.distinct + verdicts.duplicate);
  const auto sample = static_cast<double>(counts_.sample);
  ghosts_.count(records, passes_duplicates_
                             ? sampled_.distinct * sample
                             : static_cast<double>(verdicts.distinct) + sampled_.lost * sample);
  if (const std::uint64_t due = ghosts_.due(); due > 0) {
    look_at_slack();
    ask_ghosts(due);
  }
}

// Now is how many were delivered, or arrived, before the key.
Audit::Verdicts Audit::observe_counted(std::span<const Digest> digests,
                                       std::span<const Verdict> verdicts) {
  const bool counts = window_ != nullptr;
  // Nobody counts that far, but a forged state may say so. The count begins again.
  if (counts && now_ > kFarthest - static_cast<std::int64_t>(digests.size())) {
    now_ = 0;
    lose_track(now_);
  }
  const std::int64_t before = now_;
  std::size_t counted = 0;
  const auto count_to = [&](std::size_t end) {
    const auto part = verdicts.subspan(counted, end - counted);
    now_ += refreshed_ ? static_cast<std::int64_t>(part.size()) : count_zeros(part);
    counted = end;
  };
  for (std::size_t i = next_sampled(digests, 0); i < digests.size();
       i = next_sampled(digests, i + 1)) {
    if (counts) count_to(i);
    judge(digests[i], verdicts[i], now_, now_);
  }
  if (counts) count_to(digests.size());
  const std::int64_t distinct = counts && !refreshed_ ? now_ - before : count_zeros(verdicts);
  return {distinct, static_cast<std::int64_t>(verdicts.size()) - distinct};
}

Audit::Verdicts Audit::observe_arrived(std::span<const Digest> digests,
                                       std::span<const Verdict> verdicts) {
  const std::int64_t now = window_->clock().now();
  if (now < now_) lose_track(now);
  now_ = now;
  for (std::size_t i = next_sampled(digests, 0); i < digests.size();
       i = next_sampled(digests, i + 1))
    judge(digests[i], verdicts[i], now, now);
  const std::int64_t distinct = count_zeros(verdicts);
  return {distinct, static_cast<std::int64_t>(verdicts.size()) - distinct};
}

// It was written, or will be, at a time that only the window knows.
void Audit::lose_track_of(const Digest& digest) {
  if (!sampled(digest)) return;
  if (Shadow::Entry* entry = shadow_.find(digest))
    entry->set(Shadow::kUnknown, false);
  else
    remember(digest, Shadow::kUnknown, clock_.now(), false);
}

// The window has forgotten all its keys, also those from before the audit.
void Audit::start_afresh() {
  shadow_.each([](Shadow::Entry& entry) { entry.set(Shadow::kForgotten, false); });
  knows_all_ = true;
  start_ = clock_.now();
}

// The same clock reads the same records: now is what it was when the filter was asked.
EventClock::Reading Audit::read(const Digest& digest, Nanoseconds& time) {
  const bool first = !clock_.started();
  const EventClock::Reading reading = clock_.read(digest, time, window_->limits());
  if (first) start_ = clock_.now();
  if (reading == EventClock::Reading::replaced) start_afresh();
  if (reading == EventClock::Reading::agreed) {
    if (const auto claimant = clock_.claimant()) lose_track_of(*claimant);
    clock_.settle();
  }
  return reading;
}

// Returns how many were not believed.
std::int64_t Audit::read_all(std::span<const Digest> digests, std::span<const Nanoseconds> times) {
  Nanoseconds greatest = clock_.now();
  for (const Nanoseconds time : times) greatest = std::max(greatest, time);
  if (clock_.leap(greatest, window_->limits())) return 0;
  std::int64_t disbelieved = 0;
  for (std::size_t i = 0; i < times.size(); ++i) {
    Nanoseconds time = times[i];
    disbelieved += read(digests[i], time) == EventClock::Reading::disbelieved;
  }
  return disbelieved;
}

// Late records are not judged. Those whose time is not believed are let through in any case.
Audit::Verdicts Audit::observe_timed(std::span<const Digest> digests,
                                     std::span<const Verdict> verdicts,
                                     std::span<const Nanoseconds> times,
                                     std::span<const bool> late) {
  assert(digests.size() == times.size() && digests.size() == late.size());
  std::int64_t disbelieved = 0;
  for (std::size_t begin = 0; begin < digests.size();) {
    const std::size_t i = next_sampled(digests, begin);
    disbelieved += read_all(digests.subspan(begin, i - begin), times.subspan(begin, i - begin));
    if (i == digests.size()) break;
    begin = i + 1;
    Nanoseconds time = times[i];
    const EventClock::Reading reading = read(digests[i], time);
    if (late[i]) continue;
    if (reading != EventClock::Reading::disbelieved) {
      judge(digests[i], verdicts[i], time, clock_.now());
      continue;
    }
    // Written at a time that may still change.
    ++disbelieved;
    ++counts_.undecided;
    lose_track_of(digests[i]);
  }
  now_ = clock_.now();
  const std::int64_t judged = count_zeros(late);
  const std::int64_t distinct = count_zeros(verdicts, late);
  return {std::max<std::int64_t>(0, distinct - disbelieved), judged - distinct};
}

void Audit::ask_ghosts(std::uint64_t count) {
  ghosts_.ask(filter_, count);
}

Audit::Report Audit::report() const {
  Report report = counts_;
  KeySums sums = dropped_;
  shadow_.each([&](const Shadow::Entry& entry) { sums.add(entry.counts); });
  const auto sample = static_cast<double>(counts_.sample);
  report.positives = sums.positives(sample);
  report.negatives = sums.negatives(sample, totals_);
  report.ghosts = ghosts_.average();
  report.ghosts_now = ghosts_.now();
  report.keys = shadow_.size();
  report.bytes = shadow_.bytes();
  report.most_bytes = params_.most_bytes;
  report.knows_all = knows_all(now_);
  return report;
}

}  // namespace sluice
