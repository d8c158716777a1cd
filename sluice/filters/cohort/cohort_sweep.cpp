// The sweep of a cohort filter: how numbers of few bits are reused without bringing dead slots back
// to life.
//
// Strips of buckets are swept one after another, in a circle. A sweep stamps the free slots of a
// strip with the number that has just left the window. From then on the strip can be read for
// clean_numbers() more numbers: its slots have no two numbers that look alike. Every second key that
// is written sweeps a strip until the generation has done its share, so that a generation with many
// keys keeps the whole table readable.
//
// Generations with few keys take numbers faster than that. The sweep then falls behind, and no call
// has to catch up. A strip is swept before a key is written to it, so one that was not swept in
// time was not written to either: its slots carry numbers of that time, and are read as of then.
#include <algorithm>
#include <cassert>
#include <cstring>

#include "sluice/filters/cohort/cohort.hpp"

namespace sluice {
namespace {

constexpr std::uint64_t kOfLine = kCacheLineBytes / sizeof(std::uint32_t);

}  // namespace

// What a sweep leaves is at most generations + 1 numbers old. That many later numbers still differ
// from all of these; more than a few are not needed.
unsigned Cohort::clean_numbers() const noexcept {
  return std::min(kMostClean, (1u << params_.generation_bits) - params_.generations - 2);
}

std::uint32_t Cohort::numbers_since_swept(std::uint64_t strip) const noexcept {
  std::uint32_t at;
  std::memcpy(&at, strips_.to_read(strip / kOfLine) + strip % kOfLine * sizeof at, sizeof at);
  return static_cast<std::uint32_t>(taken_) - at;
}

void Cohort::take_number() noexcept {
  now_ = (now_ + 1) & table().generation_mask();
  ++taken_;
  ++live_numbers_;
  used_ = false;
  if (swept_at(1) > kMostRotations) count_sweeps_from_less();
  swept_at(0) = swept_;
  // Decided once for all keys of the number, so that it does not depend on how calls are cut into
  // batches.
  behind_ = swept_ - swept_at(clean_numbers()) < strips(params_);
}

// Rounds that no mark of the last few tells apart.
void Cohort::count_sweeps_from_less() noexcept {
  const std::uint64_t all = strips(params_);
  const std::uint64_t less = swept_ / all * all - all;
  swept_ -= less;
  for (std::uint64_t& at : swept_at_) at -= std::min(at, less);
}

// One strip for two keys, so that a call's work follows from its keys. The share of a generation, and
// what earlier ones left undone.
void Cohort::keep_pace() noexcept {
  const std::uint64_t all = strips(params_);
  const std::uint64_t begun = swept_at(0);
  const std::uint64_t share = (all + clean_numbers() - 1) / clean_numbers();
  const std::uint64_t owed = swept_at(clean_numbers() - 1) + all;
  const std::uint64_t until =
      std::min(begun + std::min((written_[now_] + 1) / 2, all), std::max(begun + share, owed));
  for (; behind_ && swept_ < until; ++swept_) sweep_strip(swept_ % all);
  while (swept_ < until) {
    const std::uint64_t first = swept_ % all;
    const std::uint64_t count = std::min(until - swept_, all - first);
    const std::uint64_t bucket = first * kStripBuckets;
    kernels::cohort_sweep(table(), bucket,
                          std::min(count * kStripBuckets, params_.buckets - bucket));
    for (std::uint64_t strip = first; strip < first + count; ++strip) note_swept(strip);
    swept_ += count;
  }
}

void Cohort::sweep_strip(std::uint64_t strip) noexcept {
  assert(live_numbers_ > 0);
  const std::uint64_t first = strip * kStripBuckets;
  const std::uint64_t count = std::min(kStripBuckets, params_.buckets - first);
  const std::uint32_t since = numbers_since_swept(strip);
  kernels::CohortTable then = table();
  if (since <= clean_numbers() + then.live) {
    const unsigned ago = since > clean_numbers() ? since - clean_numbers() : 0;
    then.now = number(ago);
    then.live -= ago;
    kernels::cohort_sweep(then, first, count);
  } else {
    // All slots are dead, with any numbers: all but those with one number get another, and then
    // these too.
    const unsigned left = number(live_numbers_);
    then.live = 0;
    for (const unsigned spared : {left + 3, left + 1}) {
      then.now = spared & then.generation_mask();
      kernels::cohort_sweep(then, first, count);
    }
  }
  note_swept(strip);
}

void Cohort::note_swept(std::uint64_t strip) noexcept {
  const auto at = static_cast<std::uint32_t>(taken_);
  std::memcpy(strips_.to_write(strip / kOfLine) + strip % kOfLine * sizeof at, &at, sizeof at);
}

// Makes a bucket readable by the present numbers, to be written to.
void Cohort::clean(std::uint64_t bucket) noexcept {
  const std::uint64_t strip = bucket / kStripBuckets;
  if (numbers_since_swept(strip) > clean_numbers()) sweep_strip(strip);
}

// Of a bucket, clean or not, when the youngest `numbers` are live.
kernels::CohortMatch Cohort::probe(std::uint64_t bucket, std::uint64_t fingerprint,
                                   unsigned numbers) const noexcept {
  kernels::CohortTable then = table();
  const std::uint32_t since = behind_ ? numbers_since_swept(bucket / kStripBuckets) : 0;
  const std::uint32_t ago = since > clean_numbers() ? since - clean_numbers() : 0;
  if (ago >= numbers)
    return {.match = 0, .free = ~std::uint32_t{0} >> (32 - kernels::cohort_slots(then.slot_bits))};
  then.now = number(ago);
  then.live = numbers - ago - 1;
  return kernels::cohort_probe(then, bucket, fingerprint);
}

}  // namespace sluice
