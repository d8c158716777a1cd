#include "sluice/filters/exact/exact_window.hpp"

#include <algorithm>
#include <cassert>

#include "sluice/base/bits.hpp"
#include "sluice/base/checked.hpp"
#include "sluice/base/error.hpp"
#include "sluice/kernels/prefetch.hpp"
#include "sluice/model/cohort.hpp"

namespace sluice {
namespace {

constexpr std::uint64_t kFewestSlots = 64;
constexpr std::uint64_t kMostKeys = std::uint64_t{1} << 40;
constexpr unsigned kMostGenerations = 1u << 24;
constexpr unsigned kStandardGenerations = 1000;
constexpr const char* kTable = "the table of filter 'exact-window'";

// Slots looked at with each insertion: the whole table within as many insertions as an eighth of
// its slots, so that expired entries never take more than that.
constexpr std::uint64_t kSweepStep = 8;

constexpr ParameterInfo kKnown[] = {
    {"generations", "generations a window is cut into; slack is one of them", "0 to 2^24", "1000"},
    {"keys", "keys to make room for from the start", "0 to 2^40", "the window, or none"},
};

// Beyond three quarters, linear probing runs long.
std::uint64_t most_used(std::uint64_t slots) {
  return slots / 4 * 3;
}

// At most half of the slots live, which leaves a quarter to those that are expired.
std::uint64_t slots_for(std::uint64_t keys) {
  std::uint64_t slots = kFewestSlots;
  while (slots / 2 < keys) slots = checked_multiply(slots, 2, kTable);
  return slots;
}

void check(const ExactWindow::Params& params) {
  if (params.expected_keys > kMostKeys)
    throw BadParameters("filter 'exact-window' takes at most 2^40 expected keys");
  if (params.generations > kMostGenerations)
    throw BadParameters("filter 'exact-window' takes 0 to 2^24 generations");
}

}  // namespace

std::span<const ParameterInfo> ExactWindow::Params::known() {
  return kKnown;
}

ExactWindow::Params ExactWindow::Params::from(const Wish& wish, const Settings& settings) {
  const SettingsReader reader("exact-window", settings, kKnown);
  return {.generations =
              static_cast<unsigned>(reader.count("generations", 0, kMostGenerations)
                                        .value_or(wish.generations.value_or(kStandardGenerations))),
          .expected_keys = reader.count("keys", 0, kMostKeys).value_or(wish.keys.value_or(0))};
}

Settings ExactWindow::Params::settings() const {
  Settings settings;
  settings.add("generations", std::uint64_t{generations});
  settings.add("keys", expected_keys);
  return settings;
}

Forecast ExactWindow::Params::forecast() const {
  check(*this);
  const std::uint64_t keys = expected_keys == 0 ? kStandardCapacity : expected_keys;
  // A window and the generation that is being written; the larger table may be needed for that, and
  // is filled while the smaller one is still there.
  const std::uint64_t live =
      generations == 0 ? keys : keys + (keys + generations - 1) / generations;
  const std::uint64_t slots = slots_for(live);
  const std::uint64_t first = slots_for(expected_keys);
  const std::uint64_t table =
      checked_multiply(slots + (first < slots ? slots / 2 : 0), sizeof(Entry), kTable);
  // Never more than three quarters of the slots are in use, mostly some half: as in exact.cpp.
  constexpr double kLinesAtHalf = 1 + 1.5 * sizeof(Entry) / kCacheLineBytes;
  return {.keys = keys,
          .bytes = table + (std::uint64_t{generations} + 1) * sizeof(std::uint64_t),
          .lines = kLinesAtHalf,
          .generations = generations,
          .slack = model::window_slack(generations),
          .npws = model::window_slack(generations),
          .settings = settings()};
}

ExactWindow ExactWindow::make(const Params& params) {
  check(params);
  return ExactWindow(params, slots_for(params.expected_keys));
}

// The first generation leaves room for ages before it, so that none is ever 0.
ExactWindow::ExactWindow(const Params& params, std::uint64_t slots)
    : params_(params),
      slots_(slots),
      now_(std::uint64_t{params.generations} + 1),
      counts_(params.generations),
      table_(checked_multiply(slots, sizeof(Entry), kTable)) {}

ExactWindow::Entry* ExactWindow::entries() const noexcept {
  return const_cast<Entry*>(table_.as<Entry>());
}

std::uint64_t ExactWindow::home_of(const Digest& key) const noexcept {
  return scale_to(key.lo, slots_);
}

// The entry of the key, live or expired, or the free slot at the end of its way. There is always a
// free one.
ExactWindow::Entry* ExactWindow::find(const Digest& key) const noexcept {
  Entry* const begin = entries();
  std::uint64_t slot = home_of(key);
  while (begin[slot].generation != 0 && begin[slot].key != key)
    slot = slot + 1 == slots_ ? 0 : slot + 1;
  return begin + slot;
}

// Frees a slot and moves back, one after the other, what would no longer be reached.
void ExactWindow::take_out(std::uint64_t hole) noexcept {
  Entry* const begin = entries();
  const auto distance = [&](std::uint64_t from, std::uint64_t to) {
    return to >= from ? to - from : to + slots_ - from;
  };
  for (std::uint64_t slot = hole;;) {
    slot = slot + 1 == slots_ ? 0 : slot + 1;
    if (begin[slot].generation == 0) break;
    const std::uint64_t home = home_of(begin[slot].key);
    if (distance(home, slot) < distance(hole, slot)) continue;  // its way does not pass the hole
    begin[hole] = begin[slot];
    hole = slot;
  }
  begin[hole] = {};
  --used_;
}

void ExactWindow::sweep(std::uint64_t slots) noexcept {
  for (; slots > 0; --slots) {
    const Entry& entry = entries()[swept_];
    if (entry.generation != 0 && !live(entry))
      take_out(swept_);  // what moved here is looked at next
    else
      swept_ = swept_ + 1 == slots_ ? 0 : swept_ + 1;
  }
}

// A table for as many live keys, without the expired ones. False when there is no memory for it.
bool ExactWindow::rebuild(std::uint64_t keys) noexcept {
  try {
    ExactWindow other(params_, std::max(slots_for(keys), slots_for(params_.expected_keys)));
    for (const Entry& entry : std::span(entries(), slots_)) {
      if (!live(entry)) continue;
      *other.find(entry.key) = entry;
      ++other.used_;
    }
    slots_ = other.slots_;
    used_ = other.used_;
    swept_ = 0;
    table_ = std::move(other.table_);
    return true;
  } catch (const std::exception&) {
    return false;
  }
}

void ExactWindow::rotate() noexcept {
  ++now_;
  counts_.rotate();
  // Much too large: eight times what slots_for would give. If there is no memory for a smaller one
  // just now, the large one does.
  if (slots_ / 16 > counts_.live() && slots_ / 8 >= slots_for(params_.expected_keys))
    rebuild(counts_.live());
}

std::optional<Verdict> ExactWindow::admit_aged(const Digest& digest, unsigned age,
                                               Anchor anchor) noexcept {
  assert(age <= params_.generations);
  const std::uint64_t generation = now_ - age;
  Entry* entry = find(digest);
  if (live(*entry)) {
    if (anchor == Anchor::refreshed && generation > entry->generation) {
      counts_.move(static_cast<unsigned>(now_ - entry->generation), age);
      entry->generation = generation;
    }
    return Verdict::duplicate;
  }
  if (entry->generation == 0) {
    if (used_ + 1 > most_used(slots_)) {
      if (!rebuild(counts_.live() + 1) && used_ + 1 == slots_) return std::nullopt;
      entry = find(digest);
    }
    ++used_;
  }
  *entry = {digest, generation};
  counts_.add(age);
  sweep(kSweepStep);
  return Verdict::distinct;
}

std::size_t ExactWindow::admit(std::span<const Digest> digests, std::span<Verdict> verdicts,
                               std::uint64_t& budget, Anchor anchor) noexcept {
  assert(digests.size() == verdicts.size());
  const std::size_t ahead = kernels::kPrefetchDistance;
  std::size_t judged = 0;
  for (; judged < digests.size() && budget > 0; ++judged) {
    if (judged + ahead < digests.size())
      __builtin_prefetch(entries() + home_of(digests[judged + ahead]), 1);
    const std::optional<Verdict> verdict = admit_aged(digests[judged], 0, anchor);
    if (!verdict) break;
    verdicts[judged] = *verdict;
    budget -= *verdict == Verdict::distinct || anchor == Anchor::refreshed;
  }
  return judged;
}

std::optional<unsigned> ExactWindow::age_of(const Digest& digest) const noexcept {
  const Entry& entry = *find(digest);
  if (!live(entry)) return std::nullopt;
  return static_cast<unsigned>(now_ - entry.generation);
}

bool ExactWindow::forget(const Digest& digest) noexcept {
  const Entry* entry = find(digest);
  const bool there = live(*entry);
  ++(there ? forgotten_ : forget_misses_);
  if (!there) return false;
  counts_.remove(static_cast<unsigned>(now_ - entry->generation));
  take_out(static_cast<std::uint64_t>(entry - entries()));
  return true;
}

Verdict ExactWindow::observe(const Digest& digest) {
  Verdict verdict;
  observe(std::span(&digest, 1), std::span(&verdict, 1));
  return verdict;
}

void ExactWindow::observe(std::span<const Digest> digests, std::span<Verdict> verdicts) {
  std::uint64_t budget = digests.size();
  if (admit(digests, verdicts, budget, Anchor::delivered) < digests.size())
    throw BadParameters("filter 'exact-window' has no memory for more keys: use 'cohort'");
}

bool ExactWindow::may_contain(const Digest& digest) const noexcept {
  return live(*find(digest));
}

void ExactWindow::may_contain(std::span<const Digest> digests,
                              std::span<Verdict> verdicts) const noexcept {
  assert(digests.size() == verdicts.size());
  kernels::with_prefetch(
      digests.size(), table_.size(), [&](std::size_t i) { return entries() + home_of(digests[i]); },
      [&](std::size_t i) { verdicts[i] = static_cast<Verdict>(may_contain(digests[i])); });
}

void ExactWindow::insert(std::span<const Digest> digests) {
  for (const Digest& digest : digests) insert(digest);
}

// As new: the table that growth brought goes too, unless there is no memory for a small one.
void ExactWindow::clear() noexcept {
  counts_.clear();
  now_ = std::uint64_t{params_.generations} + 1;
  table_.clear();
  used_ = swept_ = forgotten_ = forget_misses_ = 0;
  if (slots_ > slots_for(params_.expected_keys)) rebuild(0);
}

FilterStats ExactWindow::stats() const {
  return {.keys = live_keys(),
          .capacity = 0,
          .bytes = table_.size() + counts_.bytes(),
          .target_fpr = 0,
          .predicted_fpr = 0,
          .forgotten = forgotten_,
          .forget_misses = forget_misses_};
}

void ExactWindow::encode_header(Encoder& to) const {
  to.u32(params_.generations);
  to.u64(params_.expected_keys);
  to.u64(slots_);
  to.u64(used_);
  to.u64(swept_);
  to.u64(now_);
}

void ExactWindow::encode_payload(Encoder& to) const {
  to.bytes(table_.bytes());
}

ExactWindow ExactWindow::decode(Decoder& header, Decoder& payload) {
  const auto refuse = [](bool wrong, const char* why) {
    if (wrong) throw CorruptSnapshot(why);
  };
  constexpr const char* kFields = "no filter 'exact-window' has these fields";
  Params params;
  params.generations = header.u32();
  params.expected_keys = header.u64();
  const std::uint64_t slots = header.u64();
  const std::uint64_t used = header.u64();
  const std::uint64_t swept = header.u64();
  const std::uint64_t now = header.u64();
  refuse(params.generations > kMostGenerations || params.expected_keys > kMostKeys ||
             slots < kFewestSlots || slots > 4 * kMostKeys || swept >= slots || used >= slots ||
             now <= params.generations,
         kFields);
  payload.expect_remaining(slots * sizeof(Entry), kTable);
  ExactWindow filter(params, slots);
  payload.bytes(filter.table_.bytes());
  filter.now_ = now;
  filter.swept_ = swept;
  filter.used_ = used;
  const std::span table(filter.entries(), slots);
  const auto free = std::count_if(table.begin(), table.end(),
                                  [](const Entry& entry) { return entry.generation == 0; });
  // Also what keeps a search from running for ever: a slot is free.
  refuse(slots - static_cast<std::uint64_t>(free) != used,
         "the table of filter 'exact-window' does not hold as many keys as it says");
  for (const Entry& entry : table) {
    if (entry.generation == 0) continue;
    refuse(entry.generation > now, kFields);
    // A key that a search does not reach would be let through again.
    refuse(filter.find(entry.key) != &entry,
           "the table of filter 'exact-window' holds a key out of its place");
    if (filter.live(entry)) filter.counts_.add(static_cast<unsigned>(now - entry.generation));
  }
  return filter;
}

static_assert(WindowFilter<ExactWindow> && ForgettingFilter<ExactWindow>);

}  // namespace sluice
