// `sluice filters`: every filter with its parameters.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <memory>

#include "arguments.hpp"
#include "command.hpp"
#include "commands.hpp"
#include "help_text.hpp"
#include "json_writer.hpp"
#include "sluice/filters/catalogue.hpp"
#include "words.hpp"

namespace sluice::cli {
namespace {

void print_line(const std::string& line, std::size_t indent) {
  fmt::print("{}", fit_line(line, indent));
}

void print_text() {
  for (const FilterInfo& filter : catalogue()) {
    print_line(fmt::format("{}: {}", filter.name, filter.summary), 4);
    std::size_t names = 0;
    for (const ParameterInfo& parameter : filter.parameters)
      names = std::max(names, parameter.name.size());
    const std::size_t indent = names + 4;
    for (const ParameterInfo& parameter : filter.parameters) {
      print_line(fmt::format("  {:<{}}  {}", parameter.name, names, parameter.meaning), indent);
      print_line(fmt::format("{:{}}{}; default: {}", "", indent, parameter.range,
                             in_flags(parameter.standard)),
                 indent);
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
