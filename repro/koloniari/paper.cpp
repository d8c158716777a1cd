// Koloniari, Ntarmos, Pitoura & Souravlias 2011, One is Enough.
#include "repro/koloniari/experiments.hpp"
#include "repro/papers.hpp"

namespace sluice::repro {
namespace {

using namespace sluice::repro::koloniari;

const Parameter kProbes{"k", 4, "hash functions", 1, 64};
const Parameter kEight{"k", 8, "hash functions", 1, 64};
const Parameter kKeys{"n", 5700, "keys in the filter", 1, 1e9};
const Parameter kTarget{"P", 0.02, "false positives the filter is sized for", 1e-9, 0.9};
const Parameter kSlices{"slices", 40, "slices that the rows are about", 1, 65536};
const Parameter kMostSlices{"slices", 400, "the most slices; rows are about a tenth, and all", 1,
                            65536};
const Parameter kHeadroom{"headroom", 1.2, "size of a filter over what the first rate needs", 0.1,
                          100};
const Parameter kBurstTarget{"P", 0.05, "false positives a filter is full at", 1e-9, 0.9};
const Parameter kNew{"new", 1, "1: every event is a new one; 0: as in the web log", 0, 1};
const Parameter kLevels{"levels", 5, "levels of the tree, the root's included", 1, 20};
const Parameter kChildren{"children", 3, "children of a node", 1, 65536};

std::vector<Parameter> burst_parameters() {
  std::vector<Parameter> all = {kProbes, kBurstTarget, kHeadroom, kNew};
  for (const auto& [name, window] : {std::pair{"w1", 100}, {"w2", 500}, {"w3", 1000}})
    all.push_back({name, double(window), "time units of a window", 10, 10000});
  for (const auto& [name, burst] : {std::pair{"b1", 2}, {"b2", 5}})
    all.push_back({name, double(burst), "events a time unit in a burst", 1, 100});
  return all;
}

std::vector<Experiment> experiments() {
  return {
      {"fig1a",
       "Figure 1(a)",
       "false positives with failed sites, by the formulas",
       run_fig1a,
       {kProbes, kKeys, kTarget},
       1,
       0.01},
      {"fig1b",
       "Figure 1(b)",
       "slices needed to tolerate failed sites, by the formulas",
       run_fig1b,
       {kProbes, kKeys, kTarget, {"limit", 0.15, "false positives to be kept", 1e-9, 1}},
       1,
       0.01},
      {"eq7",
       "Equations 5 to 7",
       "every slicing with failed sites, measured",
       run_eq7,
       {kProbes, kKeys, kTarget, kSlices},
       1,
       3},
      {"fig5a",
       "Figure 5(a)",
       "false positives against the number of slices, web log",
       run_fig5a,
       {kProbes, kMostSlices},
       1,
       8},
      {"fig5b",
       "Figure 5(b)",
       "fairness of the load, web log",
       run_fig5b,
       {kProbes, kSlices},
       1,
       4},
      {"fig5c",
       "Figure 5(c)",
       "load of the busiest slice, web log",
       run_fig5c,
       {kProbes, kSlices},
       1,
       4},
      {"fig5d",
       "Figure 5(d)",
       "errors when at least x bits must be live, a fifth of the sites failed",
       run_fig5d,
       {kEight, kTarget, kSlices, {"failed", 8, "sites that failed", 0, 65536}},
       1,
       4},
      {"fig7a",
       "Figure 7(a)",
       "false positives against the number of slices, synthetic",
       run_fig7a,
       {kProbes, kMostSlices},
       1,
       5},
      {"fig7b",
       "Figure 7(b)",
       "false positives against the number of slices, Yahoo",
       run_fig7b,
       {kProbes, kMostSlices},
       1,
       4},
      {"fig7c",
       "Figure 7(c)",
       "messages of a lookup with pipelining",
       run_fig7c,
       {kProbes, kTarget, kSlices},
       1,
       3},
      {"fig8",
       "Figure 8",
       "fairness and highest load, synthetic and Yahoo",
       run_fig8,
       {kProbes, kSlices},
       1,
       3},
      {"prop2",
       "Proposition 2",
       "false positives of every way to slice a filter",
       run_prop2,
       {kProbes, kTarget, kSlices},
       1,
       1},
      {"fig9",
       "Figure 9",
       "equal timers: shares of true duplicates, and errors",
       run_fig9,
       {kEight,
        kTarget,
        kSlices,
        {"w", 1000, "time units of the window", 2, 1e6},
        {"different", 1,
         "1: vertical, a key has different timers; 0: two may be the same, and agree", 0, 1}},
       1,
       2},
      {"fig10", "Figure 10", "filters that live through a burst", run_fig10, burst_parameters(), 1,
       6},
      {"fig11", "Figure 11", "false positives through a burst", run_fig11, burst_parameters(), 1,
       6},
      {"table1",
       "Table 1",
       "hits and accesses of trees of two levels",
       run_table1,
       {kProbes, kTarget, {"leaves", 64, "leaves of the tree", 1, 65536}},
       1,
       1},
      {"fig12a",
       "Figure 12(a)",
       "levels that events go up in a tree",
       run_fig12a,
       {kProbes, kTarget, kLevels, kChildren},
       1,
       1},
      {"fig12b",
       "Figure 12(b)",
       "accesses by level of a tree",
       run_fig12b,
       {kProbes, kTarget, kLevels, kChildren},
       1,
       1},
      {"fig12c",
       "Figure 12(c)",
       "false positives with top-down testing",
       run_fig12c,
       {kProbes, kTarget, kLevels, kChildren},
       1,
       5},
  };
}

// All but formulas, and streams that are made for a figure.
std::vector<Experiment> with_input(std::vector<Experiment> all) {
  for (Experiment& each : all)
    each.reads_input =
        each.name != "fig1a" && each.name != "fig1b" && each.name != "eq7" && each.name != "fig7c";
  return all;
}

std::vector<std::string> notes() {
  return {
      "The figures' curves are not printed as numbers. Values in parentheses are recomputed: from "
      "the paper's formulas if it states them, otherwise from a simulation of the text's "
      "description.",
      "The web log and the flow log are not available. Streams of 100,000 events replace them: "
      "keys are drawn by Zipf's law with exponent 1 from a universe that gives the stated number "
      "of distinct keys, and producers are drawn by the same law, independently of the keys, so "
      "that a tree finds only the locality that comes from skew. `--input` takes a file of one "
      "event per line: a key, or "
      "a "
      "source, a tab and a key (`awk '{print $1 \"\\t\" $7}' access.log`).",
      "The web log's \"4300 distinct URLs\" and \"14300 bits\" contradict its other two sizes: "
      "105,000 "
      "and 89,000 bits follow from about 16,850 keys, and .02 then needs 143,000.",
      "Errors of a full filter are measured with keys never seen, after the stream. The paper "
      "counts "
      "FP / (FP + TN) over the whole stream while the filter fills, which is about a quarter of "
      "it; the "
      "figures have both.",
      "Eq. 4 gives every horizontal slice n/S keys. Slices fill unevenly, and the error is the "
      "mean over "
      "a binomial load: this makes horizontal slices worse, not the shorter range of the hash "
      "functions.",
      "We read the hybrid rule as \"all bits that can be read are set, and at least x can be "
      "read\". As "
      "worded, \"at least x bits set\", it would hold back 84 % of the distinct at x = 3.",
      "The printed error of equal timers, (1 − e^(−k/m))^k, is that of one live event; any of n "
      "events may have set them.",
      "§5 says that growth keeps the error below its target. It does for one filter; the errors of "
      "several live filters add up. Sluice's own growth divides the budget among them.",
      "Top-down testing that ends at a refuted hit lets duplicates through from d = 2 on: the "
      "event may "
      "be known elsewhere, above. If the climb continues there are none, with nearly the same "
      "false positives.",
      "Windows and streams of figures 9 to 11 have one event per time unit, and a multiple of that "
      "in a burst.",
      "Full size: this is the default for all experiments of this paper; --scale 1 is the same run "
      "and takes half a minute.",
  };
}

}  // namespace

Paper koloniari_paper() {
  return {
      .name = "koloniari",
      .title =
          "Koloniari, Ntarmos, Pitoura & Souravlias 2011, One is Enough: Distributed "
          "Filtering for Duplicate Elimination",
      .published = Published::parse(published_csv("koloniari")),
      .experiments = with_input(experiments()),
      .notes = notes(),
  };
}

}  // namespace sluice::repro
