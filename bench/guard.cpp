// The cost of a key, in figures that do not depend on the load of the machine: cache lines,
// counted, and instructions, counted by callgrind. `lines` shows the first; tests compare both with
// the figures in guard.tsv.
#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <string>
#include <string_view>
#include <vector>

#include "callgrind.hpp"
#include "kept.hpp"
#include "line_counter.hpp"
#include "options.hpp"
#include "sluice/base/error.hpp"
#include "sluice/base/quantity.hpp"
#include "sluice/filters/catalogue_row.hpp"
#include "sluice/kernels/simd.hpp"

namespace sluice::bench {
namespace {

using Subject = GuardSample;

constexpr std::uint64_t kKeys = 1'000'000;
// Keys of a window, which is counted for a whole generation: few, because each line counted is a
// page fault.
constexpr std::uint64_t kWindow = 12'000;
constexpr double kDuplicates = 0.3;
constexpr std::size_t kBatch = 1024;
constexpr double kMostUneven = 20;
// In a batch this short hardly two keys share a line by chance. (Half of the lines that `dynamic` and
// `exact` take from empty do, in their first small table: no figure of them is kept.)
constexpr std::size_t kShortBatch = 64, kShortBatchOfWindow = 4;

// Calls act(subject, level) for each subject on each instruction set that matters to it.
template <class Act>
void each_subject(Act act) {
  const std::string chosen(simd_level());
  for (const FilterInfo& filter : catalogue()) {
    for (const Subject& subject : filter.row->guard) {
      for (const std::string_view level : simd_levels()) {
        if (!subject.every_level && level != "portable") continue;
        force_simd_level(level);
        act(subject, level);
      }
    }
  }
  force_simd_level(chosen);
}

Kept made(const Subject& subject, std::uint64_t keys, MemoryResource& memory = default_memory()) {
  Kept kept(std::string(subject.filter), subject.grows ? 4 * keys : keys, subject.fpr, true,
            memory);
  if (!subject.grows) kept.settle();
  return kept;
}

// Calls sample() for each of `batches` batches, with the batch drawn. Returns their number.
template <class Sample>
std::size_t each_batch(Kept& kept, std::size_t batches, Sample sample) {
  for (std::size_t i = 0; i < batches; ++i) {
    kept.draw(kDuplicates);
    sample();
  }
  return batches;
}

// The same, but a window takes as many batches more as make whole generations. Some sweep their table
// when a generation begins: a sample between two sweeps would see none.
template <class Sample>
std::size_t each_batch_of_generations(Kept& kept, std::size_t batches, Sample sample) {
  if (!kept.filter().ages()) return each_batch(kept, batches, sample);
  const auto end_of_generation = [&](std::size_t least, auto act) {
    std::size_t done = 0;
    for (std::uint64_t before = kept.ended(); done < least || kept.ended() == before; ++done) {
      before = kept.ended();
      each_batch(kept, 1, act);
    }
    return done;
  };
  end_of_generation(0, [&] { kept.apply(Kept::Verb::observe); });
  return end_of_generation(batches, sample);
}

struct CountedLines {
  CountedLines(const Subject& subject, std::uint64_t keys, std::size_t batch)
      : kept(made(subject, keys, memory)) {
    kept.resize(batch);
  }
  // For the batch that is drawn.
  void count() {
    lines.push_back(
        static_cast<double>(counter.lines_of([&] { kept.apply(Kept::Verb::observe); })));
  }

  LineCounter counter;
  WatchedMemory memory;
  Kept kept;
  Samples lines;
};

double lines_per_key(const Subject& subject) {
  const bool window = subject.uneven && !subject.grows;
  const std::size_t batch = window ? kShortBatchOfWindow : kShortBatch;
  CountedLines counted(subject, window ? kWindow : kKeys, batch);
  const std::size_t batches = each_batch_of_generations(counted.kept, 8, [&] { counted.count(); });
  return std::accumulate(counted.lines.begin(), counted.lines.end(), 0.0) /
         static_cast<double>(batches * batch);
}

// The worst batch compared with the median one, over enough batches that a generation of the window
// ends among them. Counting a fraction of the window in batches of the same fraction is as uneven,
// and faster.
double worst_batch(const Subject& subject, unsigned divisor) {
  CountedLines counted(subject, kKeys / divisor, kBatch / divisor);
  each_batch(counted.kept, 64, [&] { counted.count(); });
  return std::ranges::max(counted.lines) / median(counted.lines);
}

}  // namespace

void run_lines(const Options&, Report& report) {
  if (!LineCounter::works()) {
    fmt::print("Cache lines are only counted on x86-64\n");
    return;
  }
  report.table(
      fmt::format("Cache lines of a key, counted: batched observe, {} keys, {:.0f} % duplicates",
                  format_count(kKeys), kDuplicates * 100),
      {"filter", "level", "lines per key", "worst / median batch of 1024"});
  each_subject([&](const Subject& subject, std::string_view level) {
    const std::string a_key = fmt::format("{:.2f}", lines_per_key(subject));
    if (!subject.uneven || level != simd_levels().front()) {
      report.row({std::string(subject.name), std::string(level), a_key});
      return;
    }
    const double worst = worst_batch(subject, 1);
    report.row(
        {std::string(subject.name), std::string(level), a_key, fmt::format("{:.2f}", worst)});
    report.at_most(fmt::format("{}: worst batch / median batch, in lines", subject.name), worst,
                   kMostUneven);
  });
}

// One row per subject and instruction set: name, level, lines per key. Throws when a batch is much
// worse than the median.
void guard_lines() {
  if (!LineCounter::works()) return;
  each_subject([](const Subject& subject, std::string_view level) {
    fmt::print("{}\t{}\t{:.3f}\n", subject.name, level, lines_per_key(subject));
    if (!subject.uneven || level != simd_levels().front()) return;
    if (const double worst = worst_batch(subject, 16); worst > kMostUneven)
      throw Error(
          fmt::format("{}: a batch touches {:.1f} times the lines of the median one, {} "
                      "allowed",
                      subject.name, worst, kMostUneven));
  });
}

// Filters that grow, from empty through several doublings, in batches of 100: one row per filter
// with the lines of the median batch and of the worst. Throws when a batch is much worse than the
// median.
void guard_growth() {
  struct Growing {
    const char* settings;
    double fpr;
    std::uint64_t generation = 0;  // keys, of a window
    bool always = true;            // or at full counts only
  };
  constexpr Growing kGrowing[] = {
      {"growing", 1e-6},
      {"growing,slot=16", 1e-2, 0, false},
      {"exact", 0.5},
      // A window that fills from empty, and then ages.
      {"exact-window,generations=4", 0.5, 1500},
      {"dynamic,layout=matrix,keys=3500", 1e-2},
      {"dynamic,layout=matrix,keys=2000", 1e-4, 0, false},
      {"dynamic,layout=plain,keys=3500", 1e-2, 0, false},
      {"dynamic,tighten=0.8,keys=3500", 1e-2, 0, false},
  };
  constexpr std::size_t kHundred = 100, kBatches = 120;
  if (!LineCounter::works()) return;
  std::string uneven;
  for (const Growing& subject : kGrowing) {
    if (!subject.always && !full_counts()) continue;
    LineCounter counter;
    WatchedMemory memory;
    AnyFilter filter = make_filter(subject.settings, {.fpr = subject.fpr}, memory);
    std::vector<Digest> keys(kHundred);
    std::vector<Verdict> verdicts(kHundred);
    Samples lines;
    std::uint64_t next = 1, left = subject.generation;
    for (std::size_t i = 0; i < kBatches; ++i) {
      for (Digest& key : keys) key = digest_of(next++);
      lines.push_back(static_cast<double>(counter.lines_of([&] {
        if (subject.generation == 0) {
          static_cast<void>(filter.observe(keys, verdicts));
          return;
        }
        filter.admit(keys, verdicts, left, Anchor::delivered);
        if (left > 0) return;
        filter.rotate();
        left = subject.generation;
      })));
    }
    const double worst = std::ranges::max(lines), middle = median(lines);
    fmt::print("{}\t{}\t{}\t{:.1f}\n", subject.settings, middle, worst, worst / middle);
    if (!(worst <= kMostUneven * middle) || filter.stats().keys < kHundred)
      uneven += fmt::format(" '{}'", subject.settings);
  }
  if (!uneven.empty())
    throw Error(fmt::format("a batch touches more than {} times the lines of the median one in{}",
                            kMostUneven, uneven));
}

// Under callgrind: a dump per subject and instruction set, with its name and the keys in it.
//
// A series that grows does so here, too: `dynamic` takes its second filter in the middle of the sample,
// of which a third of the wider rows fall into it, the rest behind it. (When all rows were moved at
// once, the row read 1239 instructions, 797 of them for that.) `from empty` has whole steps of growth.
void guard_instructions() {
  constexpr int kBatches = 16;
  each_subject([](const Subject& subject, std::string_view level) {
    Kept kept = made(subject, 50'000);
    kept.resize(kBatch);
    CALLGRIND_START_INSTRUMENTATION;
    const std::size_t batches = each_batch_of_generations(kept, kBatches, [&] {
      CALLGRIND_TOGGLE_COLLECT;
      kept.apply(Kept::Verb::observe);
      CALLGRIND_TOGGLE_COLLECT;
    });
    CALLGRIND_STOP_INSTRUMENTATION;
    const std::string what = fmt::format("{}\t{}\t{}", subject.name, level, batches * kBatch);
    CALLGRIND_DUMP_STATS_AT(what.c_str());
  });
}

}  // namespace sluice::bench
