#include "sluice/infer/age_reader.hpp"

#include <algorithm>
#include <cmath>

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

}  // namespace sluice
