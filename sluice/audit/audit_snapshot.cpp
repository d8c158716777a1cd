// An audit as bytes, and back, so that it continues its counts after a restart.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <vector>

#include "sluice/audit/audit.hpp"
#include "sluice/base/error.hpp"

namespace sluice {
namespace {

constexpr std::uint8_t kVersion = 1;
constexpr std::uint64_t kEncodedEntry = 48;
// As times of a window: no difference of two overflows.
constexpr std::int64_t kFarthest = (std::int64_t{1} << 62) - 1;

[[noreturn]] void refuse(const char* what) {
  throw CorruptSnapshot(fmt::format("audit: {}", what));
}

bool comes_before(const Digest& one, const Digest& other) {
  return one.lo != other.lo ? one.lo < other.lo : one.hi < other.hi;
}

std::int64_t bounded(std::int64_t time) {
  if (time < -kFarthest || time > kFarthest) refuse("a time lies farther off than any can");
  return time;
}

constexpr auto kCounts = {&KeyCounts::distinct, &KeyCounts::lost,        &KeyCounts::duplicates,
                          &KeyCounts::passed,   &KeyCounts::let_through, &KeyCounts::held};

void encode(const KeyCounts& counts, Encoder& to) {
  for (const auto count : kCounts) to.u32(std::bit_cast<std::uint32_t>(counts.*count));
}

KeyCounts decode_counts(Decoder& from) {
  KeyCounts counts;
  for (const auto count : kCounts) {
    counts.*count = std::bit_cast<float>(from.u32());
    if (!(counts.*count >= 0 && std::isfinite(counts.*count))) refuse("a count is none");
  }
  if (counts.lost > counts.distinct || counts.passed > counts.duplicates)
    refuse("more errors were counted than trials");
  return counts;
}

double decode_total(Decoder& from) {
  const double total = from.f64();
  if (!(total >= 0 && std::isfinite(total))) refuse("a number of events is none");
  return total;
}

KeySums decode_sums(Decoder& from) {
  std::array<double, KeySums::kNumbers> numbers;
  for (double& number : numbers) number = from.f64();
  KeySums sums;
  sums.set_numbers(numbers);
  if (!sums.plausible()) refuse("no keys have such sums");
  return sums;
}

}  // namespace

// Keys in their own order: equal audits have equal bytes, even if their tables differ.
void Audit::encode(Encoder& to) const {
  to.u8(kVersion);
  to.u8(knows_all_);
  to.varint(counts_.sample);
  to.varint(counts_.doublings);
  for (const double number : dropped_.numbers()) to.f64(number);
  for (const double total : {totals_.let_through, totals_.held, counts_.undecided}) to.f64(total);
  for (const std::int64_t number : {outside_age_, start_, now_})
    to.u64(static_cast<std::uint64_t>(number));
  clock_.encode(to);
  ghosts_.encode(to);
  to.varint(shadow_.slots());
  std::vector<Shadow::Entry> entries;
  entries.reserve(shadow_.size());
  shadow_.each([&](const Shadow::Entry& entry) { entries.push_back(entry); });
  std::ranges::sort(entries, comes_before, &Shadow::Entry::key);
  to.varint(entries.size());
  for (const Shadow::Entry& entry : entries) {
    to.u64(entry.key.lo);
    to.u64(entry.key.hi);
    to.u64(static_cast<std::uint64_t>(entry.last));
    sluice::encode(entry.counts, to);
  }
}

void Audit::decode(Decoder& from) {
  Audit read(params_, filter_);
  if (from.u8() != kVersion) refuse("it was written by a newer sluice");
  const std::uint8_t knows_all = from.u8();
  if (knows_all > 1) refuse("it either knows all keys or does not");
  read.knows_all_ = knows_all == 1;
  read.counts_.sample = from.varint();
  const std::uint64_t doublings = from.varint();
  if (read.counts_.sample == 0 || doublings > 63 ||
      (read.counts_.sample >> doublings) > kMostSample ||
      (read.counts_.sample >> doublings) << doublings != read.counts_.sample)
    refuse("no sample becomes one of such a size");
  read.counts_.doublings = static_cast<unsigned>(doublings);
  read.threshold_ = threshold_of(read.counts_.sample);
  read.dropped_ = decode_sums(from);
  for (double* total : {&read.totals_.let_through, &read.totals_.held, &read.counts_.undecided})
    *total = decode_total(from);
  for (std::int64_t* number : {&read.outside_age_, &read.start_, &read.now_})
    *number = bounded(static_cast<std::int64_t>(from.u64()));
  // What was surely forgotten may have come closer since, and never goes back.
  if (read.outside_age_ < outside_age_ || (window_ == nullptr && read.outside_age_ != 0))
    refuse("it is of another window");
  read.clock_ = EventClock();
  read.clock_.decode(from);
  if (read.clock_.started() && (window_ == nullptr || !window_->params().spec.by_time()))
    refuse("it has a clock, and its filter has none");
  if (window_ != nullptr) read.clock_.take_keys_of(window_->clock());
  read.ghosts_.decode(from);
  read.decode_shadow(from);
  if (from.remaining() != 0) refuse("bytes follow it");
  std::swap(shadow_, read.shadow_);
  knows_all_ = read.knows_all_;
  threshold_ = read.threshold_;
  outside_age_ = read.outside_age_;
  clock_ = read.clock_;
  start_ = read.start_;
  now_ = read.now_;
  counts_ = read.counts_;
  dropped_ = read.dropped_;
  totals_ = read.totals_;
  ghosts_ = read.ghosts_;
}

void Audit::decode_shadow(Decoder& from) {
  const std::uint64_t slots = from.varint();
  const std::uint64_t count = from.varint();
  if (!std::has_single_bit(slots) || slots < Shadow::kFirstSlots || count > slots / 4 * 3)
    refuse("no table has such a size");
  if (slots >
      std::max<std::uint64_t>(params_.most_bytes / sizeof(Shadow::Entry), Shadow::kFirstSlots))
    throw BadParameters(
        fmt::format("the audit's sample takes {} bytes, and may take {}: give it as much as before",
                    slots * sizeof(Shadow::Entry), params_.most_bytes));
  from.expect_remaining(count * kEncodedEntry, "the keys of an audit");
  shadow_ = Shadow(slots);
  Digest before;
  std::uint64_t displaced = 0;
  std::array<std::uint64_t, 65> survivors{};  // of how many halvings of the sample, at most
  for (std::uint64_t i = 0; i < count; ++i) {
    Shadow::Entry entry;
    entry.key.lo = from.u64();
    entry.key.hi = from.u64();
    entry.last = static_cast<std::int64_t>(from.u64());
    if (entry.last != Shadow::kUnknown && entry.last != Shadow::kForgotten) bounded(entry.last);
    if (i > 0 && !comes_before(before, entry.key)) refuse("its keys are out of order");
    if (!sampled(entry.key)) refuse("a key is not of its sample");
    if (shadow_.find(entry.key) != nullptr) refuse("a key is there twice");
    const std::uint64_t word = kernels::sample_word(entry.key);
    ++survivors[static_cast<std::size_t>(
        std::max(0, std::countl_zero(word) - std::countl_zero(threshold_)))];
    Shadow::Entry& added = shadow_.add(entry.key, entry.last, entry.lost());
    added.counts = decode_counts(from);
    displaced += shadow_.displacement(added);
    // A few slots each, where keys are digests.
    if (displaced > 64 * (i + 64)) refuse("its keys are not digests, they are too much alike");
    before = entry.key;
  }
  // Each halving of the sample drops half of the keys. Leading zeros count halvings only to within
  // one, so up to twice as many are expected; that twice as many again and 64 more survive by chance
  // is less likely than 1e-20.
  std::uint64_t left = 0;
  for (std::size_t halvings = survivors.size(); halvings-- > 1;) {
    left += survivors[halvings];
    const std::uint64_t expected = halvings < 64 ? count >> halvings : 0;
    if (left > 4 * expected + 64)
      refuse("its keys are not digests, too many of them stay when the sample is halved");
  }
}

}  // namespace sluice
