#include "sluice/cluster/shared_judge.hpp"

#include <algorithm>

#include "sluice/base/error.hpp"

namespace sluice::cluster {
namespace {

constexpr Nanoseconds kNanosecondsPerMs = 1'000'000;

// Rounded down, also before 1970.
std::int64_t in_ms(Nanoseconds time) {
  return time / kNanosecondsPerMs - (time % kNanosecondsPerMs < 0);
}

}  // namespace

SharedJudge::SharedJudge(const Options& options, Observe observe)
    : options_(options), observe_(std::move(observe)) {
  if (options.window && options.window->by_time())
    limits_.emplace(options.window->size, options.max_ahead);
}

std::optional<StreamJudge::Pace> SharedJudge::pace() const {
  if (!options_.window) return std::nullopt;
  return Pace{*options_.window, options_.slack,
              limits_ ? *limits_ : ClockLimits(options_.window->size, options_.max_ahead), clock_};
}

void SharedJudge::add(const Digest& digest, Nanoseconds time, std::size_t whose) {
  digests_.push_back(digest);
  times_ms_.push_back(in_ms(time));
  whose_.push_back(whose);
}

// As Window::judge_times.
void SharedJudge::read_times(const Judge::Batch& batch) {
  for (std::size_t i = 0; i < batch.digests.size(); ++i) {
    Nanoseconds time = batch.times[i];
    switch (clock_.read(batch.digests[i], time, *limits_)) {
      case EventClock::Reading::disbelieved:
        // It may repeat a key, or be a window later: held back it could be lost. It is remembered
        // all the same, and its verdict stays what it is.
        batch.verdicts[i] = Verdict::distinct;
        add(batch.digests[i], time, kNobody);
        continue;
      case EventClock::Reading::replaced:
        // None of those before is of the time that it said.
        for (std::int64_t& before : times_ms_) before = std::min(before, in_ms(time));
        break;
      case EventClock::Reading::agreed:
        // What had claimed that time first happened when it said.
        if (const auto claimant = clock_.claimant())
          add(*claimant, std::min(clock_.claimed(), clock_.now()), kNobody);
        clock_.settle();
        break;
      case EventClock::Reading::in_time:
      case EventClock::Reading::late:
        break;
    }
    batch.late[i] = clock_.is_late(time, *limits_);
    if (batch.late[i])
      batch.verdicts[i] = Verdict::distinct;
    else
      add(batch.digests[i], time, i);
  }
}

std::size_t SharedJudge::judge(const Judge::Batch& batch) {
  const std::size_t size = batch.digests.size();
  check_length("verdicts", batch.verdicts.size(), size);
  if (size == 0) return 0;
  std::ranges::fill(batch.late, false);
  if (!limits_) {
    observe_(batch.digests, {}, batch.verdicts);
    return size;
  }
  if (batch.times.empty()) {
    if (!batch.now) throw BadParameters("a window over time needs `times`, or `now`");
    clock_.set(*batch.now, *limits_);
    times_ms_.assign(size, in_ms(clock_.now()));
    observe_(batch.digests, times_ms_, batch.verdicts);
    return size;
  }
  check_length("times", batch.times.size(), size);
  check_length("late", batch.late.size(), size);
  digests_.clear();
  times_ms_.clear();
  whose_.clear();
  read_times(batch);
  verdicts_.resize(digests_.size());
  observe_(digests_, times_ms_, verdicts_);
  for (std::size_t i = 0; i < whose_.size(); ++i)
    if (whose_[i] != kNobody) batch.verdicts[whose_[i]] = verdicts_[i];
  return size;
}

}  // namespace sluice::cluster
