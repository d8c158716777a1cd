// `sluice count [FILE ...] --key ...`: how many distinct keys and duplicates there are, before any are
// removed.
#include <fmt/format.h>

#include <unistd.h>

#include <algorithm>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "arguments.hpp"
#include "command.hpp"
#include "commands.hpp"
#include "count_report.hpp"
#include "dedup_request.hpp"
#include "dedup_room.hpp"
#include "log_flags.hpp"
#include "printable.hpp"
#include "signals.hpp"
#include "sluice/base/quantity.hpp"
#include "sluice/plan/plan.hpp"
#include "sluice/stream/dedup.hpp"
#include "sluice/stream/key_text.hpp"
#include "tapped_stream.hpp"
#include "time_flags.hpp"

namespace sluice::cli {
namespace {

struct Flags {
  DedupFlags dedup;
  std::string memory, top = "10", plot;
  std::string stats = "text";
};

constexpr std::uint64_t kUsualMemory = std::uint64_t{64} << 20;
constexpr std::size_t kBars = 20;
constexpr std::size_t kPoints = 200;
constexpr std::uint64_t kMostTop = TopKeys::kKeys;

bool wants_json(const std::string& stats) {
  if (stats != "text" && stats != "json")
    throw BadParameters(fmt::format("--stats '{}' is not text or json", stats));
  return stats == "json";
}

// For the census: what the process takes besides, and to unpack, is not its own. Without --memory, any
// window is unpacked.
std::uint64_t census_bytes(const Flags& flags, DedupRequest& request) {
  if (flags.memory.empty()) return kUsualMemory - kProcessBytes;
  const std::uint64_t memory = parse_size("--memory", flags.memory);
  request.memory = memory;
  make_room(flags.dedup, {}, request, Census::kLeastBytes);
  const std::uint64_t least = kProcessBytes + request.room + Census::kLeastBytes;
  if (memory < least)
    throw BadParameters(
        fmt::format("--memory {} is too small: give {} or more", flags.memory, exact_size(least)));
  share_room(request.room, request);
  return memory - kProcessBytes - request.room;
}

std::size_t top_of(const Flags& flags) {
  const std::uint64_t top = parse_count("--top", flags.top);
  if (top > kMostTop)
    throw BadParameters(fmt::format("--top {} is too many: give at most {}", flags.top, kMostTop));
  return static_cast<std::size_t>(top);
}

DedupRequest request_of(const Flags& flags) {
  DedupRequest request;
  DedupFlags records = flags.dedup;
  understand_input(records, LogTimes::if_there, request);
  request.options.time_format =
      understand_times(records.times, request.options.event_time.has_value());
  request.options.today = today();
  if (!records.log.empty() && request.options.event_time)
    if (auto order = order_by_time(request.files, request.options, request.archives))
      request.notes.push_back(std::move(*order));
  return request;
}

// The kind of picture, by the end of its name.
bool is_png(const std::string& plot) {
  if (!plot.empty() && !plot.ends_with(".png") && !plot.ends_with(".svg"))
    throw BadParameters(
        fmt::format("--plot '{}' names no kind of picture: end it with .svg or .png", plot));
  return plot.ends_with(".png");
}

std::string shell_word(const std::string& word) {
  constexpr const char* kPlain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-+=./:,@%";
  if (!word.empty() && word.find_first_not_of(kPlain) == word.npos) return word;
  // What would be escaped to be shown is escaped for the shell.
  if (printable(word) != word) {
    std::string escaped = "$'";
    for (const char c : word) {
      const auto byte = static_cast<unsigned char>(c);
      if (byte < 0x20 || byte >= 0x7f || c == '\'' || c == '\\')
        escaped += fmt::format("\\x{:02x}", byte);
      else
        escaped += c;
    }
    return escaped + "'";
  }
  std::string quoted = "'";
  for (const char c : word) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return quoted + "'";
}

std::string window_text(Timeline::Axis axis, std::int64_t size) {
  if (axis == Timeline::Axis::time) return format_duration(std::chrono::nanoseconds(size));
  static constexpr std::pair<std::int64_t, const char*> kUnits[] = {
      {1'000'000'000, "G"}, {1'000'000, "M"}, {1'000, "k"}};
  for (const auto& [unit, name] : kUnits)
    if (size % unit == 0) return fmt::format("{}{}", size / unit, name);
  return fmt::format("{}", size);
}

// Of the filter that dedup would choose. None if there is none.
std::optional<std::uint64_t> bytes_of(const PlanRequest& request) {
  const Planning planning = plan(request, PlanScope::choice);
  return planning.chosen ? std::optional(planning.choice().bytes) : std::nullopt;
}

// Records that a window lets through while it lasts: as many as come on average.
std::uint64_t keys_in_window(const CountReport& report, const Census& census,
                             const WindowShare& window) {
  const double through =
      static_cast<double>(report.records) - report.duplicates.value * window.share.value;
  const double part = std::min(
      1.0, static_cast<double>(window.size) / static_cast<double>(census.timeline().span()));
  return std::max<std::uint64_t>(1, static_cast<std::uint64_t>(through * part));
}

void add_options(const Census& census, CountReport& report) {
  for (const WindowShare& window : census.windows()) {
    CountOption option{.window = window_text(report.axis, window.size), .share = window.share};
    PlanRequest request{.window = parse_window("--window", option.window)};
    if (request.window->by_time()) request.expect = keys_in_window(report, census, window);
    option.bytes = bytes_of(request);
    report.options.push_back(std::move(option));
  }
  if (report.options.empty()) return;
  PlanRequest all;
  all.expect = std::max<std::uint64_t>(1, static_cast<std::uint64_t>(report.distinct.value));
  report.options.push_back({.share = {1, 0}, .bytes = plan_named("growing", all).bytes});
}

// The cheapest that holds back nearly all duplicates.
constexpr double kNearlyAll = 0.99;

void suggest(const Flags& flags, CountReport& report) {
  for (std::size_t i = 0; i < report.options.size(); ++i) {
    const CountOption& option = report.options[i];
    if (!option.bytes || option.share.low() < kNearlyAll) continue;
    if (!report.suggested || *option.bytes < *report.options[*report.suggested].bytes)
      report.suggested = i;
  }
  if (!report.suggested) return;
  const std::string& window = report.options[*report.suggested].window;
  std::vector<std::string> words = {"sluice", "dedup"};
  const std::vector<std::string> records = record_arguments(flags.dedup);
  words.insert(words.end(), records.begin(), records.end());
  if (!window.empty()) words.insert(words.end(), {"--window", window});
  if (!window.empty() && report.axis == Timeline::Axis::time) {
    const TimeFlags& times = flags.dedup.times;
    for (const auto& [value, flag] :
         {std::pair(&flags.dedup.event_time, "--event-time"),
          std::pair(&flags.dedup.time_bytes, "--time-bytes"),
          std::pair(&times.format, "--time-format"), std::pair(&times.zone, "--time-zone"),
          std::pair(&times.year, "--year")})
      if (!value->empty()) words.insert(words.end(), {flag, *value});
  }
  words.insert(words.end(), flags.dedup.files.begin(), flags.dedup.files.end());
  for (const std::string& word : words)
    report.suggestion += (report.suggestion.empty() ? "" : " ") + shell_word(word);
}

CountReport report_of(const Flags& flags, const DedupRequest& request, const Census& census,
                      const Dedup& dedup) {
  CountReport report{.unkeyed = dedup.counts().unkeyed, .records = census.records()};
  report.distinct = census.distinct();
  report.duplicates = census.duplicates();
  report.exact = census.exact();
  report.one_in = census.one_in();
  report.windows_one_in = census.windows_one_in();
  report.top = census.top().top(top_of(flags));
  // Of a key that may have come less often than others that are not listed, little can be said.
  if (!report.exact)
    std::erase_if(report.top, [&](const TopKey& key) { return key.most > 2 * key.least; });
  report.others_most = census.top().most_beside(report.top);
  for (TopKey& key : report.top)
    key.key = key_text(request.options.format.kind, dedup.key_parts(), key.key);
  report.axis = census.timeline().axis();
  report.bars = census.timeline().points(kBars);
  report.points = census.timeline().points(kPoints);
  if (report.duplicates.value > 0) add_options(census, report);
  suggest(flags, report);
  return report;
}

void warn_about(const CountReport& report, bool timed) {
  if (report.records == 0 && report.unkeyed > 0)
    warn("count", timed ? "no record had the key and the time: check --key, --event-time and the "
                          "record format"
                        : "no record had the key: check --key and the record format");
  if (report.interrupted)
    warn("count", fmt::format("interrupted: these are the numbers of the first {}",
                              counted(report.records + report.unkeyed, "record")));
}

int run(const Flags& flags) {
  const bool json = wants_json(flags.stats);
  const bool png = is_png(flags.plot);
  top_of(flags);
  DedupRequest request = request_of(flags);
  const std::uint64_t bytes = census_bytes(flags, request);
  Census census(request.options.event_time ? Timeline::Axis::time : Timeline::Axis::records, bytes);
  request.options.tap = [&](const TappedKeys& tapped) {
    census.feed(tapped.digests, tapped.times, tapped.keys);
  };
  request.options.tap_keys = true;
  for (const std::string& text : request.notes) note("count", printable(text));
  // The same input gives the same numbers.
  TappedStream stream(request.options, Secret::from_seed(1));
  StopSignals signals;
  std::vector<FileSource> sources;
  for (const std::string& file : request.files)
    sources.push_back(FileSource::open(file, signals.wake_descriptor(), "input", request.archives,
                                       request.unpack));
  std::optional<FileSink> plot = open_plot(flags.plot, sources);
  stream.run(sources, [&] { return signals.received() == 0; });
  CountReport report = report_of(flags, request, census, stream.dedup());
  report.source = name_of(sources);
  report.interrupted = signals.received() != 0;
  warn_about(report, request.options.event_time.has_value());
  fmt::print("{}", json ? as_json(report) : as_text(report));
  if (plot) draw(report, png, *plot);
  return report.interrupted ? 128 + signals.received() : kDone;
}

}  // namespace

void add_count(Command& app) {
  Command command = app.subcommand(
      "count", "Count distinct keys and duplicates, and say which window would hold them back");
  const auto flags = std::make_shared<Flags>();
  command.positionals("files", flags->dedup.files,
                      "Input files, read one after another; standard input if - or none",
                      "FILE ...");
  add_input_flags(command, flags->dedup);
  command.option("--event-time", flags->dedup.event_time,
                 "Field with the time of the event, written like --key: windows and the plot go by "
                 "it [by the number of the record]",
                 "FIELD[,FIELD]");
  command.option("--time-bytes", flags->dedup.time_bytes,
                 "Lines of fixed width: the bytes with the time, instead of --event-time", "21-39");
  add_time_flags(command, flags->dedup.times);
  command.group("Output");
  command.option("-m,--memory", flags->memory,
                 "The most memory that the whole process may take. If not all keys fit, the "
                 "numbers are estimates, with their errors [64MiB]",
                 "SIZE");
  command.option("--top", flags->top, "How many of the most repeated keys to list", "N");
  command.option("--plot", flags->plot,
                 "Plot the share of duplicates over the stream as SVG or PNG, with gnuplot",
                 "FILE");
  command.option("--stats", flags->stats, "Print the results as text or as one JSON object",
                 "text|json");
  command.footer(
      "Examples:\n"
      "  sluice count access.log --key 1\n"
      "  sluice count --json --key /user,/ad --event-time /time clicks.ndjson\n");
  command.run([flags, command] {
    if (flags->dedup.files.empty() && isatty(STDIN_FILENO) == 1) {
      say(command.help());
      return kUsage;
    }
    return run(*flags);
  });
}

}  // namespace sluice::cli
