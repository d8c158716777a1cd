#include "sluice/cluster/local_filter.hpp"

#include <algorithm>
#include <cassert>
#include <limits>

#include "sluice/window/window.hpp"

namespace sluice::cluster {
namespace {

constexpr Nanoseconds kNanosecondsPerMs = 1'000'000;

Nanoseconds floor_divide(Nanoseconds a, Nanoseconds b) {
  return a / b - (a % b < 0);
}

}  // namespace

LocalFilter::LocalFilter(AnyFilter filter) : filter_(std::move(filter)) {}

void LocalFilter::be_told(std::int64_t now_ms) {
  Window& window = *filter_.window();
  const Nanoseconds now = now_ms * kNanosecondsPerMs;
  if (!window.clock().started() || now > window.clock().now()) window.arrive(now);
}

// Whether the window would not believe it if it read it with a key.
bool LocalFilter::is_far_ahead(std::int64_t now_ms) const {
  const Window& window = *filter_.window();
  return window.clock().started() &&
         now_ms * kNanosecondsPerMs - window.clock().now() > window.limits().max_ahead;
}

// How many keys were written; for the others there is no memory. A key whose own time tells the
// window what time it is needs no telling, so keys in the order of their times are judged together.
std::size_t LocalFilter::write(const FilterSite::Request& request) {
  if (times_.empty()) return filter_.observe(request.digests, verdicts_);
  const std::span late(late_events_.get(), times_.size());
  const auto judge = [&](std::size_t begin, std::size_t count) {
    return filter_.window()->judge(
        request.digests.subspan(begin, count), std::span(times_).subspan(begin, count),
        std::span(verdicts_).subspan(begin, count), late.subspan(begin, count));
  };
  if (request.nows_ms.empty()) return judge(0, times_.size());
  std::size_t begin = 0;
  std::int64_t known_ms = std::numeric_limits<std::int64_t>::min();
  for (std::size_t i = 0; i < times_.size(); ++i) {
    const std::int64_t now_ms = request.nows_ms[i];
    if (now_ms > std::max(known_ms, request.times_ms[i]) || is_far_ahead(now_ms)) {
      if (const std::size_t done = judge(begin, i - begin); done < i - begin) return begin + done;
      begin = i;
      be_told(now_ms);
    }
    known_ms = std::max(known_ms, now_ms);
  }
  return begin + judge(begin, times_.size() - begin);
}

void LocalFilter::ask(const FilterSite::Request& request) {
  if (times_.empty()) return filter_.may_contain(request.digests, verdicts_);
  const Window& window = *filter_.window();
  if (request.nows_ms.empty()) {
    for (std::size_t i = 0; i < times_.size(); ++i)
      verdicts_[i] = window.peek(request.digests[i], times_[i]);
    return;
  }
  // A table has the same answers for all of a generation.
  const auto size = static_cast<Nanoseconds>(window.generation_size());
  const auto as_one = [&](std::int64_t one_ms, std::int64_t other_ms) {
    return one_ms == other_ms ||
           (!window.listed() && floor_divide(one_ms * kNanosecondsPerMs, size) ==
                                    floor_divide(other_ms * kNanosecondsPerMs, size));
  };
  for (std::size_t begin = 0, end = 0; begin < times_.size(); begin = end) {
    while (end < times_.size() && as_one(request.nows_ms[begin], request.nows_ms[end])) ++end;
    window.may_contain(request.digests.subspan(begin, end - begin),
                       std::span(verdicts_).subspan(begin, end - begin),
                       request.nows_ms[begin] * kNanosecondsPerMs);
  }
}

// A table knows the generation of a key: it was remembered after that began.
std::int64_t LocalFilter::since(const Digest& digest, Nanoseconds now) const {
  const Window& window = *filter_.window();
  const auto age = window.age_of(digest, now);
  if (!age) return FilterSite::kUnknownSince;
  now = std::max(now, window.clock().now());
  Nanoseconds since = now - static_cast<Nanoseconds>(*age);
  if (!window.listed()) {
    if (window.generation_size() < kNanosecondsPerMs) return FilterSite::kUnknownSince;
    since = *age == 0 ? now - static_cast<Nanoseconds>(window.position(now))
                      : since + 1 - static_cast<Nanoseconds>(window.generation_size());
    // The first whole millisecond of it.
    since += kNanosecondsPerMs - 1;
  }
  return floor_divide(since, kNanosecondsPerMs);
}

bool LocalFilter::knows_since() const {
  const std::lock_guard lock(mutex_);
  const Window* const window = filter_.window();
  return window != nullptr && window->params().spec.by_time() && window->knows_ages();
}

bool LocalFilter::refreshed() const {
  const std::lock_guard lock(mutex_);
  const Window* const window = filter_.window();
  return window != nullptr && window->params().anchor == Anchor::refreshed;
}

std::optional<WindowSpec> LocalFilter::window() const {
  const std::lock_guard lock(mutex_);
  const Window* const window = filter_.window();
  return window == nullptr ? std::nullopt : std::optional(window->params().spec);
}

Reply LocalFilter::carry_out(const FilterSite::Request& request, std::span<Answer> answers,
                             std::span<std::int64_t> since_ms) {
  const std::lock_guard lock(mutex_);
  if (!reachable_) return {Outcome::failed, 0};
  const std::size_t size = request.digests.size();
  const Window* const window = filter_.window();
  const bool timed = window != nullptr && window->params().spec.by_time();
  assert(request.times_ms.size() == (timed ? size : 0) && "a window of time needs times");
  times_.clear();
  if (timed)
    for (const std::int64_t time : request.times_ms) times_.push_back(time * kNanosecondsPerMs);
  if (room_ < size) {
    late_events_ = std::make_unique<bool[]>(size);
    room_ = size;
  }
  verdicts_.resize(size);
  std::size_t done = size;
  if (request.verb == FilterVerb::may_contain)
    ask(request);
  else
    done = write(request);
  for (std::size_t i = 0; i < size; ++i)
    answers[i] = i >= done                            ? Answer::none
                 : verdicts_[i] == Verdict::duplicate ? Answer::duplicate
                                                      : Answer::distinct;
  if (request.wants_since && timed && window->knows_ages())
    for (std::size_t i = 0; i < size; ++i)
      if (answers[i] == Answer::duplicate)
        since_ms[i] =
            since(request.digests[i],
                  request.nows_ms.empty() ? times_[i] : request.nows_ms[i] * kNanosecondsPerMs);
  return {late_ ? Outcome::late : Outcome::answered, incarnation_};
}

void LocalFilter::fail() {
  const std::lock_guard lock(mutex_);
  reachable_ = false;
}

void LocalFilter::come_back() {
  const std::lock_guard lock(mutex_);
  reachable_ = true;
}

void LocalFilter::come_back_empty() {
  const std::lock_guard lock(mutex_);
  reachable_ = true;
  ++incarnation_;
  filter_.clear();
}

void LocalFilter::be_late(bool late) {
  const std::lock_guard lock(mutex_);
  late_ = late;
}

std::uint64_t LocalFilter::keys() const {
  const std::lock_guard lock(mutex_);
  return filter_.stats().keys;
}

void LocalFilterSite::send(const Request& request) {
  answers_.resize(request.digests.size());
  since_ms_.clear();
  if (request.wants_since && filter_->knows_since())
    since_ms_.assign(request.digests.size(), kUnknownSince);
  reply_ = filter_->carry_out(request, answers_, since_ms_);
}

Reply LocalFilterSite::receive(std::span<Answer> answers) {
  if (!reply_.answered()) return {reply_.outcome, 0};
  std::copy_n(answers_.begin(), std::min(answers.size(), answers_.size()), answers.begin());
  return reply_;
}

std::vector<std::unique_ptr<FilterSite>> connect(
    std::span<const std::shared_ptr<LocalFilter>> filters) {
  std::vector<std::unique_ptr<FilterSite>> sites;
  for (const auto& filter : filters) sites.push_back(std::make_unique<LocalFilterSite>(filter));
  return sites;
}

}  // namespace sluice::cluster
