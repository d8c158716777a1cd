// Models of windows: age-partitioned filters, timestamps, timers.
#include <algorithm>
#include <cmath>
#include <numbers>

#include "apps/cli/models/registry_parts.hpp"
#include "sluice/model/apbf.hpp"
#include "sluice/model/lower_bound.hpp"
#include "sluice/model/timer.hpp"
#include "sluice/model/timing.hpp"

namespace sluice::model {
namespace {

constexpr ModelParameter kSlicesTakes[] = {
    {"fpr", "the target error", Takes::chance, "0.01"},
    {"k", "slices", Takes::whole, "the fewest for --fpr", 1, 64, {}, true}};
constexpr ModelOutput kSlicesTells[] = {
    {"k", "slices"},
    {"bits_per_key", "k/ln 2"},
    {"fpr", "2^−k"},
    {"accesses_positive", "slices read when the query says duplicate"},
    {"accesses_negative", "slices read when it says distinct"}};
std::vector<double> slices(const ModelArguments& in) {
  const unsigned k = in.given("k") ? in.whole("k") : half_full_parts(in.number("fpr"));
  return {static_cast<double>(k), k / std::numbers::ln2, std::ldexp(1.0, -static_cast<int>(k)),
          static_cast<double>(k), half_full_negative_accesses(k)};
}

// Accesses take up to (k + l)·k² steps for each of l generations.
constexpr ModelParameter kAgeK{"k", "segments that hold a key", Takes::whole, "", 1, 64};
constexpr ModelParameter kAgeL{"l", "number of generations in a window", Takes::whole, "", 1, 256};

constexpr ModelParameter kApbfTakes[] = {
    kAgeK,
    kAgeL,
    {"window", "keys of the window, for sizes", Takes::number, "1M", 1, kMostKeys},
    {"fpr", "the error that generations are solved for", Takes::chance, "0.01"}};
constexpr ModelOutput kApbfTells[] = {
    {"fpr_linear", "worst-case error with the paper's linear fills (recursion F)"},
    {"fpr_exact", "the same with the true fills, 1 − 2^−(i+1)/k; agrees with measurements"},
    {"fpr_mean", "the mean of fpr_exact from one shift to the next"},
    {"fpr_best", "the error just after a shift"},
    {"accesses_window", "slices read for a key in the window (recursion A, linear fills)"},
    {"accesses_positive", "for a key never written, when the query says duplicate"},
    {"accesses_negative", "the same, when it says distinct"},
    {"accesses_window_exact", "as accesses_window, with the true fills"},
    {"accesses_positive_exact", "as accesses_positive, with the true fills"},
    {"accesses_negative_exact", "as accesses_negative, with the true fills"},
    {"slack", "how far past the window a key may still be remembered, as a share of it: k/l"},
    {"npws", "NPWS: peak share of expired keys still remembered"},
    {"efficiency",
     "memory of a plain Bloom filter with the same error / this memory, linear fills"},
    {"efficiency_exact", "the same with the true fills"},
    {"bits_per_key", "bits per key of the window"},
    {"lower_bound", "theoretical minimum of bits per key for this error and slack"},
    {"generation", "keys of a generation"},
    {"slice_bits", "bits of a slice"},
    {"bytes", "bytes of all slices"},
    {"generations_for_fpr", "the most generations l with these k at --fpr, true fills"}};
std::vector<double> apbf(const ModelArguments& in) {
  const unsigned k = in.whole("k"), l = in.whole("l");
  const std::vector<double> linear = segment_matches(k, l, Fills::linear);
  const std::vector<double> exact = segment_matches(k, l, Fills::exact);
  const double fpr = run_of_matches(exact, k), fpr_linear = run_of_matches(linear, k);
  const QueryAccesses as_printed = query_accesses(linear, k), measured = query_accesses(exact, k);
  const double slack = apbf_slack(k, l), bits = apbf_bits(k, l), window = in.number("window");
  return {fpr_linear,
          fpr,
          apbf_mean_fpr(k, l),
          run_of_matches(segment_matches(k, l, Fills::exact, 1, 0), k),
          as_printed.window,
          as_printed.positive,
          as_printed.negative,
          measured.window,
          measured.positive,
          measured.negative,
          slack,
          apbf_npws(k, l),
          apbf_efficiency(k, l, fpr_linear),
          apbf_efficiency(k, l, fpr),
          bits,
          window_lower_bound_bits(fpr, slack),
          window / l,
          bits * window / (k + l),
          bits * window / 8,
          static_cast<double>(apbf_generations(k, in.number("fpr")))};
}

constexpr ModelParameter kApbbfTakes[] = {
    kAgeK,
    kAgeL,
    {"block", "bits of a block", Takes::whole, "512", 8, 65536},
    {"bits", "bits that a key sets in a block, one per lane", Takes::whole, "8", 1, 64}};
constexpr ModelOutput kApbbfTells[] = {
    {"fpr", "worst-case error of the block model; agrees with measurements"},
    {"fpr_slices", "error of a filter of k·bits + l·bits slices, linear fills"},
    {"fpr_slices_exact", "the same with the true fills"},
    {"fpr_column", "with a key's blocks side by side; simulated, ±2 % at 1e-4"},
    {"lane", "bits of a lane"},
    {"block_capacity", "keys that fill half of a block"},
    {"capacity_share", "block_capacity / (lane · ln 2), which slices would hold"},
    {"full_match", "error of a full segment"},
    {"accesses_window", "segments read for a key in the window"},
    {"accesses_positive", "for a key never written, when the query says duplicate"},
    {"accesses_negative", "the same, when it says distinct"},
    {"slack", "how far past the window a key may still be remembered, as a share of it: k/l"},
    {"npws", "NPWS: peak share of expired keys still remembered"},
    {"efficiency", "memory of a plain Bloom filter with the same error / this memory"},
    {"bits_per_key", "bits per key of the window"},
    {"lower_bound", "theoretical minimum of bits per key for this error and slack"}};
std::vector<double> apbbf(const ModelArguments& in) {
  const unsigned k = in.whole("k"), l = in.whole("l");
  const BlockShape shape{in.whole("block"), in.whole("bits")};
  refuse_unless(2 * shape.bits <= shape.block,
                "model 'apbbf': --bits is more than half of --block, and a lane needs two bits");
  const std::vector<double> matches = block_matches(k, l, shape);
  const double fpr = run_of_matches(matches, k), bits = apbbf_bits(k, l, shape);
  const double capacity = block_capacity(shape), slack = apbf_slack(k, l);
  const QueryAccesses accesses = query_accesses(matches, k);
  return {fpr,
          apbf_fpr(k * shape.bits, l * shape.bits, Fills::linear),
          apbf_fpr(k * shape.bits, l * shape.bits, Fills::exact),
          column_fpr(k, l, shape),
          shape.lane(),
          capacity,
          capacity / (shape.lane() * std::numbers::ln2),
          matches.back(),
          accesses.window,
          accesses.positive,
          accesses.negative,
          slack,
          apbf_npws(k, l, matches.back()),
          -std::log2(fpr) / std::numbers::ln2 / bits,
          bits,
          window_lower_bound_bits(fpr, slack)};
}

constexpr ModelParameter kTimingTakes[] = {
    {"window", "w: keys of the window", Takes::whole, "", 1, 1e12},
    {"k", "probes: timers per key", Takes::whole, "", 1, 64},
    {"bits", "bits per key of the window", Takes::number, "16", 0.1, 1e6},
    {"timer", "bits of a timer", Takes::whole, "max(k, 3)", 3, 32, {}, true},
    kTarget};
constexpr ModelOutput kTimingTells[] = {
    {"timer_bits", "bits of a timer"},
    {"timers", "m = ⌊w · bits/timer bits⌋"},
    {"block", "B: insertions that share a timestamp"},
    {"generations", "⌈w/B⌉"},
    {"padding", "P: timestamps beyond the fewest, so that marking can be spread"},
    {"slack", "one block, as a share of the window"},
    {"fpr", "when every key is written: the error of a Bloom filter with as many bits as timers"},
    {"window_fpr", "in a running window: a key judged a duplicate is not written"},
    {"timers_for_fpr", "the fewest timers for --fpr in a running window"}};
std::vector<double> timing(const ModelArguments& in) {
  const auto window = static_cast<std::uint64_t>(in.number("window"));
  const unsigned k = in.whole("k");
  // More bits than 32 count more generations than there are keys.
  const unsigned bits = in.given("timer") ? in.whole("timer") : std::min(timing_bits(k), 32u);
  const std::uint64_t timers =
      std::max<std::uint64_t>(1, timing_timers(window, in.number("bits"), bits));
  const TimingShape shape = timing_shape(window, timers, k, bits);
  const double live = in.number("window"), m = static_cast<double>(timers);
  return {static_cast<double>(bits),
          m,
          static_cast<double>(shape.block),
          static_cast<double>(shape.generations),
          static_cast<double>(shape.padding),
          static_cast<double>(shape.block) / live,
          timing_fpr(m, k, live),
          timing_window_fpr(m, k, live),
          timing_timers_for(k, live, in.number("fpr"))};
}

constexpr ModelParameter kTimerTakes[] = {
    {"layout", "where a key's timers are", Takes::choice, "vertical", 0, 0,
     "plain horizontal vertical"},
    {"m", "timers in total", Takes::number, "", 2, kMostBits},
    {"k", "timers per key", Takes::whole, "", 1, 32},
    {"n", "live keys", Takes::number, "", 0, 1e7},
    {"slices", "S: slices of the horizontal layout", Takes::whole, "1", 1, 1e6},
    {"equal", "number of timers of a key that must be equal; 1: no test", Takes::whole, "1", 1, 32},
    {"window", "w: number of different times that timers hold", Takes::whole, "1000", 1, 1e4},
    kTarget};
constexpr ModelOutput kTimerTells[] = {
    {"fpr", "without the test of equal timers, if every key is written"},
    {"window_fpr", "the same in a running window: a key judged a duplicate is not written"},
    {"equal_fpr", "false positives with the test"},
    {"equal_fnr", "false negatives with it, for a key of any age; on a stream: timer-stream"},
    {"equal_bound",
     "the paper's error with the test, corrected: n · (1 − e^(−k/m))^x C(k,x) ρ^(k−x)"},
    {"equal_printed", "as printed, for all k equal: (1 − e^(−k/m))^k, which lacks the factor n"},
    {"timer_bits", "⌈log2(w + 1)⌉"},
    {"timers_for_fpr", "the fewest timers for --fpr, without the test"}};
std::vector<double> timer(const ModelArguments& in) {
  const std::string_view layout = in.choice("layout");
  const TimerTable table{.timers = in.number("m"),
                         .probes = in.whole("k"),
                         .slices = layout == "horizontal" ? in.whole("slices") : 1,
                         .vertical = layout == "vertical"};
  const double n = in.number("n"), window = in.number("window");
  // Keys of a slice are summed over, and with equal timers their times, ages and counts for each.
  const double held = n / table.slices, loads = table.slices > 1 ? 24 * std::sqrt(held) + 40 : 1;
  const double times = in.whole("equal") > 1 ? std::min(held, window) * 100 * table.probes : 1;
  refuse_unless(
      loads * times * table.probes <= 1e9,
      "model 'timer' takes too long for this many keys per slice: give fewer with --n, more "
      "--slices, or fewer times with --window");
  const unsigned equal = in.whole("equal");
  refuse_unless(equal <= table.probes, "model 'timer': --equal is more than --k");
  const double one = -std::expm1(-(table.probes * table.slices / table.timers));
  return {timer_fpr(table, n),
          timer_window_fpr(table, n),
          timer_equal_fpr(table, equal, n, window),
          timer_equal_fnr(table, equal, n, window),
          timer_equal_bound(table, equal, n),
          std::pow(one, table.probes),
          std::ceil(std::log2(window + 1)),
          timer_timers_for(table, n, in.number("fpr"))};
}

constexpr ModelParameter kTimerStreamTakes[] = {
    kTimerTakes[0],
    kTimerTakes[1],
    kTimerTakes[2],
    kTimerTakes[4],
    kTimerTakes[5],
    {"window", "w: ticks of the window, one arrival each", Takes::whole, "1000", 1, 1e5},
    {"universe", "keys of the stream", Takes::number, "5700", 1, 1e7},
    {"skew", "the key of rank r comes in proportion to 1/r^skew", Takes::number, "1", 0, 8}};
constexpr ModelOutput kTimerStreamTells[] = {
    {"live", "keys in the window: Σ wp/(1 + wp)"},
    {"fpr", "error of arrivals outside the window: a frequent key may be lost repeatedly"},
    {"fnr", "false negatives of arrivals inside it: a key that passes is written again"},
    {"fpr_once", "chance that one arrival of a key never seen is lost (model timer)"},
    {"fnr_any_age", "chance that a repeat of a key of any age passes (model timer)"}};
std::vector<double> timer_stream(const ModelArguments& in) {
  const std::string_view layout = in.choice("layout");
  const TimerTable table{.timers = in.number("m"),
                         .probes = in.whole("k"),
                         .slices = layout == "horizontal" ? in.whole("slices") : 1,
                         .vertical = layout == "vertical"};
  const unsigned equal = in.whole("equal");
  refuse_unless(equal <= table.probes, "model 'timer-stream': --equal is more than --k");
  refuse_unless(table.timers >= 2.0 * table.probes * table.slices,
                "model 'timer-stream': a slice has less than 2 timers per probe");
  const double window = in.number("window");
  const double held = std::min(window, in.number("universe")) / table.slices;
  const double loads = table.slices > 1 ? 24 * std::sqrt(held) + 40 : 1;
  const double times = (equal > 1 ? held * table.probes : 1) * 200 * table.probes;
  refuse_unless(loads * times <= 1e9,
                "model 'timer-stream' takes too long for this many keys per slice: give a shorter "
                "--window, or more --slices");
  const TimerStreamErrors errors =
      timer_stream_errors(table, equal, {in.number("universe"), in.number("skew"), window});
  return {errors.live, errors.fpr, errors.fnr, timer_equal_fpr(table, equal, errors.live, window),
          timer_equal_fnr(table, equal, errors.live, window)};
}

constexpr ModelInfo kModels[] = {
    {"slices", "a Bloom filter of k half-full slices (Shtul et al. 2020, §4.2, table 1)",
     kSlicesTakes, kSlicesTells, slices},
    {"apbf", "an age-partitioned Bloom filter of slices (Shtul et al. 2020, §5, table 2)",
     kApbfTakes, kApbfTells, apbf},
    {"apbbf", "an age-partitioned filter of blocks (Shtul et al. 2020, §6, tables 3 and 4)",
     kApbbfTakes, kApbbfTells, apbbf},
    {"timing", "timestamps of few bits (Dautrich & Ravishankar 2013, §3)", kTimingTakes,
     kTimingTells, timing},
    {"timer", "times of delivery, and the test of equal timers (Koloniari et al. 2011, §4)",
     kTimerTakes, kTimerTells, timer},
    {"timer-stream",
     "the same on a stream of Zipf's law (Koloniari et al. 2011, §7; the model is ours)",
     kTimerStreamTakes, kTimerStreamTells, timer_stream},
};

}  // namespace

std::span<const ModelInfo> window_models() {
  return kModels;
}

}  // namespace sluice::model
