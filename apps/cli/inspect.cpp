// `sluice inspect FILE`: what a snapshot holds.
#include <fmt/format.h>

#include <cstdio>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>

#include "arguments.hpp"
#include "command.hpp"
#include "commands.hpp"
#include "connectors/files/positions.hpp"
#include "connectors/files/state_file.hpp"
#include "dedup_report.hpp"
#include "json_writer.hpp"
#include "printable.hpp"
#include "sluice/base/quantity.hpp"
#include "sluice/filters/catalogue.hpp"
#include "sluice/filters/dynamic/dynamic.hpp"
#include "sluice/stream/event_time.hpp"

namespace sluice::cli {
namespace {

// By which records are late; none before the first record, and in windows that know no time.
std::optional<std::string> latest_time(const AnyFilter& filter) {
  const Window* const window = filter.window();
  if (window == nullptr || !window->clock().started()) return std::nullopt;
  return format_time(window->clock().now());
}

// Of a window: it may still be a list of exact keys.
const Window* list_of(const AnyFilter& filter) {
  const Window* const window = filter.window();
  return window != nullptr && window->listed() ? window : nullptr;
}

template <class Row>
void print_positions(const Positions& positions, const Row& row) {
  for (const OutputPosition& output : positions.outputs)
    row("output", fmt::format("{}: {} bytes",
                              output.path.empty() ? "standard output"
                                                  : fmt::format("'{}'", printable(output.path)),
                              format_count(output.end.offset)));
  if (!positions.unfinished()) return;
  const RunPosition& run = *positions.run;
  const InputPosition& current = run.inputs[run.current];
  row("unfinished",
      fmt::format("input {} of {}, '{}', is read {}; run the same command again to continue",
                  format_count(run.current + 1), format_count(run.inputs.size()),
                  printable(current.name),
                  current.regular
                      ? fmt::format("up to byte {} (record {})", format_count(current.end.offset),
                                    format_count(current.records))
                      : "from a pipe"));
}

void add_positions(JsonWriter& json, const Positions& positions) {
  json.begin_list("outputs");
  for (const OutputPosition& output : positions.outputs)
    json.begin().field("path", output.path).field("bytes", output.end.offset).end();
  json.end_list();
  if (!positions.unfinished()) return;
  const RunPosition& run = *positions.run;
  json.begin("unfinished").begin_list("inputs");
  for (const InputPosition& input : run.inputs)
    json.begin()
        .field("name", input.name)
        .field("file", input.regular)
        .field("offset", input.end.offset)
        .end();
  json.end_list()
      .field("current", run.current)
      .field("records", run.inputs[run.current].records)
      .end();
}

void print_text(const std::string& file, const Snapshot& snapshot) {
  const FilterStats stats = snapshot.filter.stats();
  const auto row = [](std::string_view name, const std::string& value) {
    fmt::print("  {:<16} {}\n", name, value);
  };
  fmt::print("{}: an intact snapshot, all checksums match\n", printable(file));
  row("file", format_size(std::filesystem::file_size(file)));
  row("filter", std::string(name_of(snapshot.filter.kind())));
  const Settings settings = snapshot.filter.settings();
  for (const auto& [name, value] : settings.pairs()) row("  " + printable(name), printable(value));
  if (const auto latest = latest_time(snapshot.filter)) row("latest time", *latest);
  row("keys held", format_count(stats.keys));
  if (const Dynamic* dynamic = snapshot.filter.as<Dynamic>()) {
    const DynamicStats series = dynamic->series();
    row("pieces", fmt::format("{}, room for {} more keys; {} keys kept that were to be forgotten",
                              format_count(series.filters), format_count(series.room),
                              format_count(series.kept)));
  }
  if (const Window* list = list_of(snapshot.filter))
    row("form", fmt::format("list of {}, exact; becomes a table at about {}",
                            counted(stats.listed, "key"), format_count(list->most_listed() + 1)));
  row("keys planned", stats.capacity == 0 ? "any number" : format_count(stats.capacity));
  row("memory", format_size(stats.bytes));
  if (list_of(snapshot.filter) == nullptr)
    row("bits per key", fmt::format("{:.1f}", bits_per_key(stats)));
  row("predicted fpr", format_probability(stats.predicted_fpr));
  row("hash", fmt::format("{}, with its own secret", name_of(snapshot.hasher.kind())));
  for (const auto& [name, value] : snapshot.labels) row(printable(name), printable(value));
  print_positions(positions_in(snapshot.sections), row);
}

void print_json(const std::string& file, const Snapshot& snapshot) {
  const FilterStats stats = snapshot.filter.stats();
  JsonWriter json;
  json.begin()
      .field("file", file)
      .field("file_bytes", std::filesystem::file_size(file))
      .field("filter", name_of(snapshot.filter.kind()))
      .field("keys", stats.keys)
      .field("capacity", stats.capacity)
      .field("bytes", stats.bytes)
      .field("bits_per_key", bits_per_key(stats))
      .field("target_fpr", stats.target_fpr)
      .field("predicted_fpr", stats.predicted_fpr)
      .field("hash", name_of(snapshot.hasher.kind()));
  if (const Dynamic* dynamic = snapshot.filter.as<Dynamic>()) {
    const DynamicStats series = dynamic->series();
    json.begin("series")
        .field("pieces", series.filters)
        .field("room", series.room)
        .field("kept", series.kept)
        .field("real_capacity", series.real_capacity)
        .end();
  }
  if (snapshot.filter.window() != nullptr) {
    const Window* const list = list_of(snapshot.filter);
    json.field("form", list != nullptr ? "list" : "table").field("listed", stats.listed);
    if (list != nullptr) json.field("table_at", list->most_listed() + 1);
  }
  if (const auto latest = latest_time(snapshot.filter)) json.field("latest_time", *latest);
  json.begin("parameters");
  const Settings settings = snapshot.filter.settings();
  for (const auto& [name, value] : settings.pairs()) json.field(name, value);
  json.end();
  // A name may occur several times (several keys), so labels are an array, not an object.
  json.pairs("labels", snapshot.labels);
  add_positions(json, positions_in(snapshot.sections));
  json.end();
  fmt::print("{}\n", json.text());
}

}  // namespace

void add_inspect(Command& app) {
  Command command = app.subcommand("inspect", "Describe a snapshot and verify all of it");
  struct Flags {
    std::string file;
    bool json = false;
  };
  const auto flags = std::make_shared<Flags>();
  command.positional("file", flags->file, "A state file or any other snapshot", "FILE");
  command.flag("--json", flags->json, "One JSON object");
  command.run([flags] {
    const Snapshot snapshot = load_state(flags->file);
    flags->json ? print_json(flags->file, snapshot) : print_text(flags->file, snapshot);
    return kDone;
  });
}

}  // namespace sluice::cli
