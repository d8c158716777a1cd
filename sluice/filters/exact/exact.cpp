#include "sluice/filters/exact/exact.hpp"

#include <algorithm>
#include <cassert>

#include "sluice/base/checked.hpp"
#include "sluice/base/error.hpp"
#include "sluice/kernels/prefetch.hpp"

namespace sluice {
namespace {

constexpr std::uint64_t kFewestSlots = 1024;
constexpr std::uint64_t kMostKeys = std::uint64_t{1} << 40;
constexpr const char* kTable = "the table of filter 'exact'";

// Three quarters full: beyond it, linear probing runs long.
std::uint64_t keys_for(std::uint64_t slots) {
  return slots / 4 * 3;
}

std::uint64_t slots_for(std::uint64_t keys) {
  std::uint64_t slots = kFewestSlots;
  while (keys_for(slots) < keys) slots = checked_multiply(slots, 2, kTable);
  return slots;
}

constexpr ParameterInfo kKnown[] = {
    {"keys", "keys to make room for from the start", "0 to 2^40", "`keys`, or none"}};

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
  // Linear probing (Knuth): a new key looks at (1 + 1/(1 − load)²) / 2 slots, four per line. Without
  // room from the start the keys move to a table of twice the size.
  const double free = 1 - static_cast<double>(keys) / static_cast<double>(slots);
  const double looked_at = (1 + 1 / (free * free)) / 2;
  constexpr double kSlotsALine = kCacheLineBytes / sizeof(Digest);
  const std::uint64_t while_growing = expected_keys == 0 ? slots / 2 : 0;
  return {.keys = keys,
          .bytes = checked_multiply(slots + while_growing, sizeof(Digest), "filter 'exact'"),
          .tables = 2,
          .lines = 1 + (looked_at - 1) / kSlotsALine,
          .settings = settings()};
}

Exact Exact::make(const Params& params, MemoryResource& memory) {
  check(params);
  return Exact(params, DigestTable<Entry>(slots_for(params.expected_keys), kTable, memory));
}

// Keys move to a table of twice the size, a few with every key that comes, from three quarters full
// on.
void Exact::make_room() {
  if (!table_.moving()) table_.begin(checked_multiply(table_.slots(), 2, kTable));
  table_.step([](const Entry&) { return true; });
}

// While keys move, in pages, or when there is no room. By value, and out of the way of observe().
Verdict Exact::observe_slowly(const Digest key) {
  Entry* slot = table_.find_to_write(key);
  if (!slot->free()) return Verdict::duplicate;
  const bool moving = table_.moving();
  if (moving || table_.used() >= keys_for(table_.slots())) {
    const bool was_moved = moving && table_.moved(key);
    make_room();
    // Most slots are found once: in the old table nothing is written, and in the new one a slot that
    // is still free is still the first.
    const bool stays = moving && (was_moved ? slot->free() : table_.moving() && !table_.moved(key));
    if (!stays) slot = table_.find_to_write(key);
  }
  table_.fill(slot, {key});
  return Verdict::distinct;
}

Verdict Exact::observe(const Digest& digest) {
  const Entry entry{storable(digest)};
  if (!table_.in_one_block()) [[unlikely]]
    return observe_slowly(entry.key);
  Entry* const slot = table_.find_in_block(entry.key);
  if (!slot->free()) return Verdict::duplicate;
  if (table_.used() >= keys_for(table_.slots())) [[unlikely]]
    return observe_slowly(entry.key);
  table_.fill(slot, entry);
  return Verdict::distinct;
}

bool Exact::may_contain(const Digest& digest) const noexcept {
  return !table_.find(storable(digest))->free();
}

std::size_t Exact::observe(std::span<const Digest> digests, std::span<Verdict> verdicts) {
  assert(digests.size() == verdicts.size());
  std::size_t judged = 0;
  while_memory_lasts([&] {
    kernels::with_prefetch(
        digests.size(), table_.bytes(), [&](std::size_t i) { return table_.home(digests[i]); },
        [&](std::size_t i) {
          verdicts[i] = observe(digests[i]);
          judged = i + 1;
        });
  });
  return judged;
}

void Exact::may_contain(std::span<const Digest> digests,
                        std::span<Verdict> verdicts) const noexcept {
  assert(digests.size() == verdicts.size());
  kernels::with_prefetch(
      digests.size(), table_.bytes(), [&](std::size_t i) { return table_.home(digests[i]); },
      [&](std::size_t i) { verdicts[i] = static_cast<Verdict>(may_contain(digests[i])); });
}

std::size_t Exact::insert(std::span<const Digest> digests) {
  std::size_t judged = 0;
  while_memory_lasts([&] {
    for (; judged < digests.size(); ++judged) insert(digests[judged]);
  });
  return judged;
}

bool Exact::forget(const Digest& digest) noexcept {
  const bool there = may_contain(digest);
  ++(there ? forgotten_ : forget_misses_);
  if (there) table_.take_out(storable(digest));
  return there;
}

// Counted first, so that there is room for all of them, and no more, before the first goes in.
void Exact::merge(const Exact& other) {
  std::uint64_t keys = table_.used();
  other.table_.each([&](const Entry& entry) { keys += table_.find(entry.key)->free(); });
  if (keys > keys_for(table_.slots())) table_.rebuild(slots_for(keys));
  if (&other != this) other.table_.each([&](const Entry& entry) { observe(entry.key); });
}

// As new: the table that growth brought goes too.
void Exact::clear() noexcept {
  forgotten_ = forget_misses_ = 0;
  table_.clear(slots_for(params_.expected_keys));
}

FilterStats Exact::stats() const {
  return {.keys = table_.used(),
          .capacity = 0,
          .bytes = bytes(),
          .target_fpr = 0,
          .predicted_fpr = 0,
          .forgotten = forgotten_,
          .forget_misses = forget_misses_};
}

void Exact::encode_header(Encoder& to) const {
  to.u64(params_.expected_keys);
  table_.encode_header(to);
}

void Exact::encode_payload(Encoder& to) const {
  table_.encode_payload(to);
}

Exact Exact::decode(Decoder& header, Decoder& payload, MemoryResource& memory) {
  Params params;
  params.expected_keys = header.u64();
  if (params.expected_keys > kMostKeys)
    throw CorruptSnapshot("no filter 'exact' has room for so many keys from the start");
  return Exact(params, DigestTable<Entry>::decode(
                           header, payload, kTable, slots_for(params.expected_keys),
                           [](const Entry&) { return true; }, memory));
}

static_assert(ForgettingFilter<Exact> && MergingFilter<Exact>);

}  // namespace sluice
