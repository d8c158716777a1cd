// An audit as bytes, and back, so that it continues its counts after a restart.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <initializer_list>
#include <vector>

#include "sluice/audit/audit.hpp"
#include "sluice/base/error.hpp"

namespace sluice {
namespace {

constexpr std::uint8_t kVersion = 1;
constexpr std::uint64_t kEncodedEntry = 48;
// No run counts that many events. A number of them that is at most this stays so, because each
// batch has less than 2^-53 of it, and rounding takes that away.
constexpr double kMostEvents = 0x1p120;

[[noreturn]] void refuse(const char* what) {
  throw CorruptSnapshot(fmt::format("audit: {}", what));
}

bool comes_before(const Digest& one, const Digest& other) {
  return one.lo != other.lo ? one.lo < other.lo : one.hi < other.hi;
}

std::int64_t decode_time(Decoder& from, std::initializer_list<std::int64_t> special = {}) {
  const auto time = static_cast<std::int64_t>(from.u64());
  if ((time < -Audit::kFarthest || time > Audit::kFarthest) &&
      std::ranges::find(special, time) == special.end())
    refuse("a time lies farther off than any can");
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
    if (!(counts.*count >= 0 && counts.*count <= KeyCounts::kMost)) refuse("a count is none");
  }
  if (counts.lost > counts.distinct || counts.passed > counts.duplicates)
    refuse("more errors were counted than trials");
  return counts;
}

double decode_total(Decoder& from) {
  const double total = from.f64();
  if (!(total >= 0 && total <= kMostEvents)) refuse("a number of events is none");
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

// Whatever is refused here, no operation may lead to: else an audit could not read its own bytes,
// and a filter would be lost with it. So each check is of something that every operation preserves,
// exactly and not only nearly, also from states that no run leads to. Keys are chosen by whoever
// sends them: what only chance says about them is no reason to refuse.
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
    *number = decode_time(from);
  // It may be of a slack from before the window grew, which is looked at only now and then.
  if (window_ == nullptr ? read.outside_age_ != 0 : read.outside_age_ < age_past(0))
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

// Where keys are digests, each is a few slots from its own. Keys that are too much alike would be
// searched for through one another: then the sample is dropped, as one is that cannot be halved.
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
  shadow_ = Shadow(shadow_.memory(), slots);
  Digest before;
  std::uint64_t displaced = 0;
  bool alike = false;
  for (std::uint64_t i = 0; i < count; ++i) {
    Shadow::Entry entry;
    entry.key.lo = from.u64();
    entry.key.hi = from.u64();
    entry.last = decode_time(from, {Shadow::kUnknown, Shadow::kForgotten});
    entry.counts = decode_counts(from);
    if (i > 0 && !comes_before(before, entry.key)) refuse("its keys are out of order");
    // Whether an event was lost is written in the lowest bit that decides.
    if (!sampled(entry.key) && !sampled({entry.key.lo, entry.key.hi ^ Shadow::kLost}))
      refuse("a key is not of its sample");
    before = entry.key;
    if (alike) {
      dropped_.add(entry.counts);
      continue;
    }
    if (shadow_.find(entry.key) != nullptr) refuse("a key is there twice");
    Shadow::Entry& added = shadow_.add(entry.key, entry.last, entry.lost());
    added.counts = entry.counts;
    displaced += shadow_.displacement(added);
    alike = displaced > 64 * (i + 64);
  }
  if (alike) lose_track(now_);
}

}  // namespace sluice
