// Timing on a machine that others use too: subjects take turns, and medians are compared.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <functional>
#include <vector>

namespace sluice::bench {

using Samples = std::vector<double>;  // nanoseconds an operation, one a round

inline double median(Samples samples) {
  const auto middle = samples.begin() + static_cast<std::ptrdiff_t>(samples.size() / 2);
  std::nth_element(samples.begin(), middle, samples.end());
  return *middle;
}

// How many times `subject` takes of what `base` takes. Each round is compared with its own
// neighbour, so that a slow minute of the machine falls on both.
inline double ratio(const Samples& subject, const Samples& base) {
  Samples ratios;
  for (std::size_t i = 0; i < subject.size(); ++i) ratios.push_back(subject[i] / base[i]);
  return median(ratios);
}

// A B A B …: each subject runs once a round and returns nanoseconds an operation.
inline std::vector<Samples> take_turns(int rounds,
                                       const std::vector<std::function<double()>>& subjects) {
  std::vector<Samples> samples(subjects.size());
  for (int round = 0; round < rounds; ++round)
    for (std::size_t i = 0; i < subjects.size(); ++i) samples[i].push_back(subjects[i]());
  return samples;
}

// Adds up the time between start and stop.
class Stopwatch {
 public:
  void start() { started_ = Clock::now(); }
  void stop() { total_ += Clock::now() - started_; }
  double seconds() const { return std::chrono::duration<double>(total_).count(); }
  double ns_each(std::uint64_t operations) const {
    return seconds() * 1e9 / static_cast<double>(operations);
  }

 private:
  using Clock = std::chrono::steady_clock;
  Clock::time_point started_;
  Clock::duration total_{};
};

}  // namespace sluice::bench
