// Guo et al. 2010, The Dynamic Bloom Filters.
#include "repro/guo/experiments.hpp"
#include "repro/papers.hpp"

namespace sluice::repro {

Paper guo_paper() {
  using namespace sluice::repro::guo;
  const Parameter m{"m", 1280, "bits of one filter", 64, 1e7};
  const Parameter k{"k", 7, "hash functions", 1, 24};
  const Parameter c{"c", 133, "keys of one filter", 1, 1e5};
  const Parameter rounds{"rounds", 100,
                         "series of ten filters that a value is the mean of; of shorter ones more",
                         1, 1e5};
  const Parameter bound{"N", 1330, "bound of the set", 10, 1e5};
  const Parameter fpr{"fpr", 0.0098, "false positives allowed", 1e-9, 0.5};
  const Parameter exponent{"a", 0.4, "exponent of the Zipf law", 0, 4};
  const Parameter sigma{"sigma", 20, "deviation of the normal distribution", 0.1, 1e6};
  const Parameter beta{"beta", 0.05, "false positives that may not be passed", 1e-8, 0.9};
  const std::vector<Parameter> shape = {m, k, c};
  const std::vector<Parameter> measured = {
      m, k, c, {"rounds", 200, "series that each value is the mean of", 1, 1e5}};
  const std::vector<Parameter> forgetting = {m, k, c, rounds};
  const std::vector<Parameter> sizes = {bound, fpr, exponent, sigma};
  const std::vector<Parameter> by_error = {
      {"N", 13300, bound.meaning, bound.least, bound.most}, exponent, sigma};
  Paper paper{
      .name = "guo",
      .title = "Guo, Wu, Chen, Yuan & Luo 2010, The Dynamic Bloom Filters",
      .published = Published::parse(published_csv("guo")),
      .experiments =
          {
              {"table1", "Table 1", "keys that several filters claim, and what forgetting leaves",
               run_table1, forgetting, 1, 3},
              {"fig1", "Figure 1", "false positives as the set grows", run_fig1, measured, 1, 2},
              {"fig2", "Figure 2", "what a standard filter errs more", run_fig2, shape, 1, 0.1},
              {"fig3", "Figure 3", "unions of two sets", run_fig3, measured, 1, 0.5},
              {"fig4", "Figure 4", "false positives by the size of one filter", run_fig4, shape, 1,
               0.1},
              {"fig5", "Figure 5", "shares of the keys as the set grows", run_fig5, forgetting, 1,
               3},
              {"fig6",
               "Figure 6",
               "false positives with keys left behind",
               run_fig6,
               {m, k, c, {"rounds", 60, "series that each value is the mean of", 1, 1e5}},
               1,
               3},
              {"fig7", "Figure 7", "when to ask before writing", run_fig7, {c}, 1, 0.1},
              {"fig8", "Figure 8", "memory for the same error", run_fig8, shape, 1, 0.1},
              {"fig9", "Figure 9", "false positives in the same memory", run_fig9, measured, 1, 1},
              {"fig10", "Figure 10", "expected memory by the number of filters", run_fig10, sizes,
               1, 0.1},
              {"fig11", "Figure 11", "least expected memory by the bound", run_fig11, sizes, 1,
               0.2},
              {"fig12",
               "Figure 12",
               "what a dynamic filter saves, by the bound",
               run_fig12,
               {bound,
                fpr,
                exponent,
                sigma,
                {"sets", 2000, "real series measured; 0: none", 0, 1e6}},
               1,
               1},
              {"fig13", "Figure 13", "least expected memory by the error allowed", run_fig13,
               by_error, 1, 0.2},
              {"fig14", "Figure 14", "what a dynamic filter saves, by the error allowed", run_fig14,
               by_error, 1, 0.2},
              {"fig15",
               "Figure 15",
               "least expected memory by the exponent",
               run_fig15,
               {bound, fpr, sigma},
               1,
               0.2},
              {"fig16",
               "Figure 16",
               "least expected memory by the deviation",
               run_fig16,
               {bound, fpr},
               1,
               0.1},
              {"rebuild",
               "§4.3",
               "when a filter must be rebuilt",
               run_rebuild,
               {m, k, c, measured.back(), beta},
               1,
               0.5},
              {"nodes",
               "§4.4",
               "configurations that nodes must agree on",
               run_nodes,
               {c,
                fpr,
                beta,
                {"nodes", 100, "nodes", 1, 1e5},
                {"growth", 1000, "how much larger than c the largest set becomes", 1, 1e6}},
               1,
               0.2},
          },
      .notes =
          {
              "The filters are the paper's own size, so that --scale changes nothing here; --set "
              "rounds does.",
              "Table 1's figures cannot be read in the text at hand. Values in parentheses are "
              "from an independent simulation of its experiment; tolerances are three standard "
              "errors of 100 rounds, as many as the paper ran.",
              "The paper's double hashing (eq. 11) has an error 15 % above its formulas at n = c, "
              "since "
              "g₂ may be 0 or share a factor with m; our positions are independent bits of a "
              "digest.",
              ".61285 is a misprint of .6185. The variance of 20 in Figure 10 is a deviation of "
              "20: "
              "the printed saving of 20 % follows from that.",
              "Eq. 9 is wrong if c divides n: the last filter is then full, not empty. Two "
              "filters "
              "are merged when together they hold at most c keys, as the text says; the paper's "
              "code "
              "has fewer than c.",
              "Our filter can only forget keys that it asked for before it wrote them, so the "
              "series of Table 1 are unions of filters that were filled separately. That is the "
              "paper's Algorithm 1, which does not ask.",
          },
  };
  for (Experiment& each : paper.experiments) each.scales = false;
  return paper;
}

}  // namespace sluice::repro
