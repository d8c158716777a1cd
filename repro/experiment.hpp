// The papers' experiments, run again: what one is, and what it hands back.
//
// How to add one:
//   1. Values. A line each in repro/PAPER/published.csv:
//
//        id,where,what,printed,corrected,tolerance,why
//        fig8.load.vertical,Fig. 8,"highest load, 40 slices",,0.063,15%,
//
//      `printed` is what the paper prints: a number, or a bound such as <20 or >30; empty where it
//      only draws a curve. `corrected` is what it must be where that is known better: recomputed,
//      or read out of its formulas. `tolerance` is a share (5%) or a difference (0.02). `why` is
//      shown when ours is not within it of what is printed. An id that begins with "claim." is a
//      sentence of the paper's abstract or conclusions.
//   2. Code. A function `Result run_fig8(const Context& context)` in repro/PAPER/: computes
//      with the library, tells its `progress`, and fills in rows (with ids of step 1), figures and,
//      where the figure's curves are not all there is to keep, a table.
//   3. One entry in the list of repro/PAPER/paper.cpp, with its parameters and their ranges.
//
// An experiment takes all its randomness from context.seed() and all its sizes from
// context.scaled(): the same seed and scale give the same files. Experiments run beside each other
// on threads and share nothing.
//
// Parameters that a reader may want to change (--set k=6) are declared in the entry and read by
// context.number(). When one was changed, or the user's own --input is read, values of the paper
// are shown and not judged; what was `predicted` for these parameters is.
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
  // What --set may say.
  double least, most;
};

class Context {
 public:
  struct Settings {
    double scale = 1;
    std::uint64_t seed = 1;
    std::string input;                       // a path, or nothing
    std::vector<Parameter> parameters = {};  // with the values that they have in this run
    const Published* published = nullptr;
    bool changed = false;
    bool smaller = false;  // than the experiment is usually run
    std::function<void(double)> progress = {};
  };
  explicit Context(Settings settings) : settings_(std::move(settings)) {}

  // Of lengths of streams, of universes and of memory; the rest stays as the paper has it.
  double scale() const { return settings_.scale; }
  std::uint64_t scaled(double count, std::uint64_t least = 1) const;
  // Its own for every experiment.
  std::uint64_t seed() const { return settings_.seed; }
  double number(std::string_view parameter) const;
  unsigned whole(std::string_view parameter) const;  // the same; throws BadParameters if it is not
  // A file of the user's own, to be read instead of a generated stream; see input.hpp.
  const std::string& input() const { return settings_.input; }
  const PublishedValue& published(std::string_view id) const { return (*settings_.published)[id]; }
  // What is printed under this id or, where it is known better or not printed, must be: to be
  // drawn.
  double point(std::string_view id) const {
    const PublishedValue& value = published(id);
    return value.corrected.value_or(value.printed);
  }
  // Rows that know what the paper published.
  Rows rows() const {
    return Rows(*settings_.published, !settings_.changed && input().empty(),
                settings_.smaller
                    ? "a smaller run than usual: few events, so more chance, and tables of few "
                      "bits for the same k and number of slices"
                    : "");
  }
  // How much is done, 0 to 1.
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
  // Unless --scale says another: what lets all papers finish in ten minutes on two cores.
  double scale = 1;
  // Rough share of the work: long ones are started first.
  double cost = 1;
  // Figures that are part of it and may be asked for by name: "fig8".
  std::vector<std::string> also = {};
  // Whether --input can stand in for its stream.
  bool reads_input = false;
  bool scales = true;  // --scale changes its sizes
};

struct Paper {
  std::string name;   // "koloniari": its folder, and the word for the command line
  std::string title;  // authors, title, where and when
  Published published;
  std::vector<Experiment> experiments;
  // Errata, readings, and what stands in for data that are not to be had: one paragraph each.
  std::vector<std::string> notes;
};

// In the order of the page. registry.cpp has one line per paper.
const std::vector<Paper>& papers();

}  // namespace sluice::repro
