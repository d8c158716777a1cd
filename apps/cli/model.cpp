// `sluice model NAME --parameter value ...`: the formulas behind the numbers of the documents.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "apps/cli/models/registry.hpp"
#include "arguments.hpp"
#include "command.hpp"
#include "commands.hpp"
#include "help_text.hpp"
#include "json_writer.hpp"
#include "printable.hpp"

namespace sluice::cli {
namespace {

using model::ModelInfo;
using model::ModelOutput;
using model::ModelParameter;

// Widths in characters, not bytes: names are ASCII, meanings come last.
template <class Items>
std::size_t widest(const Items& items) {
  std::size_t width = 0;
  for (const auto& item : items) width = std::max(width, item.name.size());
  return width;
}

std::string description_of(const ModelInfo& info) {
  std::string text = fit_line(fmt::format("{}: {}", info.name, info.summary), 4);
  const std::size_t flags = widest(info.parameters);
  for (const ModelParameter& parameter : info.parameters) {
    const std::size_t indent = flags + 6;
    text +=
        fit_line(fmt::format("  --{:<{}}  {}", parameter.name, flags, parameter.meaning), indent);
    text += fit_line(
        fmt::format("{:{}}{}; {}", "", indent, range_of(parameter),
                    parameter.standard.empty() ? "required"
                                               : fmt::format("default: {}", parameter.standard)),
        indent);
  }
  const std::size_t names = widest(info.outputs);
  text += "  prints\n";
  for (const ModelOutput& output : info.outputs)
    text += fit_line(fmt::format("    {:<{}}  {}", output.name, names, output.meaning), names + 6);
  return text;
}

void describe_json(const ModelInfo& info) {
  JsonWriter json;
  json.begin().field("name", info.name).field("summary", info.summary).begin("parameters");
  for (const ModelParameter& parameter : info.parameters) {
    json.begin(parameter.name)
        .field("meaning", parameter.meaning)
        .field("range", range_of(parameter))
        .field("needed", parameter.standard.empty());
    if (!parameter.standard.empty()) json.field("default", parameter.standard);
    json.end();
  }
  json.end().begin("outputs");
  for (const ModelOutput& output : info.outputs) json.field(output.name, output.meaning);
  json.end().end();
  fmt::print("{}\n", json.text());
}

void list(bool as_json) {
  for (const ModelInfo& info : model::models()) {
    if (as_json) {
      describe_json(info);
    } else {
      fmt::print("{}\n", description_of(info));
    }
  }
  if (!as_json) fmt::print("Use one with: sluice model NAME --PARAMETER VALUE ...\n");
}

// The arguments after NAME.
struct Request {
  std::vector<std::pair<std::string, std::string>> given;
  bool json = false;
  bool help = false;
};

Request request_of(const ModelInfo& info, const std::vector<std::string>& words) {
  Request request;
  for (std::size_t i = 1; i < words.size(); ++i) {
    const std::string_view word = words[i];
    if (word == "--json") {
      request.json = true;
    } else if (word == "--help" || word == "-h") {
      request.help = true;
    } else if (!word.starts_with("--") || word.size() == 2) {
      throw BadParameters(fmt::format("model '{}': '{}' is not a flag; write --PARAMETER VALUE",
                                      info.name, printable(word)));
    } else if (const std::size_t equals = word.find('='); equals != word.npos) {
      request.given.emplace_back(word.substr(2, equals - 2), word.substr(equals + 1));
    } else if (i + 1 == words.size() || words[i + 1].starts_with("--")) {
      throw BadParameters(
          fmt::format("model '{}': --{} has no value", info.name, printable(word.substr(2))));
    } else {
      request.given.emplace_back(word.substr(2), words[++i]);
    }
  }
  return request;
}

// Eight digits for people, twelve for programs. A value that is not finite prints as "none".
std::string shown(double value) {
  return std::isfinite(value) ? fmt::format("{:.8g}", value) : "none";
}

void print_results(const ModelInfo& info, const Request& request) {
  const model::ModelResults results = info.run(request.given);
  if (request.json) {
    JsonWriter json;
    json.begin().field("model", info.name);
    for (const auto& [name, value] : results) json.number(name, value, 12);
    json.end();
    fmt::print("{}\n", json.text());
    return;
  }
  const std::size_t names = widest(info.outputs);
  std::size_t values = 0;
  for (const auto& [name, value] : results) values = std::max(values, shown(value).size());
  for (std::size_t i = 0; i < results.size(); ++i)
    fmt::print("{}",
               fit_line(fmt::format("{:<{}}  {:<{}}  {}", results[i].first, names,
                                    shown(results[i].second), values, info.outputs[i].meaning),
                        names + values + 4));
}

int run(const std::vector<std::string>& words, bool json) {
  if (words.empty()) {
    list(json);
    return kDone;
  }
  if (words.front().starts_with("-"))
    throw BadParameters("the model comes first: sluice model NAME --PARAMETER VALUE ...");
  const ModelInfo& info = model::model_named(words.front());
  Request request = request_of(info, words);
  request.json |= json;
  if (!request.help)
    print_results(info, request);
  else if (request.json)
    describe_json(info);
  else
    fmt::print("{}", description_of(info));
  return kDone;
}

}  // namespace

void add_model(Command& app) {
  Command command = app.subcommand(
      "model", "Predict errors, sizes and costs with the formulas behind the filters");
  const auto json = std::make_shared<bool>(false);
  command.flag("--json", *json, "Print one JSON object; without NAME, one per model");
  command.footer(
      "sluice model NAME --PARAMETER VALUE ...  print what the model predicts\n"
      "sluice model NAME --help                 print its parameters\n"
      "sluice model                             list all models\n"
      "Example: sluice model apbf --k 10 --l 7");
  // Each model has its own flags: the parser handles nothing from NAME on.
  command.run_with_rest(
      [json](const std::vector<std::string>& words) { return run(words, *json); });
}

}  // namespace sluice::cli
