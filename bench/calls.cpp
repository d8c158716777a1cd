// The lines that one call touches, whatever came before it: windows after idle ticks and windows,
// and through bursts.
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "line_counter.hpp"
#include "options.hpp"
#include "sluice/base/error.hpp"
#include "sluice/base/random.hpp"
#include "sluice/window/window.hpp"

namespace sluice::bench {
namespace {

constexpr std::size_t kCall = 100;          // keys
constexpr double kMostOfMedian = 20;        // lines of a call against those of the median one
constexpr std::uint64_t kKeys = 1'000'000;  // of a window
constexpr Nanoseconds kWindow = 24'000'000'000;
constexpr Nanoseconds kTick = kWindow / 24;

// New keys, a call at a time, at the planned rate or another.
class Stream {
 public:
  explicit Stream(Window& window) : window_(window) {}

  // One call; `pace` times as many keys in a second as planned.
  void call(double pace = 1) {
    bool late[kCall];
    for (std::size_t i = 0; i < kCall; ++i) {
      digests_[i] = {random_.next(), random_.next()};
      times_[i] = now_ += static_cast<Nanoseconds>(double(kWindow) / double(kKeys) / pace);
    }
    if (window_.judge(digests_, times_, verdicts_, late) < kCall)
      throw NoMemory("there is no memory for the keys of a call");
  }
  void pass(Nanoseconds time) { now_ += time; }
  // Calls until so much time has passed.
  void run(Nanoseconds time) {
    for (const Nanoseconds end = now_ + time; now_ < end;) call();
  }

 private:
  Window& window_;
  SplitMix64 random_{1};
  Nanoseconds now_ = 1'700'000'000'000'000'000;
  std::vector<Digest> digests_ = std::vector<Digest>(kCall);
  std::vector<Nanoseconds> times_ = std::vector<Nanoseconds>(kCall);
  std::vector<Verdict> verdicts_ = std::vector<Verdict>(kCall);
};

void check(const std::string& filter, const char* what, std::size_t lines, double median) {
  fmt::print("{}\t{}\t{:.1f}\n", filter, what, static_cast<double>(lines) / median);
  if (static_cast<double>(lines) > kMostOfMedian * median)
    throw Error(fmt::format("{}: a call {} touches {} lines, {:.0f} times the median's {}", filter,
                            what, lines, static_cast<double>(lines) / median, median));
}

void guard_calls_of(const std::string& filter) {
  LineCounter counter;
  Window window = Window::make({.spec = {WindowSpec::Kind::time, kWindow},
                                .filter = filter,
                                .keys = kKeys,
                                .max_ahead = 10 * kWindow});
  Stream stream(window);
  const auto lines_of_call = [&](double pace) {
    return counter.lines_of([&] { stream.call(pace); });
  };
  stream.run(kWindow + kWindow / 2);
  std::vector<std::size_t> usual;
  for (int i = 0; i < 41; ++i) {
    usual.push_back(lines_of_call(1));
    stream.run(kTick / 16);
  }
  std::ranges::sort(usual);
  const auto median = static_cast<double>(usual[usual.size() / 2]);
  check(filter, "at the planned rate", usual.back(), median);
  std::size_t worst = 0;
  for (const Nanoseconds gap :
       {kTick, 2 * kTick, 7 * kTick, kWindow, kWindow + kTick, 2 * kWindow}) {
    stream.run(kWindow / 2);
    stream.pass(gap);
    for (int i = 0; i < 3; ++i) worst = std::max(worst, lines_of_call(1));
  }
  check(filter, "after idle time", worst, median);
  stream.run(kWindow);
  worst = 0;
  for (int i = 0; i < 60; ++i) {
    worst = std::max(worst, lines_of_call(50));
    for (int more = 0; more < 300; ++more) stream.call(50);
  }
  check(filter, "in a burst", worst, median);
  worst = 0;
  for (int i = 0; i < 60; ++i) {
    worst = std::max(worst, lines_of_call(1));
    stream.run(kTick);
  }
  check(filter, "after a burst", worst, median);
}

}  // namespace

void guard_calls() {
  if (!LineCounter::works()) return;
  for (const char* filter : {"cohort", "cohort,slot=24", "cohort,slot=16"}) guard_calls_of(filter);
}

}  // namespace sluice::bench
