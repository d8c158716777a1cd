#include "repro/figure.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "connectors/gnuplot/gnuplot.hpp"

namespace sluice::repro {
namespace {

// In pixels.
constexpr unsigned kPanelWidth = 560, kPanelHeight = 340, kTitleHeight = 44;
constexpr double kLegendLetter = 7.2;  // the width of a letter, on average
constexpr double kMarginLetter = 7.8;  // what gnuplot counts margins in

constexpr const char* kHead =
    R"(set terminal svg size {0},{1} font 'sans-serif,13' background '#ffffff'
set multiplot layout {2},{3} rowsfirst title {4} noenhanced font ',15' offset 0,-0.4
set border 3 lc rgb '#555555'
set tics nomirror textcolor rgb '#333333'
set grid xtics ytics lc rgb '#e4e4e4' lt 1
set style fill solid 0.8 noborder
set key outside right top vertical Left reverse samplen 2 textcolor rgb '#333333' noenhanced
set lmargin 12
set rmargin {5:.1f}
)";

std::size_t legend_letters(const Figure& figure) {
  std::size_t longest = 0;
  for (const Panel& panel : figure.panels)
    for (const Curve& curve : panel.curves) longest = std::max(longest, curve.name.size());
  return longest;
}

std::string axis_script(const Axis& axis, char name) {
  std::string text = fmt::format("set {}label {} noenhanced\n", name, gnuplot_text(axis.label));
  text += fmt::format("{} logscale {}\n", axis.log ? "set" : "unset", name);
  text += fmt::format("set format {} '{}'\n", name, axis.log && name == 'y' ? "10^{%T}" : "%g");
  const auto bound = [](const std::optional<double>& value) {
    return value ? fmt::format("{:.10g}", *value) : std::string("*");
  };
  text += fmt::format("set {}range [{}:{}]\n", name, bound(axis.from), bound(axis.to));
  if (axis.classes.empty())
    return text + (axis.step ? fmt::format("set {}tics {:.6g}\n", name, *axis.step)
                             : fmt::format("set {}tics autofreq\n", name));
  std::string tics;
  for (std::size_t i = 0; i < axis.classes.size(); ++i)
    tics += fmt::format("{}{} {}", i == 0 ? "" : ", ", gnuplot_text(axis.classes[i]), i);
  return text + fmt::format("set {}tics ({})\n", name, tics);
}

bool drawable(const Panel& panel, const Point& point) {
  return std::isfinite(point.x) && std::isfinite(point.y) && (!panel.x.log || point.x > 0) &&
         (!panel.y.log || point.y > 0);
}

std::string style_of(const Curve& curve, std::size_t colour, bool many) {
  const char* rgb = gnuplot_colour(colour);
  switch (curve.style) {
    case Curve::Style::line:
      return many ? fmt::format("with lines lw 1.6 lc rgb '{}'", rgb)
                  : fmt::format("with linespoints pt 7 ps 0.35 lw 1.6 lc rgb '{}'", rgb);
    case Curve::Style::model:
      return fmt::format("with lines dt 2 lw 1.4 lc rgb '{}'", rgb);
    case Curve::Style::points:
      return fmt::format("with points pt 6 ps 0.9 lw 1.8 lc rgb '{}'", rgb);
    case Curve::Style::steps:
      return fmt::format("with steps lw 1.6 lc rgb '{}'", rgb);
    case Curve::Style::bars:
      return fmt::format("with boxes lc rgb '{}'", rgb);
  }
  return "";
}

std::string panel_script(const Panel& panel) {
  std::string text = fmt::format("set title {} noenhanced\n", gnuplot_text(panel.title));
  text += axis_script(panel.x, 'x') + axis_script(panel.y, 'y');
  const auto bars = static_cast<std::size_t>(std::ranges::count_if(
      panel.curves, [](const Curve& c) { return c.style == Curve::Style::bars; }));
  const double width = bars == 0 ? 1 : 0.8 / static_cast<double>(bars);
  if (bars > 0) text += fmt::format("set boxwidth {:.4f} absolute\n", width * 0.94);
  // Room above the highest point.
  text += panel.y.log ? "unset offsets\n" : "set offsets 0, 0, graph 0.04, 0\n";
  std::string plots, data;
  std::size_t bar = 0;
  for (std::size_t i = 0; i < panel.curves.size(); ++i) {
    const Curve& curve = panel.curves[i];
    // Bars of one class stand beside each other.
    double shift = 0;
    if (curve.style == Curve::Style::bars)
      shift = (static_cast<double>(bar++) - (static_cast<double>(bars) - 1) / 2) * width;
    std::string points;
    for (const Point& point : curve.points)
      if (drawable(panel, point))
        points += fmt::format("{:.10g} {:.10g}\n", point.x + shift, point.y);
    if (points.empty()) continue;
    plots += fmt::format(
        "{} '-' using 1:2 {} title {} noenhanced", plots.empty() ? "plot" : ",",
        style_of(curve, curve.colour.value_or(static_cast<unsigned>(i)), curve.points.size() > 60),
        gnuplot_text(curve.name));
    data += points + "e\n";
  }
  return plots.empty() ? std::string("set multiplot next\n") : text + plots + "\n" + data;
}

}  // namespace

std::string script_of(const Figure& figure) {
  const auto columns = std::max(1u, figure.columns);
  const auto lines = (static_cast<unsigned>(figure.panels.size()) + columns - 1) / columns;
  const auto legend =
      static_cast<unsigned>(60 + kLegendLetter * static_cast<double>(legend_letters(figure)));
  std::string text =
      fmt::format(kHead, (kPanelWidth + legend) * columns, kPanelHeight * lines + kTitleHeight,
                  lines, columns, gnuplot_text(figure.title), legend / kMarginLetter);
  for (const Panel& panel : figure.panels) text += panel_script(panel);
  return text + "unset multiplot\n";
}

std::string csv_field(const std::string& text) {
  if (text.find_first_of(",\"\n") == std::string::npos) return text;
  std::string out = "\"";
  for (const char c : text) out += c == '"' ? std::string("\"\"") : std::string(1, c);
  return out + "\"";
}

std::string csv_of(const Figure& figure) {
  std::string text = "panel,curve,x,y\n";
  for (const Panel& panel : figure.panels)
    for (const Curve& curve : panel.curves)
      for (const Point& point : curve.points)
        text += fmt::format("{},{},{:.10g},{:.10g}\n", csv_field(panel.title),
                            csv_field(curve.name), point.x, point.y);
  return text;
}

}  // namespace sluice::repro
