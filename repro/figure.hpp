// A figure in the style of a paper: panels of curves, drawn by gnuplot.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace sluice::repro {

struct Point {
  double x, y;
};

struct Curve {
  enum class Style {
    line,    // ours, measured: a line with a small point at every value
    pale,    // the same, the second of a pair of one colour
    marks,   // ours, over classes that have no order: no line between them
    model,   // a formula: dashed
    points,  // the paper's values: large open points over the lines
    bars,    // ours, over classes
    steps,   // ours, whole numbers over time
  };
  std::string name;
  Style style = Style::line;
  std::vector<Point> points;
  // Curves of one colour belong together: a measurement, its model and the paper's points, which
  // are drawn over the bar of their colour. Without a colour, each curve has its own.
  std::optional<unsigned> colour = {};
  bool follows = false;  // points computed from the parameters by a formula of the paper
};

struct Axis {
  std::string label;  // with its unit
  bool log = false;
  std::optional<double> from = {}, to = {};
  // Names below the values 0, 1, 2, …
  std::vector<std::string> classes = {};
  std::optional<double> step = {};  // between its numbers
};

struct Panel {
  std::string title;
  Axis x, y;
  std::vector<Curve> curves;
};

struct Figure {
  std::string title;
  std::vector<Panel> panels;
  unsigned columns = 1;
};

// Removes the paper's values, which do not apply to other parameters or data.
void remove_published(Figure& figure);

// For gnuplot, which then writes an SVG.
std::string script_of(const Figure& figure);

// panel,curve,x,y: one line per point.
std::string csv_of(const Figure& figure);

// A field of CSV, in quotes where it needs them.
std::string csv_field(const std::string& text);

}  // namespace sluice::repro
