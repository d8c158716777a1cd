#include "page.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "connectors/gnuplot/gnuplot.hpp"
#include "machine.hpp"
#include "page_text.hpp"
#include "sluice/base/error.hpp"

namespace sluice::bench {
namespace {

void write(const std::filesystem::path& file, const std::string& text) {
  std::ofstream out(file, std::ios::binary);
  out << text;
  if (!out.flush()) throw IoError("cannot write " + file.string(), errno);
}

std::string markdown(const std::vector<std::string>& columns,
                     const std::vector<std::vector<std::string>>& rows) {
  const auto line = [](const std::vector<std::string>& cells) {
    std::string out = "|";
    // Outside of code, a dollar sign may begin a formula.
    for (const std::string& cell : cells)
      out += cell.find('$') == std::string::npos ? " " + cell + " |" : " `" + cell + "` |";
    return out + "\n";
  };
  std::string out = line(columns) + "| --- |";
  for (std::size_t i = 1; i < columns.size(); ++i) out += " ---: |";
  out += "\n";
  for (const auto& row : rows) out += line(row);
  return out;
}

// One item of a list, in lines of up to 100 columns.
std::string item(const std::string& text) {
  std::string out = "-";
  std::size_t column = 1;
  std::istringstream words(text);
  for (std::string word; words >> word;) {
    if (column + 1 + word.size() > 100) {
      out += "\n ";
      column = 1;
    }
    out += " " + word;
    column += 1 + word.size();
  }
  return out + "\n";
}

// gnuplot reads the label of a tic as a format, and cuts it off at a percent sign.
std::string tic_text(std::string_view text) {
  std::string out;
  for (const char c : text) out += c == '%' ? std::string("per cent") : std::string(1, c);
  return gnuplot_text(out);
}

// Horizontal bars, the first row on top; the bars of a row's series lie one below the other.
std::string script_of(const Chart& chart) {
  const std::size_t rows = chart.rows.size(), series = chart.series.size();
  double least = 1e300;
  std::size_t longest = 0;
  for (const Chart::Row& row : chart.rows) longest = std::max(longest, row.name.size());
  for (const Chart::Row& row : chart.rows)
    for (const double value : row.values)
      if (value > 0) least = std::min(least, value);
  std::string out = fmt::format(
      "set terminal svg size {},{} font 'sans-serif,13' background '#ffffff' noenhanced\n"
      "set title {} textcolor rgb '#222222'\nset xlabel {}\n"
      "set border 3 lc rgb '#555555'\nset tics textcolor rgb '#333333' nomirror\n"
      "set grid xtics lc rgb '#e4e4e4' lt 1\nset key {}\nset style fill solid 0.85 noborder\n"
      "set yrange [{}:-0.7]\nset xrange [{}:*]\n{}",
      560 + 7 * longest, 120 + rows * (series * 11 + 12), gnuplot_text(chart.title),
      gnuplot_text(chart.axis), series > 1 ? "outside bottom center horizontal" : "off",
      fmt::format("{:.1f}", static_cast<double>(rows) - 0.3),
      chart.logarithmic ? fmt::format("{:.3g}", least / 2) : "0",
      chart.logarithmic ? "set logscale x\n" : "");
  out += "set ytics (";
  for (std::size_t r = 0; r < rows; ++r)
    out += fmt::format("{}{} {}", r ? ", " : "", tic_text(chart.rows[r].name), r);
  out += ")\n$data << END\n";
  const double height = 0.8 / static_cast<double>(series);
  for (std::size_t r = 0; r < rows; ++r) {
    out += fmt::format("{}", r);
    for (const double value : chart.rows[r].values) out += fmt::format(" {:.6g}", value);
    out += "\n";
  }
  out += "END\n";
  out += "plot ";
  for (std::size_t s = 0; s < series; ++s) {
    const double top = -0.4 + height * static_cast<double>(s);
    out += fmt::format(
        "{}$data using {}:($1{:+.3f}):({}):{}:($1{:+.3f}):($1{:+.3f}) with boxxyerror lc rgb '{}' "
        "title {}",
        s ? ", " : "", s + 2, top + height / 2, chart.logarithmic ? least / 2 : 0.0, s + 2, top,
        top + height * 0.92, gnuplot_colour(s), gnuplot_text(chart.series[s]));
  }
  return out + "\n";
}

constexpr const char* kBarsTitle = "How far each measurement is from its limit";

// One line per bar, from its limit to what was measured: to the left if it holds, to the right, in
// another colour, if it is missed.
std::string script_of_bars(const std::vector<Bar>& bars) {
  std::size_t longest = 0;
  for (const Bar& bar : bars) longest = std::max(longest, tic_text(bar.name).size());
  // gnuplot takes letters for wider than they are, and leaves no room for the bars.
  const double names = 20 + 6.4 * static_cast<double>(longest), width = names + 480;
  std::string out = fmt::format(
      "set terminal svg size {:.0f},{} font 'sans-serif,13' background '#ffffff' noenhanced\n"
      "set title {} textcolor rgb '#222222'\n"
      "set xlabel 'share of the limit that is used (logarithmic)'\n"
      "set border 1 lc rgb '#555555'\nset tics textcolor rgb '#333333' nomirror\n"
      "set grid xtics lc rgb '#e4e4e4' lt 1\nset key outside top center horizontal\n"
      "set style fill solid 0.85 noborder\nset logscale x 2\n"
      "set lmargin at screen {:.4f}\nset rmargin at screen {:.4f}\nset yrange [{}:-0.7]\n"
      "set xtics ('1/16' 0.0625, '1/8' 0.125, '1/4' 0.25, '1/2' 0.5, 'limit' 1, '2 ×' 2, '4 ×' 4)\n"
      "set arrow from 1,graph 0 to 1,graph 1 nohead lw 1.2 lc rgb '#555555'\nset ytics scale 0 (",
      width, 140 + 18 * bars.size(), gnuplot_text(kBarsTitle), names / width, 1 - 40 / width,
      fmt::format("{:.1f}", static_cast<double>(bars.size()) - 0.3));
  std::string data;
  for (std::size_t i = 0; i < bars.size(); ++i) {
    const Bar& bar = bars[i];
    out += fmt::format("{}{} {}", i ? ", " : "", tic_text(bar.name), i);
    const double share = bar.at_most ? bar.value / bar.limit : bar.limit / bar.value;
    data += fmt::format("{} {:.6g} {}\n", i, share, bar.holds() ? 1 : 0);
  }
  out += ")\n$data << END\n" + data + "END\nplot ";
  for (const int holds : {1, 0})
    out += fmt::format(
        "{}$data using ($3 == {} ? 1 : 1/0):1:(1):2:($1-0.36):($1+0.36) with boxxyerror lc rgb "
        "'{}' title '{}'",
        holds ? "" : ", ", holds, gnuplot_colour(holds ? 0 : 3), holds ? "holds" : "missed");
  return out + "\n";
}

std::string page_of(const Report& report, const std::vector<Chart>& charts) {
  const auto held =
      std::ranges::count_if(report.bars(), [](const Bar& bar) { return bar.holds(); });
  std::string out = kIntroduction;
  if (!report.claims().empty()) out += "## In short\n\n";
  for (const std::string& claim : report.claims()) out += item(claim);
  out += "\n## The machine\n\n";
  for (const auto& [what, value] : machine()) out += fmt::format("- {}: {}\n", what, value);
  out += fmt::format("\n## The bars: {} of {} hold\n\n", held, report.bars().size());
  std::vector<std::vector<std::string>> rows;
  for (const Bar& bar : report.bars()) rows.push_back(bar_cells(bar));
  out += markdown(bar_columns(), rows);
  if (!report.bars().empty()) out += fmt::format("\n![{}](bars.svg)\n", kBarsTitle);
  for (const Chart& chart : charts)
    out += fmt::format("\n![{}]({}.svg)\n", chart.title, chart.file);
  std::string part;
  for (const Table& table : report.tables()) {
    if (table.part != part) out += fmt::format("\n## {}\n", part = table.part);
    out += fmt::format("\n**{}**\n\n{}", table.title, markdown(table.columns, table.rows));
  }
  return out + kOthers;
}

}  // namespace

void write_results(const std::string& directory, const Report& report) {
  const std::filesystem::path to(directory);
  std::filesystem::create_directories(to);
  write(to / "bench.json", to_json(report));
  const std::vector<Chart>& charts = report.charts();
  if (!report.bars().empty()) write(to / "bars.svg", run_gnuplot(script_of_bars(report.bars())));
  for (const Chart& chart : charts)
    write(to / (chart.file + ".svg"), run_gnuplot(script_of(chart)));
  write(to / "performance.md", page_of(report, charts));
  fmt::print("\n{}\n", (to / "performance.md").string());
}

}  // namespace sluice::bench
