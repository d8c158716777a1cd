#include "sluice/infer/evidence.hpp"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <limits>

#include "sluice/model/cohort.hpp"

namespace sluice {

TimingReader::TimingReader(const Timing& filter, const Pace& pace, Anchor anchor,
                           std::optional<model::DistinctKeys> distinct, bool printed)
    : distinct_(anchor == Anchor::refreshed ? std::move(distinct) : std::nullopt),
      printed_(printed) {
  const auto timers = static_cast<double>(filter.params().timers);
  log_untouched_ = timers > 1 ? filter.params().probes * std::log1p(-1 / timers) : -1e9;
  block_keys_ = distinct_ ? (*distinct_)(pace.block) : pace.block;
  const double touched = -std::expm1(block_keys_ * log_untouched_);
  touched_[0] = 1;
  for (std::size_t i = 1; i < touched_.size(); ++i) touched_[i] = touched_[i - 1] * touched;
}

// How many keys' timers are `age` blocks old.
double TimingReader::keys_of(const Timing& filter, unsigned age, const Pace& pace) const {
  if (!distinct_)
    return printed_ && age > 0 ? block_keys_ : static_cast<double>(filter.keys_aged(age));
  if (age == 0) return (*distinct_)(pace.position);
  if (printed_) return block_keys_;
  const double until = (age - 1) * pace.block + pace.position;
  return (*distinct_)(until + pace.block) - (*distinct_)(until);
}

double TimingReader::touched(const Timing& filter, const StampedWindow::Trace& trace,
                             const Pace& pace) const {
  const double keys = keys_of(filter, trace.age, pace);
  if (keys == block_keys_) return touched_[trace.oldest];
  const double one = -std::expm1(keys * log_untouched_);
  double all = one;
  for (unsigned i = 1; i < trace.oldest; ++i) all *= one;
  return all;
}

std::optional<model::AgeEvidence> TimingReader::read(const Timing& filter, const Digest& digest,
                                                     const Pace& pace) const noexcept {
  const auto trace = filter.age_of(digest);
  if (!trace) return std::nullopt;
  return model::timing_evidence({.window = pace.window,
                                 .block = pace.block,
                                 .position = pace.position,
                                 .age = trace->age,
                                 .touched = touched(filter, *trace, pace)});
}

void TimingReader::read(const Timing& filter, std::span<const Digest> digests, const Pace& pace,
                        std::span<model::AgeEvidence> evidence) const noexcept {
  for (std::size_t i = 0; i < digests.size(); ++i)
    evidence[i] = read(filter, digests[i], pace).value_or(model::AgeEvidence{});
}

CohortReader::CohortReader(const Cohort& filter, const Pace&, Anchor anchor,
                           std::optional<model::DistinctKeys>, bool)
    : anchor_(anchor),
      match_(model::cohort_match(filter.params().buckets,
                                 filter.params().slot_bits - filter.params().generation_bits)) {}

// With the anchor `delivered` a key that looks like ours is not written while ours is held: then
// the slot is ours, or ours has left the window.
model::AgeEvidence CohortReader::of_age(const Cohort& filter, unsigned age,
                                        const Pace& pace) const noexcept {
  model::AgeEvidence evidence = model::timing_evidence({.window = pace.window,
                                                        .block = pace.block,
                                                        .position = pace.position,
                                                        .age = age,
                                                        .touched = touched(filter, age)});
  if (anchor_ == Anchor::delivered) evidence.inside = 0;
  return evidence;
}

std::optional<model::AgeEvidence> CohortReader::read(const Cohort& filter, const Digest& digest,
                                                     const Pace& pace) const noexcept {
  const auto age = filter.age_of(digest);
  if (!age) return std::nullopt;
  return of_age(filter, *age, pace);
}

void CohortReader::read(const Cohort& filter, std::span<const Digest> digests, const Pace& pace,
                        std::span<model::AgeEvidence> evidence) const noexcept {
  std::array<std::uint8_t, 256> ages;
  for (std::size_t done = 0; done < digests.size(); done += ages.size()) {
    const std::size_t count = std::min(ages.size(), digests.size() - done);
    filter.ages_of(digests.subspan(done, count), std::span(ages).first(count));
    for (std::size_t i = 0; i < count; ++i) evidence[done + i] = of_age(filter, ages[i], pace);
  }
}
namespace {

Pace pace_of(const Window& window, Nanoseconds time) {
  return {static_cast<double>(window.params().spec.size),
          static_cast<double>(window.generation_size()),
          static_cast<double>(window.position(time))};
}

}  // namespace

// The older trace is in another stage: if the key had that age, nothing else would be needed to
// explain it. The weight of those ages is spread over all ages beyond the younger one.
model::AgeEvidence both(const model::AgeEvidence& a, const model::AgeEvidence& b, Anchor anchor,
                        double hold) {
  model::AgeEvidence young = a.from <= b.from ? a : b;
  const model::AgeEvidence& old = a.from <= b.from ? b : a;
  if (anchor == Anchor::refreshed || !(old.beyond > 0) || !(hold > young.to)) return young;
  const double length = std::min(old.to, hold) - old.from;
  if (length > 0) young.inside += young.beyond / old.beyond * length / (hold - young.to);
  return young;
}

bool WindowEvidence::can_read(const Window& window) {
  const std::string_view filter = window.filter_name();
  return window.generations() > 0 && (filter == "cohort" || filter == "timing");
}

WindowEvidence::WindowEvidence(const Window& window) : window_(window) {
  look_up_stages();
}

void WindowEvidence::look_up_stages() {
  const Growth& growth = window_.growth();
  const Pace pace = pace_of(window_, window_.clock().now());
  const Anchor anchor = window_.params().anchor;
  stages_.clear();
  for (std::size_t i = growth.stage_count(); i-- > 0;) {
    const AnyFilter& stage = growth.stage(i);
    if (const auto* cohort = stage.as<Cohort>())
      stages_.push_back(Stage<Cohort>{cohort, CohortReader(*cohort, pace, anchor)});
    else if (const auto* timing = stage.as<Timing>())
      stages_.push_back(Stage<Timing>{timing, TimingReader(*timing, pace, anchor)});
    else
      assert(false && "a stage shows no ages");
  }
  changes_ = growth.changes();
}

Pace WindowEvidence::pace(Nanoseconds time, double keys_a_tick) {
  if (changes_ != window_.growth().changes()) look_up_stages();
  Pace pace = pace_of(window_, time);
  // If keys are stamped again at each arrival, the number that carry this generation is not
  // proportional to its length.
  if (!window_.params().spec.by_time() || window_.params().anchor == Anchor::refreshed) return pace;
  std::uint64_t keys = 0;
  for (const AnyStage& stage : stages_)
    keys += std::visit([](const auto& each) { return each.filter->keys_aged(0); }, stage);
  const double as_written = keys_a_tick > 0 ? static_cast<double>(keys) / keys_a_tick : pace.block;
  pace.position = std::min(std::max(pace.position, as_written), pace.block);
  return pace;
}

std::optional<model::AgeEvidence> WindowEvidence::read(const Digest& digest, const Pace& pace) {
  if (changes_ != window_.growth().changes()) look_up_stages();
  const double hold = pace.block * window_.generations() + pace.position;
  std::optional<model::AgeEvidence> all;
  for (const AnyStage& stage : stages_) {
    const auto one = std::visit(
        [&](const auto& each) { return each.reader.read(*each.filter, digest, pace); }, stage);
    if (!one) continue;
    all = all ? both(*all, *one, window_.params().anchor, hold) : *one;
  }
  return all;
}

}  // namespace sluice
