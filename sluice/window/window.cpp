#include "sluice/window/window.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cassert>
#include <limits>

#include "sluice/base/error.hpp"
#include "sluice/filters/catalogue.hpp"

namespace sluice {
namespace {

constexpr std::size_t kMostFilterText = 4096;

Growth::Plan plan_of(const Window::Params& params) {
  const bool by_count = params.spec.kind == WindowSpec::Kind::count;
  return {.keys = by_count ? params.spec.size : params.keys.value_or(Window::kFirstKeys),
          .fpr = params.fpr,
          .may_grow = !by_count,
          .by = params.growth};
}

[[noreturn]] void refuse_timeless(std::string_view filter) {
  throw BadParameters(fmt::format(
      "filter '{}' does not forget: a window needs cohort or another window filter", filter));
}

// A stage must cut the window as finely as the others; a landmark window is one generation.
Growth::Make maker_of(const Window::Params& params) {
  std::optional<unsigned> generations = params.generations;
  if (params.spec.kind == WindowSpec::Kind::landmark) generations = 0;
  return [filter = params.filter, generations](std::uint64_t keys, double fpr,
                                               MemoryResource& memory) {
    AnyFilter made =
        make_filter(filter, {.keys = keys, .fpr = fpr, .generations = generations}, memory);
    if (!made.ages()) refuse_timeless(name_of(made.kind()));
    return made;
  };
}

const char* what_is_wrong(const Window::Params& params) {
  if (params.spec.size == 0) return "a window must be longer than nothing";
  if (params.spec.by_time() && params.spec.size > std::uint64_t{1} << 61)
    return "a window can be 73 years long at most";
  if (!(params.fpr > 0 && params.fpr < 1)) return "the error must lie above 0 and below 1";
  if (params.max_ahead == std::uint64_t{0}) return "`max_ahead` must be more than nothing";
  if (params.filter.size() > kMostFilterText) return "the filter's description is too long";
  return nullptr;
}

// A count window that `generations` does not divide would come out longer than asked: by a key a
// generation, which is much for a small one. Cut it into whole generations of a size that fits.
unsigned whole_generations(const WindowSpec& spec, unsigned generations) {
  if (spec.kind != WindowSpec::Kind::count || generations == 0) return generations;
  const std::uint64_t size = (spec.size + generations - 1) / generations;
  return static_cast<unsigned>((spec.size + size - 1) / size);
}

// Keys of a count window, nanoseconds of the others. Rounded up: a window is never shorter than
// promised.
std::uint64_t size_of_generation(const WindowSpec& spec, unsigned generations) {
  const std::uint64_t parts = std::max(1u, generations);
  return (spec.size + parts - 1) / parts;
}

// What a filter keeps too long, `share` of its own window, as a share of the window that was asked
// for.
double past_the_window(const WindowSpec& spec, unsigned generations, double share) {
  if (spec.kind == WindowSpec::Kind::landmark) return 0;
  const double generations_long =
      static_cast<double>(size_of_generation(spec, generations)) * generations;
  return (1 + share) * generations_long / static_cast<double>(spec.size) - 1;
}

// A landmark window is one generation, the others are several.
void check_cut(const WindowSpec& spec, unsigned generations, std::string_view filter) {
  const bool afresh = generations == 0;
  if (spec.kind == WindowSpec::Kind::landmark && !afresh)
    throw BadParameters(fmt::format(
        "filter '{}' cannot start afresh every hour or day: cohort, exact, apbf and apbbf can",
        filter));
  if (spec.kind != WindowSpec::Kind::landmark && afresh)
    throw BadParameters("a sliding window needs at least one generation");
}

std::int64_t floor_divide(std::int64_t a, std::int64_t b) {
  return a / b - (a % b < 0);
}

}  // namespace

Settings Window::Params::settings() const {
  Settings settings;
  settings.add("window", describe(spec, anchor == Anchor::refreshed));
  settings.add("anchor", anchor == Anchor::refreshed ? "refreshed" : "delivered");
  settings.add("filter", filter);
  settings.add("fpr", fpr);
  if (keys) settings.add("keys", *keys);
  if (generations) settings.add("generations", std::uint64_t{*generations});
  if (max_ahead) settings.add("max-ahead", in_words(*max_ahead));
  if (growth == Growth::By::cardinality) settings.add("growth", "cardinality");
  return settings;
}

Window::Window(const Params& params, MemoryResource& memory)
    : params_(params),
      growth_(make_owned<Growth>(memory, maker_of(params), plan_of(params), memory)),
      clock_(params.spec.size, params.max_ahead.value_or(params.spec.size)) {}

Window Window::make(const Params& params, MemoryResource& memory) {
  if (const char* wrong = what_is_wrong(params)) throw BadParameters(wrong);
  Window window(params, memory);
  window.growth_->start();
  // The stages to come are cut as the first one is.
  const unsigned generations = whole_generations(params.spec, window.generations());
  const bool recut = generations != window.generations();
  window.params_.generations = generations;
  window.growth_->set_make(maker_of(window.params_));
  if (recut) window.growth_->start();
  // A filter whose settings say otherwise has the last word.
  window.params_.generations = window.generations();
  check_cut(params.spec, window.generations(), name_of(window.growth_->newest().kind()));
  window.left_ = window.generation_size();
  return window;
}

FilterStats Window::stats() const {
  FilterStats stats = growth_->stats();
  stats.bytes = bytes();
  return stats;
}

std::uint64_t Window::generation_size() const {
  return size_of_generation(params_.spec, generations());
}

Forecast Window::forecast(const Params& params, bool brief) {
  if (const char* wrong = what_is_wrong(params)) throw BadParameters(wrong);
  const Growth::Plan plan = plan_of(params);
  Wish wish{.keys = plan.keys,
            .fpr = plan.first_fpr(),
            .generations = params.generations,
            .brief = brief};
  if (params.spec.kind == WindowSpec::Kind::landmark) wish.generations = 0;
  const std::string_view name = std::string_view(params.filter).substr(0, params.filter.find(','));
  Forecast made = forecast_filter(params.filter, wish);
  if (!made.generations) refuse_timeless(name);
  const unsigned whole = whole_generations(params.spec, *made.generations);
  if (whole != *made.generations) {
    wish.generations = whole;
    made = forecast_filter(params.filter, wish);
  }
  check_cut(params.spec, *made.generations, name);
  made.slack = past_the_window(params.spec, *made.generations, made.slack);
  made.npws = past_the_window(params.spec, *made.generations, made.npws);
  made.fpr *= plan.fpr / plan.first_fpr();
  made.fpr_spread *= plan.fpr / plan.first_fpr();
  return made;
}

std::uint64_t Window::position(Nanoseconds time) const {
  const std::uint64_t size = generation_size();
  if (!params_.spec.by_time()) return size - left_;
  return static_cast<std::uint64_t>(
      std::clamp<std::int64_t>(time - tick_begin_, 0, static_cast<std::int64_t>(size)));
}

// Nearly all records are of the present tick: no division for those.
std::int64_t Window::tick_of(Nanoseconds time) const {
  if (time >= tick_begin_ && time < tick_end_) return tick_;
  return floor_divide(time, static_cast<std::int64_t>(generation_size()));
}

void Window::set_tick(std::int64_t tick) {
  const auto size = static_cast<std::int64_t>(generation_size());
  tick_ = tick;
  tick_begin_ = tick * size;
  tick_end_ = tick_begin_ + size;
}

std::size_t Window::pace(std::span<const Digest> digests, std::span<Verdict> verdicts) {
  std::size_t judged = 0;
  while (judged < digests.size()) {
    const std::size_t count =
        growth_->admit(digests.subspan(judged), verdicts.subspan(judged), left_, params_.anchor);
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
  if (growth_->admit(std::span(&digest, 1), std::span(&unread, 1), one, Anchor::refreshed) == 0)
    return false;
  claimant_ = digest;
  return true;
}

// It happened when it said.
bool Window::believe_claimant() {
  if (!claimant_) return true;
  const std::int64_t age = tick_ - tick_of(std::min(clock_.claimed(), clock_.now()));
  if (age <= static_cast<std::int64_t>(generations()) &&
      !growth_->admit_aged(*claimant_, static_cast<unsigned>(age), Anchor::refreshed))
    return false;
  claimant_.reset();
  return true;
}

void Window::arrive(Nanoseconds time) {
  const bool first = !clock_.started();
  const Nanoseconds before = clock_.now();
  clock_.set(time);
  const std::int64_t tick = tick_of(clock_.now());
  // Nothing ages by a clock that is set back.
  if (first || clock_.now() < before) set_tick(tick);
  advance_to(tick);
}

std::size_t Window::judge(std::span<const Digest> digests, std::span<const Nanoseconds> times,
                          std::span<Verdict> verdicts, std::span<bool> late) {
  assert(digests.size() == verdicts.size() && digests.size() == late.size());
  std::ranges::fill(late, false);
  if (!params_.spec.by_time()) return pace(digests, verdicts);
  std::uint64_t unlimited = std::numeric_limits<std::uint64_t>::max();
  return judge_times(digests, times, verdicts, late, [&](std::size_t begin, std::size_t count) {
    return growth_->admit(digests.subspan(begin, count), verdicts.subspan(begin, count), unlimited,
                          params_.anchor);
  });
}

std::size_t Window::judge(std::span<const Digest> digests, std::span<const Nanoseconds> times,
                          std::span<Verdict> verdicts, std::span<bool> late,
                          const SecondOpinion& opinion) {
  assert(digests.size() == verdicts.size() && digests.size() == late.size());
  std::ranges::fill(late, false);
  if (!params_.spec.by_time()) return pace(digests, verdicts, opinion);
  return judge_times(digests, times, verdicts, late, [&](std::size_t begin, std::size_t count) {
    return admit_now(digests.subspan(begin, count), verdicts.subspan(begin, count), begin, opinion);
  });
}

// As the clock is after these times and no others: what comes later was read too early.
void Window::read_again(const EventClock& from, std::span<const Nanoseconds> times) {
  clock_ = from;
  for (Nanoseconds time : times) clock_.read(time);
  if (clock_.started()) return set_tick(tick_of(clock_.now()));
  tick_ = tick_begin_ = tick_end_ = 0;
  claimant_.reset();
}

template <class Admit>
std::size_t Window::judge_times(std::span<const Digest> digests, std::span<const Nanoseconds> times,
                                std::span<Verdict> verdicts, std::span<bool> late,
                                const Admit& admit) {
  assert(digests.size() == times.size());
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
    const Nanoseconds before = clock_.now();
    Nanoseconds time = times[i];
    const EventClock::Reading reading = clock_.read(time);
    const bool is_late = reading == EventClock::Reading::late;
    const std::int64_t tick = tick_of(time);
    // The first record, or one that corrects it, says which tick it is; nothing ages by that.
    if (first || clock_.now() < before) {
      if (!judge_until(i)) break;
      set_tick(tick);
    }
    if (first) claimant_ = digests[i];
    const bool too_old = tick_ - tick > static_cast<std::int64_t>(generations());
    if (is_late || too_old) {
      if (!judge_until(i)) break;
      late[i] = true;
      verdicts[i] = Verdict::distinct;
      begin = i + 1;
    } else if (reading == EventClock::Reading::disbelieved) {
      if (!judge_until(i) || !let_through(digests[i])) break;
      verdicts[i] = Verdict::distinct;
      begin = i + 1;
    } else if (tick > tick_) {
      if (!judge_until(i)) break;
      advance_to(tick);
      tick_clock = clock_;
      tick_read = i + 1;
      if (reading == EventClock::Reading::agreed && !believe_claimant()) break;
    } else if (tick < tick_) {
      if (!judge_until(i)) break;
      const auto verdict =
          growth_->admit_aged(digests[i], static_cast<unsigned>(tick_ - tick), params_.anchor);
      if (!verdict) break;
      verdicts[i] = *verdict;
      begin = i + 1;
    }
  }
  if (i == digests.size() && judge_until(i)) return i;
  read_again(tick_clock, times.subspan(tick_read, std::max(begin, tick_read) - tick_read));
  return begin;
}

Verdict Window::observe(const Digest& digest) {
  Verdict verdict;
  if (observe(std::span(&digest, 1), std::span(&verdict, 1)) == 0)
    throw NoMemory("the window has no memory for more keys");
  return verdict;
}

std::size_t Window::observe(std::span<const Digest> digests, std::span<Verdict> verdicts) {
  if (!params_.spec.by_time()) return pace(digests, verdicts);
  std::uint64_t unlimited = std::numeric_limits<std::uint64_t>::max();
  return growth_->admit(digests, verdicts, unlimited, params_.anchor);
}

bool Window::may_contain(const Digest& digest) const noexcept {
  Verdict verdict = Verdict::distinct;
  growth_->may_contain(std::span(&digest, 1), std::span(&verdict, 1));
  return verdict == Verdict::duplicate;
}

void Window::may_contain(std::span<const Digest> digests, std::span<Verdict> verdicts) const {
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
  const bool ages = params_.spec.by_time() && clock_.started() && now > clock_.now();
  const std::int64_t later = ages ? tick_of(now) - tick_ : 0;
  if (later > static_cast<std::int64_t>(generations()))
    std::ranges::fill(verdicts, Verdict::distinct);
  else
    growth_->may_contain(digests, verdicts, static_cast<unsigned>(later));
}

std::size_t Window::insert(std::span<const Digest> digests) {
  return insert_by_observing<256>(*this, digests);
}

void Window::clear() noexcept {
  growth_->clear();
  clock_ = EventClock(params_.spec.size, params_.max_ahead.value_or(params_.spec.size));
  left_ = generation_size();
  tick_ = tick_begin_ = tick_end_ = 0;
  claimant_.reset();
}

bool Window::forget(const Digest& digest) noexcept {
  // Else it would come back as soon as its time is believed.
  if (claimant_ == digest) claimant_.reset();
  return growth_->forget(digest);
}

// A filter keeps keys for its own share longer than its generations; those, rounded up to whole
// keys, may be longer than the window already.
double Window::slack() const {
  return past_the_window(params_.spec, generations(), growth_->slack());
}

double Window::npws() const {
  return past_the_window(params_.spec, generations(), growth_->npws());
}

void Window::encode_header(Encoder& to) const {
  to.u8(static_cast<std::uint8_t>(params_.spec.kind));
  to.varint(params_.spec.size);
  to.u8(static_cast<std::uint8_t>(params_.anchor));
  to.u8(static_cast<std::uint8_t>(params_.growth));
  to.f64(params_.fpr);
  to.varint(params_.keys.value_or(0));
  to.varint(params_.generations.value_or(0));
  to.varint(params_.max_ahead.value_or(0));
  to.varint(params_.filter.size());
  to.bytes(std::as_bytes(std::span(params_.filter)));
  clock_.encode(to);
  to.varint(left_);
  to.u8(claimant_.has_value());
  if (claimant_) {
    to.u64(claimant_->lo);
    to.u64(claimant_->hi);
  }
  growth_->encode_header(to);
}

void Window::encode_payload(Encoder& to) const {
  growth_->encode_payload(to);
}

Window Window::decode(Decoder& header, Decoder& payload, MemoryResource& memory) {
  const auto refuse = [](bool wrong) {
    if (wrong) throw CorruptSnapshot("no window has these fields");
  };
  Params params;
  const std::uint8_t kind = header.u8();
  params.spec.size = header.varint();
  const std::uint8_t anchor = header.u8();
  const std::uint8_t growth = header.u8();
  refuse(kind < 1 || kind > 3 || anchor > 1 || growth < 1 || growth > 2);
  params.spec.kind = static_cast<WindowSpec::Kind>(kind);
  params.anchor = static_cast<Anchor>(anchor);
  params.growth = static_cast<Growth::By>(growth);
  params.fpr = header.f64();
  if (const std::uint64_t keys = header.varint()) params.keys = keys;
  const std::uint64_t generations = header.varint();
  refuse(generations > std::numeric_limits<unsigned>::max());
  params.generations = static_cast<unsigned>(generations);
  if (const std::uint64_t ahead = header.varint()) params.max_ahead = ahead;
  const std::uint64_t length = header.varint();
  refuse(length > kMostFilterText || length > header.remaining());
  params.filter.resize(length);
  header.bytes(std::as_writable_bytes(std::span(params.filter)));
  if (const char* wrong = what_is_wrong(params)) throw CorruptSnapshot(wrong);
  Window window(params, memory);
  window.clock_.decode(header);
  window.left_ = header.varint();
  const std::uint8_t has_claimant = header.u8();
  refuse(has_claimant > 1);
  if (has_claimant == 1) {
    const std::uint64_t lo = header.u64();
    window.claimant_ = Digest{lo, header.u64()};
  }
  window.growth_->decode(header, payload);
  refuse(window.generations() != params.generations);
  refuse((params.spec.kind == WindowSpec::Kind::landmark) != (params.generations == 0u));
  refuse(window.left_ == 0 || window.left_ > window.generation_size());
  // Between two calls the present tick is that of now.
  if (params.spec.by_time() && window.clock_.started())
    window.set_tick(window.tick_of(window.clock_.now()));
  return window;
}

static_assert(ForgettingFilter<Window>);

}  // namespace sluice
