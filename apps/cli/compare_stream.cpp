#include "compare_stream.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "arguments.hpp"
#include "command.hpp"
#include "dedup_request.hpp"
#include "dedup_window.hpp"
#include "log_flags.hpp"
#include "printable.hpp"
#include "sluice/base/error.hpp"
#include "sluice/base/quantity.hpp"
#include "tapped_stream.hpp"

namespace sluice::cli {
namespace {

// Within the range of clocks (window/clock.cpp).
constexpr double kLastMoment = 0x1.0p61;

std::optional<SyntheticOptions> made_up(const CompareStreamFlags& flags, std::uint64_t seed) {
  if (flags.shape.empty()) {
    if (!flags.records.empty() || !flags.distinct.empty())
      throw BadParameters(fmt::format("{} needs --stream uniform, zipf, power or bursty",
                                      flags.records.empty() ? "--distinct" : "--records"));
    return std::nullopt;
  }
  if (!flags.files.empty())
    throw BadParameters(fmt::format(
        "--stream {} generates the records, so '{}' cannot be read too: give one of them",
        flags.shape, flags.files.front()));
  if (any_given(flags))
    throw BadParameters(
        "--stream makes keys without records: --key, --event-time and the record formats, such as "
        "--json, need a FILE (--stats json prints the results as JSON)");
  SyntheticOptions options{.shape = parse_stream_shape("--stream", flags.shape), .seed = seed};
  if (!flags.records.empty()) options.records = parse_count("--records", flags.records);
  if (!flags.distinct.empty()) options.distinct = parse_share("--distinct", flags.distinct);
  return options;
}

}  // namespace

void add_stream_flags(Command& command, CompareStreamFlags& flags) {
  command.positionals("files", flags.files,
                      "Input files, read one after another; standard input if - or none",
                      "FILE ...");
  command.group("Stream");
  command.option("--stream", flags.shape, "Generate the stream instead of reading it",
                 "uniform|zipf|power|bursty");
  command.option("--records", flags.records, "With --stream: number of records [1M]", "COUNT");
  command.option("--distinct", flags.distinct,
                 "With --stream: share of records with a new key [50%]", "SHARE");
  command.option("--seed", flags.seed,
                 "The same seed gives the same stream, and the same digests of a file's keys", "N");
  add_record_flags(command, flags);
  command.option("--event-time", flags.event_time,
                 "With a time window: field with the time of the event, written like --key; date "
                 "and time may be two fields (2,3)",
                 "FIELD[,FIELD]");
  command.option("--time-bytes", flags.time_bytes,
                 "Lines of fixed width: the bytes with the time, written like --key-bytes", "1-19");
  add_time_flags(command, flags.times);
  command.option(
      "--rate", flags.rate,
      "With a time window: rate of records. A generated stream has this rate [1k/s]; for a file, "
      "windows are planned for it [they grow]",
      "50k/s");
}

CompareStream::CompareStream(const CompareStreamFlags& given, int wake, bool by_time)
    : seed_(parse_count("--seed", given.seed)) {
  CompareStreamFlags flags = given;
  const Archives archives = flags.binary ? Archives::read : Archives::refuse_or_insist;
  if (flags.shape.empty())
    if (const auto means =
            apply_log(flags, flags.files, by_time ? LogTimes::needed : LogTimes::no, archives))
      note("compare", printable(*means));
  understand_records(flags, options_);
  time_flag_ = time_flag(flags);
  made_up_ = made_up(flags, seed_);
  if (!flags.rate.empty()) rate_ = parse_rate("--rate", flags.rate);
  if (rate_ && !(*rate_ > 0)) throw BadParameters("--rate 0 is too slow: give 1/s or more");
  options_.time_format = understand_times(flags.times, options_.event_time.has_value());
  options_.today = today();
  if (made_up_) {
    SyntheticStream{*made_up_};  // refused now, or not at all
    return;
  }
  if (!flags.log.empty() && by_time)
    if (const auto order = order_by_time(flags.files, options_, archives))
      note("compare", printable(*order));
  std::vector<std::string> files = flags.files;
  if (files.empty()) files.push_back("-");
  for (const std::string& file : files)
    sources_.push_back(FileSource::open(file, wake, "input", archives));
}

void CompareStream::check(const std::optional<WindowSpec>& window) {
  const bool by_time = window && window->by_time();
  options_.days = !window || holds_days(*window);
  if (by_time && !made_up_ && !options_.event_time)
    throw BadParameters(
        "--window: a window of time needs the records' times: give --event-time FIELD, or a count "
        "such as --window 1M");
  if (by_time) return;
  const char* flag = time_flag_ != nullptr ? time_flag_ : rate_ ? "--rate" : nullptr;
  if (flag != nullptr)
    throw BadParameters(fmt::format("{} needs a window of time, such as --window 10m", flag));
}

std::optional<std::uint64_t> CompareStream::keys_in(const WindowSpec& window) const {
  if (!made_up_ && !rate_) return std::nullopt;
  const double keys = rate() * static_cast<double>(window.size) * 1e-9;
  if (keys > 1e13)
    throw BadParameters("--rate times --window is more than 10^13 keys: ask for less");
  const auto most = made_up_ ? made_up_->records : std::numeric_limits<std::uint64_t>::max();
  return std::clamp<std::uint64_t>(static_cast<std::uint64_t>(keys), 1, most);
}

std::optional<std::uint64_t> CompareStream::distinct() const {
  if (!made_up_) return std::nullopt;
  return SyntheticStream(*made_up_).distinct();
}

CompareStream::Source CompareStream::describe() const {
  if (made_up_)
    return {.name = std::string(name_of(made_up_->shape)),
            .generated = true,
            .share = made_up_->distinct,
            .rate = rate(),
            .seed = seed_};
  return {.name = name_of(sources_), .seed = seed_};
}

void CompareStream::run(Comparison& comparison, const std::function<bool()>& go_on) {
  if (!made_up_) return read(comparison, go_on);
  SyntheticStream stream(*made_up_);
  std::vector<Digest> digests(Comparison::kBatch);
  std::vector<Nanoseconds> times(Comparison::kBatch);
  const double nanoseconds = 1e9 / rate();
  double records = 0;
  while (const std::size_t count = go_on() ? stream.fill(digests) : 0) {
    for (std::size_t i = 0; i < count; ++i)
      times[i] = static_cast<Nanoseconds>(std::min(nanoseconds * records++, kLastMoment));
    comparison.feed(std::span(digests).first(count), std::span(times).first(count));
  }
}

void CompareStream::read(Comparison& comparison, const std::function<bool()>& go_on) {
  DedupOptions options = options_;
  options.tap = [&](const TappedKeys& tapped) { comparison.feed(tapped.digests, tapped.times); };
  TappedStream stream(options, Secret::from_seed(seed_));
  stream.run(sources_, go_on);
  unkeyed_ = stream.dedup().counts().unkeyed;
}

}  // namespace sluice::cli
