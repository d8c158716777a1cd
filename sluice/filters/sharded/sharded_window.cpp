// Sharded filters that age: the budget, and what happens when a shard is full.
//
// Shards run ahead of each other, so a step is only as long as no shard can run out of budget or
// room within it. A cohort may be full before its count says so, when a key finds no place; then
// what other shards wrote after that record is taken back.
#include <algorithm>
#include <array>
#include <cassert>

#include "sluice/filters/sharded/shard_crew.hpp"
#include "sluice/filters/sharded/sharded.hpp"

namespace sluice {
namespace {

// With less room in any shard, records are judged one by one: steps would be too short for
// anything else.
constexpr std::uint64_t kNearlyFull = 64;
// A step of this many records is long enough for the threads.
constexpr std::size_t kLongStep = 8192;

}  // namespace

ShardedWindow ShardedWindow::make(const Params& params, MemoryResource& memory) {
  return ShardedWindow(params, make_shards(params, true, memory));
}

ShardedWindow ShardedWindow::decode(Decoder& header, Decoder& payload, MemoryResource& memory) {
  Decoded decoded = decode_shards(header, payload, true, memory);
  return ShardedWindow(std::move(decoded.params), std::move(decoded.shards));
}

void ShardedWindow::rotate() noexcept {
  for (AnyFilter& shard : shards_) shard.rotate();
}

void ShardedWindow::may_contain(std::span<const Digest> digests, std::span<Verdict> verdicts,
                                unsigned later) const {
  for (std::size_t i = 0; i < digests.size(); ++i)
    shard_for(digests[i]).may_contain(digests.subspan(i, 1), verdicts.subspan(i, 1), later);
}

std::uint64_t ShardedWindow::live_keys() const noexcept {
  std::uint64_t keys = 0;
  for (const AnyFilter& shard : shards_) keys += shard.live_keys();
  return keys;
}

std::uint64_t ShardedWindow::room() const noexcept {
  std::uint64_t least = shards_.front().room();
  for (const AnyFilter& shard : shards_) least = std::min(least, shard.room());
  return least;
}

std::optional<Verdict> ShardedWindow::admit_aged(const Digest& digest, unsigned age,
                                                 Anchor anchor) noexcept {
  return shard_for(digest).admit_aged(digest, age, anchor);
}

std::size_t ShardedWindow::admit(std::span<const Digest> digests, std::span<Verdict> verdicts,
                                 std::uint64_t& budget, Anchor anchor) noexcept {
  assert(digests.size() == verdicts.size());
  // As in observe(): nothing is to be taken back there.
  if (memory().mapping() == nullptr) return admit_singly(digests, verdicts, budget, anchor);
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

std::size_t ShardedWindow::admit_singly(std::span<const Digest> digests,
                                        std::span<Verdict> verdicts, std::uint64_t& budget,
                                        Anchor anchor) noexcept {
  for (std::size_t i = 0; i < digests.size(); ++i) {
    if (budget == 0) return i;
    if (shard_for(digests[i])
            .admit(digests.subspan(i, 1), verdicts.subspan(i, 1), budget, anchor) == 0)
      return i;
  }
  return digests.size();
}

// How many of the first records certainly write at most `limit` keys, for any verdicts; if they
// write exactly that many, it is with the last record, because a spent budget ends a generation at
// once. Those that are duplicates now stay so until something ages, and write nothing unless
// refreshed: asking finds long steps even for the last keys of a generation.
std::size_t ShardedWindow::most_records(std::span<const Digest> digests,
                                        std::span<Verdict> verdicts, std::uint64_t limit,
                                        Anchor anchor) const noexcept {
  std::size_t count = std::min(digests.size(), ShardCrew::kTogether);
  if (limit >= std::min(count, kLongStep)) return std::min<std::size_t>(count, limit);
  if (anchor == Anchor::refreshed || !promises().no_false_negatives)
    return static_cast<std::size_t>(limit);
  // Not many more than new keys alone would take: what is asked too far ahead is asked again.
  count = std::min(count, std::max(ShardCrew::kAlone, 2 * static_cast<std::size_t>(limit)));
  may_contain(digests.first(count), verdicts.first(count));
  std::uint64_t distinct = 0;
  for (std::size_t i = 0; i < count; ++i)
    if (verdicts[i] == Verdict::distinct && ++distinct == limit) return i + 1;
  return count;
}

std::size_t ShardedWindow::admit_step(std::span<const Digest> digests, std::span<Verdict> verdicts,
                                      std::uint64_t& budget, Anchor anchor, bool& full) noexcept {
  std::array<Step, kMostShards> steps;
  std::size_t judged = crew_->step(
      digests, verdicts,
      [&](unsigned shard, std::span<const Digest> part, std::span<Verdict> part_verdicts) {
        Step& step = steps[shard];
        if (step.full) return;
        std::uint64_t left = part.size();
        const std::size_t count = shards_[shard].admit(part, part_verdicts, left, anchor);
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

static_assert(WindowFilter<ShardedWindow> && ForgettingFilter<ShardedWindow>);

}  // namespace sluice
