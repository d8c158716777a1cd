#include "sluice/filters/cohort/cohort.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>

#include "sluice/base/error.hpp"
#include "sluice/kernels/cohort_formats.hpp"
#include "sluice/kernels/room_search.hpp"
#include "sluice/model/cohort.hpp"

namespace sluice {
namespace {

using kernels::CohortPlace;
using kernels::CohortSlot;
using kernels::CohortStray;
using kernels::CohortTable;

constexpr unsigned kSearchAhead = 6;  // buckets on their way while room is searched

}  // namespace

Cohort Cohort::make(const Params& params, MemoryResource& memory) {
  if (const char* wrong = params.what_is_wrong()) throw BadParameters(wrong);
  return Cohort(params, memory);
}

// A zeroed slot has number 0, and the first number in use is the first for which 0 is dead, so a
// new table needs no initialization. Earlier generations have numbers too, for keys that come late.
Cohort::Cohort(const Params& params, MemoryResource& memory)
    : params_(params),
      strays_(memory),
      memory_(params.buckets * kernels::kBucketBytes, memory),
      strips_(strips(params) * sizeof(std::uint32_t), memory) {
  strays_.reserve(kMostStrays);
  reset();
}

void Cohort::reset() noexcept {
  tick_ = now_ = params_.generations + 1;
  live_numbers_ = params_.generations + 1;
  used_ = behind_ = false;
  live_keys_ = taken_ = moves_ = forgotten_ = forget_misses_ = 0;
  // An empty table is as good as swept.
  swept_ = strips(params_);
  swept_at_.fill(0);
  written_.fill(0);
  born_.fill(0);
  for (unsigned back = 0; back < live_numbers_; ++back) born_[number(back)] = tick_ - back;
  strays_.clear();
}

// Nothing is live while no number is: callers that ask look first.
CohortTable Cohort::table() const noexcept {
  return {memory_.data(),
          params_.buckets,
          params_.slot_bits,
          params_.generation_bits,
          live_numbers_ == 0 ? 0 : live_numbers_ - 1,
          now_,
          memory_.pages()};
}

std::optional<unsigned> Cohort::number_of(std::uint64_t tick) const noexcept {
  for (unsigned back = 0; back < live_numbers_; ++back)
    if (born_[number(back)] <= tick)
      return born_[number(back)] == tick ? std::optional(number(back)) : std::nullopt;
  return std::nullopt;
}

std::uint64_t Cohort::keys_aged(unsigned age) const noexcept {
  const auto its = number_of(tick_ - age);
  const auto strays = std::ranges::count(strays_, tick_ - age, &CohortStray::tick);
  return (its ? written_[*its] : 0) + static_cast<std::uint64_t>(strays);
}

// Generations that are then too old have left. The present generation takes a number when it has a
// key.
void Cohort::rotate() noexcept {
  if (tick_ == kMostRotations) return clear();
  ++tick_;
  while (live_numbers_ > 0 && age(born_[number(live_numbers_ - 1)]) > params_.generations) {
    const unsigned left = number(--live_numbers_);
    live_keys_ -= written_[left];
    written_[left] = 0;
  }
  live_keys_ -= std::erase_if(
      strays_, [&](const CohortStray& stray) { return age(stray.tick) > params_.generations; });
}

// Gives the generation a number. It is later than all that have one.
void Cohort::begin_generation(std::uint64_t tick) noexcept {
  if (used_) take_number();
  live_numbers_ = std::max(1u, live_numbers_);
  born_[now_] = tick;
}

void Cohort::note_written(unsigned number, std::uint64_t keys) noexcept {
  written_[number] += keys;
  live_keys_ += keys;
  used_ |= number == now_ && keys > 0;
}

kernels::CohortBatch Cohort::ask(std::span<const Digest> digests,
                                 std::span<Verdict> verdicts) const noexcept {
  kernels::CohortBatch batch;
  batch.digests = digests.data();
  batch.count = digests.size();
  batch.verdicts = verdicts.data();
  batch.strays = strays_.data();
  batch.stray_count = strays_.size();
  return batch;
}

std::size_t Cohort::admit(std::span<const Digest> digests, std::span<Verdict> verdicts,
                          std::uint64_t& budget, Anchor anchor) noexcept {
  assert(digests.size() == verdicts.size());
  const bool refresh = anchor == Anchor::refreshed;
  std::array<std::uint64_t, kMostNumbers> refreshed_from;
  if (refresh) refreshed_from.fill(0);
  std::size_t judged = 0;
  const std::size_t most =
      refresh ? static_cast<std::size_t>(std::min<std::uint64_t>(digests.size(), budget))
              : digests.size();
  if (most > 0 && (live_numbers_ == 0 || born_[now_] != tick_)) begin_generation(tick_);
  while (judged < most) {
    const std::uint64_t allowed = refresh ? room() : std::min(room(), budget);
    if (allowed == 0) break;
    if (!behind_) {
      kernels::CohortBatch batch =
          ask(digests.subspan(judged, most - judged), verdicts.subspan(judged));
      batch.budget = allowed;
      batch.refresh = refresh;
      batch.refreshed_from = refreshed_from.data();
      batch.owner = this;
      batch.make_room = [](void* owner, const CohortPlace& place) {
        auto* const filter = static_cast<Cohort*>(owner);
        return filter->make_room(place, filter->now_);
      };
      const std::size_t done = kernels::cohort_admit(table(), batch);
      note_written(now_, batch.written);
      judged += done;
      budget -= refresh ? done : batch.written;
      if (judged == most) break;
      if (budget == 0 || room() == 0) continue;
    }
    // The rare paths: the sweep is behind, there is only room in the stash, or a stray is refreshed.
    const std::optional<Verdict> verdict = admit_aged(digests[judged], 0, anchor);
    if (!verdict) break;
    verdicts[judged] = *verdict;
    budget -= refresh || verdicts[judged] == Verdict::distinct;
    ++judged;
  }
  if (refresh) {
    // Separate sums: with one sum in memory each step would wait for the previous one.
    std::uint64_t refreshed = 0;
    for (unsigned number = 0; number < kMostNumbers; ++number) {
      written_[number] -= refreshed_from[number];
      refreshed += refreshed_from[number];
    }
    written_[now_] += refreshed;
    used_ |= refreshed > 0;
  }
  keep_pace();
  return judged;
}

std::optional<Verdict> Cohort::admit_aged(const Digest& digest, unsigned age,
                                          Anchor anchor) noexcept {
  assert(age <= params_.generations);
  const std::uint64_t tick = tick_ - age;
  const CohortPlace where = kernels::place_of(table(), digest);
  const std::optional<Trace> trace = find(digest);
  if (trace && (anchor == Anchor::delivered || trace->tick >= tick)) return Verdict::duplicate;
  if (live_numbers_ == 0 || tick > born_[now_]) begin_generation(tick);
  const std::optional<unsigned> number = number_of(tick);
  if (trace) {
    if (trace->stray < kMostStrays) {
      strays_[trace->stray].tick = tick;
    } else if (number) {
      if (behind_) clean(trace->bucket);
      kernels::cohort_put(table(), trace->bucket, trace->slot, {where.fingerprint, *number});
      --written_[trace->number];
      --live_keys_;
      note_written(*number, 1);
    } else if (stash(where, tick)) {
      take_out(*trace);
    }
    return Verdict::duplicate;
  }
  if (live_keys_ >= params_.live_capacity()) return std::nullopt;
  if (number && place(where, *number)) {
    note_written(*number, 1);
    keep_pace();
    return Verdict::distinct;
  }
  if (!stash(where, tick)) return std::nullopt;
  return Verdict::distinct;
}

// The youngest trace.
std::optional<Cohort::Trace> Cohort::find(const Digest& digest) const noexcept {
  const CohortPlace where = kernels::place_of(table(), digest);
  std::optional<Trace> found;
  const auto consider = [&](const Trace& trace) {
    if (!found || trace.tick > found->tick) found = trace;
  };
  if (live_numbers_ > 0) {
    for (const std::uint64_t bucket : {where.first, where.second}) {
      std::uint32_t match = probe(bucket, where.fingerprint, live_numbers_).match;
      for (; match != 0; match &= match - 1) {
        const auto slot = static_cast<unsigned>(__builtin_ctz(match));
        const unsigned number = kernels::cohort_get(table(), bucket, slot).generation;
        consider({.bucket = bucket, .slot = slot, .number = number, .tick = born_[number]});
      }
    }
  }
  for (std::size_t i = 0; i < strays_.size(); ++i)
    if (strays_[i].bucket == where.first && strays_[i].fingerprint == where.fingerprint)
      consider({.stray = i, .tick = strays_[i].tick});
  return found;
}

// In the emptier bucket, or by moving others. False: nowhere. Only the bucket that is written to is
// swept, where the sweep is behind: it is most of a call's work then.
bool Cohort::place(const CohortPlace& where, unsigned number) noexcept {
  const std::uint32_t first = probe(where.first, 0, live_numbers_).free;
  const std::uint32_t second = probe(where.second, 0, live_numbers_).free;
  const bool to_first = __builtin_popcount(first) >= __builtin_popcount(second);
  const std::uint32_t free = to_first ? first : second;
  if (free == 0) {
    if (behind_) clean(where.first), clean(where.second);
    return make_room(where, number);
  }
  const std::uint64_t bucket = to_first ? where.first : where.second;
  if (behind_) clean(bucket);
  kernels::cohort_put(table(), bucket, static_cast<unsigned>(__builtin_ctz(free)),
                      {where.fingerprint, number});
  return true;
}

bool Cohort::stash(const CohortPlace& where, std::uint64_t tick) noexcept {
  if (strays_.size() == kMostStrays) return false;
  // A question knows the bucket by its address, which it has only once it is cleared.
  memory_.to_write(where.first);
  strays_.push_back({where.first, where.fingerprint, tick});
  ++live_keys_;
  return true;
}

void Cohort::take_out(const Trace& trace) noexcept {
  --live_keys_;
  if (trace.stray < kMostStrays) {
    strays_.erase(strays_.begin() + static_cast<std::ptrdiff_t>(trace.stray));
  } else {
    --written_[trace.number];
    if (behind_) clean(trace.bucket);
    kernels::cohort_put(table(), trace.bucket, trace.slot, {0, number(live_numbers_)});
  }
}

bool Cohort::make_room(const CohortPlace& where, unsigned number) noexcept {
  const unsigned slots = kernels::cohort_slots(params_.slot_bits);
  const CohortTable table = this->table();
  const auto room = kernels::search_room(
      where.first, where.second,
      [&](std::uint64_t bucket, auto visit) {
        std::array<std::uint64_t, 32> others;
        for (unsigned slot = 0; slot < slots; ++slot) {
          const CohortSlot held = kernels::cohort_get(table, bucket, slot);
          others[slot] = kernels::second_bucket(table, bucket, held.fingerprint);
          // About every third bucket has a free slot; the others that are prefetched are needed
          // soon.
          if (slot < kSearchAhead) __builtin_prefetch(kernels::line_of(table, others[slot]));
        }
        for (unsigned slot = 0; slot < slots; ++slot)
          if (visit(slot, others[slot])) return;
      },
      [&](std::uint64_t bucket) -> std::optional<unsigned> {
        if (behind_) clean(bucket);
        const std::uint32_t free = kernels::cohort_probe(table, bucket, 0).free;
        if (free == 0) return std::nullopt;
        return static_cast<unsigned>(__builtin_ctz(free));
      },
      [&](std::uint64_t from, unsigned slot, std::uint64_t to, unsigned to_slot) {
        kernels::cohort_put(table, to, to_slot, kernels::cohort_get(table, from, slot));
        ++moves_;
      });
  if (!room) return false;
  kernels::cohort_put(table, room->bucket, room->slot, {where.fingerprint, number});
  return true;
}

std::optional<unsigned> Cohort::age_of(const Digest& digest) const noexcept {
  const std::optional<Trace> trace = find(digest);
  if (!trace) return std::nullopt;
  return age(trace->tick);
}

void Cohort::ages_of(std::span<const Digest> digests, std::span<std::uint8_t> ages) const noexcept {
  assert(digests.size() == ages.size());
  if (behind_) {
    std::ranges::transform(digests, ages.begin(), [&](const Digest& digest) {
      return static_cast<std::uint8_t>(age_of(digest).value_or(kernels::kNoAge));
    });
    return;
  }
  if (live_numbers_ == 0)
    std::ranges::fill(ages, kernels::kNoAge);
  else
    kernels::cohort_ages(table(), digests.data(), digests.size(), ages.data());
  // From numbers to generations.
  for (std::uint8_t& found : ages)
    if (found != kernels::kNoAge) found = static_cast<std::uint8_t>(age(born_[number(found)]));
  if (strays_.empty()) return;
  for (std::size_t i = 0; i < digests.size(); ++i) {
    const CohortPlace where = kernels::place_of(table(), digests[i]);
    for (const CohortStray& stray : strays_)
      if (stray.bucket == where.first && stray.fingerprint == where.fingerprint)
        ages[i] = std::min(ages[i], static_cast<std::uint8_t>(age(stray.tick)));
  }
}

bool Cohort::forget(const Digest& digest) noexcept {
  const std::optional<Trace> trace = find(digest);
  ++(trace ? forgotten_ : forget_misses_);
  if (trace) take_out(*trace);
  return trace.has_value();
}

Verdict Cohort::observe(const Digest& digest) {
  Verdict verdict;
  if (observe(std::span(&digest, 1), std::span(&verdict, 1)) == 1) return verdict;
  // Without a Window nothing makes room, so a full filter is an error.
  throw BadParameters(
      fmt::format("filter 'cohort' is full with {} keys: plan it for more", live_keys_));
}

std::size_t Cohort::observe(std::span<const Digest> digests, std::span<Verdict> verdicts) {
  std::uint64_t budget = digests.size();
  return admit(digests, verdicts, budget, Anchor::delivered);
}

bool Cohort::may_contain(const Digest& digest) const noexcept {
  return find(digest).has_value();
}

void Cohort::may_contain(std::span<const Digest> digests,
                         std::span<Verdict> verdicts) const noexcept {
  assert(digests.size() == verdicts.size());
  if (live_keys_ == 0) return std::ranges::fill(verdicts, Verdict::distinct), void();
  if (behind_) return may_contain(digests, verdicts, 0);
  kernels::cohort_may_contain(table(), ask(digests, verdicts));
}

void Cohort::may_contain(std::span<const Digest> digests, std::span<Verdict> verdicts,
                         unsigned later) const noexcept {
  const auto stays = [&](std::uint64_t tick) { return age(tick) + later <= params_.generations; };
  unsigned numbers = live_numbers_;
  while (numbers > 0 && !stays(born_[number(numbers - 1)])) --numbers;
  if (numbers == 0) return std::ranges::fill(verdicts, Verdict::distinct), void();
  std::array<CohortStray, kMostStrays> strays;
  const auto end = std::ranges::copy_if(strays_, strays.begin(), stays, &CohortStray::tick).out;
  CohortTable then = table();
  then.live = numbers - 1;
  kernels::CohortBatch batch = ask(digests, verdicts);
  batch.strays = strays.data();
  batch.stray_count = static_cast<std::size_t>(end - strays.begin());
  if (!behind_) return kernels::cohort_may_contain(then, batch);
  std::ranges::transform(digests, verdicts.begin(), [&](const Digest& digest) {
    const CohortPlace where = kernels::place_of(then, digest);
    return static_cast<Verdict>(
        probe(where.first, where.fingerprint, numbers).match != 0 ||
        probe(where.second, where.fingerprint, numbers).match != 0 ||
        kernels::is_stray(then, batch, kernels::line_of(then, where.first), where.fingerprint));
  });
}

std::size_t Cohort::insert(std::span<const Digest> digests) {
  return insert_by_observing<256>(*this, digests);
}

void Cohort::clear() noexcept {
  memory_.clear();
  strips_.clear();
  reset();
}

FilterStats Cohort::stats() const {
  const unsigned slots = kernels::cohort_slots(params_.slot_bits);
  const double all_slots = static_cast<double>(params_.buckets) * slots;
  const auto fpr_at = [&](std::uint64_t keys) {
    return model::cohort_fpr(slots, params_.slot_bits - params_.generation_bits,
                             static_cast<double>(keys) / all_slots);
  };
  return {.keys = live_keys_,
          .capacity = params_.capacity,
          .bytes = bytes(),
          .target_fpr = params_.target_fpr,
          .predicted_fpr = fpr_at(live_keys_),
          .planned_fpr = fpr_at(params_.live_capacity()),
          .stash = strays_.size(),
          .forgotten = forgotten_,
          .forget_misses = forget_misses_};
}

static_assert(WindowFilter<Cohort>);

}  // namespace sluice
