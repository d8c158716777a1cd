// Timing on a shared machine: subjects take turns, and medians are compared.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <functional>
#include <vector>

namespace sluice::bench {

using Samples = std::vector<double>;  // nanoseconds per operation, one per round

inline double median(Samples samples) {
  const auto middle = samples.begin() + static_cast<std::ptrdiff_t>(samples.size() / 2);
  std::nth_element(samples.begin(), middle, samples.end());
  return *middle;
}

// The time of `subject` as a multiple of that of `base`. Each round is compared with the
// neighbouring round, so that a slow period of the machine affects both.
inline double ratio(const Samples& subject, const Samples& base) {
  Samples ratios;
  for (std::size_t i = 0; i < subject.size(); ++i) ratios.push_back(subject[i] / base[i]);
  return median(ratios);
}

// A B A B …: each subject runs once per round and returns nanoseconds per operation.
inline std::vector<Samples> take_turns(int rounds,
                                       const std::vector<std::function<double()>>& subjects) {
  std::vector<Samples> samples(subjects.size());
  for (int round = 0; round < rounds; ++round)
    for (std::size_t i = 0; i < subjects.size(); ++i) samples[i].push_back(subjects[i]());
  return samples;
}

// Times many short laps of equal work. The median ignores laps in which another process had the
// processor.
class LapClock {
 public:
  void start() { started_ = Clock::now(); }
  void stop() {
    laps_.push_back(std::chrono::duration<double, std::nano>(Clock::now() - started_).count());
  }
  double median_ns(std::uint64_t operations_a_lap) const {
    return median(laps_) / static_cast<double>(operations_a_lap);
  }

 private:
  using Clock = std::chrono::steady_clock;
  Clock::time_point started_;
  Samples laps_;
};

// Operations in a lap, and keys in a batch: some tens of microseconds.
inline constexpr std::uint64_t kLap = 4096;

}  // namespace sluice::bench
