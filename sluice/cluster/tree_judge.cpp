#include "sluice/cluster/tree_judge.hpp"

#include <algorithm>
#include <utility>

#include "sluice/base/error.hpp"

namespace sluice::cluster {
namespace {

// Rounded down, also before 1970.
std::int64_t in_ms(Nanoseconds time) {
  constexpr Nanoseconds kNanosecondsPerMs = 1'000'000;
  return time / kNanosecondsPerMs - (time % kNanosecondsPerMs < 0);
}

}  // namespace

TreeJudge::TreeJudge(const Options& options, Tree tree)
    : options_(options), tree_(std::move(tree)) {}

std::optional<StreamJudge::Pace> TreeJudge::pace() const {
  if (!tree_.window()) return std::nullopt;
  return Pace{*tree_.window(), options_.slack,
              ClockLimits(tree_.window()->size, tree_.options().max_ahead), tree_.clock()};
}

std::size_t TreeJudge::judge(const Judge::Batch& batch) {
  const std::size_t size = batch.digests.size();
  check_length("verdicts", batch.verdicts.size(), size);
  if (size == 0) return 0;
  if (options_.before) options_.before();
  std::ranges::fill(batch.late, false);
  Tree::Batch asked{.digests = batch.digests, .verdicts = batch.verdicts};
  if (tree_.window() && tree_.window()->by_time()) {
    if (batch.times.empty()) {
      if (!batch.now) throw BadParameters("a window over time needs `times`, or `now`");
      asked.now_ms = in_ms(*batch.now);
    } else {
      check_length("times", batch.times.size(), size);
      check_length("late", batch.late.size(), size);
      times_ms_.resize(size);
      std::ranges::transform(batch.times, times_ms_.begin(), in_ms);
      asked.times_ms = times_ms_;
      asked.late = batch.late;
    }
  }
  tree_.observe(options_.leaf, asked);
  return size;
}

}  // namespace sluice::cluster
