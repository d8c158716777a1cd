// The results of the benchmark: tables, charts, and bars (limits that hold or are missed). Printed
// at once, and kept for the JSON file and the page.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace sluice::bench {

struct Table {
  std::string part;  // which part of the benchmark it belongs to
  std::string title;
  std::vector<std::string> columns;
  std::vector<std::vector<std::string>> rows = {};
};

// A picture of numbers by name, one horizontal bar for each series.
struct Chart {
  std::string file;  // its name, without folder and extension
  std::string title;
  std::string axis;
  std::vector<std::string> series;  // one or more
  struct Row {
    std::string name;
    std::vector<double> values;  // one per series
  };
  std::vector<Row> rows = {};
  bool logarithmic = false;
};

struct Bar {
  std::string name;
  double value;
  double limit;
  bool at_most;
  bool holds() const { return at_most ? value <= limit : value >= limit; }
  std::string value_text() const;
  std::string limit_text() const;
};

class Report {
 public:
  // The results that follow belong to this part.
  void part(std::string name) { part_ = std::move(name); }
  // Starts a table. Its rows follow.
  void table(std::string title, std::vector<std::string> columns);
  void row(std::vector<std::string> cells);
  // Prints the table that was begun. Called by table() and finish() as well.
  void flush();

  void chart(Chart chart) { charts_.push_back(std::move(chart)); }

  // A bar: `value` must be at most, or at least, `limit`.
  void at_most(std::string name, double value, double limit);
  void at_least(std::string name, double value, double limit);

  // A sentence for the summary: in Markdown, with figures of this run.
  void claim(std::string sentence) { claims_.push_back(std::move(sentence)); }

  // Counts were short: the report says that the bars are not meant for them.
  void is_short() { short_ = true; }
  // Prints the last table, the claims and the table of all bars.
  void finish();

  const std::vector<Table>& tables() const { return tables_; }
  const std::vector<Chart>& charts() const { return charts_; }
  const std::vector<std::string>& claims() const { return claims_; }
  const std::vector<Bar>& bars() const { return bars_; }

 private:
  std::string part_;
  std::vector<Table> tables_;
  std::vector<Chart> charts_;
  std::vector<std::string> claims_;
  std::vector<Bar> bars_;
  bool pending_ = false;
  bool short_ = false;
};

// "100 M", "50 k": a round number in a name.
std::string in_short(std::uint64_t count);

// The columns of the table of all bars, here and on the page.
std::vector<std::string> bar_columns();
std::vector<std::string> bar_cells(const Bar& bar);

std::string to_json(const Report& report);

}  // namespace sluice::bench
