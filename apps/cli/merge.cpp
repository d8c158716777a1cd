// `sluice merge A B -o OUT`: one state that remembers the keys of several.
#include <fmt/format.h>

#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "arguments.hpp"
#include "command.hpp"
#include "commands.hpp"
#include "connectors/files/positions.hpp"
#include "connectors/files/state_file.hpp"
#include "json_writer.hpp"
#include "places.hpp"
#include "printable.hpp"
#include "sluice/base/quantity.hpp"
#include "sluice/filters/catalogue.hpp"

namespace sluice::cli {
namespace {

struct Input {
  std::string file;
  FilterStats stats;
};

// "keys=1000 probes=12": the settings of `one` that differ from those of `other`.
std::string unlike(const Settings& one, const Settings& other) {
  std::string text;
  for (const auto& pair : one.pairs())
    if (std::ranges::count(other.pairs(), pair) == 0)
      text += fmt::format("{}{}={}", text.empty() ? "" : " ", pair.first, pair.second);
  return text.empty() ? "nothing else" : text;
}

void check_alike(const std::string& one, const Snapshot& a, const std::string& other,
                 const Snapshot& b) {
  if (a.filter.kind() != b.filter.kind())
    throw BadParameters(
        fmt::format("'{}' holds a filter '{}' and '{}' a filter '{}': only filters with the same "
                    "settings can be merged",
                    one, name_of(a.filter.kind()), other, name_of(b.filter.kind())));
  const std::string why = difference_between(one, a.hasher, a.labels, other, b.hasher, b.labels);
  if (!why.empty()) throw BadParameters("cannot merge: " + why);
}

// Takes `b` into `a`.
void merge_into(const std::string& one, Snapshot& a, const std::string& other, const Snapshot& b) {
  try {
    a.filter.merge(b.filter);
  } catch (const NoMemory& error) {
    throw RunFailed(fmt::format("cannot merge '{}' and '{}': {}", one, other, error.what()));
  } catch (const BadParameters& error) {
    const Settings mine = a.filter.settings(), theirs = b.filter.settings();
    if (!a.filter.can_merge() || mine == theirs)
      throw BadParameters(fmt::format("cannot merge '{}' and '{}': {}", one, other, error.what()));
    throw BadParameters(fmt::format(
        "cannot merge '{}' and '{}': the first has {} and the second {}; make both with "
        "the same --filter, --expect and --fpr",
        one, other, unlike(mine, theirs), unlike(theirs, mine)));
  }
}

void print_text(const std::vector<Input>& inputs, const std::string& output,
                const AnyFilter& filter) {
  const FilterStats stats = filter.stats();
  std::size_t width = output.size();
  for (const Input& input : inputs) width = std::max(width, input.file.size());
  const auto row = [&](const std::string& file, const FilterStats& of) {
    fmt::print("  {:<{}}  {:>15} {}  predicted false positives {}\n", printable(file), width,
               format_count(of.keys), of.keys == 1 ? "key " : "keys",
               format_probability(of.predicted_fpr));
  };
  fmt::print("{} states merged\n", inputs.size());
  for (const Input& input : inputs) row(input.file, input.stats);
  row(output, stats);
  if (stats.capacity > 0)
    fmt::print("filter '{}' of {}, planned for {} keys at {}\n", name_of(filter.kind()),
               format_size(stats.bytes), format_count(stats.capacity),
               format_probability(stats.target_fpr));
  else
    fmt::print("filter '{}' of {}\n", name_of(filter.kind()), format_size(stats.bytes));
}

void print_json(const std::vector<Input>& inputs, const std::string& output,
                const AnyFilter& filter) {
  const FilterStats stats = filter.stats();
  JsonWriter json;
  json.begin().begin_list("inputs");
  for (const Input& input : inputs)
    json.begin()
        .field("file", input.file)
        .field("keys", input.stats.keys)
        .field("bytes", input.stats.bytes)
        .field("predicted_fpr", input.stats.predicted_fpr)
        .end();
  json.end_list()
      .field("output", output)
      .field("filter", name_of(filter.kind()))
      .field("keys", stats.keys)
      .field("capacity", stats.capacity)
      .field("bytes", stats.bytes)
      .field("target_fpr", stats.target_fpr)
      .field("predicted_fpr", stats.predicted_fpr)
      .field("over_target", stats.over_target)
      .end();
  fmt::print("{}\n", json.text());
}

// An unfinished run would lose its place.
Snapshot load_finished(const std::string& file) {
  Snapshot state = load_state(file);
  if (positions_in(state.sections).unfinished())
    throw BadParameters(fmt::format(
        "'{}' holds an unfinished run: finish it first, by running its command again, or give it "
        "up with `sluice dedup --abandon`",
        file));
  return state;
}

// The merged state has delivered to the outputs of all. Standard output is of one run.
void take_outputs(Positions& merged, const Snapshot& state) {
  for (OutputPosition& output : positions_in(state.sections).outputs)
    if (!output.path.empty()) merged.set_output(std::move(output));
}

// Only two filters are in memory at any time, however many files there are.
int merge(const std::vector<std::string>& files, const std::string& output, bool json) {
  check_output_apart(output, files);
  std::vector<Input> inputs;
  Snapshot merged = load_finished(files.front());
  Positions positions;
  take_outputs(positions, merged);
  inputs.push_back({files.front(), merged.filter.stats()});
  for (std::size_t i = 1; i < files.size(); ++i) {
    const Snapshot next = load_finished(files[i]);
    check_alike(files.front(), merged, files[i], next);
    inputs.push_back({files[i], next.filter.stats()});
    merge_into(files.front(), merged, files[i], next);
    take_outputs(positions, next);
  }
  StateFile(output).save(merged.hasher, merged.filter, merged.labels, sections_of(positions));
  const FilterStats stats = merged.filter.stats();
  if (stats.over_target)
    warn("merge",
         fmt::format("'{}' holds about {} keys: its predicted false-positive rate is {}, "
                     "above the target of {}; plan the sites' filters for {}",
                     output, format_count(stats.keys), format_probability(stats.predicted_fpr),
                     format_probability(stats.target_fpr),
                     stats.capacity == 0 ? std::string("a lower one (--fpr)")
                                         : fmt::format("the keys of all (--expect), "
                                                       "instead of {}",
                                                       format_count(stats.capacity))));
  json ? print_json(inputs, output, merged.filter) : print_text(inputs, output, merged.filter);
  return kDone;
}

}  // namespace

void add_merge(Command& app) {
  Command command =
      app.subcommand("merge", "Merge several states into one that remembers all their keys");
  struct Flags {
    std::vector<std::string> files;
    std::string output;
    bool json = false;
  };
  const auto flags = std::make_shared<Flags>();
  command.positionals("files", flags->files,
                      "Two or more state files made with the same settings and secret",
                      "FILE FILE ...", 2, 1 << 20);
  command.required_option("-o,--output", flags->output, "The state file to write", "FILE");
  command.flag("--json", flags->json, "One JSON object");
  command.run([flags] { return merge(flags->files, flags->output, flags->json); });
}

}  // namespace sluice::cli
