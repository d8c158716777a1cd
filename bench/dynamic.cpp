// Dynamic filters: filter by filter against a matrix, and what a tightening series costs.
#include <fmt/format.h>

#include <vector>

#include "measure.hpp"
#include "options.hpp"
#include "sluice/base/quantity.hpp"
#include "sluice/base/random.hpp"
#include "sluice/filters/catalogue.hpp"

namespace sluice::bench {
namespace {

constexpr std::size_t kBatch = kLap;
constexpr double kFpr = 1e-3;

// A filter, and some of the keys that it was filled with, evenly from all of its life.
class Subject {
 public:
  Subject(const std::string& settings, double fpr)
      : filter_(make_filter(settings, Wish{.fpr = fpr})) {}

  void fill(std::uint64_t keys, std::uint64_t sample) {
    const std::uint64_t every = std::max<std::uint64_t>(keys / sample, 1);
    for (std::uint64_t done = 0; done < keys; done += kBatch) {
      draw();
      for (std::size_t i = 0; i < kBatch; ++i)
        if ((done + i) % every == 0) known_.push_back(digests_[i]);
      filter_.insert(digests_);
    }
  }
  double absent_ns(std::uint64_t keys) {
    return timed(
        keys, [&] { draw(); }, [&] { filter_.may_contain(digests_, verdicts_); });
  }
  double present_ns(std::uint64_t keys) {
    const auto recall = [&] {
      for (Digest& digest : digests_) digest = known_[random_.next() % known_.size()];
    };
    return timed(keys, recall, [&] { filter_.may_contain(digests_, verdicts_); });
  }
  double observe_ns(std::uint64_t keys) {
    return timed(
        keys, [&] { draw(); }, [&] { filter_.observe(digests_, verdicts_); });
  }
  FilterStats stats() const { return filter_.stats(); }

 private:
  void draw() {
    for (Digest& digest : digests_) digest = {random_.next(), random_.next()};
  }
  template <class Prepare, class Verb>
  double timed(std::uint64_t keys, Prepare prepare, Verb verb) {
    LapClock clock;
    for (std::uint64_t done = 0; done < keys; done += kBatch) {
      prepare();
      clock.start();
      verb();
      clock.stop();
    }
    return clock.median_ns(kBatch);
  }

  AnyFilter filter_;
  SplitMix64 random_{1};
  std::vector<Digest> digests_ = std::vector<Digest>(kBatch);
  std::vector<Verdict> verdicts_ = std::vector<Verdict>(kBatch);
  std::vector<Digest> known_;
};

std::vector<std::string> cells(const char* name, std::uint64_t filters,
                               const std::vector<Samples>& samples, std::size_t plain,
                               std::size_t matrix) {
  return {fmt::format("{}", filters), name, fmt::format("{:.0f}", median(samples[plain])),
          fmt::format("{:.0f}", median(samples[matrix])),
          fmt::format("{:.2f}", ratio(samples[plain], samples[matrix]))};
}

void run_matrix(const Options& options, Report& report) {
  report.table("Dynamic: filter by filter against a matrix, ns per key",
               {"filters", "verb", "plain", "matrix", "plain / matrix"});
  // The same number of keys for any number of filters: two tables of 170 MiB each (--short: 34),
  // which take turns.
  const std::uint64_t all = options.quick ? 20'000'000 : 100'000'000;
  for (const std::uint64_t filters : {1, 2, 8, 32, 64}) {
    const std::uint64_t each = all / filters;
    // Written without asking, or filling the plain one would take most of the time.
    const std::string settings = fmt::format("dynamic,keys={},ask=auto,layout=", each);
    Subject plain(settings + "plain", kFpr), matrix(settings + "matrix", kFpr);
    const std::uint64_t keys = all - each / 2;
    plain.fill(keys, 1'000'000);
    matrix.fill(keys, 1'000'000);
    const std::uint64_t asked = 50 * kBatch;
    const std::uint64_t written = std::min<std::uint64_t>(asked, each / 4 / 7 / kBatch * kBatch);
    const std::vector<Samples> samples = take_turns(
        options.rounds(),
        {[&] { return plain.absent_ns(asked); }, [&] { return matrix.absent_ns(asked); },
         [&] { return plain.present_ns(asked); }, [&] { return matrix.present_ns(asked); },
         [&] { return plain.observe_ns(written); }, [&] { return matrix.observe_ns(written); }});
    report.row(cells("ask, absent", filters, samples, 0, 1));
    report.row(cells("ask, present", filters, samples, 2, 3));
    report.row(cells("observe, new", filters, samples, 4, 5));
  }
  report.flush();
}

void run_series(const Options& options, Report& report) {
  report.table("Dynamic: an unbounded series from 1 M keys on, --fpr 1e-6",
               {"filter", "keys", "filters' keys", "memory", "bits per key", "predicted error",
                "observe ns", "ask absent ns"});
  const std::uint64_t keys = options.quick ? 5'000'000 : 24'000'000;
  for (const char* settings :
       {"dynamic,keys=1M", "dynamic,keys=1M,layout=plain", "dynamic,keys=1M,tighten=0.5",
        "dynamic,keys=1M,tighten=0.8", "dynamic,keys=1M,tighten=0.8,growth=4",
        "dynamic,keys=1M,tighten=0.9,growth=1"}) {
    Subject subject(settings, 1e-6);
    const double observed = subject.observe_ns(keys);
    const double asked = subject.absent_ns(50 * kBatch);
    const FilterStats stats = subject.stats();
    report.row({settings, format_count(stats.keys), format_count(stats.capacity),
                format_size(stats.bytes),
                fmt::format("{:.1f}",
                            8 * static_cast<double>(stats.bytes) / static_cast<double>(stats.keys)),
                fmt::format("{:.1e}", stats.predicted_fpr), fmt::format("{:.0f}", observed),
                fmt::format("{:.0f}", asked)});
  }
  report.flush();
}

}  // namespace

void run_dynamic(const Options& options, Report& report) {
  run_matrix(options, report);
  run_series(options, report);
}

}  // namespace sluice::bench
