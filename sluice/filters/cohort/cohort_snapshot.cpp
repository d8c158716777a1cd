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
  to.u64(swept_);
  to.u64(swept_now_);
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
  filter.decode_state(header);
  filter.memory_.decode(payload);
  refuse(!filter.is_sound());
  return filter;
}

// What every cohort filter keeps to, whatever its table holds.
void Cohort::decode_state(Decoder& from) {
  const auto refuse = [](bool wrong) {
    if (wrong) throw CorruptSnapshot("no filter 'cohort' is in such a state");
  };
  tick_ = from.u64();
  now_ = from.u8();
  live_numbers_ = from.u8();
  const std::uint8_t used = from.u8();
  swept_ = from.u64();
  swept_now_ = from.u64();
  moves_ = from.u64();
  constexpr std::uint64_t kMostTicks = std::uint64_t{1} << 62;
  refuse(tick_ <= params_.generations || tick_ > kMostTicks || now_ > table().generation_mask() ||
         live_numbers_ > params_.generations + 1 || used > 1 || swept_ >= params_.buckets ||
         swept_now_ > sweep_share());
  used_ = used == 1;
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
// sweep does not reach in time would come back to life when its number comes round.
bool Cohort::is_sound() const {
  std::array<std::uint64_t, kMostNumbers> live{};
  const std::uint64_t share = sweep_share();
  // Slots by their generation, of buckets that the sweep visited equally long ago. Four counts side
  // by side: an addition need not wait for the last one, which is often to the same count.
  std::array<std::array<std::uint64_t, kMostNumbers>, 4> counts{};
  const auto take = [&](std::uint64_t ago) {
    for (unsigned held = 0; held < kMostNumbers; ++held) {
      std::uint64_t count = 0;
      for (auto& some : counts) count += std::exchange(some[held], 0);
      if (count == 0) continue;
      const unsigned younger = number(held);
      if (younger == 0 && !used_) return false;
      if (younger < live_numbers_)
        live[held] += count;
      else if (younger > params_.generations + 1 + ago)
        return false;
    }
    return true;
  };
  const kernels::CohortTable lines = table();
  const bool swept_in_time = kernels::with_format(lines, [&]<class Format>(Format) {
    std::uint64_t before = 0;
    for (std::uint64_t bucket = 0; bucket < params_.buckets; ++bucket) {
      // How many numbers ago the sweep was here: what was dead then has been dead no longer.
      const std::uint64_t back = (bucket < swept_ ? swept_ : swept_ + params_.buckets) - 1 - bucket;
      const std::uint64_t ago = back < swept_now_ ? 0 : 1 + (back - swept_now_) / share;
      if (ago != before && !take(before)) return false;
      before = ago;
      const std::byte* const line = kernels::line_of(lines, bucket);
      for (unsigned slot = 0; slot < Format::kSlots; ++slot)
        ++counts[slot % 4][kernels::get<Format>(lines, line, slot).generation];
    }
    return take(before);
  });
  return swept_in_time && live == written_;
}

}  // namespace sluice
