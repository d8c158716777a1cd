// Cells of a printed table beside ours. All go into the experiment's CSV; the page has one row for
// the table, and one for every cell that is not as printed.
#pragma once

#include <string>

#include "repro/experiment.hpp"

namespace sluice::repro::shtul {

class Cells {
 public:
  Cells(Rows& rows, std::string table);

  // `cell` is "4-3.fp" of id "table2.4-3.fp".
  void add(const std::string& cell, double ours);
  // The row for the table: all cells are as printed or as recomputed.
  void finish();

  std::size_t as_printed() const { return as_printed_; }
  Table table() const { return table_; }

 private:
  Rows& rows_;
  std::string name_;
  Table table_;
  std::size_t as_printed_ = 0, corrected_ = 0, outside_ = 0;
};

// What is published, to be drawn.
double printed(const std::string& id);

}  // namespace sluice::repro::shtul
