#include "repro/run.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cctype>
#include <chrono>
#include <cmath>
#include <exception>
#include <filesystem>
#include <mutex>
#include <numeric>
#include <optional>
#include <thread>

#include "connectors/files/files.hpp"
#include "connectors/gnuplot/gnuplot.hpp"
#include "sluice/base/error.hpp"
#include "sluice/base/quantity.hpp"
#include "sluice/base/random.hpp"

namespace sluice::repro {
namespace {

// FNV-1a: an experiment's name decides its randomness, not when it runs.
std::uint64_t seed_of(std::uint64_t seed, const Paper& paper, const Experiment& experiment) {
  std::uint64_t hash = 0xCBF29CE484222325ULL;
  for (const char c : paper.name + "/" + experiment.name)
    hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001B3ULL;
  return SplitMix64(hash ^ seed * 0x9E3779B97F4A7C15ULL).next();
}

template <class Items>
std::string names_of(const Items& items) {
  std::string text;
  for (const auto& item : items) text.append(text.empty() ? "" : ", ").append(item.name);
  return text;
}

bool wanted(const std::vector<std::string>& names, const std::string& name) {
  return names.empty() || std::ranges::find(names, name) != names.end();
}

// "Figure 5(a)" and "Fig. 5a" are fig5a.
std::string plain_name(const std::string& text) {
  std::string name;
  for (const char c : text)
    if (const int small = std::tolower(static_cast<unsigned char>(c)); std::isalnum(small) != 0)
      name += static_cast<char>(small);
  return name.starts_with("figure") ? "fig" + name.substr(6) : name;
}

// Whether one is the other plus a letter: fig5 and fig5a.
bool is_part(std::string_view part, std::string_view whole) {
  return part.size() == whole.size() + 1 && part.starts_with(whole) &&
         std::isalpha(static_cast<unsigned char>(part.back())) != 0;
}

bool has_experiment(const Paper& paper, const std::string& name) {
  return std::ranges::find(paper.experiments, name, &Experiment::name) != paper.experiments.end();
}

// Whether a name of Wish::only means this experiment; an exact match comes first.
bool is_meant(const Paper& paper, const Experiment& experiment, const std::string& name) {
  if (name == experiment.name) return true;
  if (has_experiment(paper, name)) return false;
  return std::ranges::find(experiment.also, name) != experiment.also.end() ||
         is_part(experiment.name, name) || is_part(name, experiment.name) ||
         std::ranges::any_of(experiment.also,
                             [&](const std::string& also) { return is_part(name, also); });
}

std::string known_names(const Wish& wish) {
  std::string text;
  for (const Paper& paper : papers()) {
    if (!wanted(wish.papers, paper.name)) continue;
    text += fmt::format("{}of {}: ", text.empty() ? "" : "; ", paper.name);
    const char* comma = "";
    for (const Experiment& experiment : paper.experiments) {
      text += comma + experiment.name;
      for (const std::string& also : experiment.also) text += ", " + also;
      comma = ", ";
    }
  }
  return text;
}

struct Setting {
  std::string name;
  double value;
  bool used = false;
};

std::vector<Setting> settings_of(const std::vector<std::string>& texts) {
  std::vector<Setting> settings;
  for (const std::string& text : texts) {
    const std::size_t equals = std::min(text.find('='), text.size());
    const std::optional<double> value =
        read_number(std::string_view(text).substr(std::min(equals + 1, text.size())));
    if (equals == 0 || !value || !std::isfinite(*value))
      throw BadParameters(fmt::format("--set '{}': write NAME=NUMBER, such as k=6", text));
    settings.push_back({text.substr(0, equals), *value});
  }
  return settings;
}

void check_names(const Wish& wish) {
  for (const std::string& name : wish.papers)
    if (std::ranges::find(papers(), name, &Paper::name) == papers().end())
      throw BadParameters(
          fmt::format("there is no paper '{}': choose from {}", name, names_of(papers())));
}

// The parameters of an experiment as this run has them.
Context::Settings with_settings(const Experiment& experiment, std::vector<Setting>& settings) {
  Context::Settings result;
  result.parameters = experiment.parameters;
  for (Parameter& parameter : result.parameters)
    for (Setting& setting : settings)
      if (setting.name == parameter.name) {
        setting.used = true;
        if (setting.value < parameter.least || setting.value > parameter.most)
          throw BadParameters(fmt::format("--set {}={:g} for {}: give {:g} to {:g}", setting.name,
                                          setting.value, experiment.name, parameter.least,
                                          parameter.most));
        result.changed |= parameter.standard != setting.value;
        parameter.standard = setting.value;
      }
  return result;
}

}  // namespace

std::uint64_t Context::scaled(double count, std::uint64_t least) const {
  return std::max(least, static_cast<std::uint64_t>(std::llround(count * scale())));
}

double Context::number(std::string_view parameter) const {
  const auto found = std::ranges::find(settings_.parameters, parameter, &Parameter::name);
  if (found == settings_.parameters.end())
    throw BadParameters(fmt::format("the experiment declares no parameter '{}'", parameter));
  return found->standard;
}

unsigned Context::whole(std::string_view parameter) const {
  const double value = number(parameter);
  if (value < 0 || value > 4e9 || value != std::floor(value))
    throw BadParameters(fmt::format("--set {}={}: give a whole number", parameter, value));
  return static_cast<unsigned>(value);
}

namespace {

Task task_of(const Wish& wish, const Paper& paper, const Experiment& experiment,
             std::vector<Setting>& settings) {
  Context::Settings context = with_settings(experiment, settings);
  if (experiment.scales) context.scale = wish.scale.value_or(experiment.scale);
  context.smaller = experiment.scales && context.scale < experiment.scale;
  context.seed = seed_of(wish.seed, paper, experiment);
  if (experiment.reads_input) context.input = wish.input;
  context.published = &paper.published;
  return {&paper, &experiment, std::move(context)};
}

}  // namespace

std::vector<Task> tasks_of(const Wish& wish) {
  check_names(wish);
  std::vector<Setting> settings = settings_of(wish.settings);
  std::vector<std::string> only;
  for (const std::string& name : wish.only) only.push_back(plain_name(name));
  std::vector<bool> found(only.size());
  std::vector<Task> tasks;
  for (const Paper& paper : papers()) {
    if (!wanted(wish.papers, paper.name)) continue;
    for (const Experiment& experiment : paper.experiments) {
      bool meant = only.empty();
      std::string asked_as;
      for (std::size_t i = 0; i < only.size(); ++i) {
        if (!is_meant(paper, experiment, only[i])) continue;
        found[i] = meant = true;
        if (only[i] != experiment.name) asked_as = only[i];
      }
      if (!meant) continue;
      tasks.push_back(task_of(wish, paper, experiment, settings));
      tasks.back().asked_as = asked_as;
    }
  }
  for (std::size_t i = 0; i < only.size(); ++i)
    if (!found[i])
      throw BadParameters(fmt::format("there is no experiment '{}': choose from those {}",
                                      wish.only[i], known_names(wish)));
  for (const Setting& setting : settings)
    if (!setting.used)
      throw BadParameters(fmt::format(
          "--set {}: no experiment chosen has this parameter; --list shows which have which",
          setting.name));
  if (!wish.input.empty() &&
      std::ranges::none_of(tasks, [](const Task& task) { return task.experiment->reads_input; }))
    throw BadParameters(
        "--input: no experiment chosen reads a stream of your own; --list marks those that do");
  return tasks;
}

std::vector<Done> run(const std::vector<Task>& tasks, unsigned threads, const Progress& progress) {
  // Long ones first, so that none is left alone at the end.
  std::vector<std::size_t> order(tasks.size());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::stable_sort(order, std::greater<>(),
                           [&](std::size_t i) { return tasks[i].experiment->cost; });
  double all = 0;
  for (const Task& task : tasks) all += task.experiment->cost;

  std::vector<std::optional<Result>> results(tasks.size());
  std::vector<double> shares(tasks.size());
  std::atomic<std::size_t> next = 0;
  std::size_t finished = 0;
  std::exception_ptr failed;
  std::mutex mutex;
  const auto moved = [&] {  // with the mutex
    double share = 0;
    for (std::size_t i = 0; i < tasks.size(); ++i) share += shares[i] * tasks[i].experiment->cost;
    if (progress.moved) progress.moved(share / all, finished);
  };
  const auto one = [&](std::size_t at) {
    Context::Settings settings = tasks[at].settings;
    settings.progress = [&, at](double share) {
      const std::lock_guard lock(mutex);
      shares[at] = share;
      moved();
    };
    const auto start = std::chrono::steady_clock::now();
    const bool published = !settings.changed && settings.input.empty();
    Result result = tasks[at].experiment->run(Context(std::move(settings)));
    if (!published) remove_published(result.figure);
    results[at] = std::move(result);
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
    const std::lock_guard lock(mutex);
    ++finished;
    shares[at] = 1;
    if (progress.finished) progress.finished(tasks[at], took.count());
    moved();
  };
  const auto work = [&] {
    for (std::size_t i; (i = next++) < order.size();) try {
        one(order[i]);
      } catch (...) {
        const std::lock_guard lock(mutex);
        if (!failed) failed = std::current_exception();
        next = order.size();
      }
  };
  {
    std::vector<std::jthread> workers;
    for (unsigned i = 1; i < threads; ++i) workers.emplace_back(work);
    work();
  }
  if (failed) std::rethrow_exception(failed);
  std::vector<Done> done;
  for (std::size_t i = 0; i < tasks.size(); ++i)
    done.push_back({&tasks[i], std::move(*results[i])});
  return done;
}

std::vector<Done> run_repeatedly(const Wish& wish, const std::vector<Task>& tasks, unsigned repeats,
                                 const Progress& progress) {
  std::vector<Task> all = tasks;
  for (unsigned i = 1; i < repeats; ++i) {
    Wish other = wish;
    other.seed += i;
    const std::vector<Task> more = tasks_of(other);
    all.insert(all.end(), more.begin(), more.end());
  }
  std::vector<Done> done = run(all, wish.threads, progress);
  for (std::size_t i = 0; i < tasks.size(); ++i) {
    std::vector<const Rows*> others;
    for (std::size_t at = i + tasks.size(); at < done.size(); at += tasks.size())
      others.push_back(&done[at].result.rows);
    done[i].result.rows.compare_with(others);
    done[i].task = &tasks[i];
  }
  done.erase(done.begin() + static_cast<std::ptrdiff_t>(tasks.size()), done.end());
  return done;
}

namespace {

void write_file(const std::filesystem::path& path, std::string_view text) {
  FileSink sink = FileSink::open(path.string());
  sink.write(text);
  sink.finish();
}

std::string csv_of(const Table& table) {
  std::string text;
  const auto line = [&](const std::vector<std::string>& fields) {
    for (std::size_t i = 0; i < fields.size(); ++i)
      text.append(i == 0 ? "" : ",").append(csv_field(fields[i]));
    text += '\n';
  };
  line(table.columns);
  for (const auto& fields : table.lines) line(fields);
  return text;
}

}  // namespace

void make_folder(const std::string& folder) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) throw IoError("cannot make the folder '" + folder + "'", error.value());
}

void write(const std::vector<Done>& done, const std::string& folder, bool figures) {
  const std::filesystem::path root(folder);
  for (const Done& one : done) {
    const std::filesystem::path here = root / one.task->paper->name;
    make_folder(here.string());
    const std::string& name = one.task->experiment->name;
    const Result& result = one.result;
    write_file(here / (name + ".csv"),
               result.table ? csv_of(*result.table) : csv_of(result.figure));
    if (figures && !result.figure.panels.empty())
      write_file(here / (name + ".svg"), run_gnuplot(script_of(result.figure)));
  }
  write_file(root / "reproduction.md", page_of(done, figures));
}

}  // namespace sluice::repro
