// Shtul, Baquero & Almeida 2020, Age-Partitioned Bloom Filters.
#include "repro/papers.hpp"
#include "repro/shtul/experiments.hpp"

namespace sluice::repro {
namespace {

std::vector<Experiment> experiments() {
  using namespace sluice::repro::shtul;
  const Parameter k{"k", 10, "segments a key is written in", 1, 64};
  const Parameter l{"l", 15, "generations of a window", 1, 64};
  const Parameter w{"w", 1000, "keys of a window, at least", 100, 1e7};
  return {
      {"table1", "Table 1", "Bloom filters of half-full slices", run_table1, {}, 1, 0.1},
      {"table2",
       "Table 2",
       "error, memory, accesses and slack of age-partitioned filters",
       run_table2,
       {{"k", 0, "segments a key is written in; 0: the paper's rows", 0, 64},
        {"l", 0, "generations of a window; 0: the paper's rows", 0, 192}},
       1,
       20},
      {"fig2", "Figure 2", "how full slices are", run_fig2, {k, l}, 1, 0.5},
      {"fig4", "Figure 4", "how reporting decays past the window", run_fig4, {k, l}, 1, 1},
      {"fig6",
       "Figure 6",
       "error while a filter fills",
       run_fig6,
       {w, {"n", 10'000, "distinct keys inserted", 100, 1e8}},
       0.004,
       20},
      {"fig7", "Figure 7", "error with duplicates in the stream", run_fig7, {w}, 1, 8},
      {"fig8", "Figure 8", "the same, for filters of one error", run_fig8, {w}, 1, 3},
      {"table3",
       "Table 3",
       "blocked segments",
       run_table3,
       {{"k", 0, "segments a key is written in; 0: the paper's rows", 0, 64},
        {"l", 0, "generations of a window; 0: the paper's rows", 0, 192},
        {"B", 0, "bits of a block, 64 or 512; 0: the paper's rows", 0, 512},
        {"b", 0, "bits set in a block, 4 or 8; 0: the paper's rows", 0, 8}},
       1,
       12},
      {"table4", "Table 4", "memory beside SWAMP's", run_table4, {}, 1, 0.2},
      {"fig9",
       "Figure 9",
       "several slices per segment",
       run_fig9,
       {{"l_over_k", 2, "generations of a window, over k", 1, 50}},
       1,
       0.5},
      {"table5",
       "Table 5 (ours)",
       "cohort beside apbbf and SWAMP at equal error",
       run_table5,
       {{"w", 65536, "keys of a window", 1024, 1e8},
        {"speed", 0, "1: the page has ratios of times, which no two runs have alike", 0, 1}},
       1,
       4},
  };
}

}  // namespace

Paper shtul_paper() {
  return {
      .name = "shtul",
      .title = "Shtul, Baquero & Almeida 2020, Age-Partitioned Bloom Filters",
      .published = Published::parse(published_csv("shtul")),
      .experiments = experiments(),
      .notes =
          {
              "**Fills.** Section 5.3 assumes that slice i is (i+1)/2k full just before a shift. "
              "That is "
              "a lower bound: a slice that kg keys fill to one half is 1 − 2^(−(i+1)/k) full after "
              "(i+1)g. Printed errors are therefore up to a quarter too low, which our "
              "measurements show; both are in `model::apbf_fpr`.",
              "**Table 1** cuts digits off instead of rounding. **Table 2** has eleven cells that "
              "do not follow from the paper's own formulas; each has a row with its reason. "
              "Accesses of a key in the window are averaged over generations 0 to l − 1.",
              "**Table 3** follows from a block model that the paper does not print: lanes of L = "
              "B/b bits, a block half full with ln 2 / −ln(1 − 1/L) keys, a Poisson load of "
              "min(i+1, k)/k of that in segment i.",
              "**Hashing.** Every slice has its own hash over the whole digest, not the double "
              "hashing that the paper allows; the row among the claims says why.",
              "**Figures 6 to 8.** Slices are whole cache lines, and generations as long as these "
              "allow: a window of 1,000 keys becomes one of 1,010 to 1,239 keys in Figures 6 and "
              "7, and of up to 2,464 in Figure 8, where the slices of (8,56) are one line. Errors "
              "depend on k and l, not on the window. A rate of duplicates is reached by drawing "
              "from a "
              "universe of the right size, uniformly or by a Zipf law, and every arrival is "
              "inserted, duplicate or not.",
              "**Scale.** In Figure 6 it scales the number of keys probed at each point (in the "
              "paper 10^4 times the inverse of the error), in Figures 7 and 8 and Tables 2 and 3 "
              "our own number.",
              "**Full size.** All but Figure 6 have it by default. Figure 6 at --scale 1 probes "
              "10^9 keys at every point of (17,13), at about fifty points. A twentieth of it takes "
              "90 seconds and 8 MB, with all rows within their tolerances, so the whole takes half "
              "an hour of one core.",
              "**SWAMP** was not run: its bits per key are those that Table 4 takes from a figure "
              "of the SWAMP paper.",
          },
  };
}

}  // namespace sluice::repro
