#include "sluice/filters/cohort.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <cmath>

#include "sluice/base/checked.hpp"
#include "sluice/base/error.hpp"
#include "sluice/kernels/room_search.hpp"
#include "sluice/model/cohort.hpp"

namespace sluice {
namespace {

using kernels::CohortMatch;
using kernels::CohortPlace;
using kernels::CohortSlot;
using kernels::CohortStray;
using kernels::CohortTable;

constexpr unsigned kSlotBits[] = {16, 24, 32, 40, 48};
constexpr std::uint64_t kFewestBuckets = 4;
constexpr std::uint64_t kMostBuckets = std::uint64_t{1} << 40;
constexpr std::uint64_t kMostKeys = std::uint64_t{1} << 44;
constexpr unsigned kStandardGenerations = 24;
constexpr unsigned kStandardGenerations16 = 12;  // 16-bit slots have 4 bits for generations

constexpr ParameterInfo kKnown[] = {
    {"slot", "bits of a slot: fingerprint and generation", "16, 24, 32, 40 or 48",
     "the fewest that hold fpr"},
    {"generations", "generations a window is cut into; slack is one of them", "1 to 61",
     "24; with 16-bit slots 12"},
    {"keys", "keys a window holds", "1 to 2^44", "the window, or --rate times the window"},
    {"bytes", "size of the table", "256 to 64TiB", "what keys need"},
    {"fpr", "the error it is planned for", "above 0, below 1", "--fpr"},
};

// Numbers must be left for generations that are dead but not yet swept: two, so that the sweep can
// be spread over one generation at least.
constexpr unsigned most_generations(unsigned generation_bits) {
  return (1u << generation_bits) - 3;
}

unsigned bits_for(unsigned generations) {
  unsigned bits = 4;
  while (bits < 6 && most_generations(bits) < generations) ++bits;
  return bits;
}

const char* what_is_wrong(const Cohort::Params& params) {
  if (std::ranges::find(kSlotBits, params.slot_bits) == std::end(kSlotBits))
    return "filter 'cohort' takes slots of 16, 24, 32, 40 or 48 bits";
  if (params.generation_bits < 4 || params.generation_bits > 6)
    return "filter 'cohort' takes 4 to 6 bits for generations";
  if (params.generations > most_generations(params.generation_bits))
    return "filter 'cohort' takes at most 61 generations";
  if (params.buckets < kFewestBuckets || params.buckets > kMostBuckets)
    return "filter 'cohort' takes a table of 256 bytes to 64 TiB";
  if (params.capacity == 0 || params.capacity > kMostKeys)
    return "filter 'cohort' takes 1 to 2^44 keys a window";
  if (params.live_capacity() >
      params.buckets * kernels::cohort_slots(params.slot_bits) + Cohort::kMostStrays)
    return "filter 'cohort' has fewer slots in these bytes than keys in the window: give it more "
           "bytes, or fewer keys";
  if (!(params.target_fpr > 0 && params.target_fpr < 1))
    return "filter 'cohort' takes a target error above 0 and below 1";
  return nullptr;
}

double planned_fpr(unsigned slot_bits, unsigned generation_bits) {
  return model::cohort_fpr(kernels::cohort_slots(slot_bits), slot_bits - generation_bits,
                           model::cohort_load(slot_bits));
}

unsigned slot_bits_for(double fpr, unsigned generation_bits) {
  for (const unsigned bits : kSlotBits)
    if (planned_fpr(bits, generation_bits) <= fpr) return bits;
  throw BadParameters(
      fmt::format("filter 'cohort' cannot reach an error of {}: its widest slots reach {:.1e}", fpr,
                  planned_fpr(48, generation_bits)));
}

}  // namespace

std::span<const ParameterInfo> Cohort::Params::known() {
  return kKnown;
}

std::uint64_t Cohort::Params::live_capacity() const {
  if (generations == 0) return capacity;
  return (capacity + generations - 1) / generations * (generations + 1);
}

Cohort::Params Cohort::Params::from(const Wish& wish, const Settings& settings) {
  const SettingsReader reader("cohort", settings, kKnown);
  Params params;
  params.target_fpr = reader.probability("fpr").value_or(wish.fpr);
  auto generations = reader.count("generations", 0, most_generations(6));
  if (!generations && wish.generations) generations = *wish.generations;
  const auto slot = reader.count("slot", 16, 48);
  // The coarser cut of 16-bit slots is chosen only where they are.
  const bool small = slot ? *slot == 16 : planned_fpr(16, 4) <= params.target_fpr;
  params.generations = static_cast<unsigned>(
      generations.value_or(small ? kStandardGenerations16 : kStandardGenerations));
  params.generation_bits = bits_for(params.generations);
  params.slot_bits = slot ? static_cast<unsigned>(*slot)
                          : slot_bits_for(params.target_fpr, params.generation_bits);
  const unsigned slots = kernels::cohort_slots(params.slot_bits);
  const double load = model::cohort_load(params.slot_bits);
  const auto bytes = reader.size("bytes", kFewestBuckets * 64, std::uint64_t{1} << 46);
  auto keys = reader.count("keys", 1, kMostKeys);
  if (!keys) keys = wish.keys;
  if (bytes) params.buckets = *bytes / kernels::kBucketBytes;
  if (bytes && !keys) {
    const double live = static_cast<double>(params.buckets * slots) * load;
    const double share = params.generations == 0 ? 1 : 1.0 + 1.0 / params.generations;
    keys = std::max<std::uint64_t>(1, static_cast<std::uint64_t>(live / share));
  }
  params.capacity = keys.value_or(kStandardCapacity);
  if (!bytes)
    params.buckets = std::max(
        kFewestBuckets, static_cast<std::uint64_t>(
                            std::ceil(static_cast<double>(params.live_capacity()) / slots / load)));
  return params;
}

Settings Cohort::Params::settings() const {
  Settings settings;
  settings.add("slot", std::uint64_t{slot_bits});
  settings.add("generations", std::uint64_t{generations});
  settings.add("keys", capacity);
  settings.add("bytes", buckets * kernels::kBucketBytes);
  settings.add("fpr", target_fpr);
  return settings;
}

Forecast Cohort::Params::forecast() const {
  if (const char* wrong = what_is_wrong(*this)) throw BadParameters(wrong);
  const unsigned slots = kernels::cohort_slots(slot_bits);
  const double load = static_cast<double>(live_capacity()) / (static_cast<double>(buckets) * slots);
  return {.keys = capacity,
          .bytes = buckets * kernels::kBucketBytes + kMostStrays * sizeof(CohortStray),
          // Small tables have room to spare. What they are planned by is what they promise.
          .fpr = model::cohort_fpr(slots, slot_bits - generation_bits,
                                   std::max(load, model::cohort_load(slot_bits))),
          .lines = 2,
          .generations = generations,
          .slack = model::window_slack(generations),
          .npws = model::window_slack(generations),
          .settings = settings()};
}

Cohort Cohort::make(const Params& params) {
  if (const char* wrong = what_is_wrong(params)) throw BadParameters(wrong);
  return Cohort(params);
}

// All zero is generation 0, and the first present one is the first for which that is dead: a new
// table needs no writing.
Cohort::Cohort(const Params& params)
    : params_(params),
      now_(params.generations + 1),
      memory_(params.buckets * kernels::kBucketBytes) {
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
    const std::size_t done = kernels::cohort_admit(table(), batch);
    note_written(now_, batch.written);
    judged += done;
    budget -= refresh ? done : batch.written;
    if (judged == most) break;
    if (budget == 0 || live_keys_ >= params_.live_capacity()) break;
    // Both buckets are full, or a stray is refreshed: the rare ways.
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
        for (unsigned slot = 0; slot < slots; ++slot) {
          const CohortSlot held = kernels::cohort_get(table(), bucket, slot);
          if (visit(slot, kernels::second_bucket(table(), bucket, held.fingerprint))) return;
        }
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
  observe(std::span(&digest, 1), std::span(&verdict, 1));
  return verdict;
}

// Without a pacer there is nobody to make room: full is an error, and says so.
void Cohort::observe(std::span<const Digest> digests, std::span<Verdict> verdicts) {
  std::uint64_t budget = digests.size();
  if (admit(digests, verdicts, budget, Anchor::delivered) < digests.size())
    throw BadParameters(
        fmt::format("filter 'cohort' is full with {} keys: plan it for more", live_keys_));
}

bool Cohort::may_contain(const Digest& digest) const noexcept {
  return find(digest).has_value();
}

void Cohort::may_contain(std::span<const Digest> digests,
                         std::span<Verdict> verdicts) const noexcept {
  assert(digests.size() == verdicts.size());
  kernels::cohort_may_contain(table(), ask(digests, verdicts));
}

void Cohort::insert(std::span<const Digest> digests) {
  std::array<Verdict, 256> unread;
  while (!digests.empty()) {
    const std::size_t count = std::min(digests.size(), unread.size());
    observe(digests.first(count), std::span(unread).first(count));
    digests = digests.subspan(count);
  }
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
          .bytes = memory_.size() + kMostStrays * sizeof(CohortStray),
          .target_fpr = params_.target_fpr,
          .predicted_fpr = fpr_at(live_keys_),
          .planned_fpr = fpr_at(params_.live_capacity()),
          .stash = strays_.size(),
          .forgotten = forgotten_,
          .forget_misses = forget_misses_};
}

void Cohort::encode_header(Encoder& to) const {
  to.u32(params_.slot_bits);
  to.u32(params_.generation_bits);
  to.u32(params_.generations);
  to.u64(params_.buckets);
  to.u64(params_.capacity);
  to.f64(params_.target_fpr);
  to.u32(now_);
  to.u64(swept_);
  to.u64(sweep_due_);
  to.u64(moves_);
  for (const std::uint64_t written : written_) to.u64(written);
  to.u32(static_cast<std::uint32_t>(strays_.size()));
  for (const CohortStray& stray : strays_) {
    to.u64(stray.bucket);
    to.u64(stray.fingerprint);
    to.u32(stray.generation);
  }
}

void Cohort::encode_payload(Encoder& to) const {
  to.bytes(memory_.bytes());
}

Cohort Cohort::decode(Decoder& header, Decoder& payload) {
  const auto refuse = [](bool wrong) {
    if (wrong) throw CorruptSnapshot("no filter 'cohort' has these fields");
  };
  Params params;
  params.slot_bits = header.u32();
  params.generation_bits = header.u32();
  params.generations = header.u32();
  params.buckets = header.u64();
  params.capacity = header.u64();
  params.target_fpr = header.f64();
  if (const char* wrong = what_is_wrong(params)) throw CorruptSnapshot(wrong);
  payload.expect_remaining(params.buckets * kernels::kBucketBytes, "the table of filter 'cohort'");
  Cohort filter(params);
  const unsigned mask = filter.table().generation_mask();
  filter.now_ = header.u32();
  filter.swept_ = header.u64();
  filter.sweep_due_ = header.u64();
  filter.moves_ = header.u64();
  refuse(filter.now_ > mask || filter.swept_ >= params.buckets ||
         filter.sweep_due_ > filter.sweep_share());
  for (unsigned generation = 0; generation < kMostGenerations; ++generation) {
    filter.written_[generation] = header.u64();
    const bool live =
        generation <= mask && filter.age_of_generation(generation) <= params.generations;
    refuse(filter.written_[generation] > (live ? params.live_capacity() : 0));
    filter.live_keys_ += filter.written_[generation];
  }
  refuse(filter.live_keys_ > params.live_capacity());
  const std::uint32_t strays = header.u32();
  refuse(strays > kMostStrays);
  for (std::uint32_t i = 0; i < strays; ++i) {
    CohortStray stray{header.u64(), header.u64(), header.u32()};
    refuse(stray.bucket >= params.buckets || stray.generation > mask ||
           stray.fingerprint >> (params.slot_bits - params.generation_bits) != 0);
    filter.strays_.push_back(stray);
  }
  payload.bytes(filter.memory_.bytes());
  refuse(!filter.is_sound());
  return filter;
}

// Counts that do not match the table would run below zero as its keys age, and a dead slot that the
// sweep does not reach in time would come back to life when its number comes round.
bool Cohort::is_sound() const {
  std::array<std::uint64_t, kMostGenerations> live{};
  const std::uint64_t share = sweep_share();
  const std::uint64_t swept_now = share - sweep_due_;
  const unsigned slots = kernels::cohort_slots(params_.slot_bits);
  for (std::uint64_t bucket = 0; bucket < params_.buckets; ++bucket) {
    // How many generations ago the sweep was here: what was dead then has been dead no longer.
    const std::uint64_t back = (swept_ + 2 * params_.buckets - 1 - bucket) % params_.buckets;
    const std::uint64_t ago = back < swept_now ? 0 : 1 + (back - swept_now) / share;
    for (unsigned slot = 0; slot < slots; ++slot) {
      const unsigned generation = kernels::cohort_get(table(), bucket, slot).generation;
      const unsigned age = age_of_generation(generation);
      if (age <= params_.generations)
        ++live[generation];
      else if (age - params_.generations - 1 > ago)
        return false;
    }
  }
  for (const CohortStray& stray : strays_) {
    if (age_of_generation(stray.generation) > params_.generations) return false;
    ++live[stray.generation];
  }
  return live == written_;
}

static_assert(WindowFilter<Cohort>);

}  // namespace sluice
