// Sliced filters that age: the budget, and what happens when a slice is full.
//
// Slices run ahead of each other, so a step is only as long as no slice can run out of budget or
// room within it. A cohort may be full before its count says so, when a key finds no place; then
// what other slices wrote after that record is taken back.
#include <algorithm>
#include <array>
#include <cassert>

#include "sluice/filters/slice_crew.hpp"
#include "sluice/filters/sliced.hpp"

namespace sluice {
namespace {

// With less room in any slice, records are judged one by one: steps would be too short for
// anything else.
constexpr std::uint64_t kNearlyFull = 64;
// A step of so many records is long enough for the threads.
constexpr std::size_t kLongStep = 8192;

}  // namespace

SlicedWindow SlicedWindow::make(const Params& params) {
  return SlicedWindow(params, make_slices(params, true));
}

SlicedWindow SlicedWindow::decode(Decoder& header, Decoder& payload) {
  Decoded decoded = decode_slices(header, payload, true);
  return SlicedWindow(std::move(decoded.params), std::move(decoded.slices));
}

void SlicedWindow::rotate() noexcept {
  for (AnyFilter& slice : slices_) slice.rotate();
}

std::uint64_t SlicedWindow::live_keys() const noexcept {
  std::uint64_t keys = 0;
  for (const AnyFilter& slice : slices_) keys += slice.live_keys();
  return keys;
}

std::uint64_t SlicedWindow::room() const noexcept {
  std::uint64_t least = slices_.front().room();
  for (const AnyFilter& slice : slices_) least = std::min(least, slice.room());
  return least;
}

std::optional<Verdict> SlicedWindow::admit_aged(const Digest& digest, unsigned age,
                                                Anchor anchor) noexcept {
  return slice_for(digest).admit_aged(digest, age, anchor);
}

std::size_t SlicedWindow::admit(std::span<const Digest> digests, std::span<Verdict> verdicts,
                                std::uint64_t& budget, Anchor anchor) noexcept {
  assert(digests.size() == verdicts.size());
  std::size_t judged = 0;
  bool full = false;
  while (judged < digests.size() && budget > 0 && !full) {
    auto rest = digests.subspan(judged);
    auto rest_verdicts = verdicts.subspan(judged);
    const std::uint64_t least = room();
    if (least < kNearlyFull) {
      const std::size_t count = std::min<std::size_t>(rest.size(), kNearlyFull);
      const std::size_t done =
          admit_singly(rest.first(count), rest_verdicts.first(count), budget, anchor);
      judged += done;
      full = done < count;
      continue;
    }
    const std::size_t count = most_records(rest, rest_verdicts, std::min(budget, least), anchor);
    judged += admit_step(rest.first(count), rest_verdicts.first(count), budget, anchor, full);
  }
  return judged;
}

std::size_t SlicedWindow::admit_singly(std::span<const Digest> digests, std::span<Verdict> verdicts,
                                       std::uint64_t& budget, Anchor anchor) noexcept {
  for (std::size_t i = 0; i < digests.size(); ++i) {
    if (budget == 0) return i;
    if (slice_for(digests[i])
            .admit(digests.subspan(i, 1), verdicts.subspan(i, 1), budget, anchor) == 0)
      return i;
  }
  return digests.size();
}

// How many of the first records write at most `limit` keys, and as many at the earliest with the
// last of them, whatever the verdicts: a spent budget ends a generation at once. Those that are
// duplicates now stay so until something ages, and write nothing unless refreshed: asking finds
// long steps even for the last keys of a generation.
std::size_t SlicedWindow::most_records(std::span<const Digest> digests, std::span<Verdict> verdicts,
                                       std::uint64_t limit, Anchor anchor) const noexcept {
  std::size_t count = std::min(digests.size(), SliceCrew::kTogether);
  if (limit >= std::min(count, kLongStep)) return std::min<std::size_t>(count, limit);
  if (anchor == Anchor::refreshed || !promises().no_false_negatives)
    return static_cast<std::size_t>(limit);
  // Not many more than new keys alone would take: what is asked too far ahead is asked again.
  count = std::min(count, std::max(SliceCrew::kAlone, 2 * static_cast<std::size_t>(limit)));
  may_contain(digests.first(count), verdicts.first(count));
  std::uint64_t distinct = 0;
  for (std::size_t i = 0; i < count; ++i)
    if (verdicts[i] == Verdict::distinct && ++distinct == limit) return i + 1;
  return count;
}

// What each slice did in a step.
struct SlicedWindow::Step {
  std::size_t judged = 0;
  std::uint64_t written = 0;
  bool full = false;
};

std::size_t SlicedWindow::admit_step(std::span<const Digest> digests, std::span<Verdict> verdicts,
                                     std::uint64_t& budget, Anchor anchor, bool& full) noexcept {
  std::array<Step, kMostSlices> steps;
  std::size_t judged = crew_->step(
      digests, verdicts,
      [&](unsigned slice, std::span<const Digest> part, std::span<Verdict> part_verdicts) {
        Step& step = steps[slice];
        if (step.full) return;
        std::uint64_t left = part.size();
        const std::size_t count = slices_[slice].admit(part, part_verdicts, left, anchor);
        step.judged += count;
        step.written += part.size() - left;
        step.full = count < part.size();
      });
  full = std::ranges::any_of(steps, &Step::full);
  if (full) judged = take_back(digests.first(judged), verdicts, steps);
  if (anchor == Anchor::refreshed)
    budget -= judged;
  else
    for (const Step& step : steps) budget -= step.written;
  return judged;
}

// Everything after the first record that its slice had no room for. Returns which that is.
std::size_t SlicedWindow::take_back(std::span<const Digest> digests,
                                    std::span<const Verdict> verdicts,
                                    std::span<Step> steps) noexcept {
  std::array<std::size_t, kMostSlices> seen{};
  std::size_t first = digests.size();
  for (std::size_t i = 0; i < digests.size(); ++i) {
    const unsigned slice = slice_of(digests[i], params_.slices);
    if (seen[slice]++ >= steps[slice].judged) {
      first = std::min(first, i);
    } else if (i > first && verdicts[i] == Verdict::distinct) {
      slices_[slice].forget(digests[i]);
      --steps[slice].written;
      ++taken_back_;
    }
  }
  return first;
}

static_assert(WindowFilter<SlicedWindow> && ForgettingFilter<SlicedWindow>);

}  // namespace sluice
