// `sluice filters`: every filter with its parameters.
#include <fmt/format.h>

#include <cstdio>
#include <memory>

#include "arguments.hpp"
#include "command.hpp"
#include "commands.hpp"
#include "json_writer.hpp"
#include "sluice/filters/catalogue.hpp"
#include "words.hpp"

namespace sluice::cli {
namespace {

void print_text() {
  for (const FilterInfo& filter : catalogue()) {
    fmt::print("{}: {}\n", filter.name, filter.summary);
    for (const ParameterInfo& parameter : filter.parameters) {
      fmt::print("  {:<8} {}\n", parameter.name, parameter.meaning);
      fmt::print("  {:<8} {}; default: {}\n", "", parameter.range, in_flags(parameter.standard));
    }
    fmt::print("\n");
  }
  fmt::print("Use one with: sluice dedup --filter NAME,PARAMETER=VALUE,…\n");
}

// One object per filter and line.
void print_json() {
  for (const FilterInfo& filter : catalogue()) {
    JsonWriter json;
    json.begin().field("name", filter.name).field("summary", filter.summary).begin("parameters");
    for (const ParameterInfo& parameter : filter.parameters)
      json.begin(parameter.name)
          .field("meaning", parameter.meaning)
          .field("range", parameter.range)
          .field("default", in_flags(parameter.standard))
          .end();
    json.end().end();
    fmt::print("{}\n", json.text());
  }
}

}  // namespace

void add_filters(Command& app) {
  Command command = app.subcommand("filters", "List the filters and their parameters");
  const auto json = std::make_shared<bool>(false);
  command.flag("--json", *json, "One JSON object per filter");
  command.run([json] {
    *json ? print_json() : print_text();
    return kDone;
  });
}

}  // namespace sluice::cli
