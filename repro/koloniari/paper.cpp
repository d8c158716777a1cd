// Koloniari, Ntarmos, Pitoura & Souravlias 2011, One is Enough.
#include "repro/koloniari/experiments.hpp"
#include "repro/papers.hpp"

namespace sluice::repro {

Paper koloniari_paper() {
  using namespace sluice::repro::koloniari;
  const Parameter k{"k", 4, "hash functions"};
  const Parameter n{"n", 5700, "keys in the filter"};
  const Parameter target{"P", 0.02, "false positives the filter is sized for"};
  return {
      .name = "koloniari",
      .title =
          "Koloniari, Ntarmos, Pitoura & Souravlias 2011, One is Enough: Distributed "
          "Filtering for Duplicate Elimination",
      .published = Published::parse(published_csv("koloniari")),
      .experiments =
          {
              {"fig1a",
               "Figure 1(a)",
               "false positives with failed sites, by the formulas",
               run_fig1a,
               {k, n, target},
               1,
               0.1},
              {"fig1b",
               "Figure 1(b)",
               "slices needed to tolerate failed sites, by the formulas",
               run_fig1b,
               {k, n, target, {"limit", 0.15, "false positives to be kept"}},
               1,
               0.1},
          },
      .notes = {},
  };
}

}  // namespace sluice::repro
