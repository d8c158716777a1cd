// Table 3: streams, windows and how many queries are for items in the window.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "repro/dautrich/experiments.hpp"
#include "repro/dautrich/parameters.hpp"

namespace sluice::repro::dautrich {

Result run_table3(const Context& context) {
  Result result{context.rows(), {}};
  Table table{{"stream", "window", "pos/neg", "by the priors"}, {}};
  Figure figure{"Queries for items in the window, over those for items that are not", {}};
  for (const char* title : {"about as many of each", "more in the window"})
    figure.panels.push_back(
        {title,
         {"stream, window (items)", false, -0.6, 2.6},
         {"Pos / Neg", false, 0.0},
         {{"measured", Curve::Style::bars, {}, 0}, {"printed", Curve::Style::points, {}, 1}}});
  const std::uint64_t keys = whole_from(context, "U", 2);
  const auto one = [&](const char* name, const char* id, const Stream& stream,
                       const Windows& windows, bool stationary) {
    for (const auto& [condition, window] :
         {std::pair{"even", windows.even}, std::pair{"large", windows.large}}) {
      const Truth truth = truth_of(stream, window);
      double inside = 0;
      for (std::size_t i = 0; i < stream.chances.size(); ++i)
        inside += stream.chances[i] * truth.chances[i];
      const double model = inside / (1 - inside);
      Panel& panel = figure.panels[table.lines.size() % 2];
      const auto x = static_cast<double>(panel.x.classes.size());
      panel.x.classes.push_back(fmt::format("{}, {}", name, window_name(window)));
      panel.curves[0].points.push_back({x, truth.odds()});
      panel.curves[1].points.push_back(
          {x, published()[fmt::format("table3.{}.{}", id, condition)].printed});
      result.rows.value(fmt::format("table3.{}.{}", id, condition), truth.odds());
      // The fewer are outside, the more chance has to say.
      const double outside = static_cast<double>(truth.in_window.size() - truth.positives);
      if (stationary && outside > 0)
        result.rows.predicted(
            "Table 3", fmt::format("the same by the priors: {}, w = {}", name, window_name(window)),
            model, truth.odds(), {0.01 + 4 / std::sqrt(std::max(1.0, outside))});
      table.lines.push_back({name, fmt::format("{}", window), fmt::format("{:.4f}", truth.odds()),
                             fmt::format("{:.4f}", model)});
    }
    context.progress(static_cast<double>(table.lines.size()) / 6);
  };
  const Windows uniform = windows_of(context, "w1", "w2"), power = windows_of(context, "p1", "p2");
  const Windows address = windows_of(context, "a1", "a2");
  one("uniform", "uniform",
      uniform_stream(keys, length_of(context, uniform.greatest()), context.seed()), uniform, true);
  one("power law", "power",
      power_stream(keys, length_of(context, power.greatest()), context.seed()), power, true);
  one("addresses", "ip", packets(context, length_of(context, address.greatest())), address, false);
  constexpr double kTimers = 15112980, kTimerBits = 21, kWindow = 1u << 20;
  result.rows.value("table3.bits", kTimers * kTimerBits / kWindow);
  result.table = std::move(table);
  result.figure = std::move(figure);
  return result;
}

}  // namespace sluice::repro::dautrich
