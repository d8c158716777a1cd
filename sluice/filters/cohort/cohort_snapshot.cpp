// Cohort filters as bytes, and back.
#include <array>
#include <utility>

#include "sluice/base/error.hpp"
#include "sluice/filters/cohort/cohort.hpp"
#include "sluice/kernels/cohort_formats.hpp"

namespace sluice {

void Cohort::encode_header(Encoder& to) const {
  to.u32(params_.slot_bits);
  to.u32(params_.generation_bits);
  to.u32(params_.generations);
  to.u64(params_.buckets);
  to.u64(params_.capacity);
  to.f64(params_.target_fpr);
  to.u64(tick_);
  to.u8(static_cast<std::uint8_t>(now_));
  to.u8(static_cast<std::uint8_t>(live_numbers_));
  to.u8(used_);
  to.u8(behind_);
  to.u64(taken_);
  to.u64(swept_);
  for (unsigned back = 0; back <= clean_numbers(); ++back) to.u64(swept_at(back));
  to.u64(moves_);
  for (unsigned back = 0; back < live_numbers_; ++back) {
    to.u64(born_[number(back)]);
    to.u64(written_[number(back)]);
  }
  to.u32(static_cast<std::uint32_t>(strays_.size()));
  for (const kernels::CohortStray& stray : strays_) {
    to.u64(stray.bucket);
    to.u64(stray.fingerprint);
    to.u64(stray.tick);
  }
}

void Cohort::encode_payload(Encoder& to) const {
  memory_.encode(to);
  strips_.encode(to);
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
  payload.expect_remaining(
      params.buckets * kernels::kBucketBytes + strips(params) * sizeof(std::uint32_t),
      "the table of filter 'cohort'");
  Cohort filter(params, memory);
  filter.decode_state(header);
  filter.memory_.decode(payload);
  filter.strips_.decode(payload);
  refuse(!filter.is_sound());
  return filter;
}

// Conditions that hold for every cohort filter, independent of its table.
void Cohort::decode_state(Decoder& from) {
  const auto refuse = [](bool wrong) {
    if (wrong) throw CorruptSnapshot("no filter 'cohort' is in such a state");
  };
  tick_ = from.u64();
  now_ = from.u8();
  live_numbers_ = from.u8();
  const std::uint8_t used = from.u8();
  const std::uint8_t behind = from.u8();
  taken_ = from.u64();
  swept_ = from.u64();
  const std::uint64_t all = strips(params_);
  refuse(tick_ <= params_.generations || tick_ > kMostRotations ||
         now_ > table().generation_mask() || live_numbers_ > params_.generations + 1 || used > 1 ||
         behind > 1 || taken_ > kMostRotations || swept_ < all);
  used_ = used == 1;
  behind_ = behind == 1;
  std::uint64_t later = swept_;
  for (unsigned back = 0; back <= clean_numbers(); ++back) {
    swept_at(back) = from.u64();
    refuse(swept_at(back) > later);
    later = swept_at(back);
  }
  refuse(swept_at(0) > kMostRotations + all || swept_ - swept_at(0) > all);
  moves_ = from.u64();
  // Younger numbers are those of later generations.
  std::uint64_t before = tick_ + 1;
  for (unsigned back = 0; back < live_numbers_; ++back) {
    const std::uint64_t born = born_[number(back)] = from.u64();
    const std::uint64_t written = written_[number(back)] = from.u64();
    refuse(born >= before || tick_ - born > params_.generations ||
           written > params_.live_capacity() - live_keys_);
    before = born;
    live_keys_ += written;
  }
  // Each number is of a generation later than those before it.
  const std::uint64_t last = live_numbers_ > 0 ? born_[now_] : tick_ - params_.generations - 1;
  refuse(taken_ + params_.generations + 1 > last);
  refuse(!used_ && written_[now_] > 0);
  const std::uint32_t strays = from.u32();
  refuse(strays > kMostStrays || strays > params_.live_capacity() - live_keys_);
  for (std::uint32_t i = 0; i < strays; ++i) {
    const std::uint64_t bucket = from.u64(), fingerprint = from.u64(), tick = from.u64();
    refuse(bucket >= params_.buckets || live_numbers_ == 0 || tick > born_[now_] ||
           tick_ - tick > params_.generations ||
           fingerprint >> (params_.slot_bits - params_.generation_bits) != 0);
    strays_.push_back({bucket, fingerprint, tick});
  }
  live_keys_ += strays;
}

// Counts that do not match the table would run below zero as its keys age, and a dead slot that the
// sweep does not reach in time would come back to life when its number is reused.
bool Cohort::is_sound() const {
  // Each strip was swept when the sweep last passed, or later for a key of its own.
  const std::uint64_t count = strips(params_);
  const std::uint64_t next = swept_ % count;
  for (std::uint64_t strip = 0; strip < count; ++strip) {
    const std::uint64_t passed = swept_ - ((strip < next ? next : next + count) - strip);
    const std::uint32_t since = numbers_since_swept(strip);
    if (since > taken_ || (!behind_ && since > clean_numbers())) return false;
    unsigned back = 0;
    while (back <= clean_numbers() && swept_at(back) > passed) ++back;
    if (back <= clean_numbers() && since > back) return false;
  }
  return slots_are_sound();
}

bool Cohort::slots_are_sound() const {
  std::array<std::uint64_t, kMostNumbers> live{};
  // Counts slots by generation, for strips that were swept equally long ago. Four separate counts:
  // an addition need not wait for the previous one, which is often to the same count.
  std::array<std::array<std::uint64_t, kMostNumbers>, 4> counts{};
  const auto take = [&](std::uint32_t since) {
    // How many numbers are younger than the youngest one that such a strip may hold.
    const unsigned least = since > clean_numbers() ? since - clean_numbers() : 0;
    for (unsigned held = 0; held < kMostNumbers; ++held) {
      std::uint64_t count = 0;
      for (auto& some : counts) count += std::exchange(some[held], 0);
      if (count == 0) continue;
      const std::uint64_t younger = std::uint64_t{least} + number(held + least);
      if (younger == 0 && !used_) return false;
      if (younger < live_numbers_)
        live[held] += count;
      else if (younger > std::uint64_t{params_.generations} + 1 + since)
        return false;
    }
    return true;
  };
  const kernels::CohortTable lines = table();
  const bool in_time = kernels::with_format(lines, [&]<class Format>(Format) {
    std::uint32_t before = 0;
    for (std::uint64_t bucket = 0; bucket < params_.buckets; ++bucket) {
      if (bucket % kStripBuckets == 0) {
        const std::uint32_t since = numbers_since_swept(bucket / kStripBuckets);
        if (since != before && !take(before)) return false;
        before = since;
      }
      const std::byte* const line = kernels::line_of(lines, bucket);
      for (unsigned slot = 0; slot < Format::kSlots; ++slot)
        ++counts[slot % 4][kernels::get<Format>(lines, line, slot).generation];
    }
    return take(before);
  });
  return in_time && live == written_;
}

}  // namespace sluice
