// The truth that audits are compared with, found as plainly as can be.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <vector>

#include "sluice/audit/audit.hpp"
#include "sluice/filters/catalogue.hpp"
#include "tests/support/digests.hpp"

namespace sluice::testing_support {

inline constexpr std::size_t kBatch = 512;
inline constexpr std::uint64_t kAmple = std::uint64_t{1} << 26;

struct Truth {
  double distinct = 0, false_positives = 0, duplicates = 0, false_negatives = 0, either = 0;
};

// The definition, written as plainly as can be: when each key was last delivered (refreshed: came).
class Reference {
 public:
  explicit Reference(const Window* window) : window_(window) {}

  void see(std::uint64_t key, Verdict verdict, std::int64_t time, std::int64_t now) {
    const auto at = last_.find(key);
    const bool held = verdict == Verdict::duplicate;
    const bool distinct = at == last_.end() || age_class(at->second, now) == 2;
    const bool was_lost = lost_.contains(key);
    if (distinct) {
      ++truth.distinct;
      truth.false_positives += held;
    } else if (!was_lost && age_class(at->second, now) == 0) {
      ++truth.duplicates;
      truth.false_negatives += !held;
    } else {
      ++truth.either;
    }
    if (held && distinct) lost_.insert(key);
    if (!held) lost_.erase(key);
    if (!held || distinct || (window_ != nullptr && window_->params().anchor == Anchor::refreshed))
      last_[key] = at == last_.end() || (was_lost && !held) ? time : std::max(time, at->second);
  }

  Truth truth;

 private:
  // 0: inside, 1: either, 2: outside.
  int age_class(std::int64_t last, std::int64_t now) const {
    if (window_ == nullptr) return 0;
    const auto size = static_cast<std::int64_t>(window_->params().spec.size);
    const std::int64_t age = now - last;
    if (window_->params().spec.kind == WindowSpec::Kind::landmark)
      return last / size == now / size ? 0 : 2;
    const bool by_time = window_->params().spec.by_time();
    if (by_time ? age < size : age <= size) return 0;
    const double past = static_cast<double>(size) * (1 + window_->slack());
    return static_cast<double>(age) < std::ceil(past) + 1 ? 1 : 2;
  }

  const Window* window_;
  std::map<std::uint64_t, std::int64_t> last_;
  std::set<std::uint64_t> lost_;
};

struct Stream {
  std::uint64_t records = 60'000;
  std::uint64_t keys = 20'000;  // drawn evenly
  std::uint64_t seed = 1;
};

inline std::vector<std::uint64_t> keys_of(const Stream& stream) {
  SplitMix64 random(stream.seed);
  std::vector<std::uint64_t> keys(stream.records);
  std::ranges::generate(keys, [&] { return random.next() % stream.keys; });
  return keys;
}

inline AnyFilter window_of(const std::string& filter, WindowSpec spec,
                           Anchor anchor = Anchor::delivered, double fpr = 0.02) {
  Window::Params params;
  params.spec = spec;
  params.anchor = anchor;
  params.filter = filter;
  params.fpr = fpr;
  if (spec.by_time()) params.max_ahead = spec.size;
  if (spec.by_time()) params.keys = 2'000;
  return AnyFilter(Window::make(params));
}

// Runs the stream in batches, counting the truth beside the audits. No times.
inline Truth run(AnyFilter& filter, const std::vector<std::uint64_t>& keys,
                 const std::vector<Audit*>& audits) {
  const Window* window = filter.window();
  Reference reference(window);
  std::int64_t position = 0;
  std::vector<Digest> digests;
  std::vector<Verdict> verdicts(kBatch);
  for (std::size_t begin = 0; begin < keys.size(); begin += kBatch) {
    const std::size_t count = std::min(kBatch, keys.size() - begin);
    digests.clear();
    for (std::size_t i = 0; i < count; ++i) digests.push_back(digest_of(keys[begin + i]));
    const auto judged = std::span(verdicts).first(count);
    filter.observe(digests, judged);
    for (std::size_t i = 0; i < count; ++i) {
      reference.see(keys[begin + i], judged[i], position, position);
      const bool refreshed = window != nullptr && window->params().anchor == Anchor::refreshed;
      position += refreshed || judged[i] == Verdict::distinct;
    }
    for (Audit* audit : audits) audit->observe(digests, judged);
  }
  return reference.truth;
}

inline void expect_equal(const Audit::Report& report, const Truth& truth) {
  EXPECT_EQ(report.positives.trials, truth.distinct);
  EXPECT_EQ(report.positives.errors, truth.false_positives);
  EXPECT_EQ(report.negatives.trials, truth.duplicates);
  EXPECT_EQ(report.negatives.errors, truth.false_negatives);
  EXPECT_EQ(report.undecided, truth.either);
}

// Errors come a key at a time (who is lost once is lost again), so a standard error is that of
// `each` times as few.
inline void expect_near(const Rate& rate, double errors, double trials, double each) {
  ASSERT_GT(trials, 0);
  const double share = errors / trials;
  const double error = std::sqrt(each * std::max(share, 1 / trials) * (1 - share) / rate.trials);
  EXPECT_NEAR(rate.errors / rate.trials, share, 4 * error) << rate.trials << " trials";
}

}  // namespace sluice::testing_support
