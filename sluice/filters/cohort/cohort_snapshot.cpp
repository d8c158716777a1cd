// Cohort filters as bytes, and back.
#include "sluice/base/error.hpp"
#include "sluice/filters/cohort/cohort.hpp"

namespace sluice {

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
  for (const kernels::CohortStray& stray : strays_) {
    to.u64(stray.bucket);
    to.u64(stray.fingerprint);
    to.u32(stray.generation);
  }
}

void Cohort::encode_payload(Encoder& to) const {
  to.bytes(memory_.bytes());
}

Cohort Cohort::decode(Decoder& header, Decoder& payload, MemoryResource& memory) {
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
  if (const char* wrong = params.what_is_wrong()) throw CorruptSnapshot(wrong);
  payload.expect_remaining(params.buckets * kernels::kBucketBytes, "the table of filter 'cohort'");
  Cohort filter(params, memory);
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
    kernels::CohortStray stray{header.u64(), header.u64(), header.u32()};
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
  for (const kernels::CohortStray& stray : strays_) {
    if (age_of_generation(stray.generation) > params_.generations) return false;
    ++live[stray.generation];
  }
  return live == written_;
}

}  // namespace sluice
