// A window of 24 hours through bursts of a hundred times the usual rate: memory, load and error
// over event time, as CSV and as a plot.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <vector>

#include "options.hpp"
#include "sluice/base/error.hpp"
#include "sluice/base/random.hpp"
#include "sluice/window/window.hpp"

namespace sluice::bench {
namespace {

constexpr double kHour = 3600;  // seconds, as all times here
constexpr double kDay = 24 * kHour;
constexpr double kEnd = 5 * kDay;
constexpr double kStep = 5;
constexpr double kQuietRate = 50;  // new keys per second
constexpr double kBurst = 100;     // times that
constexpr double kRamp = 120;      // from one rate to the other
constexpr double kTargetFpr = 2e-4;

struct Burst {
  double start, length;
};
constexpr Burst kBursts[] = {
    {30 * kHour, kHour / 6}, {36 * kHour, kHour / 6}, {48 * kHour, kHour}, {50 * kHour, kHour / 6}};
constexpr double kFirstBurst = kBursts[0].start;

double rate_at(double time) {
  double share = 0;  // of the way up to the burst's rate
  for (const Burst& burst : kBursts)
    share = std::max(share, std::min({(time - burst.start) / kRamp, 1.0,
                                      (burst.start + burst.length - time) / kRamp}));
  return kQuietRate * (1 + share * (kBurst - 1));
}

Digest digest_of(std::uint64_t number) {
  SplitMix64 random(number * 2);
  return {random.next(), random.next()};
}

struct Sample {
  double time, rate;
  FilterStats stats;
  std::size_t stages;
  double measured_fpr;
};

// Asks for keys that were never inserted, other ones each time.
class Asker {
 public:
  explicit Asker(std::uint64_t keys) : keys_(keys), digests_(kBatch), verdicts_(kBatch) {}
  double measured_fpr(const Window& window) {
    std::uint64_t wrong = 0;
    for (std::uint64_t done = 0; done < keys_; done += kBatch) {
      for (Digest& digest : digests_) digest = digest_of(next_++);
      window.may_contain(digests_, verdicts_);
      wrong += static_cast<std::uint64_t>(std::ranges::count(verdicts_, Verdict::duplicate));
    }
    return static_cast<double>(wrong) / static_cast<double>(keys_);
  }

 private:
  static constexpr std::size_t kBatch = 4096;
  std::uint64_t keys_;
  std::uint64_t next_ = std::uint64_t{1} << 62;
  std::vector<Digest> digests_;
  std::vector<Verdict> verdicts_;
};

std::vector<Sample> run_stream(bool quick) {
  Window window =
      Window::make({.spec = {WindowSpec::Kind::time, static_cast<std::uint64_t>(kDay * 1e9)},
                    .fpr = kTargetFpr,
                    .keys = static_cast<std::uint64_t>(kQuietRate * kDay)});
  Asker asker((quick ? 20 : 200) * 4096);
  std::vector<Sample> samples;
  std::vector<Digest> digests;
  std::vector<Nanoseconds> times;
  std::vector<Verdict> verdicts;
  std::uint64_t next = 1;
  double next_sample = 0;
  for (double time = 0; time <= kEnd; time += kStep) {
    const double rate = rate_at(time);
    digests.clear();
    times.clear();
    const auto count = static_cast<std::uint64_t>(rate * kStep);
    for (std::uint64_t i = 0; i < count; ++i) {
      digests.push_back(digest_of(next++));
      const double at = time + kStep * static_cast<double>(i) / static_cast<double>(count);
      times.push_back(static_cast<Nanoseconds>(at * 1e9));
    }
    verdicts.resize(count);
    const auto late = std::make_unique<bool[]>(count);
    if (window.judge(digests, times, verdicts, {late.get(), count}) < count)
      throw NoMemory("there is no memory for the burst");
    if (time < next_sample) continue;
    samples.push_back(
        {time, rate, window.stats(), window.growth().stage_count(), asker.measured_fpr(window)});
    // Every hour, and at every turn of the rate.
    next_sample = time + kHour;
    for (const Burst& burst : kBursts)
      for (const double turn : {burst.start, burst.start + kRamp, burst.start + burst.length / 2,
                                burst.start + burst.length - kRamp, burst.start + burst.length})
        if (time < turn) next_sample = std::min(next_sample, turn);
  }
  return samples;
}

double load_of(const Sample& sample) {
  return static_cast<double>(sample.stats.keys) / static_cast<double>(sample.stats.capacity);
}

void write_csv(const std::filesystem::path& file, const std::vector<Sample>& samples) {
  std::ofstream out(file);
  out << "hours,keys_per_second,live_keys,planned_keys,mebibytes,stages,load,predicted_error,"
         "measured_error\n";
  for (const Sample& sample : samples)
    out << fmt::format("{:.3f},{:.0f},{},{},{:.2f},{},{:.4f},{:.3e},{:.3e}\n", sample.time / kHour,
                       sample.rate, sample.stats.keys, sample.stats.capacity,
                       static_cast<double>(sample.stats.bytes) / (1 << 20), sample.stages,
                       load_of(sample), sample.stats.predicted_fpr, sample.measured_fpr);
  if (!out.flush()) throw IoError("cannot write " + file.string(), errno);
}

// Panels share the time axis; only the last one labels it. `{}`: the CSV, the plot, the target.
constexpr const char* kPlot = R"(
set terminal svg size 820,860 font 'sans-serif,13' background '#ffffff'
set output '{1}'
set datafile separator ','
set multiplot layout 4,1 margins 0.11,0.97,0.07,0.95 spacing 0.03
set xrange [0:120]
set xtics 12 nomirror format ''
set ytics nomirror
set border 3 lc rgb '#555555'
set tics textcolor rgb '#333333'
set grid xtics ytics lc rgb '#e4e4e4' lt 1
set key top right samplen 2 textcolor rgb '#333333'
set title "A window of 24 hours; the rate rises a hundredfold within two minutes" textcolor rgb '#222222'
set ylabel 'new keys per second' offset 0.5
set logscale y
set yrange [20:20000]
plot '{0}' using 1:2 skip 1 with filledcurves y1=20 lc rgb '#c9d7e8' notitle, \
     '' using 1:2 skip 1 with lines lw 1.5 lc rgb '#3b6ea5' notitle
unset title
unset logscale y
set ylabel 'memory (MiB)' offset 0.5
set yrange [0:*]
plot '{0}' using 1:5 skip 1 with filledcurves y1=0 lc rgb '#dcebd9' notitle, \
     '' using 1:5 skip 1 with lines lw 2 lc rgb '#3f8f4f' notitle
set ylabel 'load (live / planned keys)' offset 0.5
set yrange [0:1.1]
plot '{0}' using 1:7 skip 1 with filledcurves y1=0 lc rgb '#f3e6cf' notitle, \
     '' using 1:7 skip 1 with lines lw 2 lc rgb '#c17d11' notitle
set ylabel 'error (per million new keys)' offset 0.5
set xlabel 'event time (hours)'
set xtics 12 nomirror format '%g'
set yrange [0:{2}*1e6*1.45]
set key top right horizontal
plot {2}*1e6 with lines dt 2 lw 1.5 lc rgb '#b03030' title 'target', \
     '{0}' using 1:($9*1e6) skip 1 with points pt 7 ps 0.4 lc rgb '#8a6bb1' title 'measured', \
     '' using 1:($8*1e6) skip 1 with lines lw 2 lc rgb '#4b2e83' title 'predicted'
unset multiplot
)";

void draw(const std::filesystem::path& csv, const std::filesystem::path& svg) {
  std::FILE* gnuplot = popen("gnuplot", "w");
  if (gnuplot == nullptr) throw IoError("cannot start gnuplot", errno);
  fmt::print(gnuplot, kPlot, csv.string(), svg.string(), kTargetFpr);
  if (pclose(gnuplot) != 0) throw Error("gnuplot failed: is it installed (tools/packages bench)?");
}

}  // namespace

void run_burst(const Options& options, Report& report) {
  const std::vector<Sample> samples = run_stream(options.quick);
  double quiet_bytes = 0, most_bytes = 0, most_predicted = 0, most_measured = 0;
  for (const Sample& sample : samples) {
    const auto bytes = static_cast<double>(sample.stats.bytes);
    if (sample.time < kFirstBurst) quiet_bytes = std::max(quiet_bytes, bytes);
    most_bytes = std::max(most_bytes, bytes);
    most_predicted = std::max(most_predicted, sample.stats.predicted_fpr);
    most_measured = std::max(most_measured, sample.measured_fpr);
  }
  const auto last_bytes = static_cast<double>(samples.back().stats.bytes);
  report.table("Bursts of a hundred times the rate in a window of 24 hours",
               {"what", "highest", "before the first burst", "at the end"});
  report.row({"memory / before the first burst", fmt::format("{:.2f}", most_bytes / quiet_bytes),
              "1.00", fmt::format("{:.2f}", last_bytes / quiet_bytes)});
  report.row({"predicted error / target", fmt::format("{:.2f}", most_predicted / kTargetFpr)});
  report.row({"measured error / target", fmt::format("{:.2f}", most_measured / kTargetFpr)});
  report.at_most("bursts: predicted error / target", most_predicted / kTargetFpr, 1);
  report.at_most("bursts: measured error / target", most_measured / kTargetFpr, 1);
  report.at_most("bursts: memory at the end / before the first burst", last_bytes / quiet_bytes,
                 1.05);
  report.flush();
  if (options.out.empty()) return;
  const std::filesystem::path directory(options.out);
  std::filesystem::create_directories(directory);
  write_csv(directory / "burst.csv", samples);
  draw(directory / "burst.csv", directory / "burst.svg");
}

}  // namespace sluice::bench
