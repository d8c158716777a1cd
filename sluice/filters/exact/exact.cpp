#include "sluice/filters/exact/exact.hpp"

#include <algorithm>
#include <cassert>

#include "sluice/base/bits.hpp"
#include "sluice/base/checked.hpp"
#include "sluice/base/error.hpp"
#include "sluice/kernels/prefetch.hpp"

namespace sluice {
namespace {

constexpr std::uint64_t kFewestSlots = 1024;
constexpr std::uint64_t kMostKeys = std::uint64_t{1} << 40;
// At three quarters full, the farthest key of a billion lies some 550 slots from home. A file whose
// keys all share a home would make every search of its loading as long as the table.
constexpr std::uint64_t kMostDisplaced = 2048;

// Three quarters full: beyond it, linear probing runs long.
std::uint64_t keys_for(std::uint64_t slots) {
  return slots / 4 * 3;
}

std::uint64_t slots_for(std::uint64_t keys) {
  std::uint64_t slots = kFewestSlots;
  while (keys_for(slots) < keys) slots = checked_multiply(slots, 2, "the table of filter 'exact'");
  return slots;
}

constexpr ParameterInfo kKnown[] = {
    {"keys", "keys to make room for from the start", "0 to 2^40", "--expect, or none"}};

// Zero marks a free slot, so the one digest that is zero stands as another: one more chance in
// 2^128.
Digest storable(const Digest& digest) noexcept {
  return digest == Digest{} ? Digest{1, 0} : digest;
}

void check(const Exact::Params& params) {
  if (params.expected_keys > kMostKeys)
    throw BadParameters("filter 'exact' takes at most 2^40 expected keys");
}

}  // namespace

std::span<const ParameterInfo> Exact::Params::known() {
  return kKnown;
}

Exact::Params Exact::Params::from(const Wish& wish, const Settings& settings) {
  const SettingsReader reader("exact", settings, kKnown);
  return {.expected_keys = reader.count("keys", 0, kMostKeys).value_or(wish.keys.value_or(0))};
}

Settings Exact::Params::settings() const {
  Settings settings;
  settings.add("keys", expected_keys);
  return settings;
}

Forecast Exact::Params::forecast() const {
  check(*this);
  const std::uint64_t keys = expected_keys == 0 ? kStandardCapacity : expected_keys;
  const std::uint64_t slots = slots_for(keys);
  // Linear probing (Knuth): a new key looks at (1 + 1/(1 − load)²) / 2 slots, four a line. Without
  // room from the start the table is copied into one of twice its size.
  const double free = 1 - static_cast<double>(keys) / static_cast<double>(slots);
  const double looked_at = (1 + 1 / (free * free)) / 2;
  constexpr double kSlotsALine = kCacheLineBytes / sizeof(Digest);
  const std::uint64_t while_growing = expected_keys == 0 ? slots / 2 : 0;
  return {.keys = keys,
          .bytes = checked_multiply(slots + while_growing, sizeof(Digest), "filter 'exact'"),
          .lines = 1 + (looked_at - 1) / kSlotsALine,
          .settings = settings()};
}

Exact Exact::make(const Params& params) {
  check(params);
  return Exact(params, slots_for(params.expected_keys));
}

Exact::Exact(const Params& params, std::uint64_t slots)
    : params_(params),
      slots_(slots),
      table_(checked_multiply(slots, sizeof(Digest), "the table of filter 'exact'")) {}

Digest* Exact::home_of(const Digest& digest) const noexcept {
  return const_cast<Digest*>(table_.as<Digest>()) + scale_to(digest.lo, slots_);
}

// The slot that holds the digest, or the free one where it would go. There is always a free one.
Digest* Exact::find(const Digest& digest) const noexcept {
  Digest* const begin = const_cast<Digest*>(table_.as<Digest>());
  Digest* const end = begin + slots_;
  Digest* slot = home_of(digest);
  while (*slot != digest && *slot != Digest{})
    if (++slot == end) slot = begin;
  return slot;
}

// Slots follow the digests' order, so doubling reads and writes both tables front to back.
void Exact::reserve(std::uint64_t keys) {
  if (keys <= keys_for(slots_)) return;
  Exact larger(params_, slots_for(keys));
  for (const Digest& held : std::span(table_.as<Digest>(), slots_))
    if (held != Digest{}) *larger.find(held) = held;
  slots_ = larger.slots_;
  table_ = std::move(larger.table_);
}

Verdict Exact::observe(const Digest& digest) {
  const Digest key = storable(digest);
  Digest* slot = find(key);
  if (*slot == key) return Verdict::duplicate;
  if (keys_ + 1 > keys_for(slots_)) {
    reserve(keys_ + 1);
    slot = find(key);
  }
  *slot = key;
  ++keys_;
  return Verdict::distinct;
}

bool Exact::may_contain(const Digest& digest) const noexcept {
  return *find(storable(digest)) != Digest{};
}

void Exact::observe(std::span<const Digest> digests, std::span<Verdict> verdicts) {
  assert(digests.size() == verdicts.size());
  kernels::with_prefetch(
      digests.size(), table_.size(), [&](std::size_t i) { return home_of(digests[i]); },
      [&](std::size_t i) { verdicts[i] = observe(digests[i]); });
}

void Exact::may_contain(std::span<const Digest> digests,
                        std::span<Verdict> verdicts) const noexcept {
  assert(digests.size() == verdicts.size());
  kernels::with_prefetch(
      digests.size(), table_.size(), [&](std::size_t i) { return home_of(digests[i]); },
      [&](std::size_t i) { verdicts[i] = static_cast<Verdict>(may_contain(digests[i])); });
}

void Exact::insert(std::span<const Digest> digests) {
  for (const Digest& digest : digests) insert(digest);
}

// No tombstone: whatever would no longer be reached past the hole moves back into it.
bool Exact::forget(const Digest& digest) noexcept {
  const Digest key = storable(digest);
  Digest* const begin = table_.as<Digest>();
  Digest* const found = find(key);
  const bool there = *found == key;
  ++(there ? forgotten_ : forget_misses_);
  if (!there) return false;
  const auto distance = [&](std::uint64_t from, std::uint64_t to) {
    return to >= from ? to - from : to + slots_ - from;
  };
  auto hole = static_cast<std::uint64_t>(found - begin);
  for (std::uint64_t slot = hole;;) {
    slot = slot + 1 == slots_ ? 0 : slot + 1;
    if (begin[slot] == Digest{}) break;
    const auto home = static_cast<std::uint64_t>(home_of(begin[slot]) - begin);
    if (distance(home, slot) < distance(hole, slot)) continue;  // its way does not pass the hole
    begin[hole] = begin[slot];
    hole = slot;
  }
  begin[hole] = {};
  --keys_;
  return true;
}

// Counted first, so that there is room for all of them, and no more, before the first goes in.
void Exact::merge(const Exact& other) {
  const std::span theirs(other.table_.as<Digest>(), other.slots_);
  const auto is_new = [this](const Digest& key) { return key != Digest{} && *find(key) != key; };
  reserve(keys_ + static_cast<std::uint64_t>(std::ranges::count_if(theirs, is_new)));
  for (const Digest& key : theirs)
    if (key != Digest{}) observe(key);
}

// As new: the table that growth brought goes too.
void Exact::clear() noexcept {
  const std::uint64_t slots = slots_for(params_.expected_keys);
  if (slots < slots_) {
    try {
      *this = Exact(params_, slots);
      return;
    } catch (const Error&) {
      // No memory for a small table while a large one is held: keep the large one.
    }
  }
  table_.clear();
  keys_ = forgotten_ = forget_misses_ = 0;
}

FilterStats Exact::stats() const {
  return {.keys = keys_,
          .capacity = 0,
          .bytes = table_.size(),
          .target_fpr = 0,
          .predicted_fpr = 0,
          .forgotten = forgotten_,
          .forget_misses = forget_misses_};
}

void Exact::encode_header(Encoder& to) const {
  to.u64(params_.expected_keys);
  to.u64(slots_);
  to.u64(keys_);
}

void Exact::encode_payload(Encoder& to) const {
  to.bytes(table_.bytes());
}

Exact Exact::decode(Decoder& header, Decoder& payload) {
  Params params;
  params.expected_keys = header.u64();
  const std::uint64_t slots = header.u64();
  const std::uint64_t keys = header.u64();
  if (params.expected_keys > kMostKeys || slots > 2 * kMostKeys || slots < kFewestSlots ||
      keys > keys_for(slots))
    throw CorruptSnapshot("no filter 'exact' has these parameters");
  payload.expect_remaining(slots * sizeof(Digest), "the table of filter 'exact'");
  Exact filter(params, slots);
  payload.bytes(filter.table_.bytes());
  const std::span table(filter.table_.as<Digest>(), slots);
  const auto free = std::count(table.begin(), table.end(), Digest{});
  // Also what keeps a search from running for ever: a slot is free.
  if (slots - static_cast<std::uint64_t>(free) != keys)
    throw CorruptSnapshot("the table of filter 'exact' does not hold as many keys as it says");
  // A key that a search does not reach would be let through again, and one that is there twice
  // would spoil the count when the table grows.
  for (const Digest& held : table) {
    if (held == Digest{}) continue;
    const std::ptrdiff_t away = &held - filter.home_of(held);
    const std::uint64_t displaced =
        static_cast<std::uint64_t>(away < 0 ? away + static_cast<std::ptrdiff_t>(slots) : away);
    if (displaced > kMostDisplaced || filter.find(held) != &held)
      throw CorruptSnapshot("the table of filter 'exact' holds a key out of its place");
  }
  filter.keys_ = keys;
  return filter;
}

static_assert(ForgettingFilter<Exact> && MergingFilter<Exact>);

}  // namespace sluice
