#include "count_report.hpp"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <ctime>
#include <string_view>

#include "json_writer.hpp"
#include "printable.hpp"
#include "sluice/base/quantity.hpp"

namespace sluice::cli {
namespace {

constexpr std::int64_t kSecond = 1'000'000'000;
constexpr std::size_t kBarColumns = 40;

std::uint64_t whole(double value) {
  return static_cast<std::uint64_t>(std::llround(std::max(0.0, value)));
}

std::string percent(double share) {
  return fmt::format("{:.1f} %", 100 * share);
}

// Of a share.
std::string interval(const Estimate& share) {
  return fmt::format("{} to {}", percent(std::max(0.0, share.low())),
                     percent(std::min(1.0, share.high())));
}

double share_of(const Estimate& estimate, std::uint64_t records) {
  return records == 0 ? 0 : estimate.value / static_cast<double>(records);
}

std::string numbers(const CountReport& report) {
  std::string text = fmt::format("{}: {}", printable(report.source),
                                 counted(report.records + report.unkeyed, "record"));
  if (report.unkeyed > 0)
    text += fmt::format("; {} without a key left out", format_count(report.unkeyed));
  text += '\n';
  for (const auto& [name, estimate] :
       {std::pair("distinct", &report.distinct), std::pair("duplicates", &report.duplicates)}) {
    text += fmt::format("  {:<12}{:>16}  {:>7}", name, format_count(whole(estimate->value)),
                        percent(share_of(*estimate, report.records)));
    if (!report.exact)
      text += fmt::format("  {} to {}", format_count(whole(estimate->low())),
                          format_count(whole(estimate->high())));
    text += '\n';
  }
  return text + (report.exact
                     ? "  exact: every key was counted\n"
                     : fmt::format("  estimated from one key in {}: more --memory counts more of "
                                   "them; the ranges hold 95 %\n",
                                   format_count(report.one_in)));
}

std::string top_keys(const CountReport& report) {
  if (report.exact && report.top.empty()) return "";
  const auto times = [](const TopKey& key) {
    return key.least == key.most
               ? format_count(key.most)
               : fmt::format("between {} and {}", format_count(key.least), format_count(key.most));
  };
  std::size_t width = 0;
  for (const TopKey& key : report.top) width = std::max(width, times(key).size());
  std::string text = "\nmost repeated keys\n";
  for (const TopKey& key : report.top)
    text += fmt::format("  {:>{}} times  {}{}\n", times(key), width, printable(key.key),
                        key.cut ? "..." : "");
  if (report.others_most > 1)
    text += fmt::format("  any {}key: at most {} times\n", report.top.empty() ? "" : "other ",
                        format_count(report.others_most));
  return text;
}

// Whether the terminal shows blocks, as far as the environment tells.
bool has_blocks() {
  for (const char* name : {"LC_ALL", "LC_CTYPE", "LANG"}) {
    const char* const value = std::getenv(name);
    if (value == nullptr || *value == '\0') continue;
    const std::string_view locale(value);
    return locale.find("UTF-8") != locale.npos || locale.find("utf8") != locale.npos;
  }
  return false;
}

std::string bar_of(double share) {
  static constexpr const char* kEighths[] = {"", "▏", "▎", "▍", "▌", "▋", "▊", "▉"};
  std::string bar;
  if (!has_blocks()) {
    bar.assign(whole(share * kBarColumns), '#');
    return bar;
  }
  const std::uint64_t eighths = whole(8 * share * kBarColumns);
  for (std::uint64_t i = 0; i < eighths / 8; ++i) bar += "█";
  return bar + kEighths[eighths % 8];
}

std::string time_text(std::int64_t nanoseconds, bool fractions) {
  const std::int64_t past = (nanoseconds % kSecond + kSecond) % kSecond;
  const std::time_t seconds = (nanoseconds - past) / kSecond;
  std::string text = fmt::format("{:%Y-%m-%dT%H:%M:%S}", fmt::gmtime(seconds));
  if (fractions) text += fmt::format(".{:03}", past / 1'000'000);
  return text + "Z";
}

std::string place_of(const CountReport& report, const Timeline::Point& point) {
  if (report.axis == Timeline::Axis::records)
    return format_count(static_cast<std::uint64_t>(point.begin) + 1);
  return time_text(point.begin, report.bars.length < kSecond);
}

std::string length_of(const CountReport& report) {
  return report.axis == Timeline::Axis::records
             ? counted(static_cast<std::uint64_t>(report.bars.length), "record")
             : format_duration(std::chrono::nanoseconds(report.bars.length));
}

std::string over_time(const CountReport& report) {
  if (report.bars.points.size() < 2) return "";
  std::size_t width = 0;
  for (const Timeline::Point& point : report.bars.points)
    width = std::max(width, place_of(report, point).size());
  std::string text = fmt::format("\nduplicates over the stream, per {}\n", length_of(report));
  for (const Timeline::Point& point : report.bars.points) {
    const Estimate share = point.duplicate_share();
    std::string line = fmt::format("  {:>{}}  {:>7}  ", place_of(report, point), width,
                                   point.records == 0 ? "none" : percent(share.value));
    // Before the bars, which have many lengths.
    if (!report.exact) line += fmt::format("{:<20}", share.exact() ? "" : interval(share));
    line += bar_of(share.value);
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + "\n";
  }
  if (report.bars.outside > 0)
    text +=
        fmt::format("  {} far from these times left out\n", counted(report.bars.outside, "record"));
  return text;
}

std::string windows(const CountReport& report) {
  if (report.options.empty()) return "";
  std::string text = "\nduplicates held back by a window, and the memory of its filter\n";
  for (const CountOption& option : report.options) {
    const Estimate& share = option.share;
    text += fmt::format("  {:<20}{:>8}", option.window.empty() ? "every key" : option.window,
                        percent(share.value));
    text += fmt::format("  {:>10}", option.bytes ? format_size(*option.bytes) : "unknown");
    if (!share.exact()) text += "  " + interval(share);
    text += '\n';
  }
  if (report.windows_one_in > 1)
    text += fmt::format("  shares estimated from one key in {} and the most repeated ones\n",
                        format_count(report.windows_one_in));
  return text;
}

std::string advice(const CountReport& report) {
  if (report.suggestion.empty())
    return report.records == 0 ? ""
           : report.exact      ? "\nno duplicates: there is nothing to remove\n"
                               : "\nthe keys that were sampled have no duplicates\n";
  const CountOption& option = report.options.at(*report.suggested);
  return fmt::format("\nto remove {} of the duplicates:\n  {}\n",
                     option.window.empty() ? "all" : percent(option.share.value),
                     printable(report.suggestion));
}

void add_estimate(JsonWriter& json, std::string_view name, const Estimate& estimate) {
  json.begin(name)
      .number("value", estimate.value, 15)
      .field("standard_error", estimate.standard_error)
      .number("low", std::max(0.0, estimate.low()), 15)
      .number("high", estimate.high(), 15)
      .end();
}

// Begin and length in records from 0, or in seconds.
double axis_value(const CountReport& report, std::int64_t value) {
  return static_cast<double>(value) * (report.axis == Timeline::Axis::time ? 1e-9 : 1);
}

void add_timeline(JsonWriter& json, const CountReport& report) {
  json.begin("over_time")
      .field("axis", report.axis == Timeline::Axis::time ? "seconds" : "records")
      .number("length", axis_value(report, report.points.length), 15)
      .field("outside", report.points.outside)
      .begin_list("points");
  for (const Timeline::Point& point : report.points.points)
    json.begin()
        .number("begin", axis_value(report, point.begin), 15)
        .field("records", point.records)
        .number("distinct", point.distinct, 15)
        .field("duplicate_share", point.duplicate_share().value)
        .field("standard_error", point.duplicate_share().standard_error)
        .end();
  json.end_list().end();
}

}  // namespace

std::string as_text(const CountReport& report) {
  return numbers(report) + top_keys(report) + over_time(report) + windows(report) + advice(report);
}

std::string as_json(const CountReport& report) {
  JsonWriter json;
  json.begin()
      .field("source", report.source)
      .field("interrupted", report.interrupted)
      .field("records", report.records + report.unkeyed)
      .field("unkeyed", report.unkeyed)
      .field("exact", report.exact)
      .field("one_in", report.one_in);
  add_estimate(json, "distinct", report.distinct);
  add_estimate(json, "duplicates", report.duplicates);
  json.field("duplicate_share", share_of(report.duplicates, report.records)).begin_list("top");
  for (const TopKey& key : report.top)
    json.begin()
        .field("key", key.key)
        .field("cut", key.cut)
        .field("least", key.least)
        .field("most", key.most)
        .end();
  json.end_list().field("others_at_most", report.others_most);
  add_timeline(json, report);
  json.field("windows_one_in", report.windows_one_in).begin_list("windows");
  for (const CountOption& option : report.options)
    json.begin()
        .field("window", option.window.empty() ? std::optional<std::string>() : option.window)
        .field("share", option.share.value)
        .field("standard_error", option.share.standard_error)
        .field("filter_bytes", option.bytes)
        .end();
  json.end_list()
      .field("suggestion",
             report.suggestion.empty() ? std::optional<std::string>() : report.suggestion)
      .end();
  return json.text() + "\n";
}

}  // namespace sluice::cli
