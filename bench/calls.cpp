// The lines that one call touches, for any history: windows of time with Poisson arrivals, after
// idle ticks and windows, with few keys per tick, and through bursts; windows of keys.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "line_counter.hpp"
#include "options.hpp"
#include "sluice/base/error.hpp"
#include "sluice/base/random.hpp"
#include "sluice/window/window.hpp"

namespace sluice::bench {
namespace {

constexpr std::size_t kCall = 100;    // keys
constexpr double kMostOfMedian = 20;  // lines of a call against those of the median one
// Of a window. Filters that touch more lines per key take as many times longer to count.
constexpr std::uint64_t kKeys = 1'000'000, kFewerKeys = 100'000;
constexpr Nanoseconds kWindow = 24'000'000'000;
constexpr Nanoseconds kTick = kWindow / 24;

// New keys, a call at a time, at the planned rate or another.
class Stream {
 public:
  Stream(Window& window, std::uint64_t keys)
      : window_(window), gap_(double(kWindow) / static_cast<double>(keys)) {}

  // One call; `pace` times as many keys in a second as planned, on average.
  void call(double pace = 1) {
    bool late[kCall];
    for (std::size_t i = 0; i < kCall; ++i) {
      digests_[i] = {random_.next(), random_.next()};
      const double gap = -std::log(1 - random_.next_unit()) / pace;
      times_[i] = now_ += static_cast<Nanoseconds>(gap_ * gap);
    }
    if (window_.judge(digests_, times_, verdicts_, late) < kCall)
      throw NoMemory("there is no memory for the keys of a call");
  }
  void pass(Nanoseconds time) { now_ += time; }
  // Makes calls until that much time has passed.
  void run(Nanoseconds time) {
    for (const Nanoseconds end = now_ + time; now_ < end;) call();
  }

 private:
  Window& window_;
  double gap_;  // from one key to the next, on average
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

// The lines of calls in a quiet stream: the median and the most.
struct Usual {
  double median;
  std::size_t most;
};

Usual usual_calls(Stream& stream, const std::function<std::size_t(double)>& lines_of_call) {
  std::vector<std::size_t> lines;
  for (int i = 0; i < 41; ++i) {
    lines.push_back(lines_of_call(1));
    stream.run(kTick / 16);
  }
  std::ranges::sort(lines);
  return {static_cast<double>(lines[lines.size() / 2]), lines.back()};
}

void guard_time_window(const std::string& filter, double fpr = 1e-6, std::uint64_t keys = kKeys,
                       double planned = 1) {
  LineCounter counter;
  WatchedMemory memory;
  Window window =
      Window::make({.spec = {WindowSpec::Kind::time, kWindow},
                    .filter = filter,
                    .fpr = fpr,
                    .keys = static_cast<std::uint64_t>(planned * static_cast<double>(keys)),
                    .max_ahead = 200 * kWindow},
                   memory);
  Stream stream(window, keys);
  const auto lines_of_call = [&](double pace) {
    return counter.lines_of([&] { stream.call(pace); });
  };
  stream.run(kWindow + kWindow / 2);
  const auto [median, most] = usual_calls(stream, lines_of_call);
  check(filter, "at the planned rate", most, median);
  const auto worst_of = [&](int calls, double pace, const std::function<void()>& between) {
    std::size_t worst = 0;
    for (int i = 0; i < calls; ++i) {
      worst = std::max(worst, lines_of_call(pace));
      between();
    }
    return worst;
  };
  std::size_t worst = 0;
  for (const Nanoseconds gap :
       {kTick, 2 * kTick, 7 * kTick, kWindow, kWindow + kTick, 2 * kWindow, 100 * kWindow}) {
    stream.run(kWindow / 2);
    stream.pass(gap);
    worst = std::max(worst, worst_of(3, 1, [] {}));
  }
  check(filter, "after idle time", worst, median);
  // A hundred keys in two ticks, and then in a hundred: numbers come round many times.
  const double few = 50.0 * 24 / static_cast<double>(keys), fewer = few / 50;
  stream.run(kWindow);
  check(filter, "with few keys per tick", worst_of(16, few, [] {}), median);
  stream.run(kWindow);
  check(filter, "with a key per tick", worst_of(8, fewer, [] {}), median);
  check(filter, "after few keys", worst_of(16, 1, [&] { stream.run(kTick / 16); }), median);
  stream.run(kWindow);
  worst = worst_of(30, 50, [&] {
    for (std::uint64_t more = 0; more < 600 * keys / kKeys; ++more) stream.call(50);
  });
  check(filter, "in a burst", worst, median);
  check(filter, "after a burst", worst_of(30, 1, [&] { stream.run(kTick); }), median);
}

// A few calls of filters with many lines per key: counting them takes long. So they get a large error,
// for which they take few. The table must have many times the lines that a call may touch, or nothing
// would stand out.
void guard_idle_window(const std::string& filter, std::uint64_t keys) {
  LineCounter counter;
  Window window = Window::make({.spec = {WindowSpec::Kind::time, kWindow},
                                .filter = filter,
                                .fpr = 0.1,
                                .keys = keys,
                                .max_ahead = 10 * kWindow});
  Stream stream(window, keys);
  const auto lines_of_call = [&](double pace) {
    return counter.lines_of([&] { stream.call(pace); });
  };
  stream.run(kWindow + kWindow / 2);
  std::vector<std::size_t> usual;
  for (int i = 0; i < 3; ++i) {
    usual.push_back(lines_of_call(1));
    stream.run(kTick / 4);
  }
  std::ranges::sort(usual);
  const auto median = static_cast<double>(usual[usual.size() / 2]);
  std::size_t worst = 0;
  for (const Nanoseconds gap : {23 * kTick, 2 * kWindow}) {
    stream.run(kWindow);
    stream.pass(gap);
    worst = std::max(worst, lines_of_call(1));
  }
  check(filter, "after idle time", worst, median);
}

// Counts one call in this many.
void guard_count_window(const std::string& filter, std::uint64_t keys, std::uint64_t every) {
  LineCounter counter;
  Window window = Window::make({.spec = {WindowSpec::Kind::count, keys}, .filter = filter});
  Stream stream(window, keys);
  std::vector<std::size_t> lines;
  for (std::uint64_t call = 0; call < 4 * keys / kCall; ++call)
    if (call % every == 0)
      lines.push_back(counter.lines_of([&] { stream.call(); }));
    else
      stream.call();
  std::ranges::sort(lines);
  check(filter, "by count", lines.back(), static_cast<double>(lines[lines.size() / 2]));
}

}  // namespace

bool full_counts() noexcept {
  const char* const counts = std::getenv("SLUICE_COUNTS");
  return counts != nullptr && std::string_view(counts) == "full";
}

void guard_calls() {
  if (!LineCounter::works()) return;
  guard_time_window("cohort");
  guard_count_window("cohort", kKeys / 5, 40);
  guard_idle_window("exact-window", kFewerKeys);
  guard_count_window("exact-window", kFewerKeys, 500);
  if (!full_counts()) return;
  guard_time_window("cohort,slot=16");
  guard_count_window("cohort,slot=16", kKeys / 5, 40);
  // They are full by the keys of a generation, and need room for chance. A key takes one line of a table
  // of 42,000, then 7 of 32,000, 4 of 16,000 and 7 of 26,000.
  constexpr double kRoom = 1.1;
  guard_time_window("apbbf,layout=line", 2e-2, kKeys, kRoom);
  guard_time_window("apbbf,layout=column,k=2,l=5", 2e-4, kKeys / 2, kRoom);
  guard_time_window("apbbf,layout=segment,k=2,l=5", 2e-4, kKeys / 4, kRoom);
  guard_time_window("apbf,k=4,l=3", 0.2, kKeys, kRoom);
  guard_idle_window("timing,generations=24", 3 * kFewerKeys);
  guard_count_window("timing,generations=24", kFewerKeys, 500);
}

}  // namespace sluice::bench
