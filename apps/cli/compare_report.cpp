#include "compare_report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "json_writer.hpp"
#include "printable.hpp"
#include "sluice/base/quantity.hpp"

namespace sluice::cli {
namespace {

double bits_a_key(const CompareReport& report, const CompareResult& result) {
  if (report.keys() == 0) return 0;
  return 8 * static_cast<double>(result.stats.bytes) / static_cast<double>(report.keys());
}

double records_a_second(const CompareResult& result) {
  return result.seconds > 0 ? static_cast<double>(result.counts.records) / result.seconds : 0;
}

std::string headline(const CompareReport& report) {
  const CompareCounts& stream = report.stream;
  std::string text = fmt::format("{}: {} records, {} distinct, {} duplicates",
                                 printable(report.source.name), format_count(stream.records),
                                 format_count(stream.distinct), format_count(stream.duplicates()));
  if (report.wish.window)
    text += fmt::format(", in a window of {}", format_count(*report.wish.window));
  if (report.unkeyed > 0)
    text += fmt::format("; {} without a key left out", format_count(report.unkeyed));
  return text;
}

using Row = std::vector<std::string>;

Row row_of(const CompareReport& report, const CompareResult& result) {
  const CompareCounts& counts = result.counts;
  Row row = {printable(result.name),
             format_count(result.stats.bytes),
             fmt::format("{:.1f}", bits_a_key(report, result)),
             format_count(counts.false_positives),
             fmt::format("{:.3g}", counts.false_positive_rate()),
             format_count(counts.false_negatives),
             fmt::format("{:.3g}", counts.false_negative_rate())};
  if (report.wish.window) row.push_back(format_count(counts.by_slack));
  const double predicted = result.stats.predicted_fpr;
  row.push_back(std::isfinite(predicted) ? fmt::format("{:.3g}", predicted) : "none");
  row.push_back(fmt::format("{:.1f}", records_a_second(result) / 1e6));
  return row;
}

}  // namespace

std::uint64_t CompareReport::keys() const {
  return std::min(stream.distinct, wish.window.value_or(stream.distinct));
}

std::string as_table(const CompareReport& report) {
  std::vector<Row> rows = {{"filter", "bytes", "bits/key", "false+", "rate", "false-", "rate"}};
  if (report.wish.window) rows[0].push_back("by slack");
  rows[0].insert(rows[0].end(), {"predicted+", "M records/s"});
  for (const CompareResult& result : report.results) rows.push_back(row_of(report, result));
  std::string text = headline(report) + "\n\n";
  for (const Row& row : rows) {
    for (std::size_t column = 0; column < row.size(); ++column) {
      std::size_t width = 0;
      for (const Row& other : rows) width = std::max(width, other[column].size());
      text += column == 0 ? fmt::format("{:<{}}", row[0], width)
                          : fmt::format("  {:>{}}", row[column], width);
    }
    text += '\n';
  }
  return text;
}

std::string as_json(const CompareReport& report) {
  JsonWriter json;
  json.begin().begin("stream").field("source", report.source.name);
  json.field("generated", report.source.generated);
  if (report.source.generated) json.field("distinct_share", report.source.share);
  json.field("seed", report.source.seed)
      .field("records", report.stream.records)
      .field("distinct", report.stream.distinct)
      .field("duplicates", report.stream.duplicates())
      .field("unkeyed", report.unkeyed);
  if (report.wish.window) json.field("window", *report.wish.window);
  if (report.wish.memory) json.field("memory", *report.wish.memory);
  json.end().begin_list("filters");
  for (const CompareResult& result : report.results) {
    json.begin()
        .field("filter", result.name)
        .field("parameters", result.settings)
        .field("bytes", result.stats.bytes)
        .field("bits_per_key", bits_a_key(report, result))
        .field("false_positives", result.counts.false_positives)
        .field("false_positive_rate", result.counts.false_positive_rate())
        .field("false_negatives", result.counts.false_negatives)
        .field("false_negative_rate", result.counts.false_negative_rate());
    if (report.wish.window) json.field("by_slack", result.counts.by_slack);
    json.field("predicted_fpr", result.stats.predicted_fpr)
        .field("records_per_second", records_a_second(result))
        .end();
  }
  json.end_list().end();
  return json.text() + "\n";
}

}  // namespace sluice::cli
