#include "compare_report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "json_writer.hpp"
#include "printable.hpp"
#include "sluice/base/quantity.hpp"

namespace sluice::cli {
namespace {

double bits_per_key(const CompareReport& report, const CompareResult& result) {
  if (report.truth.most_keys == 0) return 0;
  return 8 * static_cast<double>(result.stats.bytes) / static_cast<double>(report.truth.most_keys);
}

double records_per_second(const CompareResult& result) {
  return result.seconds > 0 ? static_cast<double>(result.counts.records) / result.seconds : 0;
}

std::string headline(const CompareReport& report) {
  const CompareCounts& stream = report.truth.counts;
  std::string text = fmt::format("{}: {}, {} distinct, {}", printable(report.source.name),
                                 counted(stream.records, "record"), format_count(stream.distinct),
                                 counted(stream.duplicates(), "duplicate"));
  if (report.wish.window)
    text += fmt::format(", in {} ({} at most)", describe(*report.wish.window, false),
                        counted(report.truth.most_keys, "key"));
  for (const auto& [count, what] :
       {std::pair(report.unkeyed, "without a key"), std::pair(report.truth.late, "late"),
        std::pair(report.truth.disbelieved, "with a time not believed")})
    if (count > 0) text += fmt::format("; {} {} left out", format_count(count), what);
  text += fmt::format("\ntruth: {}, exact", format_size(report.truth.bytes));
  if (report.wish.memory)
    text += fmt::format("; each filter of fixed size: {}", format_size(*report.wish.memory));
  return text;
}

using Row = std::vector<std::string>;

// How far a filter's memory is from the common size, if it differs.
double memory_share(const CompareReport& report, const CompareResult& result) {
  if (!report.wish.memory) return 1;
  return static_cast<double>(result.stats.bytes) / static_cast<double>(*report.wish.memory);
}

std::string of_memory(const CompareReport& report, const CompareResult& result) {
  const double share = memory_share(report, result);
  if (std::abs(share - 1) <= 0.05) return "";
  return share < 10 ? fmt::format(" ({:+.0f} %)", 100 * (share - 1))
                    : fmt::format(" (x {:.0f})", share);
}

Row row_of(const CompareReport& report, const CompareResult& result) {
  const CompareCounts& counts = result.counts;
  Row row = {printable(result.name),
             format_count(result.stats.bytes) + of_memory(report, result),
             fmt::format("{:.1f}", bits_per_key(report, result)),
             format_count(counts.false_positives),
             fmt::format("{:.3g}", counts.false_positive_rate()),
             format_count(counts.false_negatives),
             fmt::format("{:.3g}", counts.false_negative_rate())};
  if (report.wish.window) row.push_back(format_count(counts.by_slack));
  const double predicted = result.stats.predicted_fpr;
  row.push_back(std::isfinite(predicted) ? fmt::format("{:.3g}", predicted) : "none");
  row.push_back(fmt::format("{:.1f}", records_per_second(result) / 1e6));
  return row;
}

// `window` is in keys for a count window, otherwise in seconds.
void add_window(JsonWriter& json, const CompareReport& report) {
  const WindowSpec& window = *report.wish.window;
  json.field("window_kind", name_of(window.kind));
  if (!window.by_time()) {
    json.field("window", window.size);
    return;
  }
  json.field("window", static_cast<double>(window.size) * 1e-9)
      .field("late", report.truth.late)
      .field("disbelieved", report.truth.disbelieved);
  if (report.source.generated) json.field("rate", report.source.rate);
}

}  // namespace

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
  const CompareCounts& stream = report.truth.counts;
  json.begin().begin("stream").field("source", report.source.name);
  json.field("generated", report.source.generated);
  if (report.source.generated) json.field("distinct_share", report.source.share);
  json.field("seed", report.source.seed)
      .field("records", stream.records)
      .field("distinct", stream.distinct)
      .field("duplicates", stream.duplicates())
      .field("unkeyed", report.unkeyed)
      .field("interrupted", report.interrupted)
      .field("truth_bytes", report.truth.bytes)
      .field("most_keys", report.truth.most_keys);
  if (report.wish.window) add_window(json, report);
  if (report.wish.memory) json.field("memory", *report.wish.memory);
  json.end().begin_list("filters");
  for (const CompareResult& result : report.results) {
    json.begin()
        .field("filter", result.name)
        .field("parameters", result.settings)
        .field("bytes", result.stats.bytes)
        .field("memory_share", report.wish.memory ? memory_share(report, result)
                                                  : std::numeric_limits<double>::quiet_NaN())
        .field("bits_per_key", bits_per_key(report, result))
        .field("false_positives", result.counts.false_positives)
        .field("false_positive_rate", result.counts.false_positive_rate())
        .field("false_negatives", result.counts.false_negatives)
        .field("false_negative_rate", result.counts.false_negative_rate())
        .field("may_forget", result.forgets);
    if (report.wish.window) json.field("by_slack", result.counts.by_slack);
    json.field("predicted_fpr", result.stats.predicted_fpr)
        .field("records_per_second", records_per_second(result))
        .end();
  }
  json.end_list().end();
  return json.text() + "\n";
}

}  // namespace sluice::cli
