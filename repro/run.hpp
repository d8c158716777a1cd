// Runs experiments on a few threads and writes their results.
#pragma once

#include <string>
#include <vector>

#include "repro/experiment.hpp"

namespace sluice::repro {

struct Wish {
  std::vector<std::string> papers = {};  // none: all
  // Names of experiments, or of what they contain: "fig9", "Figure 9", "fig9c" and "Table 1"; of
  // all parts of a figure: "fig5". None: all.
  std::vector<std::string> only = {};
  std::optional<double> scale = {};  // none: each experiment's own
  std::uint64_t seed = 1;
  std::string input = {};
  std::vector<std::string> settings = {};  // "k=6"
  unsigned threads = 2;
};

struct Task {
  const Paper* paper;
  const Experiment* experiment;
  Context::Settings settings;
  std::string asked_as = {};  // the name in Wish::only, if it differs from the experiment's
};

// The tasks, in the order of the page. Throws BadParameters for an unknown paper, experiment or
// parameter, or an --input that none of them reads.
std::vector<Task> tasks_of(const Wish& wish);

struct Done {
  const Task* task;
  Result result;
};

// Progress of a run; called from any thread, but never from two at once.
struct Progress {
  std::function<void(double share, std::size_t finished)> moved = {};
  std::function<void(const Task& task, double seconds)> finished = {};
};

// Returns results in the order of the tasks. If an experiment throws, the others are stopped and
// its error is thrown here.
std::vector<Done> run(const std::vector<Task>& tasks, unsigned threads, const Progress& progress);

// The same with the standard errors of `repeats` runs with seeds of their own; the results are
// those of the first. `tasks` is the list of that run.
std::vector<Done> run_repeatedly(const Wish& wish, const std::vector<Task>& tasks, unsigned repeats,
                                 const Progress& progress);

// Makes the folder and its parents. Throws IoError before a long run, not after it.
void make_folder(const std::string& folder);

// DIR/PAPER/EXPERIMENT.csv, .svg (if `figures`), and DIR/reproduction.md. Throws IoError.
void write(const std::vector<Done>& done, const std::string& folder, bool figures);

// The page. The same results give the same text: it names no time and no machine.
std::string page_of(const std::vector<Done>& done, bool figures);

// How many rows are within their tolerance, of what; outside with a reason, and without one.
struct Score {
  std::size_t printed = 0, recomputed = 0, modelled = 0;
  std::size_t explained = 0, unexplained = 0, shown = 0;
  std::size_t within() const { return printed + recomputed + modelled; }
};
Score score_of(const std::vector<Done>& done);

}  // namespace sluice::repro
