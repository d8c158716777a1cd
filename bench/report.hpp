// What the benchmark found: aligned tables on standard output, and the same as JSON.
#pragma once

#include <string>
#include <vector>

namespace sluice::bench {

class Report {
 public:
  // Starts a table. Its rows follow.
  void table(std::string title, std::vector<std::string> columns);
  void row(std::vector<std::string> cells);
  // Prints the table that was begun. Called by table() and finish() as well.
  void flush();

  // A bar to clear: `value` must be at most, or at least, `limit`.
  void at_most(std::string name, double value, double limit);
  void at_least(std::string name, double value, double limit);

  // Prints what is left and the bars with pass or miss.
  void finish();
  std::string json() const;

 private:
  struct Table {
    std::string title;
    std::vector<std::string> columns;
    std::vector<std::vector<std::string>> rows;
  };
  struct Bar {
    std::string name;
    double value;
    double limit;
    bool at_most;
    bool passes() const { return at_most ? value <= limit : value >= limit; }
  };
  std::vector<Table> tables_;
  std::vector<Bar> bars_;
  bool pending_ = false;
};

}  // namespace sluice::bench
