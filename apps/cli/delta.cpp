// `sluice delta` and `sluice apply`: what changed between two states of one filter, sent and taken.
#include <fmt/format.h>

#include <cstdio>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "arguments.hpp"
#include "command.hpp"
#include "commands.hpp"
#include "connectors/files/state_file.hpp"
#include "connectors/files/stored_file.hpp"
#include "json_writer.hpp"
#include "places.hpp"
#include "printable.hpp"
#include "sluice/base/error.hpp"
#include "sluice/base/quantity.hpp"

namespace sluice::cli {
namespace {

struct Flags {
  std::vector<std::string> files;  // one or two; of two, the first is the old state
  std::string output;
  bool json = false;

  const std::string& last() const { return files.back(); }
  std::optional<StoredFile> base() const {
    return files.size() > 1 ? std::optional<StoredFile>(std::in_place, files.front())
                            : std::nullopt;
  }
};

double share_of(const DeltaSizes& sizes) {
  return static_cast<double>(sizes.delta_bytes) / static_cast<double>(sizes.new_bytes);
}

void print(const Flags& flags, const DeltaSizes& sizes, std::string_view what) {
  if (!flags.json) {
    fmt::print("{}: {}; the delta of {} is {:.2f} % of the snapshot's {}\n",
               printable(flags.output), what, format_size(sizes.delta_bytes), 100 * share_of(sizes),
               format_size(sizes.new_bytes));
    return;
  }
  JsonWriter json;
  json.begin()
      .field("output", flags.output)
      .field("whole", flags.files.size() == 1)
      .field("old_bytes", sizes.old_bytes)
      .field("new_bytes", sizes.new_bytes)
      .field("delta_bytes", sizes.delta_bytes)
      .field("share", share_of(sizes))
      .end();
  fmt::print("{}\n", json.text());
}

// Swapped arguments would overwrite a state with a delta, and the state would be lost.
void check_no_state(const std::string& output) {
  if (!std::filesystem::is_regular_file(output)) return;
  const StoredFile there(output);
  if (there.size() > 0 && !is_delta(there))
    throw BadParameters(fmt::format(
        "'{}' exists and is not a delta: delete it first, or write to another file", output));
}

int make_delta(const Flags& flags) {
  check_output_apart(flags.output, flags.files);
  check_no_state(flags.output);
  const std::optional<StoredFile> base = flags.base();
  const StoredFile fresh(flags.last());
  DeltaSizes sizes;
  StateFile(flags.output).replace([&](Encoder& to) {
    sizes = write_delta(base ? &*base : nullptr, fresh, to);
  });
  print(flags, sizes,
        base ? fmt::format("from '{}' to '{}'", printable(flags.files.front()),
                           printable(flags.last()))
             : fmt::format("all of '{}'", printable(flags.last())));
  return kDone;
}

int apply(const Flags& flags) {
  check_output_apart(flags.output, flags.files);
  const std::optional<StoredFile> base = flags.base();
  const StoredFile delta(flags.last());
  DeltaSizes sizes;
  StateFile(flags.output).save([&](Encoder& to) {
    sizes = apply_delta(base ? &*base : nullptr, delta, to);
  });
  print(flags, sizes,
        base ? fmt::format("'{}' brought up to date by '{}'", printable(flags.files.front()),
                           printable(flags.last()))
             : fmt::format("all of it from '{}'", printable(flags.last())));
  return kDone;
}

struct Words {
  const char* name;
  const char* summary;
  const char* files;
  const char* files_text;
  const char* output;
};

void add(Command& app, const Words& words, int (*run)(const Flags&)) {
  Command command = app.subcommand(words.name, words.summary);
  const auto flags = std::make_shared<Flags>();
  command.positionals("files", flags->files, words.files, words.files_text, 1, 2);
  command.required_option("-o,--output", flags->output, words.output, "FILE");
  command.flag("--json", flags->json, "One JSON object");
  command.run([flags, run] { return run(*flags); });
}

}  // namespace

void add_delta(Command& app) {
  add(app,
      {"delta", "Write what changed between two states of one filter",
       "The state that the other side has, and the present one; with NEW alone, the delta holds "
       "all of it, compressed",
       "[OLD] NEW", "The delta to write"},
      make_delta);
}

void add_apply(Command& app) {
  add(app,
      {"apply", "Update a state with a delta",
       "The state that the delta was made against, and the delta; a delta that holds a whole state "
       "needs no OLD",
       "[OLD] DELTA", "The state file to write"},
      apply);
}

}  // namespace sluice::cli
