// `sluice repro [PAPER]…`: the papers' tables and figures, ours beside theirs.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "arguments.hpp"
#include "command.hpp"
#include "commands.hpp"
#include "connectors/gnuplot/gnuplot.hpp"
#include "help_text.hpp"
#include "repro/run.hpp"
#include "sluice/base/quantity.hpp"

namespace sluice::cli {
namespace {

struct Flags {
  std::vector<std::string> papers, only, settings;
  std::string out = "repro-out", scale, seed = "1", input, repeats = "1";
  bool no_plot = false, list = false;
};

double scale_of(const std::string& text) {
  const std::optional<double> scale = read_number(text);
  if (!scale || !(*scale >= 1e-6) || *scale > 1000)
    throw BadParameters(
        fmt::format("--scale '{}': give a number from 0.000001 to 1000, such as 0.1", text));
  return *scale;
}

unsigned repeats_of(const std::string& text) {
  constexpr std::uint64_t kMost = 100;
  const std::uint64_t repeats = parse_count("--repeats", text);
  if (repeats == 0 || repeats > kMost)
    throw BadParameters(fmt::format("--repeats '{}': give a number from 1 to {}", text, kMost));
  return static_cast<unsigned>(repeats);
}

void print_list(const std::vector<repro::Task>& tasks) {
  constexpr std::size_t kIndent = 13;
  const repro::Paper* paper = nullptr;
  for (const repro::Task& task : tasks) {
    if (task.paper != paper)
      fmt::print("{}{}", paper == nullptr ? "" : "\n",
                 fit_line(fmt::format("{}: {}", task.paper->name, task.paper->title), 2));
    paper = task.paper;
    const repro::Experiment& experiment = *task.experiment;
    fmt::print("{}",
               fit_line(fmt::format("  {:<10} {}: {}{}", experiment.name, experiment.where,
                                    experiment.title, experiment.reads_input ? " (--input)" : ""),
                        kIndent));
    for (const repro::Parameter& parameter : experiment.parameters)
      fmt::print("{}", fit_line(fmt::format("{:{}}{}={:g}  {} ({:g} to {:g})", "", kIndent,
                                            parameter.name, parameter.standard, parameter.meaning,
                                            parameter.least, parameter.most),
                                kIndent + 2));
  }
}

// One line that moves on a terminal; elsewhere a line for each experiment that is done.
class Bar {
 public:
  explicit Bar(std::size_t all) : all_(all), terminal_(stderr_is_terminal()) {}

  repro::Progress progress() {
    return {.moved = [this](double share, std::size_t finished) { move(share, finished); },
            .finished = [this](const repro::Task& task, double seconds) { tell(task, seconds); }};
  }
  void clear() {
    if (terminal_) say("\r\033[K");
  }

 private:
  static constexpr int kWidth = 40;

  void move(double share, std::size_t finished) {
    const int permille = static_cast<int>(1000 * std::clamp(share, 0.0, 1.0));
    if (!terminal_ || permille == shown_) return;
    shown_ = permille;
    const int filled = permille * kWidth / 1000;
    say(fmt::format("\r\033[K[{:#<{}}{:.<{}}] {:3} %  {} of {} experiments", "", filled, "",
                    kWidth - filled, permille / 10, finished, all_));
  }
  void tell(const repro::Task& task, double seconds) {
    clear();
    shown_ = -1;
    say(fmt::format("{} {}: {}, {:.1f} s\n", task.paper->name, task.experiment->name,
                    task.experiment->title, seconds));
  }

  std::size_t all_;
  bool terminal_;
  int shown_ = -1;
};

repro::Wish wish_of(const Flags& flags) {
  repro::Wish wish;
  for (const std::string& paper : flags.papers)
    if (paper != "all") wish.papers.push_back(paper);
  wish.only = flags.only;
  wish.settings = flags.settings;
  if (!flags.scale.empty()) wish.scale = scale_of(flags.scale);
  wish.seed = parse_count("--seed", flags.seed);
  wish.input = flags.input;
  wish.threads = std::max(1u, std::thread::hardware_concurrency());
  return wish;
}

int run(const Flags& flags) {
  const repro::Wish wish = wish_of(flags);
  const unsigned repeats = repeats_of(flags.repeats);
  const std::vector<repro::Task> tasks = repro::tasks_of(wish);
  if (flags.list) {
    print_list(tasks);
    return kDone;
  }
  if (!flags.no_plot) need_gnuplot("drawing figures", "give --no-plot");
  repro::make_folder(flags.out);
  for (const repro::Task& task : tasks)
    if (!task.asked_as.empty())
      say(fmt::format("{} of {} is in {}, {}\n", task.asked_as, task.paper->name,
                      task.experiment->name, task.experiment->where));
  Bar bar(tasks.size() * repeats);
  const std::vector<repro::Done> done = repro::run_repeatedly(wish, tasks, repeats, bar.progress());
  bar.clear();
  repro::write(done, flags.out, !flags.no_plot);
  const repro::Score score = repro::score_of(done);
  fmt::print(
      "{} experiment{}: {} rows within tolerance ({} of a printed value, {} of a recomputed one, "
      "{} "
      "of our model), {} outside and explained, {} outside and not explained, {} not judged\n"
      "{}/reproduction.md\n",
      done.size(), done.size() == 1 ? "" : "s", score.within(), score.printed, score.recomputed,
      score.modelled, score.explained, score.unexplained, score.shown, flags.out);
  return kDone;
}

}  // namespace

void add_repro(Command& app) {
  Command command = app.subcommand(
      "repro", "Rerun the experiments of the papers behind the filters, and compare the results");
  const auto flags = std::make_shared<Flags>();
  command.positionals("paper", flags->papers, "koloniari, shtul, dutta, guo or dautrich [all]",
                      "PAPER ...");
  command.option("-o,--out", flags->out, "Folder for the page, the data and the figures", "DIR");
  command.option(
      "--scale", flags->scale,
      "Size of streams, universes and memory as a share of the paper's; 1 is full size [set by "
      "each experiment; all of them together take less than ten minutes]",
      "F");
  command.option("--seed", flags->seed, "The same seed gives the same files", "S");
  command.option("--repeats", flags->repeats,
                 "Run everything this many times, with other seeds, for standard errors", "COUNT");
  command.option(
      "--input", flags->input,
      "Read this stream instead of generating one: one key per line, or source, tab, key", "FILE");
  command.option(
      "--only", flags->only,
      "Run only this experiment, such as fig5a, or fig5 for all its parts; may be repeated",
      "NAME");
  command.option("--set", flags->settings, "Change a parameter of the experiments; may be repeated",
                 "NAME=NUMBER");
  command.flag("--no-plot", flags->no_plot, "Draw no figures; gnuplot is not needed");
  command.flag("--list", flags->list, "List the experiments without running any");
  command.footer("Example: sluice repro koloniari --only fig7c --set k=6");
  command.run([flags] { return run(*flags); });
}

}  // namespace sluice::cli
