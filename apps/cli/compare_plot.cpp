#include "compare_plot.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string_view>

#include "connectors/gnuplot/gnuplot.hpp"
#include "printable.hpp"

namespace sluice::cli {
namespace {

using Rate = double (CompareCounts::*)() const noexcept;

// Two panels below each other, the legend beside them.
constexpr const char* kHead =
    R"(set terminal svg size {2},720 font 'sans-serif,13' background '#ffffff'
set multiplot layout 2,1 margins {3:.4f},{4:.4f},0.09,0.93 spacing 0.05
set border 3 lc rgb '#555555'
set tics nomirror textcolor rgb '#333333'
set grid xtics ytics lc rgb '#e4e4e4' lt 1
set key at screen {5:.4f},graph 1 left top Left reverse samplen 2 textcolor rgb '#333333'
set xrange [0:{0}]
set logscale y
set yrange [{1}:1]
set format y '10^{{%T}}'
)";

std::string quoted(std::string_view text) {
  return gnuplot_text(printable(text));
}

// The power of ten below the smallest rate there is.
double least_rate(const CompareReport& report) {
  double least = 0.1;
  for (const CompareResult& result : report.results)
    for (const CompareCounts& point : result.points)
      for (const Rate rate :
           {&CompareCounts::false_positive_rate, &CompareCounts::false_negative_rate})
        if (const double value = (point.*rate)(); value > 0) least = std::min(least, value);
  return std::pow(10, std::floor(std::log10(least)));
}

// In pixels. The legend is as wide as its longest name.
constexpr double kPanelWidth = 720;
constexpr double kLeftMargin = 96;
double legend_width(const CompareReport& report) {
  std::size_t longest = 0;
  for (const CompareResult& result : report.results)
    longest = std::max(longest, printable(result.name).size());
  return std::ceil(60 + 8.5 * static_cast<double>(longest + std::string_view(" (none)").size()));
}

// Numbers of records in a unit that keeps them short.
struct Unit {
  double size;
  const char* name;
};
Unit unit_for(std::uint64_t records) {
  if (records >= 2'000'000) return {1e6, "millions of records"};
  if (records >= 2'000) return {1e3, "thousands of records"};
  return {1, "records"};
}

// One block of data a filter: where a stretch ends, and its rate; none where there was no error.
// The first line is off the picture: gnuplot wants at least one point.
std::string data_of(const CompareResult& result, Rate rate, const Unit& unit) {
  std::string text = "-1 1\n\n";
  double end = 0;
  for (const CompareCounts& point : result.points) {
    // The rest at the end may be too short to say anything.
    if (end > 0 && point.records * 2 < result.points.front().records) break;
    end += static_cast<double>(point.records);
    const double value = (point.*rate)();
    text += value > 0 ? fmt::format("{:.8g} {:.6g}\n", end / unit.size, value) : "\n";
  }
  return text + "e\n";
}

std::string panel(const CompareReport& report, Rate rate, const Unit& unit) {
  std::string plots, data;
  for (std::size_t i = 0; i < report.results.size(); ++i) {
    const CompareResult& result = report.results[i];
    const bool any = (result.counts.*rate)() > 0;
    plots += fmt::format(
        "{} '-' using 1:2 with linespoints pt 7 ps 0.3 lw 1.5 lc rgb '{}' title {} noenhanced",
        i == 0 ? "plot" : ",", gnuplot_colour(i), quoted(result.name + (any ? "" : " (none)")));
    data += data_of(result, rate, unit);
  }
  return plots + "\n" + data;
}

std::string script_of(const CompareReport& report) {
  const Unit unit = unit_for(report.stream.records);
  const double length = static_cast<double>(std::max<std::uint64_t>(1, report.stream.records));
  const double width = kPanelWidth + legend_width(report);
  std::string text =
      fmt::format(kHead, length / unit.size, least_rate(report), width, kLeftMargin / width,
                  (kPanelWidth - 30) / width, (kPanelWidth - 15) / width);
  text += "set title " + quoted("Errors over the stream: " + report.source.name) + " noenhanced\n";
  text += "set ylabel 'false positives (share of the distinct)'\nset format x ''\n";
  text += panel(report, &CompareCounts::false_positive_rate, unit);
  text += "unset title\nset format x '%g'\n";
  text += fmt::format("set xlabel '{}'\n", unit.name);
  text += "set ylabel 'false negatives (share of the duplicates)'\n";
  text += panel(report, &CompareCounts::false_negative_rate, unit);
  return text + "unset multiplot\n";
}

}  // namespace

void draw(const CompareReport& report, FileSink& sink) {
  sink.write(run_gnuplot(script_of(report)));
  sink.finish();
}

}  // namespace sluice::cli
