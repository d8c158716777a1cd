#include "report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "machine.hpp"
#include "sluice/kernels/simd.hpp"

namespace sluice::bench {
namespace {

// Columns are aligned by characters; in UTF-8 one character may have several bytes.
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

void print(const Table& table) {
  std::vector<std::size_t> widths;
  for (const std::string& column : table.columns) widths.push_back(width_of(column));
  for (const auto& row : table.rows)
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], width_of(row[i]));
  fmt::print("\n{}\n", table.title);
  print_row(table.columns, widths);
  for (const auto& row : table.rows) print_row(row, widths);
  std::fflush(stdout);
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

std::string in_short(std::uint64_t count) {
  if (count >= 1'000'000 && count % 1'000'000 == 0) return fmt::format("{} M", count / 1'000'000);
  if (count >= 1'000 && count % 1'000 == 0) return fmt::format("{} k", count / 1'000);
  return fmt::format("{}", count);
}

std::string Bar::value_text() const {
  return value < 0.01 ? fmt::format("{:.1e}", value) : fmt::format("{:.2f}", value);
}

std::string Bar::limit_text() const {
  return fmt::format("{} {:.3g}", at_most ? "≤" : "≥", limit);
}

std::vector<std::string> bar_columns() {
  return {"what", "measured", "bar", "verdict"};
}

std::vector<std::string> bar_cells(const Bar& bar) {
  return {bar.name, bar.value_text(), bar.limit_text(), bar.holds() ? "holds" : "missed"};
}

void Report::table(std::string title, std::vector<std::string> columns) {
  flush();
  tables_.push_back({part_, std::move(title), std::move(columns)});
  pending_ = true;
}

void Report::row(std::vector<std::string> cells) {
  cells.resize(tables_.back().columns.size());
  tables_.back().rows.push_back(std::move(cells));
}

void Report::flush() {
  if (std::exchange(pending_, false)) print(tables_.back());
}

void Report::at_most(std::string name, double value, double limit) {
  bars_.push_back({std::move(name), value, limit, true});
}

void Report::at_least(std::string name, double value, double limit) {
  bars_.push_back({std::move(name), value, limit, false});
}

void Report::finish() {
  flush();
  if (!claims_.empty()) fmt::print("\nIn short\n");
  for (const std::string& claim : claims_) fmt::print("  - {}\n", claim);
  if (bars_.empty()) return;
  const auto held = std::ranges::count_if(bars_, [](const Bar& bar) { return bar.holds(); });
  Table all{"",
            fmt::format("Bars: {} of {} hold{}", held, bars_.size(),
                        short_ ? " at short counts, which they are not meant for" : ""),
            bar_columns()};
  for (const Bar& bar : bars_) all.rows.push_back(bar_cells(bar));
  print(all);
}

std::string to_json(const Report& report) {
  std::string out = fmt::format("{{\n  \"simd\": \"{}\",\n  \"machine\": [", simd_level());
  for (const auto& [what, value] : machine())
    out += fmt::format("{}[{}, {}]", out.back() == '[' ? "" : ", ", quoted(what), quoted(value));
  out += "],\n  \"tables\": [";
  const char* comma = "";
  for (const Table& table : report.tables()) {
    out += fmt::format(
        "{}\n    {{\"part\": {}, \"title\": {},\n     \"columns\": {},\n     \"rows\": [",
        std::exchange(comma, ","), quoted(table.part), quoted(table.title),
        quoted_list(table.columns));
    for (std::size_t r = 0; r < table.rows.size(); ++r)
      out += fmt::format("{}\n       {}", r ? "," : "", quoted_list(table.rows[r]));
    out += "]}";
  }
  out += fmt::format("],\n  \"claims\": {},\n  \"bars\": [", quoted_list(report.claims()));
  comma = "";
  for (const Bar& bar : report.bars())
    out += fmt::format("{}\n    {{\"name\": {}, \"value\": {}, \"{}\": {}, \"holds\": {}}}",
                       std::exchange(comma, ","), quoted(bar.name), bar.value,
                       bar.at_most ? "at_most" : "at_least", bar.limit, bar.holds());
  return out + "]\n}\n";
}

}  // namespace sluice::bench
