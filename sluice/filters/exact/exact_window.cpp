#include "sluice/filters/exact/exact_window.hpp"

#include <algorithm>
#include <bit>
#include <cassert>

#include "sluice/base/checked.hpp"
#include "sluice/base/error.hpp"
#include "sluice/kernels/prefetch.hpp"
#include "sluice/model/cohort.hpp"

namespace sluice {
namespace {

constexpr std::uint64_t kFewestSlots = 64;
constexpr std::uint64_t kMostKeys = std::uint64_t{1} << 40;
// Each has a count of its own, also when the table is small: 8 MiB of them at most.
constexpr unsigned kMostGenerations = 1u << 20;
// More than ever pass.
constexpr std::uint64_t kMostTicks = std::uint64_t{1} << 61;
constexpr unsigned kStandardGenerations = 1000;
constexpr const char* kTable = "the table of filter 'exact-window'";

// Slots checked per insertion: the whole table is checked within as many insertions as an eighth of
// its slots, so that expired entries never take more than that.
constexpr std::uint64_t kSweepStep = 8;

constexpr ParameterInfo kKnown[] = {
    {"generations", "generations a window is cut into; slack is one of them", "0 to 2^20", "1000"},
    {"keys", "keys to make room for from the start", "0 to 2^40", "the window, or none"},
};

// Beyond three quarters, linear probing runs long.
std::uint64_t most_used(std::uint64_t slots) {
  return slots / 4 * 3;
}

// At most half of the slots live, which leaves a quarter to those that are expired.
std::uint64_t slots_for(std::uint64_t keys) {
  return std::max(kFewestSlots, std::bit_ceil(2 * keys));
}

void check(const ExactWindow::Params& params) {
  if (params.expected_keys > kMostKeys)
    throw BadParameters("filter 'exact-window' takes at most 2^40 expected keys");
  if (params.generations > kMostGenerations)
    throw BadParameters("filter 'exact-window' takes 0 to 2^20 generations");
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
          .tables = 2,
          .lines = kLinesAtHalf,
          .generations = generations,
          .slack = model::window_slack(generations),
          .npws = model::window_slack(generations),
          .settings = settings()};
}

ExactWindow ExactWindow::make(const Params& params, MemoryResource& memory) {
  check(params);
  return ExactWindow(params, DigestTable<Entry>(slots_for(params.expected_keys), kTable, memory));
}

// The first generation leaves room for ages before it, so that none is ever 0.
ExactWindow::ExactWindow(const Params& params, DigestTable<Entry> table)
    : params_(params),
      table_(std::move(table)),
      now_(std::uint64_t{params.generations} + 1),
      counts_(params.generations, table_.memory()) {}

void ExactWindow::sweep() noexcept {
  for (std::uint64_t slots = kSweepStep; slots > 0; --slots) {
    const Entry& entry = table_.get(swept_);
    if (!entry.free() && !live(entry))
      table_.take_out(Digest(entry.key));  // what moved here is looked at next
    else
      swept_ = swept_ + 1 == table_.slots() ? 0 : swept_ + 1;
  }
}

// To a table for the keys that live and those that come while they move. False when there is no
// memory for it.
bool ExactWindow::begin_move() noexcept {
  try {
    table_.begin(
        std::max(slots_for(counts_.live() + table_.slots() / DigestTable<Entry>::kStep + 1),
                 slots_for(params_.expected_keys)));
    swept_ = 0;
    return true;
  } catch (const std::exception&) {
    return false;
  }
}

// Eight times what slots_for would give.
bool ExactWindow::too_large() const noexcept {
  return table_.slots() / 16 > counts_.live() &&
         table_.slots() / 4 >= slots_for(params_.expected_keys);
}

// Makes room for one more key. False if there is no memory for it: then nothing has changed, and a
// retry finds the same table.
bool ExactWindow::make_room() noexcept {
  if (!table_.moving() && (table_.used() >= most_used(table_.slots()) || too_large()) &&
      !begin_move())
    return false;
  if (table_.moving())
    table_.step([this](const Entry& entry) { return live(entry); });
  else
    sweep();
  return true;
}

void ExactWindow::rotate() noexcept {
  ++now_;
  counts_.rotate();
  if (counts_.live() == 0 && table_.slots() > slots_for(params_.expected_keys)) drop_all();
}

// A new table, as small as the first.
void ExactWindow::drop_all() noexcept {
  swept_ = 0;
  table_.clear(slots_for(params_.expected_keys));
}

std::optional<Verdict> ExactWindow::admit_aged(const Digest& digest, unsigned age,
                                               Anchor anchor) noexcept {
  assert(age <= params_.generations);
  const std::uint64_t generation = now_ - age;
  Entry* entry = table_.find_to_write(digest);
  if (live(*entry)) {
    if (anchor == Anchor::refreshed && generation > entry->generation) {
      counts_.move(static_cast<unsigned>(now_ - entry->generation), age);
      entry->generation = generation;
    }
    return Verdict::duplicate;
  }
  if (!make_room()) return std::nullopt;
  entry = table_.find_to_write(digest);
  if (entry->free())
    table_.fill(entry, {digest, generation});
  else
    entry->generation = generation;
  counts_.add(age);
  return Verdict::distinct;
}

std::size_t ExactWindow::admit(std::span<const Digest> digests, std::span<Verdict> verdicts,
                               std::uint64_t& budget, Anchor anchor) noexcept {
  assert(digests.size() == verdicts.size());
  const std::size_t ahead = kernels::kPrefetchDistance;
  std::size_t judged = 0;
  for (; judged < digests.size() && budget > 0; ++judged) {
    if (judged + ahead < digests.size())
      __builtin_prefetch(table_.home(digests[judged + ahead]), 1);
    const std::optional<Verdict> verdict = admit_aged(digests[judged], 0, anchor);
    if (!verdict) break;
    verdicts[judged] = *verdict;
    budget -= *verdict == Verdict::distinct || anchor == Anchor::refreshed;
  }
  return judged;
}

std::optional<unsigned> ExactWindow::age_of(const Digest& digest) const noexcept {
  const Entry& entry = *table_.find(digest);
  if (!live(entry)) return std::nullopt;
  return static_cast<unsigned>(now_ - entry.generation);
}

bool ExactWindow::forget(const Digest& digest) noexcept {
  const Entry* const entry = table_.find(digest);
  const bool there = live(*entry);
  ++(there ? forgotten_ : forget_misses_);
  if (!there) return false;
  counts_.remove(static_cast<unsigned>(now_ - entry->generation));
  table_.take_out(digest);
  return true;
}

Verdict ExactWindow::observe(const Digest& digest) {
  Verdict verdict;
  if (observe(std::span(&digest, 1), std::span(&verdict, 1)) == 1) return verdict;
  throw NoMemory("filter 'exact-window' has no memory for more keys: use 'cohort'");
}

std::size_t ExactWindow::observe(std::span<const Digest> digests, std::span<Verdict> verdicts) {
  std::uint64_t budget = digests.size();
  return admit(digests, verdicts, budget, Anchor::delivered);
}

bool ExactWindow::may_contain(const Digest& digest) const noexcept {
  return live(*table_.find(digest));
}

void ExactWindow::may_contain(std::span<const Digest> digests,
                              std::span<Verdict> verdicts) const noexcept {
  assert(digests.size() == verdicts.size());
  kernels::with_prefetch(
      digests.size(), table_.bytes(), [&](std::size_t i) { return table_.home(digests[i]); },
      [&](std::size_t i) { verdicts[i] = static_cast<Verdict>(may_contain(digests[i])); });
}

void ExactWindow::may_contain(std::span<const Digest> digests, std::span<Verdict> verdicts,
                              unsigned later) const noexcept {
  assert(digests.size() == verdicts.size());
  std::ranges::transform(digests, verdicts.begin(), [&](const Digest& digest) {
    const auto age = age_of(digest);
    return static_cast<Verdict>(age && std::uint64_t{*age} + later <= params_.generations);
  });
}

std::size_t ExactWindow::insert(std::span<const Digest> digests) {
  return insert_by_observing<256>(*this, digests);
}

// As new: the table that growth brought goes too.
void ExactWindow::clear() noexcept {
  counts_.clear();
  now_ = std::uint64_t{params_.generations} + 1;
  forgotten_ = forget_misses_ = 0;
  drop_all();
}

FilterStats ExactWindow::stats() const {
  return {.keys = live_keys(),
          .capacity = 0,
          .bytes = bytes(),
          .target_fpr = 0,
          .predicted_fpr = 0,
          .forgotten = forgotten_,
          .forget_misses = forget_misses_};
}

void ExactWindow::encode_header(Encoder& to) const {
  to.u32(params_.generations);
  to.u64(params_.expected_keys);
  to.u64(now_);
  to.u64(swept_);
  table_.encode_header(to);
}

void ExactWindow::encode_payload(Encoder& to) const {
  table_.encode_payload(to);
}

ExactWindow ExactWindow::decode(Decoder& header, Decoder& payload, MemoryResource& memory,
                                std::optional<unsigned> generations) {
  const auto refuse = [](bool wrong) {
    if (wrong) throw CorruptSnapshot("no filter 'exact-window' has these fields");
  };
  Params params;
  params.generations = header.u32();
  params.expected_keys = header.u64();
  const std::uint64_t now = header.u64(), swept = header.u64();
  refuse(params.generations > kMostGenerations ||
         params.generations != generations.value_or(params.generations) ||
         params.expected_keys > kMostKeys || now <= params.generations || now >= kMostTicks);
  const auto lives = [&](const Entry& entry) {
    return now - entry.generation <= params.generations;
  };
  ExactWindow filter(
      params, DigestTable<Entry>::decode(header, payload, kTable, slots_for(params.expected_keys),
                                         lives, memory));
  refuse(swept >= filter.table_.slots() || (swept != 0 && filter.table_.moving()));
  filter.now_ = now;
  filter.swept_ = swept;
  filter.table_.each([&](const Entry& entry) {
    refuse(entry.generation > now);
    if (lives(entry)) filter.counts_.add(static_cast<unsigned>(now - entry.generation));
  });
  return filter;
}

static_assert(WindowFilter<ExactWindow> && ForgettingFilter<ExactWindow>);

}  // namespace sluice
