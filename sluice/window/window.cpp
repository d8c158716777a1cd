#include "sluice/window/window.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cassert>
#include <limits>

#include "sluice/base/checked.hpp"
#include "sluice/base/error.hpp"
#include "sluice/filters/catalogue.hpp"
#include "sluice/filters/share_range.hpp"

namespace sluice {
namespace {

constexpr std::size_t kMostFilterText = 4096;
constexpr std::size_t kKnownBlueprints = 8;
constexpr std::uint64_t kMostWritten = std::uint64_t{1} << 62;

// What is left for the stages beside the objects that hold them, in blocks that may be rounded up.
std::uint64_t memory_of_growth(std::uint64_t memory) {
  constexpr std::uint64_t kRounding = 256;
  const std::uint64_t beside = Growth::own_bytes() + AnyFilter::holder_bytes<Window>() + kRounding;
  return memory > beside ? memory - beside : 1;
}

Growth::Plan plan_of(const Window::Params& params) {
  const bool by_count = params.spec.kind == WindowSpec::Kind::count;
  return {.keys = by_count ? params.spec.size : params.keys.value_or(Window::kFirstKeys),
          .fpr = params.fpr,
          .may_grow = !by_count,
          .by = params.growth,
          .memory = params.memory ? memory_of_growth(*params.memory) : 0};
}

[[noreturn]] void refuse_timeless(std::string_view filter) {
  throw BadParameters(fmt::format(
      "filter '{}' does not forget: a window needs cohort or another window filter", filter));
}

// What the first stage is asked for. A landmark window is one generation.
Wish first_wish(const Window::Params& params) {
  const Growth::Plan plan = plan_of(params);
  const bool landmark = params.spec.kind == WindowSpec::Kind::landmark;
  return {.keys = plan.keys,
          .fpr = plan.first_fpr(),
          .generations = landmark ? std::optional(0u) : params.generations};
}

// A stage must cut the window as finely as the others. The first one is made as it was forecast:
// asked for `first` generations, or for none in particular.
Growth::Make maker_of(const Window::Params& params, std::optional<unsigned> first) {
  return [filter = params.filter, plan = plan_of(params), generations = params.generations, first](
             std::uint64_t keys, double fpr, MemoryResource& memory) {
    const bool is_first = keys == plan.keys && fpr == plan.first_fpr();
    AnyFilter made = make_filter(
        filter, {.keys = keys, .fpr = fpr, .generations = is_first ? first : generations}, memory);
    if (!made.ages()) refuse_timeless(name_of(made.kind()));
    return made;
  };
}

const char* what_is_wrong(const Window::Params& params) {
  if (params.spec.size == 0) return "`window` must be longer than nothing";
  if (params.spec.by_time() && params.spec.size > kLongestWindow)
    return "`window` is too long: at most 73 years";
  if (!can_be_asked(params.fpr)) return "`fpr` must lie between 1e-300 and 0.999999";
  if (params.max_ahead == std::uint64_t{0}) return "`max_ahead` must be more than nothing";
  if (params.filter.size() > kMostFilterText) return "the text of `filter` is too long";
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

Settings Window::Params::settings() const {
  Settings settings;
  settings.add("window", describe(spec, anchor == Anchor::refreshed));
  settings.add("anchor", anchor == Anchor::refreshed ? "refreshed" : "delivered");
  settings.add("filter", filter);
  settings.add("fpr", fpr);
  if (keys) settings.add("keys", *keys);
  if (generations) settings.add("generations", std::uint64_t{*generations});
  if (max_ahead && *max_ahead != spec.size) settings.add("max-ahead", in_words(*max_ahead));
  if (growth == Growth::By::cardinality) settings.add("growth", "cardinality");
  return settings;
}

std::shared_ptr<const Window::Blueprint> Window::blueprint_of(const Params& params) {
  const Forecast table = forecast(params);
  Params cut = params;
  // The stages to come are cut as the first one is.
  cut.generations = table.generations;
  Wish first = first_wish(params);
  if (forecast_filter(params.filter, first).generations != table.generations)
    first.generations = table.generations;  // it was cut anew, into whole generations
  return std::make_shared<const Blueprint>(
      Blueprint{.params = cut,
                .make = std::make_shared<const Growth::Make>(maker_of(cut, first.generations)),
                .generations_asked = params.generations.has_value(),
                .plan = plan_of(cut),
                .limits = ClockLimits(cut.spec.size, cut.max_ahead),
                .generation_size = size_of_generation(cut.spec, *cut.generations),
                .table = table});
}

// Whoever makes a window for each of a million users makes them all alike: the last few are kept.
std::shared_ptr<const Window::Blueprint> Window::find_blueprint(const Params& params) {
  struct Known {
    Params asked;
    std::shared_ptr<const Blueprint> blueprint;
  };
  thread_local std::array<std::optional<Known>, kKnownBlueprints> known;
  thread_local std::size_t next = 0;
  for (const auto& entry : known)
    if (entry && entry->asked == params) return entry->blueprint;
  auto made = blueprint_of(params);
  known[next++ % known.size()] = Known{params, made};
  return made;
}

void Window::Delete::operator()(Growth* growth) const noexcept {
  MemoryResource& memory = growth->memory();
  growth->~Growth();
  memory.deallocate(growth, sizeof(Growth), alignof(Growth));
}

Window Window::make(const Params& params, MemoryResource& memory) {
  Window window(find_blueprint(params), memory);
  if (!params.listed)
    window.start_table();
  else if (window.blueprint_->table.bytes > memory.budget())
    throw NoMemory(fmt::format(
        "the table of the window would take {} bytes, and there are {}: ask for a smaller window",
        window.blueprint_->table.bytes, memory.budget()));
  return window;
}

// Empty.
void Window::start_table() {
  auto growth = make_owned<Growth>(memory(), blueprint_->make, blueprint_->plan, memory());
  growth->start();
  growth_.reset(growth.release());
  assert(growth_->generations() == generations());
  left_ = generation_size();
}

std::uint64_t Window::bytes() const noexcept {
  if (listed()) return list_.bytes();
  return memory().usable(growth_.get(), sizeof(Growth), alignof(Growth)) + growth_->bytes();
}

FilterStats Window::stats() const {
  FilterStats stats = listed() ? list_stats() : growth_->stats();
  stats.bytes = bytes();
  stats.disbelieved = clock_.disbelieved();
  stats.over_target |= stats.predicted_fpr > stats.target_fpr;
  return stats;
}

std::string_view Window::filter_name() const noexcept {
  const std::string_view text = params().filter;
  return text.substr(0, text.find(','));
}

Settings Window::filter_settings() const {
  return listed() ? blueprint_->table.settings : growth_->newest().settings();
}

bool Window::can_forget() const noexcept {
  return listed() || growth_->can_forget();
}

Forecast Window::forecast(const Params& params, bool brief) {
  if (const char* wrong = what_is_wrong(params)) throw BadParameters(wrong);
  const Growth::Plan plan = plan_of(params);
  Wish wish = first_wish(params);
  wish.brief = brief;
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
  made.bytes =
      checked_add(made.bytes, Growth::own_bytes() + AnyFilter::holder_bytes<Window>(), "a window");
  made.fpr *= plan.fpr / plan.first_fpr();
  made.fpr_spread *= plan.fpr / plan.first_fpr();
  return made;
}

std::uint64_t Window::position(Nanoseconds time) const {
  const std::uint64_t size = generation_size();
  if (!params().spec.by_time()) return size - left_;
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
  if (growth_->admit(std::span(&digest, 1), std::span(&unread, 1), one, Anchor::refreshed) == 0)
    return false;
  claimant_ = digest;
  return true;
}

// It happened when it said. False: there is no memory for it.
bool Window::believe_claimant() {
  if (claimant_) {
    const std::int64_t age = tick_ - tick_of(std::min(clock_.claimed(), clock_.now()));
    if (age <= static_cast<std::int64_t>(generations()) &&
        !growth_->admit_aged(*claimant_, static_cast<unsigned>(age), Anchor::refreshed))
      return false;
    claimant_.reset();
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
  if (listed()) return age_list(first, before);
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
  std::uint64_t unlimited = std::numeric_limits<std::uint64_t>::max();
  return judge_times(digests, times, verdicts, late, [&](std::size_t begin, std::size_t count) {
    return growth_->admit(digests.subspan(begin, count), verdicts.subspan(begin, count), unlimited,
                          params().anchor);
  });
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

// As the clock is after these times and no others: what comes later was read too early.
void Window::read_again(const EventClock& from, std::span<const Nanoseconds> times) {
  clock_ = from;
  for (Nanoseconds time : times) clock_.read(time, limits());
  if (clock_.started()) return set_tick(tick_of(clock_.now()));
  tick_ = 0;
  claimant_.reset();
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
    const Nanoseconds before = clock_.now();
    Nanoseconds time = times[i];
    const EventClock::Reading reading = clock_.read(time, limits());
    const bool is_late = reading == EventClock::Reading::late;
    const std::int64_t tick = tick_of(time);
    // The first record, or one that corrects it, says which tick it is; nothing ages by that.
    if (first || clock_.now() < before) {
      if (!judge_until(i)) break;
      set_tick(tick);
    }
    if (first && !limits().believe_all()) claimant_ = digests[i];
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
      if (reading == EventClock::Reading::agreed && !believe_claimant()) clock_.owe();
      tick_clock = clock_;
      tick_read = i + 1;
      if (clock_.owes()) break;
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
  read_again(tick_clock, times.subspan(tick_read, std::max(begin, tick_read) - tick_read));
  return begin;
}

Verdict Window::observe(const Digest& digest) {
  Verdict verdict;
  if (observe(std::span(&digest, 1), std::span(&verdict, 1)) == 0)
    throw NoMemory(params().memory
                       ? "`memory` is used up: there is room again when keys have left the window"
                       : "the window has no memory for more keys");
  return verdict;
}

std::size_t Window::observe(std::span<const Digest> digests, std::span<Verdict> verdicts) {
  check_length("verdicts", verdicts.size(), digests.size());
  if (listed()) return observe_list(digests, verdicts);
  if (!params().spec.by_time()) return pace(digests, verdicts);
  if (clock_.owes() && !believe_claimant()) return 0;
  std::uint64_t unlimited = std::numeric_limits<std::uint64_t>::max();
  return growth_->admit(digests, verdicts, unlimited, params().anchor);
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

void Window::clear() noexcept {
  list_.clear();
  if (params().listed)
    growth_.reset();
  else
    growth_->clear();
  clock_ = EventClock();
  forgotten_ = forget_misses_ = 0;
  left_ = listed() ? 0 : generation_size();
  tick_ = 0;
  claimant_.reset();
}

bool Window::forget(const Digest& digest) noexcept {
  // Else it would come back as soon as its time is believed.
  if (claimant_ == digest) claimant_.reset();
  if (!listed()) return growth_->forget(digest);
  return forget_listed(digest);
}

// A filter keeps keys for its own share longer than its generations; those, rounded up to whole
// keys, may be longer than the window already.
double Window::slack() const {
  if (listed()) return blueprint_->table.slack;
  return past_the_window(params().spec, generations(), growth_->slack());
}

double Window::npws() const {
  if (listed()) return blueprint_->table.npws;
  return past_the_window(params().spec, generations(), growth_->npws());
}

void Window::encode_header(Encoder& to) const {
  to.u8(static_cast<std::uint8_t>(params().spec.kind));
  to.varint(params().spec.size);
  to.u8(static_cast<std::uint8_t>(params().anchor));
  to.u8(static_cast<std::uint8_t>(params().growth));
  to.u8(static_cast<std::uint8_t>(params().listed | listed() << 1 |
                                  blueprint_->generations_asked << 2 |
                                  params().memory.has_value() << 3));
  to.f64(params().fpr);
  to.varint(params().keys.value_or(0));
  to.varint(params().generations.value_or(0));
  to.varint(params().max_ahead.value_or(0));
  if (params().memory) to.varint(*params().memory);
  to.varint(params().filter.size());
  to.bytes(std::as_bytes(std::span(params().filter)));
  clock_.encode(to);
  to.varint(listed() ? static_cast<std::uint64_t>(tick_) : left_);
  to.u8(claimant_.has_value());
  if (claimant_) {
    to.u64(claimant_->lo);
    to.u64(claimant_->hi);
  }
  if (listed())
    list_.encode(to, oldest(clock_.now()), newest_stamp());
  else
    growth_->encode_header(to);
}

void Window::encode_payload(Encoder& to) const {
  if (!listed()) growth_->encode_payload(to);
}

std::shared_ptr<const Window::Blueprint> Window::blueprint_of_snapshot(const Params& params) {
  try {
    return find_blueprint(params);
  } catch (const BadParameters& error) {
    throw CorruptSnapshot(error.what());
  }
}

namespace {

// Later stages are made as the state says: what could not be made, or would take far more than the
// stages that it brings, is refused now. Stages are never smaller than the first one would be, but
// for a worse error, which makes some of them a few times smaller.
void check_stages_to_come(const Window::Params& params, std::uint64_t payload_bytes) {
  constexpr std::uint64_t kMostTimes = 16, kAlwaysAllowed = std::uint64_t{16} << 20;
  Forecast next;
  try {
    next = Window::forecast(params, true);
  } catch (const BadParameters& error) {
    throw CorruptSnapshot(fmt::format("no stage of the window can be made: {}", error.what()));
  }
  if (next.generations != params.generations)
    throw CorruptSnapshot("the window's stages are not cut as its filter says");
  if (next.bytes > kAlwaysAllowed && next.bytes / kMostTimes > payload_bytes)
    throw CorruptSnapshot(
        fmt::format("the window asks for stages of {} bytes and brings {} bytes of them: was its "
                    "filter '{}' changed?",
                    next.bytes, payload_bytes, params.filter));
}

}  // namespace

Window Window::decode(Decoder& header, Decoder& payload, MemoryResource& memory) {
  const std::uint64_t payload_bytes = payload.remaining();
  const auto refuse = [](bool wrong) {
    if (wrong) throw CorruptSnapshot("no window has these fields");
  };
  Params params;
  const std::uint8_t kind = header.u8();
  params.spec.size = header.varint();
  const std::uint8_t anchor = header.u8();
  const std::uint8_t growth = header.u8();
  const std::uint8_t form = header.u8();
  refuse(kind < 1 || kind > 3 || anchor > 1 || growth < 1 || growth > 2 || form > 15 ||
         (form & 3) == 2);
  params.listed = (form & 1) != 0;
  const bool listed = (form & 2) != 0;
  params.spec.kind = static_cast<WindowSpec::Kind>(kind);
  params.anchor = static_cast<Anchor>(anchor);
  params.growth = static_cast<Growth::By>(growth);
  params.fpr = header.f64();
  if (const std::uint64_t keys = header.varint()) params.keys = keys;
  const std::uint64_t generations = header.varint();
  refuse(generations > std::numeric_limits<unsigned>::max());
  params.generations = static_cast<unsigned>(generations);
  if (const std::uint64_t ahead = header.varint()) params.max_ahead = ahead;
  if ((form & 8) != 0) params.memory = header.varint();
  const std::uint64_t length = header.varint();
  refuse(length > kMostFilterText || length > header.remaining());
  params.filter.resize(length);
  header.bytes(std::as_writable_bytes(std::span(params.filter)));
  Params asked = params;
  if ((form & 4) == 0) asked.generations.reset();
  Window window(blueprint_of_snapshot(asked), memory);
  window.clock_.decode(header);
  const std::uint64_t position = header.varint();
  const std::uint8_t has_claimant = header.u8();
  refuse(has_claimant > 1);
  if (has_claimant == 1) {
    const std::uint64_t lo = header.u64();
    window.claimant_ = Digest{lo, header.u64()};
  }
  refuse(window.generations() != params.generations);
  refuse((params.spec.kind == WindowSpec::Kind::landmark) != (params.generations == 0u));
  if (listed) {
    refuse(position > (params.spec.by_time() ? 0 : kMostWritten));
    window.tick_ = static_cast<std::int64_t>(position);
    window.list_.decode(header, window.most_listed(), window.newest_stamp());
    refuse(payload.remaining() != 0 || !window.list_is_sound());
    return window;
  }
  auto growth_of =
      make_owned<Growth>(memory, window.blueprint_->make, window.blueprint_->plan, memory);
  growth_of->decode(header, payload);
  window.growth_.reset(growth_of.release());
  refuse(window.growth_->generations() != params.generations);
  window.left_ = position;
  refuse(window.left_ == 0 || window.left_ > window.generation_size());
  check_stages_to_come(params, payload_bytes);
  // Between two calls the present tick is that of now.
  if (params.spec.by_time() && window.clock_.started())
    window.set_tick(window.tick_of(window.clock_.now()));
  return window;
}

static_assert(ForgettingFilter<Window>);

}  // namespace sluice
