// The papers' experiments, rerun: what an experiment is, and what it returns.
//
// How to add one:
//   1. Values. A line each in repro/PAPER/published.csv:
//
//        id,where,what,printed,corrected,tolerance,why,basis
//        fig8.load.vertical,Fig. 8,"highest load, 40 slices",,0.063,5%,,
//
//      `printed` is the value in the paper: a number, or a bound such as <20 or >30; empty if it
//      only draws a curve. `corrected` is the right value if we know better: recomputed, or derived
//      from its formulas. `tolerance` is a share (5%) or a difference (0.02). `why` is shown when
//      our value is outside the tolerance of the printed one. `basis` says why a tolerance is
//      above 10 %. An id that begins with "claim." is a
//      sentence of the paper's abstract or conclusions.
//   2. Code. A function `Result run_fig8(const Context& context)` in repro/PAPER/: computes with
//      the library, reports its `progress`, and returns rows (with ids of step 1), a figure and, if
//      more than the figure's curves should be kept, a table.
//   3. One entry in the list of repro/PAPER/paper.cpp, with its parameters and their ranges.
//
// An experiment takes all its randomness from context.seed() and all its sizes from
// context.scaled(): the same seed and scale give the same files. Experiments run in parallel
// threads and share nothing.
//
// Parameters that a reader may want to change (--set k=6) are declared in the entry and read by
// context.number(). When one was changed, or the user's own --input is read, the paper's values are
// shown and not judged; values `predicted` for these parameters are judged.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "repro/figure.hpp"
#include "repro/row.hpp"

namespace sluice::repro {

struct Parameter {
  std::string name;
  double standard;
  std::string meaning;
  // A parameter that --set can change.
  double least, most;
};

class Context {
 public:
  struct Settings {
    double scale = 1;
    std::uint64_t seed = 1;
    std::string input;                       // a path, or nothing
    std::vector<Parameter> parameters = {};  // with their values in this run
    const Published* published = nullptr;
    bool changed = false;
    bool smaller = false;  // than the experiment's usual size
    std::function<void(double)> progress = {};
  };
  explicit Context(Settings settings) : settings_(std::move(settings)) {}

  // Scales lengths of streams, universes and memory; the rest stays as in the paper.
  double scale() const { return settings_.scale; }
  std::uint64_t scaled(double count, std::uint64_t least = 1) const;
  // Different for every experiment.
  std::uint64_t seed() const { return settings_.seed; }
  double number(std::string_view parameter) const;
  unsigned whole(
      std::string_view parameter) const;  // throws BadParameters if it is not a whole number
  // The user's file, read instead of a generated stream; see input.hpp.
  const std::string& input() const { return settings_.input; }
  const PublishedValue& published(std::string_view id) const { return (*settings_.published)[id]; }
  // The value with this id, for drawing: the corrected one if there is one, otherwise the printed
  // one.
  double point(std::string_view id) const {
    const PublishedValue& value = published(id);
    return value.corrected.value_or(value.printed);
  }
  // Rows that know what the paper published.
  Rows rows() const {
    return Rows(
        *settings_.published, !settings_.changed && input().empty(),
        settings_.smaller
            ? "a smaller run than usual: few events, so more random error, and tables of few "
              "bits for the same k and number of slices"
            : "");
  }
  // The share that is done, 0 to 1.
  void progress(double share) const {
    if (settings_.progress) settings_.progress(share);
  }

 private:
  Settings settings_;
};

// A table as it goes into a CSV file.
struct Table {
  std::vector<std::string> columns;
  std::vector<std::vector<std::string>> lines;
};

struct Result {
  Rows rows;
  Figure figure;                    // no panels: nothing is drawn
  std::optional<Table> table = {};  // instead of the figure's curves
  std::string note = {};            // a sentence or two below the rows
};

// What an experiment does.
using Run = Result(const Context& context);

struct Experiment {
  std::string name;   // "fig5a": of its files
  std::string where;  // "Figure 5(a)"
  std::string title;  // what is measured
  Run* run;
  std::vector<Parameter> parameters = {};
  // The default of --scale: with these, all papers finish in ten minutes on two cores.
  double scale = 1;
  // Rough share of the work: long ones are started first.
  double cost = 1;
  // Names of figures that it contains, for --only: "fig8".
  std::vector<std::string> also = {};
  // Whether --input can replace its stream.
  bool reads_input = false;
  bool scales = true;  // --scale changes its sizes
};

struct Paper {
  std::string name;   // "koloniari": its folder, and the word for the command line
  std::string title;  // authors, title, where and when
  Published published;
  std::vector<Experiment> experiments;
  // Errata, interpretations, and replacements for data that are not available: one paragraph each.
  std::vector<std::string> notes;
};

// In the order of the page. registry.cpp has one line per paper.
const std::vector<Paper>& papers();

}  // namespace sluice::repro
