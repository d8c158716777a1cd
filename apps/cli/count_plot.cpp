// The share of duplicates over a stream as a picture, drawn by gnuplot.
#include <fmt/format.h>

#include "connectors/gnuplot/gnuplot.hpp"
#include "count_report.hpp"
#include "printable.hpp"
#include "sluice/base/quantity.hpp"

namespace sluice::cli {
namespace {

constexpr const char* kHead = R"(set terminal {0} size 900,420 font 'sans-serif,13' {1}
set border 3 lc rgb '#555555'
set tics nomirror textcolor rgb '#333333'
set grid xtics ytics lc rgb '#e4e4e4' lt 1
set yrange [0:100]
set ylabel 'duplicates (% of the records)'
unset key
set style fill solid 0.85 noborder
)";

std::string script_of(const CountReport& report, bool png) {
  const bool by_time = report.axis == Timeline::Axis::time;
  const double unit = by_time ? 1e-9 : 1;
  std::string script = fmt::format(fmt::runtime(kHead), png ? "pngcairo" : "svg",
                                   png ? "background '#ffffff'" : "background '#ffffff'");
  script += fmt::format(
      "set title {} noenhanced\n",
      gnuplot_text(printable(fmt::format(
          "{}: {}, {:.1f} % duplicates", report.source, counted(report.records, "record"),
          report.records == 0
              ? 0.0
              : 100 * report.duplicates.value / static_cast<double>(report.records)))));
  script += by_time ? "set xdata time\nset timefmt '%s'\nset format x \"%m-%d\\n%H:%M\"\n"
                      "set xlabel 'time (UTC)'\n"
                    : "set format x '%.0f'\nset xlabel 'record'\n";
  const auto length = static_cast<double>(report.points.length) * unit;
  script += fmt::format("set boxwidth {:.15g}\nplot '-' using 1:2 with boxes lc rgb '{}'\n", length,
                        gnuplot_colour(0));
  for (const Timeline::Point& point : report.points.points)
    script +=
        fmt::format("{:.15g} {:.6g}\n", (static_cast<double>(point.begin) * unit) + length / 2,
                    100 * point.duplicate_share().value);
  return script + "e\n";
}

}  // namespace

void draw(const CountReport& report, bool png, FileSink& sink) {
  sink.write(run_gnuplot(script_of(report, png)));
  sink.finish();
}

}  // namespace sluice::cli
