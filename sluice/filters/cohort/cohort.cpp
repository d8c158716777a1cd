#include "sluice/filters/cohort/cohort.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>

#include "sluice/base/error.hpp"
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

// All zero is generation 0, and the first present one is the first for which that is dead: a new
// table needs no writing.
Cohort::Cohort(const Params& params, MemoryResource& memory)
    : params_(params),
      now_(params.generations + 1),
      strays_(memory),
      memory_(params.buckets * kernels::kBucketBytes, memory) {
  sweep_due_ = sweep_share();
  strays_.reserve(kMostStrays);
}

CohortTable Cohort::table() const noexcept {
  return {const_cast<std::byte*>(memory_.data()),
          params_.buckets,
          params_.slot_bits,
          params_.generation_bits,
          params_.generations,
          now_};
}

unsigned Cohort::age_of_generation(unsigned generation) const noexcept {
  return (now_ - generation) & table().generation_mask();
}

// A number is dead for 2^bits − generations − 1 rotations before it becomes the present one; within
// all but one of them the sweep must have been everywhere.
std::uint64_t Cohort::sweep_share() const noexcept {
  const std::uint64_t rotations =
      (std::uint64_t{1} << params_.generation_bits) - params_.generations - 2;
  return (params_.buckets + rotations - 1) / rotations;
}

void Cohort::sweep(std::uint64_t buckets) noexcept {
  std::uint64_t left = std::min(buckets, sweep_due_);
  sweep_due_ -= left;
  while (left > 0) {
    const std::uint64_t run = std::min(left, params_.buckets - swept_);
    kernels::cohort_sweep(table(), swept_, run);
    swept_ = swept_ + run == params_.buckets ? 0 : swept_ + run;
    left -= run;
  }
}

void Cohort::rotate() noexcept {
  sweep(sweep_due_);
  now_ = (now_ + 1) & table().generation_mask();
  // What had this age before the number came round has left, and so has what is now a generation
  // too old.
  const unsigned left = (now_ - params_.generations - 1) & table().generation_mask();
  live_keys_ -= written_[left];
  written_[left] = 0;
  std::erase_if(strays_, [&](const CohortStray& stray) {
    return age_of_generation(stray.generation) > params_.generations;
  });
  sweep_due_ = sweep_share();
}

void Cohort::note_written(unsigned generation, std::uint64_t keys) noexcept {
  written_[generation] += keys;
  live_keys_ += keys;
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
  std::array<std::uint64_t, kMostGenerations> refreshed_from{};
  std::size_t judged = 0;
  const std::size_t most =
      refresh ? static_cast<std::size_t>(std::min<std::uint64_t>(digests.size(), budget))
              : digests.size();
  while (judged < most) {
    const std::uint64_t room =
        params_.live_capacity() - std::min(params_.live_capacity(), live_keys_);
    kernels::CohortBatch batch =
        ask(digests.subspan(judged, most - judged), verdicts.subspan(judged));
    batch.budget = refresh ? room : std::min(room, budget);
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
    if (budget == 0 || live_keys_ >= params_.live_capacity()) break;
    // There is no room but in the stash, or a stray is refreshed: the rare ways.
    if (!judge_one(digests[judged], verdicts[judged], anchor)) break;
    budget -= refresh || verdicts[judged] == Verdict::distinct;
    ++judged;
  }
  if (refresh) {
    // Summed up apart: one sum in memory would make each step wait for the one before.
    std::uint64_t refreshed = 0;
    for (unsigned generation = 0; generation < kMostGenerations; ++generation) {
      written_[generation] -= refreshed_from[generation];
      refreshed += refreshed_from[generation];
    }
    written_[now_] += refreshed;
  }
  // The sweep keeps pace with the writing: done when a generation of the planned size is.
  const std::uint64_t planned =
      std::max<std::uint64_t>(1, params_.capacity / std::max(1u, params_.generations));
  sweep(sweep_share() * judged / planned + 1);
  return judged;
}

// One key by the plain way, moving others if need be. Returns 0 when there is no room at all.
std::size_t Cohort::judge_one(const Digest& digest, Verdict& verdict, Anchor anchor) noexcept {
  const std::optional<Verdict> judged = admit_aged(digest, 0, anchor);
  if (!judged) return 0;
  verdict = *judged;
  return 1;
}

std::optional<Verdict> Cohort::admit_aged(const Digest& digest, unsigned age,
                                          Anchor anchor) noexcept {
  assert(age <= params_.generations);
  const unsigned generation = (now_ - age) & table().generation_mask();
  const CohortPlace where = kernels::place_of(table(), digest);
  if (const std::optional<Trace> trace = find(digest)) {
    if (anchor == Anchor::refreshed && age < age_of_generation(trace->generation)) {
      stamp(*trace, where.fingerprint, generation);
      --written_[trace->generation];
      ++written_[generation];
    }
    return Verdict::duplicate;
  }
  if (live_keys_ >= params_.live_capacity() || !place(where, generation)) return std::nullopt;
  note_written(generation, 1);
  return Verdict::distinct;
}

// The youngest trace.
std::optional<Cohort::Trace> Cohort::find(const Digest& digest) const noexcept {
  const CohortPlace where = kernels::place_of(table(), digest);
  std::optional<Trace> found;
  const auto consider = [&](const Trace& trace) {
    if (!found || age_of_generation(trace.generation) < age_of_generation(found->generation))
      found = trace;
  };
  for (const std::uint64_t bucket : {where.first, where.second}) {
    std::uint32_t match = kernels::cohort_probe(table(), bucket, where.fingerprint).match;
    for (; match != 0; match &= match - 1) {
      const auto slot = static_cast<unsigned>(__builtin_ctz(match));
      consider({.bucket = bucket,
                .slot = slot,
                .generation = kernels::cohort_get(table(), bucket, slot).generation});
    }
  }
  for (std::size_t i = 0; i < strays_.size(); ++i)
    if (strays_[i].bucket == where.first && strays_[i].fingerprint == where.fingerprint)
      consider({.stray = i, .generation = strays_[i].generation});
  return found;
}

void Cohort::stamp(const Trace& trace, std::uint64_t fingerprint, unsigned generation) noexcept {
  if (trace.stray < kMostStrays)
    strays_[trace.stray].generation = generation;
  else
    kernels::cohort_put(table(), trace.bucket, trace.slot, {fingerprint, generation});
}

// In the emptier bucket; by moving others; in the stash. False: nowhere.
bool Cohort::place(const CohortPlace& where, unsigned generation) noexcept {
  const std::uint32_t first = kernels::cohort_probe(table(), where.first, 0).free;
  const std::uint32_t second = kernels::cohort_probe(table(), where.second, 0).free;
  const bool to_first = __builtin_popcount(first) >= __builtin_popcount(second);
  const std::uint32_t free = to_first ? first : second;
  if (free != 0) {
    kernels::cohort_put(table(), to_first ? where.first : where.second,
                        static_cast<unsigned>(__builtin_ctz(free)),
                        {where.fingerprint, generation});
    return true;
  }
  if (make_room(where, generation)) return true;
  if (strays_.size() == kMostStrays) return false;
  strays_.push_back({where.first, where.fingerprint, generation});
  return true;
}

bool Cohort::make_room(const CohortPlace& where, unsigned generation) noexcept {
  const unsigned slots = kernels::cohort_slots(params_.slot_bits);
  const auto room = kernels::search_room(
      where.first, where.second,
      [&](std::uint64_t bucket, auto visit) {
        std::array<std::uint64_t, 32> others;
        for (unsigned slot = 0; slot < slots; ++slot) {
          const CohortSlot held = kernels::cohort_get(table(), bucket, slot);
          others[slot] = kernels::second_bucket(table(), bucket, held.fingerprint);
          // About every third has a free slot; the others that are asked for are soon asked again.
          if (slot < kSearchAhead) __builtin_prefetch(kernels::line_of(table(), others[slot]));
        }
        for (unsigned slot = 0; slot < slots; ++slot)
          if (visit(slot, others[slot])) return;
      },
      [&](std::uint64_t bucket) -> std::optional<unsigned> {
        const std::uint32_t free = kernels::cohort_probe(table(), bucket, 0).free;
        if (free == 0) return std::nullopt;
        return static_cast<unsigned>(__builtin_ctz(free));
      },
      [&](std::uint64_t from, unsigned slot, std::uint64_t to, unsigned to_slot) {
        kernels::cohort_put(table(), to, to_slot, kernels::cohort_get(table(), from, slot));
        ++moves_;
      });
  if (!room) return false;
  kernels::cohort_put(table(), room->bucket, room->slot, {where.fingerprint, generation});
  return true;
}

std::optional<unsigned> Cohort::age_of(const Digest& digest) const noexcept {
  const std::optional<Trace> trace = find(digest);
  if (!trace) return std::nullopt;
  return age_of_generation(trace->generation);
}

void Cohort::ages_of(std::span<const Digest> digests, std::span<std::uint8_t> ages) const noexcept {
  assert(digests.size() == ages.size());
  kernels::cohort_ages(table(), digests.data(), digests.size(), ages.data());
  if (strays_.empty()) return;
  for (std::size_t i = 0; i < digests.size(); ++i) {
    const CohortPlace where = kernels::place_of(table(), digests[i]);
    for (const CohortStray& stray : strays_)
      if (stray.bucket == where.first && stray.fingerprint == where.fingerprint)
        ages[i] = std::min(ages[i], static_cast<std::uint8_t>(age_of_generation(stray.generation)));
  }
}

bool Cohort::forget(const Digest& digest) noexcept {
  const std::optional<Trace> trace = find(digest);
  ++(trace ? forgotten_ : forget_misses_);
  if (!trace) return false;
  --written_[trace->generation];
  --live_keys_;
  if (trace->stray < kMostStrays) {
    strays_.erase(strays_.begin() + static_cast<std::ptrdiff_t>(trace->stray));
  } else {
    const unsigned dead = (now_ - params_.generations - 1) & table().generation_mask();
    kernels::cohort_put(table(), trace->bucket, trace->slot, {0, dead});
  }
  return true;
}

Verdict Cohort::observe(const Digest& digest) {
  Verdict verdict;
  if (observe(std::span(&digest, 1), std::span(&verdict, 1)) == 1) return verdict;
  // Without a pacer there is nobody to make room: full is an error, and says so.
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
  kernels::cohort_may_contain(table(), ask(digests, verdicts));
}

std::size_t Cohort::insert(std::span<const Digest> digests) {
  return insert_by_observing<256>(*this, digests);
}

void Cohort::clear() noexcept {
  memory_.clear();
  now_ = params_.generations + 1;
  live_keys_ = swept_ = moves_ = 0;
  forgotten_ = forget_misses_ = 0;
  sweep_due_ = sweep_share();
  written_.fill(0);
  strays_.clear();
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
