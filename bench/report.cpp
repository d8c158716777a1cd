#include "report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "sluice/kernels/simd.hpp"

namespace sluice::bench {
namespace {

// Columns are aligned by characters, of which UTF-8 may take several bytes for one.
std::size_t width_of(const std::string& text) {
  return static_cast<std::size_t>(
      std::ranges::count_if(text, [](char c) { return (c & 0xC0) != 0x80; }));
}

void print_row(const std::vector<std::string>& cells, const std::vector<std::size_t>& widths) {
  std::string line;
  for (std::size_t i = 0; i < cells.size(); ++i) {
    const std::string pad(widths[i] - width_of(cells[i]), ' ');
    // The first column is a name; the others are numbers.
    line += i == 0 ? "  " + cells[i] + pad : "  " + pad + cells[i];
  }
  fmt::print("{}\n", line);
}

std::string quoted(const std::string& text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
  return out + '"';
}

std::string quoted_list(const std::vector<std::string>& texts) {
  std::string out = "[";
  for (const std::string& text : texts) out += (out.size() > 1 ? ", " : "") + quoted(text);
  return out + "]";
}

}  // namespace

void Report::table(std::string title, std::vector<std::string> columns) {
  flush();
  tables_.push_back({std::move(title), std::move(columns), {}});
  pending_ = true;
}

void Report::row(std::vector<std::string> cells) {
  cells.resize(tables_.back().columns.size());
  tables_.back().rows.push_back(std::move(cells));
}

void Report::flush() {
  if (!std::exchange(pending_, false)) return;
  const Table& table = tables_.back();
  std::vector<std::size_t> widths;
  for (const std::string& column : table.columns) widths.push_back(width_of(column));
  for (const auto& row : table.rows)
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], width_of(row[i]));
  fmt::print("\n{}\n", table.title);
  print_row(table.columns, widths);
  for (const auto& row : table.rows) print_row(row, widths);
  std::fflush(stdout);
}

void Report::at_most(std::string name, double value, double limit) {
  bars_.push_back({std::move(name), value, limit, true});
}

void Report::at_least(std::string name, double value, double limit) {
  bars_.push_back({std::move(name), value, limit, false});
}

void Report::finish() {
  if (!bars_.empty()) {
    table("Bars", {"what", "measured", "bar", ""});
    for (const Bar& bar : bars_)
      row({bar.name,
           bar.value < 0.01 ? fmt::format("{:.1e}", bar.value) : fmt::format("{:.2f}", bar.value),
           fmt::format("{} {:.3g}", bar.at_most ? "≤" : "≥", bar.limit),
           bar.passes() ? "pass" : "MISS"});
  }
  flush();
}

std::string Report::json() const {
  std::string out = fmt::format("{{\n  \"simd\": \"{}\",\n  \"tables\": [", simd_level());
  for (std::size_t t = 0; t < tables_.size(); ++t) {
    out += fmt::format("{}\n    {{\"title\": {},\n     \"columns\": {},\n     \"rows\": [",
                       t ? "," : "", quoted(tables_[t].title), quoted_list(tables_[t].columns));
    for (std::size_t r = 0; r < tables_[t].rows.size(); ++r)
      out += fmt::format("{}\n       {}", r ? "," : "", quoted_list(tables_[t].rows[r]));
    out += "]}";
  }
  out += "],\n  \"bars\": [";
  for (std::size_t b = 0; b < bars_.size(); ++b)
    out +=
        fmt::format("{}\n    {{\"name\": {}, \"value\": {}, \"{}\": {}, \"pass\": {}}}",
                    b ? "," : "", quoted(bars_[b].name), bars_[b].value,
                    bars_[b].at_most ? "at_most" : "at_least", bars_[b].limit, bars_[b].passes());
  return out + "]\n}\n";
}

}  // namespace sluice::bench
