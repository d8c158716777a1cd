// Dutta, Bhattacherjee & Narang 2012, Towards "Intelligent Compression" in Streams.
#include "repro/dutta/experiments.hpp"
#include "repro/dutta/stream.hpp"
#include "repro/papers.hpp"

namespace sluice::repro {
namespace {

using namespace sluice::repro::dutta;

constexpr const char* kFilters = "filters of the reservoir";
constexpr const char* kAsMet = "filters of the reservoir; 0: as many as the table is met with";

std::vector<Parameter> with(std::vector<Parameter> first, const std::vector<Parameter>& then) {
  first.insert(first.end(), then.begin(), then.end());
  return first;
}

std::vector<Parameter> stream(double records, double distinct) {
  return {{"records", records, "length of the stream"},
          {"distinct", distinct, "share of the records that are distinct"}};
}

Experiment table(const char* name, const char* where, const char* title,
                 Result (*run)(const Context&), double records, double distinct, double streams,
                 double scale, double cost) {
  return {name,
          where,
          title,
          run,
          with(with(stream(records, distinct), filter_parameters(0, kAsMet)),
               {{"bits", 0, "one table of so many bits; 0: those of the paper"},
                {"streams", streams, "streams that each value is the mean of"}}),
          scale,
          cost};
}

}  // namespace

Paper dutta_paper() {
  const std::vector<Parameter> three = filter_parameters(3, kFilters);
  const std::vector<Parameter> two = filter_parameters(2, kFilters);
  const std::vector<Parameter> clicks = with(stream(3e6, 0.01), three);
  const std::vector<Parameter> billion = with(stream(1e9, 0.1), two);
  return {
      .name = "dutta",
      .title = "Dutta, Bhattacherjee & Narang 2012, Towards \"Intelligent Compression\" in Streams",
      .published = Published::parse(published_csv("dutta")),
      .experiments =
          {
              table("table2", "Table 2", "errors on 100 K records, 76 % distinct", run_table2, 1e5,
                    0.76, 20, 1, 2),
              table("table3", "Table 3", "errors on 10 M records, 49 % distinct", run_table3, 1e7,
                    0.49, 1, 1, 10),
              table("table4", "Table 4", "errors on 695 M records, 15 % distinct", run_table4,
                    6.95e8, 0.15, 1, 0.01, 9),
              table("table5", "Table 5", "errors on 1 G records, 10 % distinct", run_table5, 1e9,
                    0.1, 1, 0.01, 10),
              {"fig2", "Figure 2", "false positives on a stream of clicks", run_fig2, clicks, 1, 3},
              {"fig3", "Figure 3", "false positives on a uniform stream", run_fig3, billion, 0.01,
               8},
              {"fig4", "Figure 4", "false negatives on a stream of clicks", run_fig4, clicks, 1, 3},
              {"fig5", "Figure 5", "false negatives on a uniform stream", run_fig5, billion, 0.01,
               8},
              {"fig6", "Figure 6", "change of the number of ones on a stream of clicks", run_fig6,
               with(clicks, {{"step", 1000, "records between two looks at the ones"}}), 1, 3},
              {"fig7", "Figure 7", "change of the number of ones on a uniform stream", run_fig7,
               with(with(stream(4.55e8, 0.15), three),
                    {{"bits", 4194304, "of the table"},
                     {"step", 1000, "records between two looks at the ones"}}),
               0.01, 3},
              {"fig8", "Figure 8", "how false negatives settle on a uniform stream", run_fig8,
               with(with(stream(1e7, 0.49), three),
                    {{"bits", 262144, "of the table"},
                     {"from", 3e5, "records before the stretch that is looked at"}}),
               1, 3},
          },
      .notes = {},
  };
}

}  // namespace sluice::repro
