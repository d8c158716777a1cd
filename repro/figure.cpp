#include "repro/figure.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "connectors/gnuplot/gnuplot.hpp"

namespace sluice::repro {
namespace {

// In pixels.
constexpr double kPlotWidth = 470, kPlotHeight = 250;  // of one column; more are narrower
constexpr double kNarrow = 390;
constexpr double kLeft = 98, kRight = 26, kAbove = 42, kBelow = 62, kTitleHeight = 44;
constexpr double kLegendLetter = 7.4;  // the width of a letter, on average
constexpr double kLegendLine = 19, kLegendSample = 62;
constexpr std::size_t kManyPoints = 60;  // with a longer curve in a panel, all have few marks
constexpr std::size_t kFewMarks = 9;

constexpr const char* kHead =
    R"(set terminal svg size {0:.0f},{1:.0f} font 'sans-serif,13' background '#ffffff'
set multiplot title {2} noenhanced font ',15' offset 0,-0.4
set border 3 lc rgb '#555555'
set tics nomirror textcolor rgb '#333333'
set grid xtics ytics lc rgb '#e4e4e4' lt 1
set style fill solid 0.8 noborder
)";

// The number of letters, not of bytes.
std::size_t letters(std::string_view text) {
  return static_cast<std::size_t>(
      std::ranges::count_if(text, [](char c) { return (c & 0xC0) != 0x80; }));
}

// 2^16 and 10^-4 as one writes them.
std::string raised(std::string_view text) {
  static constexpr const char* kDigits[] = {"⁰", "¹", "²", "³", "⁴", "⁵", "⁶", "⁷", "⁸", "⁹"};
  const auto digit = [&](std::size_t at) {
    return at < text.size() && text[at] >= '0' && text[at] <= '9';
  };
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool minus = text[i] == '^' && i + 1 < text.size() && text[i + 1] == '-';
    if (text[i] != '^' || !digit(i + 1 + minus)) {
      out += text[i];
      continue;
    }
    if (minus) out += "⁻";
    for (i += 1 + minus; digit(i); ++i) out += kDigits[text[i] - '0'];
    --i;
  }
  return out;
}

std::string quoted(std::string_view text) {
  return gnuplot_text(raised(text));
}

bool drawable(const Panel& panel, const Point& point) {
  return std::isfinite(point.x) && std::isfinite(point.y) && (!panel.x.log || point.x > 0) &&
         (!panel.y.log || point.y > 0);
}

bool within(const Axis& axis, double value) {
  return value >= axis.from.value_or(-HUGE_VAL) && value <= axis.to.value_or(HUGE_VAL);
}

// Whether nothing of it is visible. gnuplot refuses to draw a panel of such curves only.
bool empty(const Panel& panel, const Curve& curve) {
  return std::ranges::none_of(curve.points, [&](const Point& p) {
    return drawable(panel, p) && within(panel.x, p.x) && within(panel.y, p.y);
  });
}

struct Extent {
  double least = HUGE_VAL, most = -HUGE_VAL;
};

Extent extent_of(const Panel& panel, bool of_x) {
  Extent extent;
  const auto add = [&](double value) {
    extent.least = std::min(extent.least, value);
    extent.most = std::max(extent.most, value);
  };
  for (const Curve& curve : panel.curves)
    for (const Point& point : curve.points)
      if (drawable(panel, point)) add(of_x ? point.x : point.y);
  const Axis& axis = of_x ? panel.x : panel.y;
  if (axis.from) add(*axis.from);
  if (axis.to) add(*axis.to);
  return extent;
}

std::string axis_script(const Panel& panel, char name) {
  const Axis& axis = name == 'x' ? panel.x : panel.y;
  const Extent extent = extent_of(panel, name == 'x');
  std::string text = fmt::format("set {}label {} noenhanced\n", name, quoted(axis.label));
  text += fmt::format("{} logscale {}\n", axis.log ? "set" : "unset", name);
  const bool powers = axis.log && (extent.least < 1e-3 || extent.most > 1e5);
  text += fmt::format("set format {} '{}'\n", name, powers ? "10^{%T}" : "%h");
  const auto bound = [](const std::optional<double>& value) {
    return value ? fmt::format("{:.10g}", *value) : std::string("*");
  };
  text += fmt::format("set {}range [{}:{}]\n", name, bound(axis.from), bound(axis.to));
  if (axis.classes.empty())
    return text + fmt::format("set {}tics scale 1 enhanced {}\n", name,
                              axis.step ? fmt::format("{:.6g}", *axis.step) : "autofreq");
  std::string tics;
  for (std::size_t i = 0; i < axis.classes.size(); ++i)
    tics += fmt::format("{}{} {}", i == 0 ? "" : ", ", quoted(axis.classes[i]), i);
  return text + fmt::format("set {}tics scale 0 noenhanced ({})\n", name, tics);
}

// A colour mixed with black or white.
std::string shade(std::size_t colour, double share, unsigned of) {
  const unsigned rgb =
      static_cast<unsigned>(std::stoul(std::string(gnuplot_colour(colour) + 1), nullptr, 16));
  unsigned mixed = 0;
  for (const unsigned shift : {16u, 8u, 0u}) {
    const double one = (1 - share) * ((rgb >> shift) & 255) + share * of;
    mixed |= static_cast<unsigned>(std::lround(one)) << shift;
  }
  return fmt::format("#{:06x}", mixed);
}

// Filled and open: circle, square, triangles, diamond, pentagon.
constexpr int kMarks[] = {7, 5, 9, 11, 13, 15};

bool has_many_points(const Panel& panel) {
  return std::ranges::any_of(panel.curves, [](const Curve& curve) {
    return curve.style != Curve::Style::points && curve.points.size() > kManyPoints;
  });
}

// `few_marks`: not at every point. The paper's values are open marks of the form and colour of what
// they belong to.
std::string style_of(const Curve& curve, std::size_t colour, bool few_marks) {
  const std::string rgb = gnuplot_colour(colour);
  const int mark = kMarks[colour % std::size(kMarks)];
  const std::size_t every =
      few_marks ? std::max<std::size_t>(1, curve.points.size() / kFewMarks) : 1;
  switch (curve.style) {
    case Curve::Style::line:
      return fmt::format("with linespoints pt {} ps 0.55 pi {} lw 1.8 lc rgb '{}'", mark, every,
                         rgb);
    case Curve::Style::pale:
      return fmt::format("with linespoints pt {} ps 0.6 pi {} lw 1.4 lc rgb '{}'", mark - 1, every,
                         shade(colour, 0.4, 255));
    case Curve::Style::marks:
      return fmt::format("with points pt {} ps 0.9 lc rgb '{}'", mark, rgb);
    case Curve::Style::model:
      return fmt::format("with lines dt (6,5) lw 1.4 lc rgb '{}'", shade(colour, 0.35, 0));
    case Curve::Style::points:
      return fmt::format("with points pt {} ps 1.2 lw 1.8 lc rgb '{}'", mark - 1,
                         shade(colour, 0.35, 0));
    case Curve::Style::steps:
      return fmt::format("with steps lw 1.6 lc rgb '{}'", rgb);
    case Curve::Style::bars:
      return fmt::format("with boxes lc rgb '{}'", rgb);
  }
  return "";
}

// The drawing order: the paper's points last.
int layer(Curve::Style style) {
  using enum Curve::Style;
  return style == bars ? 0 : style == points ? 3 : style == model ? 2 : 1;
}

std::size_t colour_of(const Panel& panel, std::size_t curve) {
  return panel.curves[curve].colour.value_or(static_cast<unsigned>(curve));
}

// Bars of one class are side by side, and points of a bar's colour are above it.
class BarShifts {
 public:
  explicit BarShifts(const Panel& panel) {
    for (std::size_t i = 0; i < panel.curves.size(); ++i)
      if (panel.curves[i].style == Curve::Style::bars) colours_.push_back(colour_of(panel, i));
  }
  bool any() const { return !colours_.empty(); }
  double width() const { return 0.8 / static_cast<double>(colours_.size()); }
  double of(std::size_t colour) const {
    const auto found = std::ranges::find(colours_, colour);
    if (found == colours_.end()) return 0;
    return (static_cast<double>(found - colours_.begin()) -
            (static_cast<double>(colours_.size()) - 1) / 2) *
           width();
  }

 private:
  std::vector<std::size_t> colours_;
};

// The legend entry of a curve.
struct Entry {
  std::string name, style;
  bool operator==(const Entry&) const = default;
};
using Legend = std::vector<Entry>;

Legend legend_of(const Panel& panel) {
  Legend legend;
  for (std::size_t i = 0; i < panel.curves.size(); ++i)
    if (!empty(panel, panel.curves[i]))
      legend.push_back(
          {panel.curves[i].name, style_of(panel.curves[i], colour_of(panel, i), false)});
  return legend;
}

double legend_width(const Legend& legend) {
  std::size_t longest = 0;
  for (const Entry& entry : legend) longest = std::max(longest, letters(entry.name));
  return legend.empty() ? 0 : kLegendSample + kLegendLetter * static_cast<double>(longest);
}

// One legend for all panels, if no name means two things. Panels below each other share one only if
// all their legends are equal.
std::optional<Legend> shared_legend(const std::vector<Legend>& legends, bool one_column) {
  Legend all = legends.front();
  for (const Legend& legend : legends) {
    if (one_column && legend != all) return std::nullopt;
    for (const Entry& entry : legend) {
      const auto found = std::ranges::find(all, entry.name, &Entry::name);
      if (found == all.end())
        all.push_back(entry);
      else if (*found != entry)
        return std::nullopt;
    }
  }
  return all;
}

std::string curves_script(const Panel& panel, const Legend& legend) {
  const BarShifts shifts(panel);
  std::vector<std::size_t> order;
  for (std::size_t i = 0; i < panel.curves.size(); ++i)
    if (!empty(panel, panel.curves[i])) order.push_back(i);
  std::ranges::stable_sort(order, {}, [&](std::size_t i) { return layer(panel.curves[i].style); });
  std::string plots, data;
  for (const std::size_t i : order) {
    const Curve& curve = panel.curves[i];
    plots += fmt::format("{} '-' using 1:2 {} notitle", plots.empty() ? "plot" : ",",
                         style_of(curve, colour_of(panel, i), has_many_points(panel)));
    for (const Point& point : curve.points)
      if (drawable(panel, point))
        data += fmt::format("{:.10g} {:.10g}\n", point.x + shifts.of(colour_of(panel, i)), point.y);
    data += "e\n";
  }
  // The legend in the order in which the curves were given, not in which they are drawn.
  for (const Entry& entry : legend)
    plots += fmt::format(", keyentry {} title {} noenhanced", entry.style, quoted(entry.name));
  return plots + "\n" + data;
}

std::string panel_script(const Panel& panel, const Legend& legend) {
  std::string text = fmt::format("set title {} noenhanced\n", quoted(panel.title));
  text += axis_script(panel, 'x') + axis_script(panel, 'y');
  const BarShifts shifts(panel);
  if (shifts.any()) text += fmt::format("set boxwidth {:.4f} absolute\n", shifts.width() * 0.94);
  // Room above the highest point.
  text += panel.y.log ? "unset offsets\n" : "set offsets 0, 0, graph 0.04, 0\n";
  return text + curves_script(panel, legend);
}

// Where everything is on the sheet.
class Layout {
 public:
  explicit Layout(const Figure& figure)
      : columns_(std::max(1u, figure.columns)), plot_(columns_ == 1 ? kPlotWidth : kNarrow) {
    for (const Panel& panel : figure.panels) legends_.push_back(legend_of(panel));
    if (const auto shared = shared_legend(legends_, columns_ == 1)) {
      legends_.assign(legends_.size(), {});
      legends_[std::min<std::size_t>(columns_, legends_.size()) - 1] = *shared;
    }
    widths_.assign(columns_, 0);
    heights_.assign((legends_.size() + columns_ - 1) / columns_, kPlotHeight);
    for (std::size_t i = 0; i < legends_.size(); ++i) {
      double& width = widths_[i % columns_];
      width = std::max(width, legend_width(legends_[i]));
      double& height = heights_[i / columns_];
      height = std::max(height, kLegendLine * static_cast<double>(legends_[i].size()) - 20);
    }
  }
  double width() const { return left(columns_) - kLeft; }
  double height() const { return top(heights_.size()) - kAbove; }
  const Legend& legend(std::size_t panel) const { return legends_[panel]; }
  std::string place(std::size_t panel) const {
    const double x0 = left(panel % columns_), x1 = x0 + plot_;
    const double y0 = top(panel / columns_), y1 = y0 + heights_[panel / columns_];
    const auto x = [&](double at) { return at / width(); };
    const auto y = [&](double at) { return 1 - at / height(); };
    std::string text = fmt::format(
        "set lmargin at screen {:.5f}\nset rmargin at screen {:.5f}\n"
        "set tmargin at screen {:.5f}\nset bmargin at screen {:.5f}\n",
        x(x0), x(x1), y(y0), y(y1));
    if (legends_[panel].empty()) return text + "unset key\n";
    return text + fmt::format(
                      "set key at screen {:.5f},{:.5f} left top vertical maxrows 60 Left reverse "
                      "samplen 2 textcolor rgb '#333333' noenhanced\n",
                      x(x1 + 14), y(y0 - 4));
  }

 private:
  double left(std::size_t column) const {
    double at = kLeft;
    for (std::size_t i = 0; i < column; ++i) at += plot_ + kRight + widths_[i] + kLeft;
    return at;
  }
  double top(std::size_t line) const {
    double at = kTitleHeight + kAbove;
    for (std::size_t i = 0; i < line; ++i) at += heights_[i] + kBelow + kAbove;
    return at;
  }

  std::size_t columns_;
  double plot_;  // the width of a plot
  std::vector<Legend> legends_;
  std::vector<double> widths_;   // of the legends of a column
  std::vector<double> heights_;  // of the plots of a line
};

}  // namespace

void remove_published(Figure& figure) {
  for (Panel& panel : figure.panels)
    std::erase_if(panel.curves, [](const Curve& curve) {
      return curve.style == Curve::Style::points && !curve.follows;
    });
}

std::string script_of(const Figure& figure) {
  const Layout layout(figure);
  std::string text = fmt::format(kHead, layout.width(), layout.height(), quoted(figure.title));
  for (std::size_t i = 0; i < figure.panels.size(); ++i) {
    const Panel& panel = figure.panels[i];
    if (legend_of(panel).empty()) continue;
    text += layout.place(i) + panel_script(panel, layout.legend(i));
  }
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
