// Windows of few keys: exact digests in a short list, each with the time it was written, or with its
// number among the keys that were. Verdicts are exact; a key is inside the window or it is not.
#include <algorithm>
#include <array>
#include <limits>
#include <numeric>

#include "sluice/base/error.hpp"
#include "sluice/window/window.hpp"

namespace sluice {
namespace {

// A list is searched and moved as a whole; more keys than this go to a table even if that is larger.
constexpr std::size_t kMostListed = 512;

}  // namespace

// The first time, or one that sets the clock back, says when it is; nothing ages by that.
void Window::age_list(bool first, Nanoseconds before) noexcept {
  if (first || clock_.now() < before) list_.shift(clock_.now() - (first ? 0 : before));
}

// The oldest stamp that is still inside the window.
ShortList::Stamp Window::oldest(Nanoseconds now) const noexcept {
  const auto size = static_cast<std::int64_t>(
      std::min<std::uint64_t>(params().spec.size, std::numeric_limits<std::int64_t>::max() / 2));
  switch (params().spec.kind) {
    case WindowSpec::Kind::count:
      return tick_ - size;
    case WindowSpec::Kind::time:
      return now - size + 1;
    case WindowSpec::Kind::landmark:
      break;
  }
  const std::int64_t since = now % size;
  return now - (since < 0 ? since + size : since);
}

std::optional<std::size_t> Window::find_listed(const Digest& digest,
                                               Nanoseconds now) const noexcept {
  const auto at = list_.find(digest);
  return at && list_.stamps()[*at] >= oldest(now) ? at : std::nullopt;
}

void Window::ask_list(std::span<const Digest> digests, std::span<Verdict> verdicts,
                      Nanoseconds now) const noexcept {
  std::ranges::transform(digests, verdicts.begin(), [&](const Digest& digest) {
    return find_listed(digest, now) ? Verdict::duplicate : Verdict::distinct;
  });
}

// As many keys as take no more than the table would: a budget that has room for the table has room
// for any list before it. In all resources the same, unless a limit is too tight even for a list.
std::size_t Window::most_listed(const Params& params, std::uint64_t table_bytes,
                                const BlockCosts& costs) noexcept {
  constexpr std::uint64_t kHolder = AnyFilter::holder_bytes<Window>();
  std::uint64_t most =
      std::clamp<std::uint64_t>((table_bytes - kHolder) / ShortList::kKeyBytes, 16, kMostListed);
  if (params.memory)
    while (most > 0 &&
           costs.block(kHolder) + costs.block(most * ShortList::kKeyBytes) > *params.memory)
      --most;
  return static_cast<std::size_t>(most);
}

// Both blocks of a list that grows are within the limit.
void Window::grow_list(std::size_t keys) {
  const std::uint64_t holder = memory().costs().block(AnyFilter::holder_bytes<Window>());
  list_.grow_to(keys, blueprint_->most_listed,
                params().memory ? *params().memory - std::min(*params().memory, holder)
                                : ShortList::kNoLimit);
}

// Gives back the memory of keys that have left the window. It reads the whole list, so it does that
// four times per window.
void Window::tidy_list() noexcept {
  constexpr std::uint64_t kLooksPerWindow = 4;
  const std::int64_t now = newest_stamp(), last = static_cast<std::int64_t>(left_);
  if (static_cast<std::uint64_t>(now > last ? now - last : last - now) <
      params().spec.size / kLooksPerWindow)
    return;
  left_ = static_cast<std::uint64_t>(now);
  list_.erase_before(oldest(clock_.now()));
  list_.shrink();
}

// Makes room for one more key. False: it is time for the table.
bool Window::make_room() {
  const std::size_t most = blueprint_->most_listed;
  if (!list_.full() && list_.size() < most) return true;
  list_.erase_before(oldest(clock_.now()));
  if (list_.size() >= most) return false;
  grow_list(list_.size() + 1);
  return true;
}

// False: it is time for the table. Throws NoMemory. Keys that have left the window are in the list
// until their room is needed, and a state is saved without them: it must make no difference whether
// they are there.
bool Window::write_listed(const Digest& digest, ShortList::Stamp stamp) {
  if (const auto at = list_.find(digest)) {
    if (list_.stamps()[*at] >= oldest(clock_.now())) {
      list_.stamp(*at, std::max(stamp, list_.stamps()[*at]));
      return true;
    }
    list_.erase(*at);
  }
  if (!make_room()) return false;
  list_.insert(digest, stamp);
  return true;
}

// Asks for a key that happened at `time` and writes it, as its anchor says. Nothing: it is time for the
// table.
std::optional<Verdict> Window::admit_listed(const Digest& digest, Nanoseconds time) {
  const bool by_time = params().spec.by_time();
  const bool refreshed = params().anchor == Anchor::refreshed;
  const bool known = find_listed(digest, clock_.now()).has_value();
  if (!known || refreshed) {
    if (!write_listed(digest, by_time ? time : tick_)) return std::nullopt;
    if (!by_time) ++tick_;
  }
  return known ? Verdict::duplicate : Verdict::distinct;
}

// Room for `keys`, no two the same, in a window that begins at `from`, where `believed`, if any, is of
// `claimed`. Changes nothing else, so that nothing is to be taken back where there is no memory.
// False: it is time for the table. Throws NoMemory.
bool Window::reserve_listed(std::span<const Digest> keys, ShortList::Stamp from,
                            const std::optional<Digest>& believed, ShortList::Stamp claimed) {
  const std::size_t most = blueprint_->most_listed;
  const auto added = static_cast<std::size_t>(
      std::ranges::count_if(keys, [&](const Digest& key) { return !list_.find(key); }));
  if (added == 0 || list_.size() + added <= std::min(list_.room(), most)) return true;
  std::size_t inside = 0;
  for (std::size_t i = 0; i < list_.size(); ++i)
    inside += (believed == list_.digests()[i] ? claimed : list_.stamps()[i]) >= from;
  if (inside + added > most) return false;
  // Those outside are erased if there is no room beside them.
  grow_list(inside + added);
  return true;
}

// As judge_times does for a table. Nothing has changed if there is no memory, or if it is time for the
// table: the record comes again.
std::optional<Verdict> Window::judge_listed(const Digest& digest, Nanoseconds time, bool& late) {
  constexpr ShortList::Stamp kNothing = std::numeric_limits<ShortList::Stamp>::max();
  const bool first = !clock_.started();
  const Nanoseconds before = clock_.now();
  EventClock clock = clock_;
  const EventClock::Reading reading = clock.read(digest, time, limits());
  const bool replaced = reading == EventClock::Reading::replaced;
  const ShortList::Stamp from = oldest(clock.now());
  const bool too_late = time < from || clock.is_late(time, limits());
  // One that is outside by now is not written.
  const bool agreed = reading == EventClock::Reading::agreed;
  const auto believed = agreed && clock.claimed() >= from ? clock.claimant() : std::nullopt;
  std::array<Digest, 2> keys;
  std::size_t count = 0;
  if (!too_late) keys[count++] = digest;
  if (believed && (too_late || believed != digest)) keys[count++] = *believed;
  // Nothing ages by the first time. Keys that came at a time that is replaced are no repeats.
  const ShortList::Stamp stays = replaced ? kNothing : first ? oldest(before) : from;
  if (!reserve_listed(std::span(keys).first(count), stays, believed, clock.claimed()))
    return std::nullopt;
  clock_ = clock;
  if (replaced)
    list_.erase_before(kNothing);
  else
    age_list(first, before);
  if (believed && !write_listed(*believed, clock_.claimed())) return std::nullopt;
  if (agreed) clock_.settle();
  if (too_late) {
    late = true;
    return Verdict::distinct;
  }
  if (reading == EventClock::Reading::disbelieved) {
    if (!write_listed(digest, clock_.now())) return std::nullopt;
    return Verdict::distinct;
  }
  return admit_listed(digest, time);
}

std::size_t Window::judge_list(std::span<const Digest> digests, std::span<const Nanoseconds> times,
                               std::span<Verdict> verdicts, std::span<bool> late) {
  if (!params().spec.by_time()) return observe_list(digests, verdicts);
  std::size_t judged = 0;
  const bool went_on = while_memory_lasts([&] {
    for (; judged < digests.size(); ++judged) {
      const auto verdict = judge_listed(digests[judged], times[judged], late[judged]);
      if (!verdict) break;
      verdicts[judged] = *verdict;
      tidy_list();
    }
  });
  if (judged == digests.size() || !went_on || !while_memory_lasts([&] { make_table(); }))
    return judged;
  return judged + judge(digests.subspan(judged), times.subspan(judged), verdicts.subspan(judged),
                        late.subspan(judged));
}

std::size_t Window::observe_list(std::span<const Digest> digests, std::span<Verdict> verdicts) {
  std::size_t judged = 0;
  const bool went_on = while_memory_lasts([&] {
    for (; judged < digests.size(); ++judged) {
      const auto verdict = admit_listed(digests[judged], clock_.now());
      if (!verdict) return;
      verdicts[judged] = *verdict;
      tidy_list();
    }
  });
  if (judged == digests.size() || !went_on || !while_memory_lasts([&] { make_table(); }))
    return judged;
  return judged + observe(digests.subspan(judged), verdicts.subspan(judged));
}

// The list gives its memory back first: there may be none for both.
void Window::make_table() {
  if (!listed()) return;
  const std::int64_t listed_tick = tick_;
  list_.step_aside();
  try {
    start_table();
    write_list_to_table();
  } catch (...) {
    growth_.reset();
    tick_ = listed_tick;
    left_ = 0;
    list_.step_back();
    throw;
  }
  list_.clear();
}

// The oldest first, each at its age, as if the table had been there when it came.
void Window::write_list_to_table() {
  const auto size = static_cast<std::int64_t>(generation_size());
  const bool by_time = params().spec.by_time();
  const std::int64_t now = by_time ? clock_.now() : tick_;
  const ShortList::Stamp from = oldest(clock_.now());
  const auto generation_of = [&](std::int64_t stamp) { return stamp / size - (stamp % size < 0); };
  std::array<std::uint16_t, kMostListed> order;
  const auto keys = std::span(order).first(list_.size());
  std::iota(keys.begin(), keys.end(), std::uint16_t{0});
  std::ranges::stable_sort(keys, {}, [&](std::uint16_t i) { return list_.stamps()[i]; });
  for (const std::uint16_t i : keys) {
    const ShortList::Stamp stamp = list_.stamps()[i];
    if (stamp < from) continue;
    const std::int64_t age = std::clamp<std::int64_t>(generation_of(now) - generation_of(stamp), 0,
                                                      static_cast<std::int64_t>(generations()));
    // Rewritten if the table finds it already, by mistake: it stays longer than the older key that it
    // is taken for.
    if (!growth_->admit_aged(list_.digests()[i], static_cast<unsigned>(age), Anchor::refreshed))
      throw NoMemory("there is no memory for the table of the window");
  }
  if (by_time) {
    if (clock_.started()) set_tick(generation_of(now));
  } else {
    left_ = static_cast<std::uint64_t>(size - tick_ % size);
    tick_ = 0;
  }
}

bool Window::forget_listed(const Digest& digest) noexcept {
  const auto at = find_listed(digest, clock_.now());
  if (at) list_.erase(*at);
  list_.shrink();
  ++(at ? forgotten_ : forget_misses_);
  return at.has_value();
}

FilterStats Window::list_stats() const {
  const ShortList::Stamp from = oldest(clock_.now());
  const auto live = static_cast<std::uint64_t>(
      std::ranges::count_if(list_.stamps(), [&](ShortList::Stamp stamp) { return stamp >= from; }));
  return {.keys = live,
          .capacity = blueprint_->table.keys,
          .target_fpr = params().fpr,
          .planned_fpr = blueprint_->table.fpr,
          .listed = live,
          .forgotten = forgotten_,
          .forget_misses = forget_misses_};
}

ShortList::Stamp Window::newest_stamp() const noexcept {
  return params().spec.by_time() ? clock_.now() : tick_;
}

// What was read is what a list may hold: keys inside the window. A list owes nothing. Its stamps are
// not from the future: they are read as ages.
bool Window::list_is_sound() const noexcept {
  if (clock_.owes()) return false;
  const ShortList::Stamp from = oldest(clock_.now());
  const bool by_time = params().spec.by_time();
  if (!by_time && clock_.started()) return false;
  return std::ranges::all_of(list_.stamps(), [&](ShortList::Stamp stamp) {
    return stamp >= from && (by_time || (stamp >= 0 && stamp < tick_));
  });
}

}  // namespace sluice
