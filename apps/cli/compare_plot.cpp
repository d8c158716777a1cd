#include "compare_plot.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string_view>

#include "connectors/gnuplot/gnuplot.hpp"
#include "printable.hpp"
#include "sluice/base/quantity.hpp"
#include "sluice/window/spec.hpp"

namespace sluice::cli {
namespace {

using Rate = double (CompareCounts::*)() const noexcept;

// Two panels below each other, the legend beside them.
constexpr const char* kHead =
    R"(set terminal svg size {1},720 font 'sans-serif,13' background '#ffffff'
set multiplot layout 2,1 margins {2:.4f},{3:.4f},0.09,0.93 spacing 0.05
set border 3 lc rgb '#555555'
set tics nomirror textcolor rgb '#333333'
set grid xtics ytics lc rgb '#e4e4e4' lt 1
set key at screen {4:.4f},graph 1 left top Left reverse samplen 2 textcolor rgb '#333333'
set xrange [0:{0}]
unset mytics
)";

std::string quoted(std::string_view text) {
  return gnuplot_text(printable(text));
}

// The y axis of a panel. It is logarithmic if rates differ by more than a factor of ten; then 0 is
// drawn at a place of its own below the smallest rate.
struct Axis {
  bool logarithmic = false;
  double low = 0;
  double high = 1;
  double zero = 0;
};

Axis axis_of(const CompareReport& report, Rate rate) {
  double least = 1, greatest = 0;
  for (const CompareResult& result : report.results)
    for (const CompareCounts& point : result.points)
      if (const double value = (point.*rate)(); value > 0) {
        least = std::min(least, value);
        greatest = std::max(greatest, value);
      }
  if (greatest == 0) return {};
  if (greatest < 10 * least) return {.high = std::min(1.05, 1.15 * greatest)};
  const auto power = [](double exponent) { return std::pow(10, exponent); };
  const double low = power(std::floor(std::log10(least)));
  return {.logarithmic = true,
          .low = low,
          .high = power(std::ceil(std::log10(greatest))),
          .zero = 0.4 * low};
}

std::string script_of(const Axis& axis) {
  if (!axis.logarithmic)
    return fmt::format(
        "unset logscale y\nset format y '%g'\nset ytics auto\nunset arrow\n"
        "set yrange [0:{}]\n",
        axis.high);
  return fmt::format(
      "set logscale y\nset format y '10^{{%T}}'\nset ytics auto\nset ytics add ('0' {0:.6g})\n"
      "unset arrow\nset arrow from graph 0, first {1:.6g} to graph 1, first {1:.6g} nohead "
      "lc rgb '#bbbbbb' dt 3\nset yrange [{2:.6g}:{3:.6g}]\n",
      axis.zero, axis.low, 0.6 * axis.zero, axis.high);
}

// In pixels. The legend is as wide as its longest name.
constexpr double kPanelWidth = 720;
constexpr double kLeftMargin = 96;
// What a legend says: the filter, and its error over the whole stream.
std::string legend_of(const CompareResult& result, Rate rate) {
  const double value = (result.counts.*rate)();
  return printable(result.name) + (value > 0 ? fmt::format(": {:.2g}", value) : " (none)");
}

double legend_width(const CompareReport& report) {
  std::size_t longest = 0;
  for (const CompareResult& result : report.results)
    for (const Rate& rate :
         {&CompareCounts::false_positive_rate, &CompareCounts::false_negative_rate})
      longest = std::max(longest, legend_of(result, rate).size());
  return std::ceil(60 + 8.5 * static_cast<double>(longest));
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

// Two blocks of data per filter: the end of each stretch with its rate, and the stretches without
// an error. The first line of each is off the picture: gnuplot wants at least one point.
std::string data_of(const CompareResult& result, Rate rate, const Unit& unit, const Axis& axis) {
  std::string rates = "-1 1\n\n", zeros = "-1 1\n";
  double end = 0;
  for (const CompareCounts& point : result.points) {
    // The last stretch may be too short to tell a rate.
    if (end > 0 && point.records * 2 < result.points.front().records) break;
    end += static_cast<double>(point.records);
    const double value = (point.*rate)();
    const bool drawn = value > 0 || !axis.logarithmic;
    rates += drawn ? fmt::format("{:.8g} {:.6g}\n", end / unit.size, value) : "\n";
    if (!drawn) zeros += fmt::format("{:.8g} {:.6g}\n", end / unit.size, axis.zero);
  }
  return rates + "e\n" + zeros + "e\n";
}

std::string panel(const CompareReport& report, Rate rate, const Unit& unit) {
  const Axis axis = axis_of(report, rate);
  std::string plots = "plot", data;
  for (std::size_t i = 0; i < report.results.size(); ++i) {
    const CompareResult& result = report.results[i];
    const std::string_view colour = gnuplot_colour(i);
    plots += fmt::format(
        "{} '-' using 1:2 with linespoints pt 7 ps 0.3 lw 1.5 lc rgb '{}' title {} noenhanced, "
        "'-' using 1:2 with points pt 7 ps 0.2 lc rgb '{}' notitle",
        i == 0 ? "" : ",", colour, quoted(legend_of(result, rate)), colour);
    data += data_of(result, rate, unit, axis);
  }
  return script_of(axis) + plots + "\n" + data;
}

std::string title_of(const CompareReport& report) {
  std::string text = fmt::format("Errors over the stream: {}, {} records", report.source.name,
                                 format_count(report.truth.counts.records));
  if (report.wish.window) text += ", in " + describe(*report.wish.window, false);
  if (report.wish.memory) text += ", " + format_size(*report.wish.memory) + " per filter";
  return text;
}

std::string script_of(const CompareReport& report) {
  const Unit unit = unit_for(report.truth.counts.records);
  const double length =
      static_cast<double>(std::max<std::uint64_t>(1, report.truth.counts.records));
  const double width = kPanelWidth + legend_width(report);
  std::string text = fmt::format(kHead, length / unit.size, width, kLeftMargin / width,
                                 (kPanelWidth - 30) / width, (kPanelWidth - 15) / width);
  text += "set title " + quoted(title_of(report)) + " noenhanced\n";
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
