// Dautrich & Ravishankar 2013, Inferential Time-Decaying Bloom Filters.
#include "repro/dautrich/experiments.hpp"
#include "repro/papers.hpp"

namespace sluice::repro {
namespace {

using Parameters = std::vector<Parameter>;

Parameters operator+(Parameters left, const Parameters& right) {
  left.insert(left.end(), right.begin(), right.end());
  return left;
}

std::vector<Experiment> experiments() {
  using namespace sluice::repro::dautrich;
  const Parameters length = {{"n", 1 << 22, "items queried and inserted; scaled", 1, 1 << 26},
                             {"warm", 1 << 20, "items inserted before that; scaled", 0, 1 << 26}};
  const Parameters universe = {{"U", 1 << 16, "keys", 2, 1 << 26}};
  const Parameters trials = {
      {"bits", 0, "bits per item of the window; 0: 1, 2, 4 … 32", 0, 1024},
      {"kmax", 30, "most probes tried", 1, 30},
      {"all_k", 0, "1: all probes up to kmax are tried, not only to the least", 0, 1},
      {"penalty", 10, "penalties are uniform from 1 to this", 1.001, 1e6}};
  const Parameters senders = {{"senders", 70000, "active at a time", 1, 1 << 24},
                              {"pace", 0.87, "skew of the Zipf law of how often they send", 0, 4},
                              {"packets", 40, "of a sender before another takes its place", 1, 1e9},
                              {"addresses", 1 << 20, "from which senders are drawn", 1, 1 << 30},
                              {"skew", 1.1, "of the Zipf law by which they are", 0, 4}};
  const Parameters address_windows = {
      {"a1", 1 << 8, "window of addresses, Pos and Neg alike", 16, 1 << 24},
      {"a2", 1 << 15, "window of addresses, more Pos", 16, 1 << 24}};
  const auto windows = [](double even, double large) -> Parameters {
    return {{"w1", even, "window with as many Pos as Neg", 16, 1 << 24},
            {"w2", large, "window with more Pos", 16, 1 << 24}};
  };
  const Parameters power_windows = {
      {"p1", 1 << 11, "window of the power law, Pos and Neg alike", 16, 1 << 24},
      {"p2", 1 << 18, "window of the power law, more Pos", 16, 1 << 24}};
  return {
      {"table3",
       "Table 3",
       "streams and windows",
       run_table3,
       universe + windows(1 << 16, 1 << 18) + power_windows + address_windows + senders + length,
       1,
       2,
       {},
       true},
      {"fig7",
       "Figures 7 and 8",
       "penalties and posterior errors, uniform stream",
       run_fig7,
       universe + windows(1 << 16, 1 << 18) + trials + length,
       0.25,
       40,
       {"fig8"}},
      {"fig9",
       "Figures 9 and 10",
       "penalties and posterior errors, power-law stream",
       run_fig9,
       universe + windows(1 << 11, 1 << 18) + trials + length,
       0.25,
       40,
       {"fig10"}},
      {"fig11",
       "Figures 11 and 12",
       "penalties and posterior errors, source addresses",
       run_fig11,
       address_windows + senders + trials + length,
       1,
       60,
       {"fig12"},
       true},
      {"claims", "Abstract", "other queries, other penalties, other filters", run_claims, {}, 1, 5},
  };
}

}  // namespace

Paper dautrich_paper() {
  return {
      .name = "dautrich",
      .title = "Dautrich & Ravishankar 2013, Inferential Time-Decaying Bloom Filters",
      .published = Published::parse(published_csv("dautrich")),
      .experiments = experiments(),
      .notes =
          {
              "**Values.** The paper draws its results and prints few numbers. Values in "
              "parentheses "
              "are those of an independent simulation of its set-up at full size (2^22 queries), "
              "and have random errors of their own where errors are few.",
              "**Parameters** that give the paper's curves: max(k, 3) bits per timer, ⌊w · bits / "
              "bits per timer⌋ timers, the smallest block B with ⌈w/B⌉ + 1 + P + 2 ≤ 2^bits, "
              "padding P = "
              "max(0, ⌈m/(kB)⌉ − 1). The best k of 1 to 30 is found for each filter and size, as "
              "in "
              "§5.1.2: tried upwards on a quarter of the queries until both penalties have risen "
              "(`--set all_k=1` tries "
              "all).",
              "**Eq. 17** holds for 1 ≪ j ≪ |U|·H only (it says D(1) = 1.2, and falls beyond "
              "|U|·H): "
              "eq. 15 is summed instead.",
              "**Our count.** The paper takes all D(B) keys of a block for possible owners of "
              "timers of its age; keys that have come again have newer timers. Dashed lines count "
              "only the keys that last came in that block, which gives lower posterior errors and "
              "penalties (`.printed = false`, as Sluice does).",
              "**Scale** applies to the length of the streams. Universe and windows stay, because "
              "the curves depend on them. So few errors are left at many bits per item, and the "
              "tolerances there allow for chance.",
              "**Source addresses.** The CAIDA trace may not be redistributed. A generated stream "
              "replaces it: 70,000 senders are active at a time, some faster than others, each for "
              "forty packets on average, drawn by a Zipf law. Its numbers were chosen so that "
              "Table 3 fits (many choices do), and so that the effects of §5.3.2 can be seen. "
              "Priors and D(j) "
              "are learnt from the stream as §5.3.2 does; so the result depends on how far a "
              "sender's rate in a burst is from its mean over the stream. With ten packets per "
              "sender it is four times as far, and inference raises the cost in half of the "
              "trials; in a stream of a quarter of the length it lowers the cost at every size. So "
              "the rows of §5.3.2 show that bursts "
              "can do this, not that those of the trace did. `--input` reads your own trace, one "
              "address per line, up to warm + n of them.",
              "**Full size.** Table 3 and Figures 11 and 12 have it by default. --scale 1 takes "
              "three "
              "minutes on two cores for Figures 7 to 10, all of whose rows are within their "
              "tolerances there, in 65 MB.",
              "**Renewals.** All of this is for filters into which every arrival is inserted. If "
              "only delivered events are inserted, as by default, ages are renewal ages "
              "(docs/inference.md).",
          },
  };
}

}  // namespace sluice::repro
