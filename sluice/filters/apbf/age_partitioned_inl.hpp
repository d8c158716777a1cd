// Rotations, sweeps and snapshots of what apbf and apbbf have in common.
//
// A segment that becomes the youngest is stale. While its generation is written, keys empty what they
// meet, and what they leave is swept. Where that is done when the generation ends, the marks of one
// segment suffice: this is how it is with a steady stream, and what the kernels are made for. Where
// it is not, because a generation had few keys or none, the sweep is behind: rotations then touch
// nothing, strips are read by their stamps (kernels/age_strips.hpp), and each key sweeps a few strips.
// When all are swept within a generation, the next one begins with marks again. Which of the two it
// is, is decided when a generation begins, and how far a sweep is follows from the keys written: neither
// depends on how calls are cut.
#pragma once

#include <bit>

#include "sluice/filters/apbf/age_partitioned.hpp"

namespace sluice {

template <class P>
void AgePartitioned<P>::clear() noexcept {
  memory_.clear();
  stale_.clear();
  stamps_.clear();
  std::ranges::fill(written_, 0);
  std::ranges::fill(again_, 0);
  ring_.youngest = 0;
  live_keys_ = taken_ = floor_ = swept_ = next_strip_ = 0;
}

template <class P>
void AgePartitioned<P>::make_stale(std::uint64_t word) noexcept {
  const std::uint64_t units = std::min<std::uint64_t>(64, params_.units() - word * 64);
  next_stale_.template as<std::uint64_t>()[word] = ~std::uint64_t{0} >> (64 - units);
}

template <class P>
void AgePartitioned<P>::sweep(std::uint64_t until_word) noexcept {
  auto* words = stale_.template as<std::uint64_t>();
  const auto segments = table();
  for (; swept_ < until_word; ++swept_) {
    for (std::uint64_t word = words[swept_]; word != 0; word &= word - 1)
      segments.empty(swept_ * 64 + static_cast<unsigned>(std::countr_zero(word)));
    words[swept_] = 0;
    make_stale(swept_);
  }
}

// Keys empty most units on their way, so the sweep begins late: with 2.2 keys per unit (apbbf's lines)
// a fifth of the units is left to it, where sweeping all the time would touch them all. It is spread
// over a quarter of the generation and done when an eighth is still to come, if this generation has
// as many keys as the one before. One key sweeps no more than a few times what it writes.
template <class P>
std::uint64_t AgePartitioned<P>::words_due() const noexcept {
  const std::uint64_t all = stale_words(params_);
  // Nothing of a new filter is stale: what is left to do is to prepare the marks for the next
  // generation, a line of them with each key.
  if (taken_ == 0) return std::min(all, written_[ring_.physical(0)] * 8);
  const std::uint64_t full = params_.generation_keys();
  const std::uint64_t before = ring_.segments() > 1 ? written_[ring_.physical(1)] : 0;
  const std::uint64_t expected = before == 0 ? full : std::min(full, before);
  const std::uint64_t quarter = std::max<std::uint64_t>(1, expected / 4);
  const std::uint64_t end = expected - expected / 8;
  const std::uint64_t written = std::min(written_[ring_.physical(0)], end);
  if (written + quarter <= end) return 0;
  const std::uint64_t share = written + quarter - end;
  const auto due = static_cast<std::uint64_t>((Uint128{all} * share + quarter - 1) / quarter);
  const std::uint64_t units_per_key = 8 + params_.k;
  return std::min(due, (written * units_per_key + 63) / 64);
}

// No more lines per key than a few times what a key touches: one or few where segments lie side by side,
// else k and more.
template <class P>
void AgePartitioned<P>::sweep_strips() noexcept {
  const std::uint64_t all = strip_count(params_), written = written_at(0);
  const bool together = params_.strips().segments == 1;
  const std::uint64_t until = std::min(all, together ? written / 2 : written * (1 + params_.k / 8));
  if (swept_ >= until) return;
  const auto segments = table();
  for (; swept_ < until; ++swept_) {
    segments.sweep(next_strip_);
    if (next_strip_ < stale_words(params_)) make_stale(next_strip_);
    next_strip_ = next_strip_ + 1 == all ? 0 : next_strip_ + 1;
  }
}

// Whether the next generation can begin with marks. The last few units are swept for it.
template <class P>
bool AgePartitioned<P>::swept_in_time() noexcept {
  if (behind()) return swept_ == strip_count(params_);
  const std::uint64_t words = stale_words(params_);
  if (swept_ + 1 == words && static_cast<unsigned>(std::popcount(
                                 stale_.template as<std::uint64_t>()[swept_])) <= kMostAtOnce)
    sweep(words);
  return swept_ == words;
}

template <class P>
void AgePartitioned<P>::rotate() noexcept {
  if (taken_ == kMostRotations) return clear();
  const bool in_time = swept_in_time();
  live_keys_ -= written_at(ring_.l);
  ring_.youngest = ring_.physical(ring_.segments() - 1);
  written_at(0) = 0;
  again_[ring_.youngest] = 0;
  ++taken_;
  swept_ = 0;
  if (!in_time) return;
  std::swap(stale_, next_stale_);
  floor_ = taken_;
}

// Youngest first.
template <class P>
std::vector<double> AgePartitioned<P>::by_age(const auto& counts) const {
  std::vector<double> aged;
  for (unsigned age = 0; age < ring_.segments(); ++age)
    aged.push_back(static_cast<double>(counts[ring_.physical(age)]));
  return aged;
}

template <class P>
double AgePartitioned<P>::present_npws() const {
  return model::apbf_npws(params_.matches(by_age(written_), by_age(again_)), params_.k);
}

template <class P>
FilterStats AgePartitioned<P>::stats() const {
  const std::vector<double> keys = by_age(written_), again = by_age(again_);
  return {.keys = live_keys_,
          .capacity = params_.capacity,
          .bytes = bytes(),
          .target_fpr = params_.target_fpr,
          .predicted_fpr = params_.predicted_fpr(keys, again)};
}

template <class P>
void AgePartitioned<P>::encode_header(Encoder& to) const {
  params_.encode(to);
  to.u64(taken_);
  to.u64(floor_);
  to.u64(swept_);
  to.u64(next_strip_);
  for (const std::uint64_t written : written_) to.u64(written);
  for (const std::uint64_t again : again_) to.u64(again);
}

template <class P>
void AgePartitioned<P>::encode_payload(Encoder& to) const {
  memory_.encode(to);
  to.bytes(stale_.bytes());
  if (behind()) encode_stamps(to);
}

// As rotations since, up to as many as there are segments: more are no different. While the sweep is
// not behind, stamps mean nothing.
template <class P>
void AgePartitioned<P>::encode_stamps(Encoder& to) const {
  const std::uint64_t all = strip_count(params_);
  if (to.skip(all * sizeof(std::uint16_t))) return;
  const kernels::AgeStrips stamps = strips();
  for (std::uint64_t strip = 0; strip < all; ++strip)
    to.u16(
        static_cast<std::uint16_t>(std::min<std::uint64_t>(stamps.since(strip), ring_.segments())));
}

// False: no filter has these.
template <class P>
bool AgePartitioned<P>::decode_stamps(Decoder& from) {
  const std::uint64_t all = strip_count(params_);
  const kernels::AgeStrips stamps = strips();
  const std::uint64_t most = std::min<std::uint64_t>(taken_ - floor_, ring_.segments());
  for (std::uint64_t strip = 0; strip < all; ++strip) {
    const std::uint64_t since = from.u16();
    // Counted backwards from the next to be swept.
    const bool swept = (next_strip_ + all - 1 - strip) % all < swept_;
    if (since > most || (swept && since != 0)) return false;
    stamps.set_since(strip, since);
    if (swept && strip < stale_words(params_)) make_stale(strip);
  }
  return true;
}

// Nothing that was swept is marked.
template <class P>
bool AgePartitioned<P>::marks_are_sound() const {
  const auto* const words = stale_.template as<std::uint64_t>();
  const std::uint64_t units = params_.units();
  if (units % 64 != 0 && words[units / 64] >> (units % 64) != 0) return false;
  if (!behind())
    return std::all_of(words, words + swept_, [](std::uint64_t word) { return word == 0; });
  const std::uint64_t age = taken_ - floor_;
  if (age >= ring_.segments()) return true;
  const kernels::AgeStrips stamps = strips();
  for (std::uint64_t unit = 0; unit < units; ++unit)
    if (kernels::StaleUnits(stamps.marks).has(unit) &&
        stamps.since(stamps.strip_of(ring_.physical(static_cast<unsigned>(age)), unit)) != age)
      return false;
  return true;
}

template <class P>
AgePartitioned<P> AgePartitioned<P>::decode(Decoder& header, Decoder& payload,
                                            MemoryResource& memory) {
  const auto refuse = [](bool wrong) {
    if (wrong) throw CorruptSnapshot("no filter '" + std::string(P::kName) + "' has these fields");
  };
  const Params params = Params::decode(header);
  if (const char* wrong = params.what_is_wrong()) throw CorruptSnapshot(wrong);
  const std::uint64_t words = stale_words(params), strips = strip_count(params);
  const std::uint64_t taken = header.u64(), floor = header.u64();
  refuse(taken > kMostRotations || floor > taken || (floor < taken && strips == 0));
  payload.expect_remaining(params.table_bytes() + words * sizeof(std::uint64_t) +
                               (floor < taken ? strips * sizeof(std::uint16_t) : 0),
                           "the table of an age-partitioned filter");
  AgePartitioned filter(params, memory);
  filter.taken_ = taken;
  filter.floor_ = floor;
  const unsigned segments = filter.ring_.segments();
  filter.ring_.youngest = (segments - static_cast<unsigned>(taken % segments)) % segments;
  filter.swept_ = header.u64();
  filter.next_strip_ = header.u64();
  refuse(filter.swept_ > (filter.behind() ? strips : words) ||
         filter.next_strip_ >= std::max<std::uint64_t>(strips, 1));
  for (std::uint64_t& written : filter.written_) {
    written = header.u64();
    refuse(written > params.generation_keys());
  }
  for (unsigned age = 0; age <= params.l; ++age) filter.live_keys_ += filter.written_at(age);
  for (std::uint64_t& again : filter.again_) {
    again = header.u64();
    refuse(again > params.generation_keys() * params.k);
  }
  filter.memory_.decode(payload);
  payload.bytes(filter.stale_.bytes());
  if (filter.behind()) {
    refuse(!filter.decode_stamps(payload));
  } else {
    for (std::uint64_t word = 0; word < filter.swept_; ++word) filter.make_stale(word);
  }
  refuse(!filter.marks_are_sound());
  return filter;
}

}  // namespace sluice
