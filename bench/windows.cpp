// Window filters at steady state: as many keys leave as come. Out of cache against the probe's
// scattered lines, in cache against a plain blocked Bloom filter; memory, measured error, and how
// evenly the work of rotating and sweeping is spread.
#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "measure.hpp"
#include "options.hpp"
#include "probe.hpp"
#include "sluice/base/quantity.hpp"
#include "sluice/base/random.hpp"
#include "sluice/filters/catalogue.hpp"
#include "sluice/filters/cohort.hpp"
#include "sluice/kernels/simd.hpp"

namespace sluice::bench {
namespace {

constexpr double kNoBar = 0;

// A row of the speed tables, and what it is held to.
struct Speed {
  const char* name;
  const char* settings;
  double fpr;
  unsigned lines;      // cache lines a key, by design: the probe touches as many
  double touches_bar;  // times the probe, out of cache
  double bloom_bar;    // times the blocked Bloom filter, in cache
};
constexpr Speed kSpeeds[] = {
    {"cohort, 24-bit slots", "cohort,slot=24", 1e-4, 2, 1.4, 5},
    {"cohort, 16-bit slots", "cohort,slot=16", 2e-2, 2, kNoBar, kNoBar},
    {"cohort, 32-bit slots", "cohort,slot=32", 1e-6, 2, kNoBar, kNoBar},
    {"apbbf, line", "apbbf,layout=line", 2e-2, 1, 1.5, kNoBar},
    {"apbbf, column", "apbbf,layout=column,k=2,l=5", 2e-4, 1, kNoBar, kNoBar},
    {"apbbf, segment", "apbbf,layout=segment,k=2,l=5", 2e-4, 1, kNoBar, kNoBar},
};

// A row of the memory table: a window of a million keys must hold these.
struct Space {
  const char* name;
  const char* settings;
  double fpr, most_bits, most_slack;
};
constexpr Space kSpaces[] = {
    {"cohort, 16-bit slots", "cohort,slot=16", 2e-2, 20, 0.09},
    {"cohort, 24-bit slots", "cohort,slot=24", 1e-4, 29, 0.05},
    {"cohort, 32-bit slots", "cohort,slot=32", 1e-6, 37, 0.05},
};

constexpr double kDuplicates[] = {0, 0.3, 0.9};
// Numbers from here on are only asked for. digest_of doubles them: 2^63 would start over at 0.
constexpr std::uint64_t kNeverSeen = std::uint64_t{1} << 62;

// Key number n as a digest: a stream needs no memory to repeat itself.
Digest digest_of(std::uint64_t number) {
  SplitMix64 random(number * 2);
  return {random.next(), random.next()};
}

// A window filter with its pacer and its stream. Duplicates repeat keys of the last nine tenths of
// the window.
class Subject {
 public:
  Subject(const char* settings, std::uint64_t window, double fpr)
      : filter_(make_filter(settings, {.keys = window, .fpr = fpr})),
        window_(window),
        generation_((window + filter_.generations() - 1) / std::max(1u, filter_.generations())),
        left_(generation_) {
    resize(kLap);
    for (std::uint64_t done = 0; done < window + 2 * generation_; done += kLap) {
      draw(0);
      judge();
    }
  }

  void resize(std::size_t batch) {
    digests_.resize(batch);
    verdicts_.resize(batch);
  }
  void draw(double duplicates) {
    for (Digest& digest : digests_) {
      const bool again = duplicates > 0 && random_.next_unit() < duplicates;
      digest = digest_of(again ? next_ - 1 - random_.next() % (window_ / 10 * 9) : next_++);
    }
  }
  void judge() {
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
  // Nanoseconds a key.
  double judge_ns(std::uint64_t keys, double duplicates) {
    LapClock clock;
    for (std::uint64_t done = 0; done < keys; done += digests_.size()) {
      draw(duplicates);
      clock.start();
      judge();
      clock.stop();
    }
    return clock.median_ns(digests_.size());
  }
  double measured_fpr(std::uint64_t keys) {
    std::uint64_t wrong = 0;
    for (std::uint64_t done = 0; done < keys; done += digests_.size()) {
      for (std::size_t i = 0; i < digests_.size(); ++i)
        digests_[i] = digest_of(kNeverSeen + done + i);
      filter_.may_contain(digests_, verdicts_);
      wrong += static_cast<std::uint64_t>(std::ranges::count(verdicts_, Verdict::duplicate));
    }
    return static_cast<double>(wrong) / static_cast<double>(keys);
  }

  const AnyFilter& filter() const { return filter_; }
  std::span<const Digest> digests() const { return digests_; }
  std::uint64_t written() const { return next_; }
  double bits_a_key() const {
    return static_cast<double>(filter_.stats().bytes) * 8 / static_cast<double>(window_);
  }

 private:
  AnyFilter filter_;
  std::uint64_t window_;
  std::uint64_t generation_;  // keys
  std::uint64_t left_;        // until it ends
  std::uint64_t next_ = 1;    // the number of the next new key
  SplitMix64 random_{1};
  std::vector<Digest> digests_;
  std::vector<Verdict> verdicts_;
};

void measure_space(const Options& options, Report& report) {
  const std::uint64_t window = 1'000'000;
  report.table("Windows: memory and error of a window of 1 M keys",
               {"filter", "bits a key", "slack", "measured error", "predicted",
                "keys moved an insertion", "stash"});
  for (const Space& each : kSpaces) {
    Subject subject(each.settings, window, each.fpr);
    // Ten times the window, in which everything has been replaced several times.
    subject.judge_ns((options.quick ? 2 : 10) * window, 0);
    const double fpr = subject.measured_fpr(options.quick ? 10'000'000 : 100'000'000);
    const FilterStats stats = subject.filter().stats();
    const auto* cohort = subject.filter().as<Cohort>();
    report.row({each.name, fmt::format("{:.2f}", subject.bits_a_key()),
                fmt::format("{:.1f} %", subject.filter().slack() * 100), fmt::format("{:.2e}", fpr),
                fmt::format("{:.2e}", stats.predicted_fpr),
                cohort == nullptr
                    ? ""
                    : fmt::format("{:.5f}", static_cast<double>(cohort->moves()) /
                                                static_cast<double>(subject.written())),
                fmt::format("{}", stats.stash)});
    report.at_most(fmt::format("{}: bits a key", each.name), subject.bits_a_key(), each.most_bits);
    report.at_most(fmt::format("{}: measured error", each.name), fpr, each.fpr);
    report.at_most(fmt::format("{}: slack", each.name), subject.filter().slack(), each.most_slack);
  }
}

void measure_out_of_cache(const Options& options, Report& report) {
  const std::uint64_t window = options.quick ? 5'000'000 : 50'000'000;
  const std::uint64_t keys = options.quick ? 1'000'000 : 4'000'000;
  report.table(fmt::format("Windows: batched observe, window of {} keys, in units of as many "
                           "scattered line updates as the filter touches",
                           format_count(window)),
               {"filter", "table", "bits a key", "lines a key", "0 % duplicates", "30 %", "90 %",
                "observe ns", "updates ns"});
  for (const Speed& each : kSpeeds) {
    Subject subject(each.settings, window, each.fpr);
    Probe probe(subject.filter().stats().bytes);
    std::vector<std::function<double()>> turns;
    for (const double duplicates : kDuplicates) {
      turns.push_back([&, duplicates] { return subject.judge_ns(keys, duplicates); });
      turns.push_back([&] { return probe.updates_ns(keys, each.lines); });
    }
    const std::vector<Samples> samples = take_turns(options.rounds(), turns);
    std::vector<std::string> cells = {each.name, format_size(subject.filter().stats().bytes),
                                      fmt::format("{:.1f}", subject.bits_a_key()),
                                      fmt::format("{}", each.lines)};
    for (std::size_t i = 0; i < std::size(kDuplicates); ++i) {
      const double times = ratio(samples[2 * i], samples[2 * i + 1]);
      cells.push_back(fmt::format("{:.2f}", times));
      if (each.touches_bar != kNoBar)
        report.at_most(
            fmt::format("{}, {} keys, {:.0f} % duplicates: observe / {} line updates", each.name,
                        format_count(window), kDuplicates[i] * 100, each.lines),
            times, each.touches_bar);
    }
    cells.push_back(fmt::format("{:.1f}", median(samples[0])));
    cells.push_back(fmt::format("{:.1f}", median(samples[1])));
    report.row(cells);
  }
}

void measure_in_cache(const Options& options, Report& report) {
  const std::uint64_t window = 100'000;
  const std::uint64_t keys = options.quick ? 1'000'000 : 4'000'000;
  report.table(
      "Windows: batched observe, window of 100 k keys, in units of a blocked Bloom filter "
      "of 8 probes at 1 %",
      {"filter", "level", "0 % duplicates", "30 %", "90 %", "observe ns", "Bloom ns"});
  const std::string chosen(simd_level());
  for (const Speed& each : kSpeeds) {
    for (const std::string_view level : simd_levels()) {
      force_simd_level(level);
      Subject subject(each.settings, window, each.fpr);
      AnyFilter bloom = make_filter("bloom,layout=blocked,probes=8", {.keys = window, .fpr = 1e-2});
      std::vector<Verdict> verdicts(kLap);
      std::uint64_t held = 0;
      // The same batches as the window is given; emptied before it holds more than it is for.
      const auto bloom_ns = [&](double duplicates) {
        LapClock clock;
        for (std::uint64_t done = 0; done < keys; done += kLap) {
          subject.draw(duplicates);
          if ((held += kLap) > window) {
            bloom.clear();
            held = kLap;
          }
          clock.start();
          bloom.observe(subject.digests(), verdicts);
          clock.stop();
        }
        return clock.median_ns(kLap);
      };
      std::vector<std::function<double()>> turns;
      for (const double duplicates : kDuplicates) {
        turns.push_back([&, duplicates] { return subject.judge_ns(keys, duplicates); });
        turns.push_back([&, duplicates] { return bloom_ns(duplicates); });
      }
      const std::vector<Samples> samples = take_turns(options.rounds(), turns);
      std::vector<std::string> cells = {each.name, std::string(level)};
      for (std::size_t i = 0; i < std::size(kDuplicates); ++i) {
        const double times = ratio(samples[2 * i], samples[2 * i + 1]);
        cells.push_back(fmt::format("{:.2f}", times));
        if (each.bloom_bar != kNoBar && level != "portable")
          report.at_most(fmt::format("{}, in cache, {}, {:.0f} % duplicates: observe / blocked "
                                     "Bloom",
                                     each.name, level, kDuplicates[i] * 100),
                         times, each.bloom_bar);
      }
      cells.push_back(fmt::format("{:.2f}", median(samples[0])));
      cells.push_back(fmt::format("{:.2f}", median(samples[1])));
      report.row(cells);
    }
  }
  force_simd_level(chosen);
}

// The same stream five times: what the machine does to a batch, it does not do five times over, so
// the fastest of the five is what the filter does to it.
void measure_evenness(const Options& options, Report& report) {
  constexpr std::size_t kBatch = 1024;
  constexpr int kRuns = 5;
  const std::uint64_t window = 1'000'000;
  const std::size_t batches = options.quick ? 1000 : 3000;
  report.table("Windows: batches of 1024 keys, window of 1 M, fastest of five runs of each batch",
               {"filter", "worst / median", "99th of 100 / median", "median ns a key"});
  for (const Speed& each : kSpeeds) {
    Samples fastest(batches, 1e300);
    for (int run = 0; run < kRuns; ++run) {
      Subject subject(each.settings, window, each.fpr);
      subject.resize(kBatch);
      for (double& best : fastest) best = std::min(best, subject.judge_ns(kBatch, 0.3));
    }
    std::ranges::sort(fastest);
    const double middle = fastest[batches / 2];
    report.row({each.name, fmt::format("{:.2f}", fastest.back() / middle),
                fmt::format("{:.2f}", fastest[batches / 100 * 99] / middle),
                fmt::format("{:.2f}", middle)});
    report.at_most(fmt::format("{}: worst batch / median batch", each.name),
                   fastest.back() / middle, 20);
  }
}

}  // namespace

void run_windows(const Options& options, Report& report) {
  measure_space(options, report);
  measure_out_of_cache(options, report);
  measure_in_cache(options, report);
  measure_evenness(options, report);
  report.flush();
}

}  // namespace sluice::bench
