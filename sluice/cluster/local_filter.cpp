#include "sluice/cluster/local_filter.hpp"

#include <algorithm>
#include <cassert>

#include "sluice/window/window.hpp"

namespace sluice::cluster {
namespace {

constexpr Nanoseconds kNanosecondsPerMs = 1'000'000;

}  // namespace

LocalFilter::LocalFilter(AnyFilter filter) : filter_(std::move(filter)) {}

// How many keys were written; for the others there is no memory.
std::size_t LocalFilter::write(const FilterSite::Request& request) {
  if (times_.empty()) return filter_.observe(request.digests, verdicts_);
  return filter_.window()->judge(request.digests, times_, verdicts_,
                                 std::span(late_events_.get(), times_.size()));
}

void LocalFilter::ask(const FilterSite::Request& request) {
  if (times_.empty()) return filter_.may_contain(request.digests, verdicts_);
  for (std::size_t i = 0; i < times_.size(); ++i)
    verdicts_[i] = filter_.window()->peek(request.digests[i], times_[i]);
}

Reply LocalFilter::carry_out(const FilterSite::Request& request, std::span<Answer> answers) {
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
  reply_ = filter_->carry_out(request, answers_);
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
