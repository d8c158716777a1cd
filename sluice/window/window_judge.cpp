// Keys and times through a window: when it ages, which records are late, what their verdicts are.
#include <algorithm>

#include "sluice/base/error.hpp"
#include "sluice/window/window.hpp"

namespace sluice {
namespace {

// Count windows look at no time.
void check_spans(const WindowSpec& spec, std::size_t digests, std::size_t times,
                 std::size_t verdicts, std::size_t late) {
  check_length("verdicts", verdicts, digests);
  check_length("late", late, digests);
  if (spec.by_time()) check_length("times", times, digests);
}

std::int64_t floor_divide(std::int64_t a, std::int64_t b) {
  return a / b - (a % b < 0);
}

}  // namespace

std::uint64_t Window::position(Nanoseconds time) const {
  const std::uint64_t size = generation_size();
  if (!params().spec.by_time()) return listed() ? size : size - left_;
  return static_cast<std::uint64_t>(std::clamp<std::int64_t>(
      time - tick_ * static_cast<std::int64_t>(size), 0, static_cast<std::int64_t>(size)));
}

// Nearly all records are of the present tick: no division for those.
std::int64_t Window::tick_of(Nanoseconds time) const {
  const auto size = static_cast<std::int64_t>(generation_size());
  // Without signs, so that no difference overflows.
  const std::uint64_t since =
      static_cast<std::uint64_t>(time) - static_cast<std::uint64_t>(tick_ * size);
  return since < generation_size() ? tick_ : floor_divide(time, size);
}

std::size_t Window::pace(std::span<const Digest> digests, std::span<Verdict> verdicts) {
  std::size_t judged = 0;
  while (judged < digests.size()) {
    const std::size_t count =
        growth_->admit(digests.subspan(judged), verdicts.subspan(judged), left_, params().anchor);
    judged += count;
    if (left_ == 0) {
      growth_->rotate();
      left_ = generation_size();
    } else if (judged < digests.size()) {
      break;
    }
  }
  return judged;
}

void Window::advance_to(std::int64_t tick) {
  const std::int64_t steps = tick - tick_;
  set_tick(tick);
  // After a gap of more than a window nothing is left to age.
  if (steps > static_cast<std::int64_t>(generations())) {
    growth_->expire();
    return;
  }
  for (std::int64_t step = 0; step < steps; ++step) growth_->rotate();
}

// A record that is not believed lies a window or more from every key by its own account: perhaps it
// repeats one, perhaps a quiet hour has passed. Held back it could be lost; so it is let through.
bool Window::let_through(const Digest& digest) {
  std::uint64_t one = 1;
  Verdict unread{};
  return growth_->admit(std::span(&digest, 1), std::span(&unread, 1), one, Anchor::refreshed) == 1;
}

// It happened when it said. False: there is no memory for it.
bool Window::believe_claimant() {
  if (const auto claimant = clock_.claimant()) {
    const std::int64_t age = tick_ - tick_of(std::min(clock_.claimed(), clock_.now()));
    if (age <= static_cast<std::int64_t>(generations()) &&
        !growth_->admit_aged(*claimant, static_cast<unsigned>(age), Anchor::refreshed))
      return false;
  }
  clock_.settle();
  return true;
}

void Window::arrive(Nanoseconds time) {
  if (!params().spec.by_time()) return;  // deliveries are its clock
  if (clock_.owes()) believe_claimant();
  const bool first = !clock_.started();
  const Nanoseconds before = clock_.now();
  clock_.set(time, limits());
  if (listed()) {
    age_list(first, before);
    return tidy_list();
  }
  const std::int64_t tick = tick_of(clock_.now());
  // Nothing ages by a clock that is set back.
  if (first || clock_.now() < before) set_tick(tick);
  advance_to(tick);
}

std::size_t Window::judge(std::span<const Digest> digests, std::span<const Nanoseconds> times,
                          std::span<Verdict> verdicts, std::span<bool> late) {
  check_spans(params().spec, digests.size(), times.size(), verdicts.size(), late.size());
  std::ranges::fill(late, false);
  if (listed()) return judge_list(digests, times, verdicts, late);
  if (!params().spec.by_time()) return pace(digests, verdicts);
  return judge_times(digests, times, verdicts, late, [&](std::size_t begin, std::size_t count) {
    return growth_->admit_paced(digests.subspan(begin, count), verdicts.subspan(begin, count),
                                params().anchor);
  });
}

std::optional<std::uint64_t> Window::forget_oldest() {
  if (listed() || growth_->live_keys() == 0) return std::nullopt;
  const std::uint64_t before = growth_->forgotten_early();
  growth_->forget_oldest();
  return growth_->forgotten_early() - before;
}

std::size_t Window::judge(std::span<const Digest> digests, std::span<const Nanoseconds> times,
                          std::span<Verdict> verdicts, std::span<bool> late,
                          const SecondOpinion& opinion) {
  check_spans(params().spec, digests.size(), times.size(), verdicts.size(), late.size());
  std::ranges::fill(late, false);
  if (!while_memory_lasts([&] { make_table(); })) return 0;
  if (!params().spec.by_time()) return pace(digests, verdicts, opinion);
  return judge_times(digests, times, verdicts, late, [&](std::size_t begin, std::size_t count) {
    return admit_now(digests.subspan(begin, count), verdicts.subspan(begin, count), begin, opinion);
  });
}

// As the clock is after these records and no others: what comes later was read too early.
void Window::read_again(const EventClock& from, std::span<const Digest> digests,
                        std::span<const Nanoseconds> times) {
  clock_ = from;
  for (std::size_t i = 0; i < times.size(); ++i) {
    Nanoseconds time = times[i];
    clock_.read(digests[i], time, limits());
  }
  if (clock_.started()) return set_tick(tick_of(clock_.now()));
  tick_ = 0;
}

template <class Admit>
std::size_t Window::judge_times(std::span<const Digest> digests, std::span<const Nanoseconds> times,
                                std::span<Verdict> verdicts, std::span<bool> late,
                                const Admit& admit) {
  if (clock_.owes() && !believe_claimant()) return 0;
  // Records of the present tick are judged together; anything else ends the run.
  std::size_t begin = 0;
  const auto judge_until = [&](std::size_t end) {
    if (end > begin) begin += admit(begin, end - begin);
    return begin == end;
  };
  // What the clock was when the present tick began, and how many times it had read by then.
  EventClock tick_clock = clock_;
  std::size_t tick_read = 0;
  std::size_t i = 0;
  for (; i < digests.size(); ++i) {
    const bool first = !clock_.started();
    Nanoseconds time = times[i];
    const EventClock::Reading reading = clock_.read(digests[i], time, limits());
    const std::int64_t tick = tick_of(time);
    // The first record says which tick it is; nothing ages by that.
    if (first) {
      if (!judge_until(i)) break;
      set_tick(tick);
    }
    // So does one that replaces it. Keys that came at the time before are no repeats at this one.
    if (reading == EventClock::Reading::replaced) {
      if (!judge_until(i)) break;
      growth_->expire();
      set_tick(tick);
      tick_clock = clock_;
      tick_read = i + 1;
    }
    if (const std::int64_t now = tick_of(clock_.now()); now > tick_) {
      if (!judge_until(i)) break;
      advance_to(now);
      if (reading == EventClock::Reading::agreed && !believe_claimant()) clock_.owe();
      tick_clock = clock_;
      tick_read = i + 1;
      if (clock_.owes()) break;
    }
    const bool too_old = tick_ - tick > static_cast<std::int64_t>(generations());
    if (too_old || clock_.is_late(time, limits())) {
      if (!judge_until(i)) break;
      late[i] = true;
      verdicts[i] = Verdict::distinct;
      begin = i + 1;
    } else if (reading == EventClock::Reading::disbelieved) {
      if (!judge_until(i) || !let_through(digests[i])) break;
      verdicts[i] = Verdict::distinct;
      begin = i + 1;
    } else if (tick < tick_) {
      if (!judge_until(i)) break;
      const auto verdict =
          growth_->admit_aged(digests[i], static_cast<unsigned>(tick_ - tick), params().anchor);
      if (!verdict) break;
      verdicts[i] = *verdict;
      begin = i + 1;
    }
  }
  if (i == digests.size() && judge_until(i)) return i;
  const std::size_t since = std::max(begin, tick_read) - tick_read;
  read_again(tick_clock, digests.subspan(tick_read, since), times.subspan(tick_read, since));
  return begin;
}

Verdict Window::observe(const Digest& digest) {
  Verdict verdict;
  if (observe(std::span(&digest, 1), std::span(&verdict, 1)) == 0) throw NoMemory(why_full());
  return verdict;
}

// Only what grows with its keys can use up its limit.
const char* Window::why_full() const noexcept {
  return params().memory && params().spec.by_time() && !listed() ? Growth::kUsedUp
                                                                 : kNoMemoryForKey;
}

std::size_t Window::observe(std::span<const Digest> digests, std::span<Verdict> verdicts) {
  check_length("verdicts", verdicts.size(), digests.size());
  if (listed()) return observe_list(digests, verdicts);
  if (!params().spec.by_time()) return pace(digests, verdicts);
  if (clock_.owes() && !believe_claimant()) return 0;
  return growth_->admit_paced(digests, verdicts, params().anchor);
}

bool Window::may_contain(const Digest& digest) const noexcept {
  Verdict verdict = Verdict::distinct;
  may_contain(std::span(&digest, 1), std::span(&verdict, 1));
  return verdict == Verdict::duplicate;
}

void Window::may_contain(std::span<const Digest> digests, std::span<Verdict> verdicts) const {
  check_length("verdicts", verdicts.size(), digests.size());
  if (listed()) return ask_list(digests, verdicts, clock_.now());
  growth_->may_contain(digests, verdicts);
}

bool Window::may_contain(const Digest& digest, Nanoseconds now) const {
  Verdict verdict = Verdict::distinct;
  may_contain(std::span(&digest, 1), std::span(&verdict, 1), now);
  return verdict == Verdict::duplicate;
}

// A clock that is set back makes nothing older or younger.
void Window::may_contain(std::span<const Digest> digests, std::span<Verdict> verdicts,
                         Nanoseconds now) const {
  check_length("verdicts", verdicts.size(), digests.size());
  const bool ages = params().spec.by_time() && clock_.started() && now > clock_.now();
  if (listed()) return ask_list(digests, verdicts, ages ? now : clock_.now());
  const std::int64_t later = ages ? tick_of(now) - tick_ : 0;
  if (later > static_cast<std::int64_t>(generations()))
    std::ranges::fill(verdicts, Verdict::distinct);
  else
    growth_->may_contain(digests, verdicts, static_cast<unsigned>(later));
}

std::size_t Window::insert(std::span<const Digest> digests) {
  return insert_by_observing<256>(*this, digests);
}

}  // namespace sluice
