#include "dedup_window.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>

#include "arguments.hpp"
#include "sluice/base/error.hpp"
#include "sluice/base/quantity.hpp"

namespace sluice::cli {
namespace {

LatePolicy parse_late(const std::string& text) {
  if (text == "pass") return LatePolicy::pass;
  if (text == "drop") return LatePolicy::drop;
  if (text == "mark") return LatePolicy::mark;
  throw BadParameters(fmt::format("--late '{}' is not pass, drop or mark", text));
}

Growth::By parse_growth(const std::string& text) {
  if (text.empty() || text == "density") return Growth::By::density;
  if (text == "cardinality") return Growth::By::cardinality;
  throw BadParameters(fmt::format("--growth '{}' is not density or cardinality", text));
}

void need(const std::string& value, const char* flag, bool there, const char* other) {
  if (!value.empty() && !there) throw BadParameters(fmt::format("{} needs {}", flag, other));
}

// A group of an expression is no flag.
std::string time_text(const std::string& flag) {
  return flag == "--key-regex" ? "--key-regex with a group 'time'" : flag;
}

void check_combination(const DedupFlags& flags) {
  const bool window = !flags.window.empty();
  const char* const time = time_flag(flags);
  if (time != nullptr && !window)
    throw BadParameters(fmt::format("{} needs --window", time_text(time)));
  for (const auto& [value, flag] :
       {std::pair(&flags.late, "--late"), std::pair(&flags.rate, "--rate"),
        std::pair(&flags.slack, "--slack"), std::pair(&flags.npws, "--npws"),
        std::pair(&flags.growth, "--growth")})
    need(*value, flag, window, "--window");
  for (const auto& [given, flag] :
       {std::pair(flags.refresh, "--refresh"), std::pair(flags.arrival_time, "--arrival-time")})
    if (given && !window) throw BadParameters(fmt::format("{} needs --window", flag));
  need(flags.max_ahead, "--max-ahead", time != nullptr, "--event-time and a --window of time");
  need(flags.late_output, "--late-output", flags.late == "mark", "--late mark");
  if (flags.late == "mark" && flags.late_output.empty())
    throw BadParameters("--late mark needs --late-output FILE: where late records go");
}

void check_count_window(const DedupFlags& flags) {
  const char* const time = time_flag(flags);
  for (const auto& [given, flag] :
       {std::pair(time != nullptr, time != nullptr ? time_text(time) : ""),
        std::pair(!flags.max_ahead.empty(), std::string("--max-ahead")),
        std::pair(!flags.late.empty(), std::string("--late")),
        std::pair(!flags.rate.empty(), std::string("--rate"))})
    if (given)
      throw BadParameters(fmt::format(
          "{} needs a window of time: --window {} counts records; give a duration such as 10m",
          flag, flags.window));
  if (!flags.expect.empty())
    throw BadParameters(
        fmt::format("--expect cannot be used with a window of records: --window {} says how many "
                    "are remembered",
                    flags.window));
}

void check_times(const DedupFlags& flags, const WindowSpec& window) {
  const char* const time = time_flag(flags);
  need(flags.late, "--late", time != nullptr,
       "--event-time FIELD: by the time of arrival no record is late");
  if (!flags.arrival_time) return;
  if (!window.by_time())
    throw BadParameters(fmt::format(
        "--arrival-time needs a window of time: --window {} counts records", flags.window));
  if (time != nullptr)
    throw BadParameters(
        fmt::format("--arrival-time and {} exclude each other: give one of them", time_text(time)));
}

// A share of the window, as --slack and --npws take it.
std::optional<double> parse_window_share(const char* flag, const std::string& text) {
  if (text.empty()) return std::nullopt;
  return parse_probability(flag, text);
}

}  // namespace

void add_window_flags(Command& command, DedupFlags& flags) {
  command.group("Window");
  command.option(
      "-w,--window", flags.window,
      "Remember only the last N records let through (1M), a span of time (10m, 24h, 7d), or the "
      "current hour or day in UTC; m means minutes, M a million",
      "1M|10m|hour|day");
  command.flag("--refresh", flags.refresh,
               "A repeat restarts its key's window [it runs from the last record let through]");
  command.option("--event-time", flags.event_time,
                 "Field with the time of the event, written like --key; date and time may be two "
                 "fields (2,3) [the time of arrival]",
                 "FIELD[,FIELD]");
  command.option("--time-bytes", flags.time_bytes,
                 "Lines of fixed width: the bytes with the time, written like --key-bytes", "1-19");
  command.flag("--arrival-time", flags.arrival_time,
               "A time window over files goes by the time at which records are read; without this "
               "flag, files need --event-time");
  add_time_flags(command, flags.times);
  command.option(
      "--max-ahead", flags.max_ahead,
      "Ignore a time further ahead than this until a second record confirms it [one window]",
      "10m");
  command.option("--late", flags.late,
                 "What to do with a record that is a window or more behind: let it through without "
                 "remembering it, hold it back, or write it to --late-output [pass]",
                 "pass|drop|mark");
  command.option("--late-output", flags.late_output, "File for late records, with --late mark",
                 "FILE");
  command.option("--rate", flags.rate,
                 "Expected rate of distinct keys; a hint only: the filter grows on bursts",
                 "50k/s");
  command.option("--slack", flags.slack,
                 "How far past the window a key may still be remembered, as a share of it [4.2%]",
                 "SHARE");
  command.option("--npws", flags.npws,
                 "Peak share of expired keys that are still remembered [4.2%]", "SHARE");
  command.option("--growth", flags.growth,
                 "What makes a stage full: live keys (density), or keys ever written [density]",
                 "density|cardinality");
}

void understand_window(const DedupFlags& flags, DedupRequest& request) {
  check_combination(flags);
  request.options.time_format =
      understand_times(flags.times, request.options.event_time.has_value());
  if (flags.window.empty()) return;
  Window::Params window;
  window.spec = parse_window("--window", flags.window);
  if (!window.spec.by_time()) check_count_window(flags);
  check_times(flags, window.spec);
  window.anchor = flags.refresh ? Anchor::refreshed : Anchor::delivered;
  window.growth = parse_growth(flags.growth);
  if (!flags.rate.empty()) {
    request.rate = parse_rate("--rate", flags.rate);
    if (request.wish.keys)
      throw BadParameters("--rate and --expect say the same thing: give only one of them");
  }
  request.slack = parse_window_share("--slack", flags.slack);
  request.npws = parse_window_share("--npws", flags.npws);
  if (!flags.max_ahead.empty())
    window.max_ahead =
        static_cast<std::uint64_t>(parse_duration("--max-ahead", flags.max_ahead).count());
  else if (window.spec.by_time())
    window.max_ahead = window.spec.size;
  request.options.days = holds_days(window.spec);
  request.arrival_time = flags.arrival_time;
  request.options.today = today();
  if (!flags.late.empty()) request.options.late = parse_late(flags.late);
  request.late_output = flags.late_output;
  request.filter_given |= !(flags.rate.empty() && flags.slack.empty() && flags.npws.empty() &&
                            flags.growth.empty() && flags.max_ahead.empty());
  request.window = window;
}

void check_arrival(const DedupRequest& request, std::span<const FileSource> inputs) {
  const bool by_arrival =
      request.window && request.window->spec.by_time() && !request.options.event_time;
  if (!by_arrival || request.arrival_time) return;
  for (const FileSource& input : inputs)
    if (input.regular())
      throw BadParameters(fmt::format(
          "{}: '{}' is a file, so all its records would arrive now: name the field with "
          "their times (--event-time FIELD), or give --arrival-time if that is meant",
          request.shared ? "the window of the filter" : "--window", input.name()));
}

std::function<Nanoseconds()> arrival_clock(const Window* window) {
  using std::chrono::duration_cast, std::chrono::nanoseconds, std::chrono::steady_clock;
  Nanoseconds start = today();
  if (window != nullptr && window->clock().started())
    start = std::max(start, window->clock().now());
  return [start, since = steady_clock::now()] {
    return start + duration_cast<nanoseconds>(steady_clock::now() - since).count();
  };
}

AnyFilter make_window(const DedupRequest& request) {
  Window window = Window::make(*request.window);
  const auto check = [&](const char* flag, std::optional<double> asked, double held) {
    if (asked && held > *asked * (1 + 1e-9))
      throw BadParameters(
          fmt::format("{} {:g} is too low for filter '{}': it reaches {:.3g} with {} generations; "
                      "choose other parameters for it, or another filter",
                      flag, *asked, request.filter, held, window.generations()));
  };
  check("--slack", request.slack, window.slack());
  check("--npws", request.npws, window.npws());
  return AnyFilter(std::move(window));
}

std::string reading_of(const DedupRequest& request, const Window& window) {
  const WindowSpec& spec = window.params().spec;
  std::string text =
      fmt::format("window: {}", describe(spec, request.window->anchor == Anchor::refreshed));
  if (spec.by_time())
    text += !request.options.event_time ? std::string(" by arrival")
            : request.options.time_by == KeyStyle::By::time_group
                ? std::string(" by event time, group 'time'")
                : fmt::format(" by event time {}{}",
                              request.options.time_by == KeyStyle::By::bytes ? "bytes " : "",
                              *request.options.event_time);
  // Syslog writes the time of a place that nobody knows.
  const TimeReader& times = request.options.time_format;
  if (times.format() == TimeFormat::syslog && times.zone() == nullptr) text += " (in UTC)";
  if (window.generations() > 0)
    text += fmt::format(", forgotten at most {:.1f} % late", 100 * window.slack());
  return text;
}

}  // namespace sluice::cli
