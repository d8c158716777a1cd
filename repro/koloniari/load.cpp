// Figures 5(b), 5(c) and 8: how evenly slices are loaded. Figure 7(c): what pipelining saves.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "repro/koloniari/experiments.hpp"
#include "repro/koloniari/streams.hpp"
#include "sluice/lab/synthetic.hpp"
#include "sluice/model/sliced.hpp"

namespace sluice::repro::koloniari {
namespace {

using cluster::SliceMap;
using cluster::Slicing;

constexpr std::size_t kDraws = 40;  // of hash functions: which key shares a slice is luck

constexpr std::array kCounts = {5u, 10u, 20u, 30u, 40u, 60u, 80u, 100u};

struct Load {
  double fairness = 0, highest = 0;
};

// Every event tests the bits of its key. How many bits there are does not matter.
Load measure(const std::vector<CountedKey>& keys, Slicing slicing, unsigned probes, unsigned slices,
             std::uint64_t seed) {
  const SliceMap map({slicing, std::uint64_t{1} << 20, probes, slices, 1, 1});
  std::vector<cluster::Place> places(probes);
  Load mean;
  for (std::size_t draw = 0; draw < kDraws; ++draw) {
    std::vector<double> loads(slices);
    double all = 0;
    for (const CountedKey& key : keys) {
      map.places(rehashed(key.key, seed + draw), places);
      for (const cluster::Place& place : places) {
        loads[place.site] += static_cast<double>(key.count);
        all += static_cast<double>(key.count);
      }
    }
    mean.fairness += model::fairness(loads) / kDraws;
    mean.highest += *std::ranges::max_element(loads) / all / kDraws;
  }
  return mean;
}

double concentration(const std::vector<CountedKey>& keys) {
  double all = 0, squares = 0;
  for (const CountedKey& key : keys) {
    const double count = static_cast<double>(key.count);
    all += count;
    squares += count * count;
  }
  return squares / (all * all);
}

struct LoadFigure {
  Panel fairness, highest;
  Load horizontal, vertical;  // at the number of slices that rows are about
  double expected_horizontal = 0, expected_vertical = 0;
  bool vertical_better = true;
};

LoadFigure sweep(const Context& context, const DataSet& data, double from, double to) {
  const std::vector<CountedKey> keys = count_keys(data.events);
  const unsigned k = context.whole("k"), mark = context.whole("slices");
  const double skew = concentration(keys);
  LoadFigure figure;
  figure.fairness = {data.name,
                     {"number of slices", false, 0.0},
                     {"Jain's fairness of the load (1: even)", false, 0.0, 1.05},
                     {}};
  figure.highest = {data.name,
                    {"number of slices", false, 0.0},
                    {"load of the busiest slice (share of all)", false, 0.0},
                    {}};
  Curve fair[2], high[2], expected[2], even{"even", Curve::Style::model, {}, 7u};
  for (const bool vertical : {false, true}) {
    fair[vertical] = {vertical ? "vertical" : "horizontal", Curve::Style::line, {}, vertical};
    high[vertical] = fair[vertical];
    expected[vertical] = {
        fmt::format("expected, {}", fair[vertical].name), Curve::Style::model, {}, vertical};
  }
  std::vector<unsigned> counts(kCounts.begin(), kCounts.end());
  if (std::ranges::find(counts, mark) == counts.end()) counts.push_back(mark);
  std::ranges::sort(counts);
  double done = 0;
  for (const unsigned slices : counts) {
    Load loads[2];
    double predictions[2];
    for (const bool vertical : {false, true}) {
      loads[vertical] = measure(keys, vertical ? Slicing::vertical : Slicing::horizontal, k, slices,
                                context.seed());
      predictions[vertical] = model::expected_fairness(slices, vertical ? k : 1, skew);
      const double x = slices;
      fair[vertical].points.push_back({x, loads[vertical].fairness});
      high[vertical].points.push_back({x, loads[vertical].highest});
      expected[vertical].points.push_back({x, predictions[vertical]});
    }
    even.points.push_back({static_cast<double>(slices), 1.0 / slices});
    figure.vertical_better &=
        loads[1].fairness > loads[0].fairness && loads[1].highest < loads[0].highest;
    if (slices == mark) {
      figure.horizontal = loads[0], figure.vertical = loads[1];
      figure.expected_horizontal = predictions[0], figure.expected_vertical = predictions[1];
    }
    context.progress(from + (to - from) * ++done / static_cast<double>(counts.size()));
  }
  figure.fairness.curves = {fair[0], fair[1], expected[0], expected[1]};
  figure.highest.curves = {high[0], high[1], even};
  return figure;
}

std::string numbers_of(const LoadFigure& figure, unsigned slices) {
  return fmt::format(
      "{} slices: fairness {:.2f} against {:.2f}, busiest slice {:.3f} against {:.3f}; better at "
      "every number of slices",
      slices, figure.vertical.fairness, figure.horizontal.fairness, figure.vertical.highest,
      figure.horizontal.highest);
}

constexpr const char* kLuck =
    "chance: which slice the most frequent key falls on decides much of it, and forty draws of the "
    "hash functions leave this much";

}  // namespace

Result run_fig5b(const Context& context) {
  const LoadFigure found = sweep(context, web_log(context), 0, 1);
  Result result{context.rows(), {"Fairness of the load: web log", {found.fairness}}};
  const std::string slices = fmt::format("fairness, {} slices", context.whole("slices"));
  result.rows.predicted("Fig. 5(b)", slices + ", horizontal", found.expected_horizontal,
                        found.horizontal.fairness, {0.05, true}, kLuck);
  result.rows.predicted("Fig. 5(b)", slices + ", vertical", found.expected_vertical,
                        found.vertical.fairness, {0.05, true}, kLuck);
  result.rows.claim("claim.load", found.vertical_better,
                    numbers_of(found, context.whole("slices")));
  return result;
}

Result run_fig5c(const Context& context) {
  const LoadFigure found = sweep(context, web_log(context), 0, 1);
  Result result{context.rows(), {"Load of the busiest slice: web log", {found.highest}}};
  result.rows.claim("fig5c.order", found.vertical.highest < found.horizontal.highest,
                    numbers_of(found, context.whole("slices")));
  return result;
}

Result run_fig8(const Context& context) {
  LoadFigure zipf = sweep(context, synthetic(context), 0, 0.5);
  const LoadFigure flows = sweep(context, yahoo(context), 0.5, 1);
  const auto paper = [&](const std::string& what) {
    return Curve{
        "the paper, recomputed",
        Curve::Style::points,
        {{40, context.point(what + ".horizontal")}, {40, context.point(what + ".vertical")}},
        3u};
  };
  zipf.fairness.curves.push_back(paper("fig8.fairness"));
  zipf.highest.curves.push_back(paper("fig8.highest"));
  Result result{context.rows(),
                {"Load of slices: synthetic and Yahoo",
                 {zipf.fairness, zipf.highest, flows.fairness, flows.highest},
                 2}};
  result.rows.value("fig8.fairness.vertical", zipf.vertical.fairness, kLuck);
  result.rows.value("fig8.fairness.horizontal", zipf.horizontal.fairness, kLuck);
  result.rows.value("fig8.highest.vertical", zipf.vertical.highest, kLuck);
  result.rows.value("fig8.highest.horizontal", zipf.horizontal.highest, kLuck);
  const std::string where = "Fig. 8, Yahoo";
  result.rows.predicted(where, "fairness, horizontal", flows.expected_horizontal,
                        flows.horizontal.fairness, {0.05, true}, kLuck);
  result.rows.predicted(where, "fairness, vertical", flows.expected_vertical,
                        flows.vertical.fairness, {0.05, true}, kLuck);
  return result;
}

Result run_fig7c(const Context& context) {
  const unsigned k = context.whole("k"), mark = context.whole("slices");
  const std::uint64_t records = context.scaled(100'000, 100);
  Result result{context.rows(), {}};
  Panel panel{"messages of a lookup, vertical slices",
              {"number of slices", false, 0.0},
              {"slices accessed per lookup", false, 0.0},
              {}};
  Curve all{"without pipelining", Curve::Style::model, {}, 7u};
  std::vector<unsigned> counts(kCounts.begin(), kCounts.end());
  if (std::ranges::find(counts, mark) == counts.end()) counts.push_back(mark);
  std::ranges::sort(counts);
  for (const unsigned slices : counts)
    all.points.push_back({static_cast<double>(slices),
                          model::sites_of_key({Slicing::vertical, 1e6, k, 1, slices, 1})});
  double done = 0, saved[3] = {}, without = 0;
  std::size_t stream_number = 0;
  for (const int percent : {80, 50, 20}) {
    Curve curve{fmt::format("pipelined, {} % distinct", percent), Curve::Style::line, {}};
    for (const unsigned slices : counts) {
      SyntheticStream stream({.records = records,
                              .distinct = percent / 100.0,
                              .seed = context.seed() + stream_number});
      const std::uint64_t bits =
          bits_for(static_cast<double>(stream.distinct()), k, context.number("P"));
      cluster::Slices pipelined =
          local_slices({.slices = {Slicing::vertical, bits, k, slices, 1, 1}, .pipelined = true});
      std::vector<Digest> batch(512);
      std::vector<Verdict> verdicts(512);
      while (const std::size_t count = stream.fill(batch))
        pipelined.observe(std::span(batch).first(count), std::span(verdicts).first(count));
      const double messages = static_cast<double>(pipelined.traffic().lookups) /
                              static_cast<double>(pipelined.traffic().keys);
      curve.points.push_back({static_cast<double>(slices), messages});
      if (slices == mark) {
        result.rows.value(fmt::format("fig7c.{}", percent), messages);
        saved[stream_number] = messages;
        const model::SlicedFilter filter{Slicing::vertical,
                                         static_cast<double>(bits),
                                         k,
                                         static_cast<double>(stream.distinct()),
                                         slices,
                                         1};
        result.rows.predicted(
            "Fig. 7(c)",
            fmt::format("messages per lookup, {} % distinct, {} slices", percent, slices),
            std::lerp(model::sites_of_key(filter), model::pipelined_sites_filling(filter),
                      percent / 100.0),
            messages, {0.03, true}, "chance: one draw of the hash functions");
      }
      context.progress(++done / (3 * static_cast<double>(counts.size())));
    }
    panel.curves.push_back(curve);
    ++stream_number;
  }
  without = model::sites_of_key({Slicing::vertical, 1e6, k, 1, mark, 1});
  result.rows.value("fig7c.all", without);
  result.rows.claim("claim.pipelining",
                    saved[0] < saved[1] && saved[1] < saved[2] && saved[2] < without,
                    fmt::format("{:.2f}, {:.2f}, {:.2f} at 80, 50, 20 % distinct; {:.2f} without",
                                saved[0], saved[1], saved[2], without));
  result.rows.claim("claim.messages", without > 1,
                    fmt::format("{:.2f} slices per lookup, {:.2f} pipelined at 50 % distinct; "
                                "horizontal 1",
                                without, saved[1]));
  panel.curves.push_back(all);
  panel.curves.push_back({"the paper, recomputed",
                          Curve::Style::points,
                          {{40, context.point("fig7c.80")},
                           {40, context.point("fig7c.50")},
                           {40, context.point("fig7c.20")},
                           {40, context.point("fig7c.all")}},
                          3u});
  result.figure = {"Messages that pipelining saves", {panel}};
  return result;
}

}  // namespace sluice::repro::koloniari
