// Block layouts side by side, and the sweep behind the constants of kernels/prefetch.hpp.
#include <fmt/format.h>

#include <cmath>
#include <optional>
#include <vector>

#include "candidates.hpp"
#include "measure.hpp"
#include "options.hpp"
#include "probe.hpp"
#include "sluice/base/memory.hpp"
#include "sluice/base/quantity.hpp"
#include "sluice/base/random.hpp"
#include "sluice/kernels/prefetch.hpp"

namespace sluice::bench {
namespace {

constexpr std::size_t kBatch = kLap;

// The model of one block that holds Poisson(load) keys, for each layout: bits of a lane (or, for
// bits anywhere, of the block) are set with the chance of a throw a key.
double fpr_at(Layout layout, unsigned probes, double load) {
  double throws_per_key = 1, bits = 64;
  if (layout == Layout::lanes_16x32 || layout == Layout::half_8x32) bits = 32;
  if (layout == Layout::anywhere) {
    throws_per_key = probes;
    bits = 512;
  }
  double sum = 0;
  for (int held = 0; held < load + 14 * std::sqrt(load) + 40; ++held) {
    const double share = std::exp(held * std::log(load) - load - std::lgamma(held + 1.0));
    sum += share * std::pow(1 - std::pow(1 - 1 / bits, held * throws_per_key), probes);
  }
  return sum;
}

// Keys per block at which the error reaches `fpr`.
double load_for(Layout layout, unsigned probes, double fpr) {
  double low = 0, high = 512;
  for (int step = 0; step < 60; ++step) {
    const double middle = (low + high) / 2;
    (fpr_at(layout, probes, middle) < fpr ? low : high) = middle;
  }
  return high;
}

unsigned best_probes(Layout layout, double fpr) {
  if (layout == Layout::lanes_16x32) return 16;
  if (layout != Layout::anywhere) return 8;
  unsigned best = 1;
  for (unsigned probes = 2; probes <= 24; ++probes)
    if (load_for(layout, probes, fpr) > load_for(layout, best, fpr)) best = probes;
  return best;
}

// A candidate with its table and a stream of keys that are all different.
class Subject {
 public:
  Subject(Layout layout, double keys, double fpr)
      : layout_(layout),
        probes_(best_probes(layout, fpr)),
        blocks_(static_cast<std::uint64_t>(keys / load_for(layout, probes_, fpr)) + 1),
        memory_(blocks_ * block_bits(layout) / 8) {}
  Subject(Layout layout, unsigned probes, std::uint64_t bytes)
      : layout_(layout), probes_(probes), blocks_(bytes * 8 / block_bits(layout)), memory_(bytes) {}

  double observe_ns(std::uint64_t keys, std::size_t distance = kernels::kPrefetchDistance,
                    std::size_t from_bytes = kernels::kPrefetchFromBytes) {
    return run(keys, [&](const Candidate& table) {
      return candidate_observe(table, digests_.data(), kBatch, verdicts_.data(), distance,
                               from_bytes);
    });
  }
  // The share of keys never inserted that are found.
  double measured_fpr(std::uint64_t keys) {
    std::uint64_t absent = 0;
    run(keys, [&](const Candidate& table) {
      return absent +=
             candidate_may_contain(table, digests_.data(), kBatch, verdicts_.data(),
                                   kernels::kPrefetchDistance, kernels::kPrefetchFromBytes);
    });
    const double asked = static_cast<double>((keys + kBatch - 1) / kBatch * kBatch);
    return 1 - static_cast<double>(absent) / asked;
  }
  std::uint64_t bytes() const { return memory_.size(); }
  unsigned probes() const { return probes_; }
  void warm() {
    for (std::size_t i = 0; i < memory_.size(); i += 4096) memory_.data()[i] = std::byte{1};
    for (std::size_t i = 0; i < memory_.size(); i += 4096) memory_.data()[i] = std::byte{0};
  }
  void clear() { memory_.clear(); }

 private:
  template <class Verb>
  double run(std::uint64_t keys, Verb verb) {
    const Candidate table{layout_, probes_, memory_.as<std::uint64_t>(), blocks_};
    LapClock clock;
    for (std::uint64_t done = 0; done < keys; done += kBatch) {
      for (Digest& digest : digests_) digest = {random_.next(), random_.next()};
      clock.start();
      verb(table);
      clock.stop();
    }
    return clock.median_ns(kBatch);
  }

  Layout layout_;
  unsigned probes_;
  std::uint64_t blocks_;
  Memory memory_;
  SplitMix64 random_{1};
  std::vector<Digest> digests_ = std::vector<Digest>(kBatch);
  std::vector<Verdict> verdicts_ = std::vector<Verdict>(kBatch);
};

struct Named {
  const char* name;
  Layout layout;
};
constexpr Named kLayouts[] = {{"line, 8 lanes of 64, a bit each", Layout::lanes_8x64},
                              {"line, 16 lanes of 32, a bit each", Layout::lanes_16x32},
                              {"half line, 8 lanes of 32, a bit each", Layout::half_8x32},
                              {"line, bits anywhere", Layout::anywhere}};

// Measured over predicted error at capacity, from about 4,000 false positives.
double error_ratio(Layout layout, double fpr, const Options& options) {
  constexpr std::uint64_t kKeys = 200 * kBatch;
  const double wanted = options.quick ? 1000 : 4000;
  Subject subject(layout, kKeys, fpr);
  subject.observe_ns(kKeys);
  return subject.measured_fpr(static_cast<std::uint64_t>(wanted / fpr)) / fpr;
}

}  // namespace

void run_layouts(const Options& options, Report& report) {
  report.table("Block layouts: memory", {"layout", "bits per key at 1e-2", "1e-4", "1e-6", "probes",
                                         "error / model at 1e-2", "1e-4"});
  for (const Named& each : kLayouts) {
    std::vector<std::string> cells = {each.name};
    std::string probes;
    for (const double fpr : {1e-2, 1e-4, 1e-6}) {
      const unsigned best = best_probes(each.layout, fpr);
      cells.push_back(fmt::format("{:.1f}", static_cast<double>(block_bits(each.layout)) /
                                                load_for(each.layout, best, fpr)));
      probes += fmt::format("{}{}", probes.empty() ? "" : ", ", best);
    }
    cells.push_back(probes);
    for (const double fpr : {1e-2, 1e-4})
      cells.push_back(fmt::format("{:.3f}", error_ratio(each.layout, fpr, options)));
    report.row(cells);
  }
  report.table("Block layouts: observe, in units of the probe's random line over as many bytes",
               {"layout", "in cache, 1e-2", "1e-4", "1e-6", "100 M keys, 1e-2", "1e-4", "1e-6"});
  for (const Named& each : kLayouts) {
    std::vector<std::string> cells = {each.name};
    for (const double keys : {1e5, 1e8}) {
      for (const double fpr : {1e-2, 1e-4, 1e-6}) {
        Subject subject(each.layout, keys, fpr);
        Probe probe(subject.bytes());
        subject.warm();
        const std::uint64_t lines = options.quick ? 1'000'000 : 5'000'000;
        const std::vector<Samples> samples = take_turns(
            options.rounds(),
            {[&] { return subject.observe_ns(lines); }, [&] { return probe.update_ns(lines); }});
        cells.push_back(fmt::format("{:.2f}", ratio(samples[0], samples[1])));
      }
    }
    report.row(cells);
  }
  report.flush();
}

void run_prefetch(const Options& options, Report& report) {
  constexpr std::size_t kDistances[] = {4, 8, 12, 16, 24, 32, 40, 64};
  const std::uint64_t keys = options.quick ? 1'000'000 : 5'000'000;
  std::vector<std::string> columns = {"table", "none"};
  for (const std::size_t distance : kDistances) columns.push_back(fmt::format("{}", distance));
  report.table("Prefetch: observe (8 lanes of 64) by keys ahead, relative to the distance in use",
               columns);
  for (std::uint64_t bytes = 128 << 10; bytes <= 512 << 20; bytes *= 2) {
    if (bytes > (8 << 20) && bytes < (128 << 20)) continue;
    Subject subject(Layout::lanes_8x64, 8, bytes);
    subject.warm();
    std::vector<std::function<double()>> subjects;
    subjects.push_back([&] { return subject.observe_ns(keys, 0, ~std::size_t{0}); });
    for (const std::size_t distance : kDistances)
      subjects.push_back([&, distance] { return subject.observe_ns(keys, distance, 0); });
    subjects.push_back([&] { return subject.observe_ns(keys, kernels::kPrefetchDistance, 0); });
    const std::vector<Samples> samples = take_turns(options.rounds(), subjects);
    std::vector<std::string> cells = {format_size(bytes)};
    for (std::size_t i = 0; i + 1 < samples.size(); ++i)
      cells.push_back(fmt::format("{:.2f}", ratio(samples[i], samples.back())));
    report.row(cells);
  }
  report.flush();
}

}  // namespace sluice::bench
