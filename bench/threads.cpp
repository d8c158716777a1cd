// Filters sliced for two threads against the same filter on one, out of cache.
#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <thread>
#include <vector>

#include "measure.hpp"
#include "options.hpp"
#include "sluice/base/quantity.hpp"
#include "sluice/base/random.hpp"
#include "sluice/filters/catalogue.hpp"

namespace sluice::bench {
namespace {

struct Row {
  const char* name;
  const char* filter;
  const char* settings;
  std::uint64_t keys;
  double fpr;
};
constexpr Row kRows[] = {
    {"blocked Bloom, 100 M keys", "bloom", "layout=blocked,probes=8", 100'000'000, 1e-2},
    {"cohort, window of 50 M", "cohort", "slot=24", 50'000'000, 1e-4},
};
constexpr std::size_t kBatches[] = {16384, 4096, 1024};
// The smallest is told and held to nothing: the threads meet too often for it.
constexpr std::size_t kLeastBatch = 4096;
constexpr double kBar = 1.7;

// A filter and its stream of keys that are all different; a window filter with its pacer.
class Subject {
 public:
  Subject(const std::string& filter, const Row& row, std::uint64_t keys)
      : filter_(make_filter(filter, {.keys = keys, .fpr = row.fpr})) {
    resize(kBatches[0]);
    // A window is filled, and its first generations have left. Else the table is touched.
    std::uint64_t first = 2'000'000;
    if (filter_.ages()) {
      generation_ = left_ = keys / filter_.generations();
      first = keys + 2 * generation_;
    }
    for (std::uint64_t done = 0; done < first; done += digests_.size()) {
      draw();
      judge();
    }
  }

  void resize(std::size_t batch) {
    digests_.resize(batch);
    verdicts_.resize(batch);
  }
  double judge_ns(std::uint64_t keys) {
    LapClock clock;
    for (std::uint64_t done = 0; done < keys; done += digests_.size()) {
      draw();
      clock.start();
      judge();
      clock.stop();
    }
    return clock.median_ns(digests_.size());
  }
  std::uint64_t bytes() const { return filter_.stats().bytes; }

 private:
  void draw() {
    for (Digest& digest : digests_) digest = {random_.next(), random_.next()};
  }
  void judge() {
    if (!filter_.ages()) return filter_.observe(digests_, verdicts_);
    const std::span<const Digest> digests(digests_);
    const std::span<Verdict> verdicts(verdicts_);
    for (std::size_t done = 0; done < digests.size();) {
      done +=
          filter_.admit(digests.subspan(done), verdicts.subspan(done), left_, Anchor::delivered);
      if (left_ > 0) continue;
      filter_.rotate();
      left_ = generation_;
    }
  }

  AnyFilter filter_;
  std::uint64_t generation_ = 0, left_ = 0;  // keys of a generation, and until it ends
  SplitMix64 random_{1};
  std::vector<Digest> digests_;
  std::vector<Verdict> verdicts_;
};

}  // namespace

void run_threads(const Options& options, Report& report) {
  report.table("Threads: batched observe of new keys, out of cache, two slices against one filter",
               {"filter", "table", "batch", "times as fast", "one thread ns", "two ns"});
  for (const Row& row : kRows) {
    const std::uint64_t keys = options.quick ? row.keys / 5 : row.keys;
    const std::uint64_t sample = options.quick ? 1'000'000 : 4'000'000;
    Subject one(fmt::format("{},{}", row.filter, row.settings), row, keys);
    Subject two(fmt::format("sliced,slices=2,of={},{}", row.filter, row.settings), row, keys);
    for (const std::size_t batch : kBatches) {
      one.resize(batch);
      two.resize(batch);
      const std::vector<Samples> samples =
          take_turns(options.rounds(),
                     {[&] { return one.judge_ns(sample); }, [&] { return two.judge_ns(sample); }});
      const double times = ratio(samples[0], samples[1]);
      report.row({row.name, format_size(one.bytes()), fmt::format("{}", batch),
                  fmt::format("{:.2f}", times), fmt::format("{:.2f}", median(samples[0])),
                  fmt::format("{:.2f}", median(samples[1]))});
      if (batch >= kLeastBatch && std::thread::hardware_concurrency() >= 2)
        report.at_least(fmt::format("{}, batches of {}: two threads / one", row.name, batch), times,
                        kBar);
    }
  }
  report.flush();
}

}  // namespace sluice::bench
