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
  if (limit >= count) return count;
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
  static constexpr std::size_t kAll = ~std::size_t{0};
  std::uint64_t written = 0;
  std::size_t portion = kAll;  // in which it stopped, full
  std::size_t judged = 0;      // of that portion
  // How many records of the slice it judged of a portion.
  std::size_t judged_of(std::size_t which, std::size_t size) const noexcept {
    return which < portion ? size : which == portion ? judged : 0;
  }
};

std::size_t SlicedWindow::admit_step(std::span<const Digest> digests, std::span<Verdict> verdicts,
                                     std::uint64_t& budget, Anchor anchor, bool& full) noexcept {
  std::array<Step, kMostSlices> steps;
  std::size_t first_unjudged = digests.size();
  const auto judge = [&](unsigned slice, std::span<const SliceSort> portions) {
    Step& step = steps[slice];
    for (std::size_t i = 0; i < portions.size() && step.portion == Step::kAll; ++i) {
      const auto part = portions[i].digests(slice);
      std::uint64_t left = part.size();
      step.judged = slices_[slice].admit(part, portions[i].verdicts(slice), left, anchor);
      step.written += part.size() - left;
      if (step.judged < part.size()) step.portion = i;
    }
  };
  const auto after = [&](std::span<const SliceSort> portions, std::size_t portion_size) {
    for (unsigned slice = 0; slice < params_.slices; ++slice) {
      const Step& step = steps[slice];
      if (step.portion == Step::kAll) continue;
      full = true;
      portions[step.portion].for_each_place(slice, [&](std::size_t i, std::size_t place) {
        if (i == step.judged)
          first_unjudged = std::min(first_unjudged, step.portion * portion_size + place);
      });
    }
    if (!full) return;
    for (unsigned slice = 0; slice < params_.slices; ++slice)
      for (std::size_t i = 0; i < portions.size(); ++i) {
        const auto part = portions[i].digests(slice);
        const std::size_t judged = steps[slice].judged_of(i, part.size());
        portions[i].for_each_place(slice, [&](std::size_t at, std::size_t place) {
          if (at >= judged || i * portion_size + place < first_unjudged ||
              portions[i].verdicts(slice)[at] == Verdict::duplicate)
            return;
          slices_[slice].forget(part[at]);
          --steps[slice].written;
          ++taken_back_;
        });
      }
  };
  const std::size_t count = crew_->step(digests, verdicts, judge, after);
  const std::size_t judged = std::min(count, first_unjudged);
  if (anchor == Anchor::refreshed)
    budget -= judged;
  else
    for (const Step& step : steps) budget -= step.written;
  return judged;
}

static_assert(WindowFilter<SlicedWindow> && ForgettingFilter<SlicedWindow>);

}  // namespace sluice
