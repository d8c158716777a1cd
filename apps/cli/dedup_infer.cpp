#include "dedup_infer.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "arguments.hpp"
#include "connectors/files/files.hpp"
#include "places.hpp"
#include "sluice/base/error.hpp"
#include "sluice/base/quantity.hpp"
#include "sluice/stream/prior_file.hpp"

namespace sluice::cli {
namespace {

std::optional<double> parse_cost(const char* flag, const std::string& text) {
  if (text.empty()) return std::nullopt;
  const std::optional<double> cost = read_number(text);
  if (!cost || *cost > kMostCost)
    throw BadParameters(fmt::format(
        "{} '{}' is not a cost: give a number from 0 to {:g}, such as 100", flag, text, kMostCost));
  return cost;
}

std::optional<std::string> field_of(const std::string& text) {
  return text.empty() ? std::nullopt : std::optional(text);
}

std::string priors_in_words(const InferReport& report) {
  if (report.learnt) return "learnt";
  std::string words;
  if (report.options.prior_field) words = "field";
  if (report.table_keys) words += words.empty() ? "table" : ", table";
  return words;
}

std::string cost_in_words(const std::optional<std::string>& field,
                          const std::optional<double>& fixed) {
  if (!field) return fmt::format("{:g}", fixed.value_or(1));
  return fixed ? fmt::format("by {}, or {:g}", *field, *fixed) : fmt::format("by {}", *field);
}

}  // namespace

void add_infer_flags(Command& command, DedupFlags& flags) {
  command.group("Least cost");
  command.option(
      "--cost-lost", flags.cost_lost,
      "Cost of losing an event. With costs, a likely false positive is let through if that is "
      "cheaper, so duplicates may pass. Works with --window (cohort, timing) and bloom [1]",
      "COST");
  command.option("--cost-duplicate", flags.cost_duplicate,
                 "Cost of letting a duplicate through, in the same unit [1]", "COST");
  command.option(
      "--cost-lost-field", flags.cost_lost_field,
      "Field with the cost of losing the record, written like --key. A record without it uses "
      "--cost-lost, or else keeps the filter's verdict",
      "FIELD");
  command.option("--cost-duplicate-field", flags.cost_duplicate_field,
                 "Field with the cost of letting the record through again", "FIELD");
  command.option("--prior-field", flags.prior_field,
                 "Field with the probability that an arriving record has this key", "FIELD");
  command.option("--prior-table", flags.prior_table,
                 "File of keys and these probabilities: a key, a tab and a number on each line",
                 "FILE");
  command.flag("--learn-priors", flags.learn_priors,
               "Learn these probabilities from the stream, in 64 KiB (the default)");
  command.flag(
      "--posterior", flags.posterior,
      "Add to each record the probability that its key was seen: as a last field, or as the "
      "JSON member sluice_posterior");
}

void understand_infer(const DedupFlags& flags, DedupRequest& request) {
  InferOptions infer;
  infer.cost_lost = parse_cost("--cost-lost", flags.cost_lost);
  infer.cost_duplicate = parse_cost("--cost-duplicate", flags.cost_duplicate);
  infer.cost_lost_field = field_of(flags.cost_lost_field);
  infer.cost_duplicate_field = field_of(flags.cost_duplicate_field);
  infer.prior_field = field_of(flags.prior_field);
  infer.posterior = flags.posterior;
  const bool given = infer.prior_field || !flags.prior_table.empty();
  if (!infer.has_costs() && !infer.posterior) {
    if (given || flags.learn_priors)
      throw BadParameters(fmt::format("{} needs --cost-lost and --cost-duplicate, or --posterior",
                                      flags.learn_priors  ? "--learn-priors"
                                      : infer.prior_field ? "--prior-field"
                                                          : "--prior-table"));
    return;
  }
  if (given && flags.learn_priors)
    throw BadParameters(
        "--learn-priors learns what --prior-field and --prior-table say: give one or the other");
  if (infer.cost_lost == 0.0 && infer.cost_duplicate == 0.0)
    throw BadParameters(
        "--cost-lost and --cost-duplicate are both 0: give one of them a cost above that");
  if (flags.prior_table == "-" && std::ranges::count(request.files, "-") > 0)
    throw BadParameters(
        "--prior-table - and the input are both standard input: name a file for one of them");
  request.learn_priors = !given;
  request.prior_table = flags.prior_table;
  request.options.infer = infer;
}

void check_can_infer(const DedupRequest& request, const AnyFilter& filter) {
  if (!request.options.infer) return;
  if (const auto why = Inference::refusal(filter))
    throw BadParameters(fmt::format(
        "{}: {}; give {}", request.options.infer->has_costs() ? "costs" : "--posterior", *why,
        request.window ? "--filter cohort" : "--expect and --filter bloom, or --window"));
}

std::optional<PriorTable> load_priors(const DedupRequest& request, const Hasher& hasher, int wake) {
  if (request.prior_table.empty()) return std::nullopt;
  // Checked now, because opening an output would empty it.
  for (const auto& [flag, output] :
       {std::pair("--output", request.output), std::pair("--duplicates", request.duplicates),
        std::pair("--late-output", request.late_output)})
    if (!output.empty() && same_place(output, request.prior_table))
      throw BadParameters(
          fmt::format("{} '{}' is also --prior-table: write to another file", flag, output));
  FileSource source = FileSource::open(request.prior_table, wake, "--prior-table", request.archives,
                                       request.unpack);
  return read_priors(source, request.options.format, request.options.keys,
                     request.options.key_style, hasher);
}

std::string infer_row(const InferReport& report) {
  const InferOptions& options = report.options;
  const Inference::Stats& verdicts = report.verdicts;
  std::string row = fmt::format(
      "  inference   {} of {} likely duplicates weighed, {} let through; priors {}{}\n",
      format_count(verdicts.inferred), format_count(verdicts.inferred + verdicts.without_prior),
      format_count(verdicts.passed), priors_in_words(report),
      report.withheld ? ", not used because they recently raised the cost" : "");
  if (!options.has_costs()) return row;
  return row +
         fmt::format(
             "  cost        least cost (lost {}, duplicate {}) instead of no false negatives: "
             "{:.4g} expected, {:.4g} by the filter alone; {} of these lost, {:.0f} "
             "duplicates passed\n",
             cost_in_words(options.cost_lost_field, options.cost_lost),
             cost_in_words(options.cost_duplicate_field, options.cost_duplicate), verdicts.cost,
             verdicts.filter_cost,
             report.learnt ? "an unknown number (priors are learnt: --audit measures it)"
                           : fmt::format("about {:.0f}", verdicts.lost),
             verdicts.duplicates);
}

void add_infer(JsonWriter& json, const InferReport& report) {
  const InferOptions& options = report.options;
  const Inference::Stats& verdicts = report.verdicts;
  // A cost that only comes from a field is null.
  const auto add_cost = [&](const char* name, const char* field_name,
                            const std::optional<double>& fixed,
                            const std::optional<std::string>& field) {
    json.field(name, fixed.value_or(field ? std::numeric_limits<double>::quiet_NaN() : 1));
    if (field) json.field(field_name, *field);
  };
  json.begin("inference").field("promise", options.has_costs() ? "least cost" : "the filter's");
  if (options.has_costs()) {
    add_cost("cost_lost", "cost_lost_field", options.cost_lost, options.cost_lost_field);
    add_cost("cost_duplicate", "cost_duplicate_field", options.cost_duplicate,
             options.cost_duplicate_field);
  }
  json.field("priors", priors_in_words(report));
  if (report.table_keys) json.field("prior_table_keys", *report.table_keys);
  if (report.learnt) json.field("priors_withheld", report.withheld);
  json.field("inferred", verdicts.inferred)
      .field("passed", verdicts.passed)
      .field("without_prior", verdicts.without_prior)
      .field("records_without_prior", report.counts.without_prior)
      .field("records_without_cost", report.counts.without_cost)
      .field("expected_cost", verdicts.cost)
      .field("filter_cost", verdicts.filter_cost)
      // Learnt priors are raised on purpose, and expect too few.
      .field("expected_lost",
             report.learnt ? std::numeric_limits<double>::quiet_NaN() : verdicts.lost)
      .field("expected_duplicates", verdicts.duplicates)
      .end();
}

}  // namespace sluice::cli
