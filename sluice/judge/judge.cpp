#include "sluice/judge/judge.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "sluice/base/error.hpp"
#include "sluice/base/random.hpp"

namespace sluice {
namespace {

constexpr std::size_t kHashTogether = 512;
constexpr std::size_t kReplayTogether = 512;

// Ghosts differ from filter to filter as digests do, and a run with a known secret can be repeated.
Audit::Params audit_of(Audit::Params params, const Hasher& hasher, const AnyFilter& filter) {
  std::memcpy(&params.seed, hasher.secret().bytes().data(), sizeof params.seed);
  params.seed = SplitMix64(params.seed).next();
  params.fresh = filter.stats().keys == 0;
  return params;
}

template <class T>
std::span<T> part(std::span<T> all, std::size_t begin, std::size_t count) {
  return all.empty() ? all : all.subspan(begin, count);
}

// What is known of one key is known of all.
template <class T>
std::span<T> part_of_known(std::span<T> all, std::size_t begin, std::size_t count) {
  return all.size() <= 1 ? all : all.subspan(begin, count);
}

// Either none, or one for each key.
template <class T>
void check_optional(const char* field, std::span<T> all, std::size_t keys) {
  if (!all.empty()) check_length(field, all.size(), keys);
}

// What is known of one key is known of all.
template <class T>
void check_known(const char* field, std::span<T> all, std::size_t keys) {
  if (all.size() != 1) check_optional(field, all, keys);
}

void check_lengths(const Judge::Batch& batch, std::size_t keys) {
  check_length("verdicts", batch.verdicts.size(), keys);
  check_optional("times", batch.times, keys);
  check_optional("late", batch.late, keys);
  if (!batch.times.empty()) check_length("late", batch.late.size(), keys);
  check_known("known.priors", batch.known.priors, keys);
  check_known("known.costs", batch.known.costs, keys);
  check_optional("posteriors", batch.posteriors, keys);
}

}  // namespace

Judge::Batch Judge::Batch::subspan(std::size_t begin, std::size_t count) const {
  return {.digests = part(digests, begin, count),
          .verdicts = part(verdicts, begin, count),
          .times = part(times, begin, count),
          .late = part(late, begin, count),
          .now = now,
          .known = {.priors = part_of_known(known.priors, begin, count),
                    .costs = part_of_known(known.costs, begin, count)},
          .posteriors = part(posteriors, begin, count)};
}

Judge::Batch Judge::Batch::first(std::size_t count) const {
  return subspan(0, count);
}

Judge::Judge(const Hasher& hasher, AnyFilter&& filter, const JudgeOptions& options)
    : hasher_(hasher),
      filter_(std::move(filter)),
      window_(filter_.window()),
      by_arrival_(window_ != nullptr && window_->params().spec.by_time()),
      has_prior_table_(options.infer && options.infer->table != nullptr),
      metered_(options.meters),
      forgets_early_(options.forget_early),
      meter_(filter_.stats()) {
  try {
    if (metered_ && window_ != nullptr) slack_.emplace(*window_);
    if (metered_ && window_ == nullptr && !filter_.promises().no_false_negatives &&
        filter_.kind() != FilterKind::none)
      firsts_.emplace();
    if (options.audit) audit_.emplace(audit_of(*options.audit, hasher_, filter_), filter_);
    if (options.infer)
      infer_ = std::make_unique<Inference>(filter_, options.infer->table, options.infer->learn);
    if (options.claims > 0) claims_.emplace(options.claims, filter_.memory());
  } catch (...) {
    filter = std::move(filter_);
    throw;
  }
}

// Nothing here reads a clock, so a window over time must be told when its keys came.
void Judge::check_timed(const char* field, bool has_times, std::optional<Nanoseconds> now) const {
  if (by_arrival_ && !has_times && !now)
    throw BadParameters(fmt::format("a window over time needs `{}`, or `now`", field));
}

std::size_t Judge::judge(const Batch& batch) {
  check_lengths(batch, batch.digests.size());
  if (batch.digests.empty()) return 0;
  check_timed("times", !batch.times.empty(), batch.now);
  return claims_ && claims_->size() > 0 ? judge_claimed(batch) : judge_free(batch);
}

bool Judge::make_room() {
  return forgets_early_ && window_ != nullptr && window_->used_up() && window_->forget_oldest();
}

// Keys that are not claimed are judged together; a claimed one ends the run.
std::size_t Judge::judge_claimed(const Batch& batch) {
  const std::size_t size = batch.digests.size();
  for (std::size_t begin = 0; begin < size;) {
    Claims::State state = Claims::State::unknown;
    std::size_t end = begin;
    for (; end < size; ++end) {
      state = claims_->state_of(batch.digests[end], batch.now.value_or(0));
      if (state != Claims::State::unknown) break;
    }
    if (end > begin) {
      const std::size_t judged = judge_free(batch.subspan(begin, end - begin));
      if (judged < end - begin) return begin + judged;
    }
    if (end == size) break;
    if (state == Claims::State::delivered && hand_over(batch.digests[end])) {
      begin = end;
      continue;
    }
    batch.verdicts[end] = state == Claims::State::pending ? Verdict::pending : Verdict::duplicate;
    if (!batch.late.empty()) batch.late[end] = false;
    if (!batch.posteriors.empty()) batch.posteriors[end].reset();
    begin = end + 1;
  }
  return size;
}

std::size_t Judge::judge_free(const Batch& batch) {
  const std::size_t size = batch.digests.size();
  const auto until_look = [&]() -> std::uint64_t {
    if (!metered_) return size;
    return slack_ ? std::min(meter_.until_look(), slack_->until_look()) : meter_.until_look();
  };
  std::size_t judged = 0;
  while (judged < size) {
    const auto count =
        metered_ ? static_cast<std::size_t>(std::min<std::uint64_t>(size - judged, until_look()))
                 : size - judged;
    const std::size_t done = judge_part(batch.subspan(judged, count));
    judged += done;
    if (done < count) break;
  }
  // Together, wherever the meters have cut the batch: a judge that was loaded has new ones, and its
  // audit goes on as that of the judge that was saved.
  if (audit_ && judged > 0) {
    const Batch told = judged == size ? batch : batch.first(judged);
    audit_->observe(told.digests, told.verdicts, told.times,
                    told.times.empty() ? std::span<bool>() : told.late);
  }
  return judged;
}

// No longer than the meters allow.
std::size_t Judge::judge_part(const Batch& batch) {
  const bool timed = window_ != nullptr && !batch.times.empty();
  if (infer_ && batch.posteriors.empty() && posteriors_.size() < batch.digests.size() &&
      !while_memory_lasts([&] { posteriors_.resize(batch.digests.size()); }))
    return 0;
  // The caller's own clock is always believed, and nothing that arrives now is late.
  if (by_arrival_ && !timed) window_->arrive(*batch.now);
  if (!timed) std::ranges::fill(batch.late, false);
  const std::uint64_t passed_before = infer_ ? infer_->stats().passed : 0;
  const std::size_t judged =
      infer_  ? weigh(batch, timed)
      : timed ? window_->judge(batch.digests, batch.times, batch.verdicts, batch.late)
              : filter_.observe(batch.digests, batch.verdicts);
  if (slack_)
    slack_->look(batch.digests.first(judged), batch.verdicts.first(judged),
                 timed ? batch.times.first(judged) : std::span<const Nanoseconds>(),
                 timed ? batch.late.first(judged) : std::span<bool>());
  if (!metered_) return judged;
  // By the filter's own verdicts, which its error is for: what least cost let through in spite of
  // them is no new key that the filter knew.
  const std::size_t duplicates = count_duplicates(batch.verdicts.first(judged)) +
                                 (infer_ ? infer_->stats().passed - passed_before : 0);
  const auto late =
      timed ? static_cast<std::size_t>(std::ranges::count(batch.late.first(judged), true)) : 0;
  std::optional<double> first;
  if (firsts_) first = firsts_->count(batch.digests.first(judged));
  meter_.count(judged - duplicates - late, duplicates, late, first);
  if (meter_.until_look() == 0) meter_.look(filter_.stats());
  return judged;
}

std::size_t Judge::weigh(const Batch& batch, bool timed) {
  if (batch.digests.empty()) return 0;
  Inference::Known known = batch.known;
  if (known.costs.empty()) known.costs = std::span(&Inference::kFilterAlone, 1);
  std::span<std::optional<double>> posteriors = batch.posteriors;
  if (posteriors.empty()) {
    posteriors = std::span(posteriors_).first(batch.digests.size());
  }
  return timed ? infer_->judge(batch.digests, batch.times, known, batch.verdicts, batch.late,
                               posteriors)
               : infer_->observe(batch.digests, known, batch.verdicts, posteriors);
}

std::size_t Judge::judge(std::span<const std::string_view> keys, Batch batch) {
  std::array<Digest, kHashTogether> digests;
  batch.digests = {};
  check_lengths(batch, keys.size());
  for (std::size_t begin = 0; begin < keys.size();) {
    const std::size_t count = std::min(kHashTogether, keys.size() - begin);
    hasher_.digest(keys.subspan(begin, count), std::span(digests).first(count));
    Batch some = batch.subspan(begin, count);
    some.digests = std::span(digests).first(count);
    const std::size_t judged = judge(some);
    begin += judged;
    if (judged < count) return begin;
  }
  return keys.size();
}

Verdict Judge::judge(std::string_view key, std::optional<Nanoseconds> now) {
  const Digest digest = hasher_.digest(key);
  Verdict verdict{};
  if (judge({.digests = {&digest, 1}, .verdicts = {&verdict, 1}, .now = now}) == 0)
    throw NoMemory("there is no memory for more keys");
  return verdict;
}

std::size_t Judge::replay(std::span<const Digest> digests, std::span<const Nanoseconds> times,
                          std::optional<Nanoseconds> now) {
  check_optional("times", times, digests.size());
  if (digests.empty()) return 0;
  check_timed("times", !times.empty(), now);
  std::array<Verdict, kReplayTogether> verdicts;
  std::array<bool, kReplayTogether> late;
  for (std::size_t begin = 0; begin < digests.size();) {
    const std::size_t count = std::min(kReplayTogether, digests.size() - begin);
    const std::size_t done = replay_part({.digests = digests.subspan(begin, count),
                                          .verdicts = std::span(verdicts).first(count),
                                          .times = part(times, begin, count),
                                          .late = std::span(late).first(count)},
                                         now);
    begin += done;
    if (done < count) return begin;
  }
  return digests.size();
}

// Observed, not inserted: a key confirmed before the snapshot and journalled after it comes again.
// The meter does not count these keys, since none of them can be lost.
std::size_t Judge::replay_part(const Batch& batch, std::optional<Nanoseconds> now) {
  const bool timed = window_ != nullptr && !batch.times.empty();
  if (by_arrival_ && !timed) window_->arrive(*now);
  const std::size_t done =
      timed ? window_->judge(batch.digests, batch.times, batch.verdicts, batch.late)
            : filter_.observe(batch.digests, batch.verdicts);
  const Batch told = batch.first(done);
  if (audit_)
    audit_->observe(told.digests, told.verdicts, told.times,
                    told.times.empty() ? std::span<bool>() : told.late);
  if (slack_) slack_->missed_keys();
  if (claims_)
    for (const Digest& digest : told.digests) claims_->settle(digest);
  return done;
}

void Judge::forget(std::span<const Digest> digests, std::span<Verdict> verdicts) {
  if (!filter_.can_forget()) throw BadParameters("this filter cannot take keys back");
  check_length("verdicts", verdicts.size(), digests.size());
  std::ranges::transform(digests, verdicts.begin(), [this](const Digest& digest) {
    bool found = filter_.forget(digest);
    if (audit_) audit_->forget(digest, found);
    if (slack_) slack_->forget(digest);
    // Delivered, and not handed to the filter yet.
    if (claims_) found |= claims_->forget(digest);
    return found ? Verdict::duplicate : Verdict::distinct;
  });
}

// The filter, as claims see it.
class Judge::Memory final : public KeyMemory {
 public:
  explicit Memory(Judge& judge) : judge_(judge) {}

  bool remembers(const Digest& key, const When& when) override {
    Window* const window = judge_.window_;
    if (!judge_.by_arrival_) {
      Verdict verdict{};
      judge_.filter_.may_contain({&key, 1}, {&verdict, 1});
      return verdict == Verdict::duplicate;
    }
    if (!when.event_time) window->arrive(when.time);
    if (!when.event_time || !is_ahead(when.time))
      return !is_late(when.time) && window->may_contain(key);
    // Events that are not delivered do not move the window.
    return window->may_contain(key, when.time);
  }

  bool remember(const Digest& key, const When& when) override {
    bool late = false;
    const bool done = write(key, when, late);
    if (done && judge_.audit_) tell_audit(key, Verdict::distinct, when, late);
    return done;
  }

  // The filter knows the key, and a repeat restarts its window and counts as an arrival: as judge() does. If there
  // is no memory for that, the repeat stays one.
  bool repeat(const Digest& key, const When& when) {
    bool late = false;
    return write(key, when, late);
  }

  bool may_take() override { return judge_.fates_ == nullptr || judge_.fates_->may_take(); }
  void took(bool done) override {
    if (judge_.fates_ != nullptr) judge_.fates_->took(done);
  }

  void tell_audit(const Digest& key, Verdict verdict, const When& when, bool late) {
    if (when.event_time)
      judge_.audit_->observe({&key, 1}, {&verdict, 1}, {&when.time, 1}, {&late, 1});
    else
      judge_.audit_->observe({&key, 1}, {&verdict, 1});
  }

 private:
  bool write(const Digest& key, const When& when, bool& late) {
    Verdict verdict{};
    const bool ahead = judge_.by_arrival_ && is_ahead(when.time);
    // Whether or not there is memory: a replica that is told that there was none moves the same.
    if (ahead && (!when.event_time || judge_.window_->limits().believe_all()))
      judge_.window_->arrive(when.time);
    // A key that comes after its time, as one that waited here, is remembered at its own age.
    const auto try_it = [&] {
      return judge_.by_arrival_ && (when.event_time || !ahead)
                 ? judge_.window_->judge({&key, 1}, {&when.time, 1}, {&verdict, 1}, {&late, 1}) == 1
                 : judge_.filter_.insert({&key, 1}) == 1;
    };
    if (!may_take()) {
      // To try may have changed the window.
      for (std::uint64_t i = judge_.fates_->forgets_in_vain(); i > 0; --i) {
        if (try_it()) throw NoMemory("there is memory for what the primary does not remember");
        if (!judge_.forget_oldest()) break;
      }
      return false;
    }
    bool done = try_it();
    std::uint64_t forgets = 0;
    for (; !done && judge_.make_room(); ++forgets) done = try_it();
    if (judge_.fates_ != nullptr) judge_.fates_->took(done, forgets);
    if (done && judge_.slack_) judge_.slack_->missed_keys();
    return done;
  }

  // Of the latest time that the window knows.
  bool is_ahead(Nanoseconds time) const {
    const EventClock& clock = judge_.window_->clock();
    return !clock.started() || time >= clock.now();
  }
  bool is_late(Nanoseconds time) const {
    if (is_ahead(time)) return false;
    const auto now = static_cast<std::uint64_t>(judge_.window_->clock().now());
    return now - static_cast<std::uint64_t>(time) >= judge_.window_->params().spec.size;
  }

  Judge& judge_;
};

Claims& Judge::asked_claims() {
  if (!claims_)
    throw BadParameters("this judge takes no claims: say in `claims` how many may be pending");
  return *claims_;
}

void Judge::need_claims(std::uint64_t most) {
  if (!claims_) claims_.emplace(most, filter_.memory());
}

bool Judge::hand_over(const Digest& key) {
  Memory memory(*this);
  return claims_->hand_over(memory, key);
}

ClaimAnswer Judge::claim(const Claims::Request& request) {
  Memory memory(*this);
  Claims& claims = asked_claims();
  check_timed("event_time", request.event_time.has_value(), request.now);
  const ClaimAnswer answer = claims.claim(memory, request);
  // What the filter takes for a duplicate, not what waits here to be handed to it.
  if (answer != ClaimAnswer::duplicate ||
      claims.state_of(request.key, request.now.value_or(0)) != Claims::State::unknown)
    return answer;
  const KeyMemory::When when{
      .time = request.event_time ? *request.event_time : request.now.value_or(0),
      .event_time = request.event_time.has_value()};
  if (window_ != nullptr && window_->params().anchor == Anchor::refreshed &&
      !memory.repeat(request.key, when))
    return answer;
  if (audit_) memory.tell_audit(request.key, Verdict::duplicate, when, false);
  return answer;
}

ConfirmAnswer Judge::confirm(const Claims::Request& request) {
  Memory memory(*this);
  Claims& claims = asked_claims();
  check_timed("event_time", request.event_time.has_value(), request.now);
  return claims.confirm(memory, request);
}

bool Judge::release(const Claims::Request& request) {
  return asked_claims().release(request.key, request.token, request.now.value_or(0));
}

std::optional<Nanoseconds> Judge::event_time_of(const Digest& key) const noexcept {
  return claims_ ? claims_->event_time_of(key) : std::nullopt;
}

bool Judge::is_pending(const Digest& key, Nanoseconds now) const noexcept {
  return claims_ && claims_->state_of(key, now) == Claims::State::pending;
}

void Judge::tend(Nanoseconds now, std::size_t most) {
  if (!claims_) return;
  Memory memory(*this);
  claims_->tend(memory, now, most);
}

std::uint64_t Judge::bytes() const noexcept {
  return filter_.bytes() + (audit_ ? audit_->bytes() : 0) + (infer_ ? infer_->bytes() : 0) +
         posteriors_.capacity() * sizeof posteriors_[0] + (claims_ ? claims_->bytes() : 0) +
         (slack_ ? slack_->bytes() : 0) + (firsts_ ? firsts_->bytes() : 0);
}

bool Judge::asks_for_digests() const noexcept {
  return audit_.has_value() || filter_.kind() != FilterKind::none;
}

}  // namespace sluice
