#include "sluice/stream/chunk_judge.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>

#include "sluice/base/error.hpp"
#include "sluice/base/quantity.hpp"
#include "sluice/stream/format_keys.hpp"

namespace sluice {
namespace {

std::string reason_of(const Chunk& chunk, std::size_t record, const std::string& otherwise) {
  const auto found = std::ranges::find(chunk.faults, record, &Chunk::Fault::record);
  return found == chunk.faults.end() ? otherwise : found->reason;
}

// How a date and a time of day in two places are named, as this run names its dates.
std::string both_fields(const DedupOptions& options) {
  const std::string& date = *options.event_time;
  const Format& format = options.format;
  if (options.time_by == KeyStyle::By::time_group)
    return "if the time of day is beside it, let the group 'time' match both";
  if (options.time_by == KeyStyle::By::bytes)
    return "if the time of day is beside it, name both, as in `time_bytes` 1-19";
  const bool table = format.kind == Format::Kind::csv || format.kind == Format::Kind::tsv;
  std::string time = format.kind == Format::Kind::json ? "/time" : table ? "time" : "3";
  if (const auto field = parse_field_number(date); field && time != "/time")
    time = fmt::format("{}", *field + 2);
  return fmt::format("if the time is in another field, name both, as in `event_time` {},{}", date,
                     time);
}

std::string too_coarse(const DedupOptions& options) {
  return fmt::format("`window` is shorter than a day: {}; otherwise give `window` day",
                     both_fields(options));
}

// Dates are whole days apart. In a window of 7d every repeat after a week is in its slack, and so would be
// lost. A window of 6 days and an hour remembers the same dates, and forgets them before the next one.
// Returns what is wrong and what to do, or nothing.
std::string what_dates_lose(const DedupOptions& options, const StreamJudge& judge) {
  constexpr std::uint64_t kHour = 3'600'000'000'000, kHoursPerDay = 24, kDay = kHoursPerDay * kHour;
  const auto window = judge.pace();
  if (!window || window->spec.kind != WindowSpec::Kind::time) return "";
  const std::uint64_t size = window->spec.size, days = (size + kDay - 1) / kDay;
  const auto forgotten_before = [&](std::uint64_t day, std::uint64_t nanoseconds) {
    return static_cast<double>(nanoseconds) * (1 + window->slack) <=
           static_cast<double>(day * kDay);
  };
  if (forgotten_before(days, size)) return "";
  const std::uint64_t hours = (days - 1) * kHoursPerDay + 1;
  std::string text = fmt::format(
      "with this `window`, repeats after exactly {} would be held back in its slack: {}; otherwise "
      "give `window` ",
      days == 1 ? "1 day" : fmt::format("{} days", days), both_fields(options));
  if (days == 1) return text + "day";
  text += fmt::format("{}h, which remembers the same {} dates", hours, days);
  // 5 % less than what would do, so that rounding does not make it too much.
  if (!forgotten_before(days, hours * kHour))
    text += fmt::format(", with `slack` {:.2g}%",
                        95.0 * (kHoursPerDay - 1) / static_cast<double>(hours));
  return text;
}

}  // namespace

ChunkJudge::ChunkJudge(const DedupOptions& options, StreamJudge& judge)
    : options_(options), judge_(judge), act_(act_for()) {
  assert(!options.infer || (judge.own() != nullptr && judge.own()->inference() != nullptr));
  assert(!(options.forget || options.forget_early) || judge.own() != nullptr);
  if (options.infer && !options.forget)
    infer_.emplace(options.format, *options.infer, judge.own()->has_prior_table());
  if (!options.event_time || !options.time_format.may_lack_year()) return;
  const auto window = judge.pace();
  years_.emplace(options.time_format, options.today, window ? window->clock : EventClock(),
                 window ? window->limits : ClockLimits(1, std::nullopt), options.years_from);
}

std::optional<EventClock> ChunkJudge::years() const {
  return years_ ? years_->own_clock() : std::nullopt;
}

ChunkJudge::Act ChunkJudge::act_for() {
  if (options_.tap)
    return [this](const Judge::Batch& batch) {
      options_.tap({batch.digests, batch.times, tapped_});
      std::ranges::fill(batch.verdicts, Verdict::distinct);
      return batch.digests.size();
    };
  if (options_.forget)
    return [&judge = *judge_.own()](const Judge::Batch& batch) {
      judge.forget(batch.digests, batch.verdicts);
      return batch.digests.size();
    };
  return [&judge = judge_](const Judge::Batch& batch) { return judge.judge(batch); };
}

void ChunkJudge::start(const std::string& source, const SourcePosition& from) {
  source_ = source;
  source_records_ = from.records;
  position_ = from;
  if (!years_ || from.offset == 0) return;
  if (const auto window = judge_.pace()) years_->go_on(window->clock);
}

void ChunkJudge::begin() {
  if (!options_.before_first) return;
  options_.before_first();
  options_.before_first = nullptr;
}

void ChunkJudge::judge(Chunk& chunk) noexcept {
  counts_.bytes_in += chunk.bytes_read;
  try {
    if (chunk.header == Chunk::Header::first && infer_)
      infer_->set_header(chunk.records.front(), source_);
    for (Chunk::Part& part : chunk.parts) judge_part(chunk, part);
    if (chunk.ended_quoted && !open_quotes_ && !chunk.too_long) keep_open_quotes(chunk);
    if (chunk.too_long && !chunk.error) refuse_long();
    // At the end of a source that brought nothing, the last record is the one before.
    if (!chunk.error)
      position_ = {chunk.end, source_records_,
                   chunk.end == position_.offset ? position_.open_bytes : chunk.open_bytes};
  } catch (...) {
    chunk.error = std::current_exception();
  }
}

// A time in another format before all that can be read: the format is a wrong guess. Or if the first
// record that has a time has only a date, that is how the stream is: in a window shorter than
// a day, no record could be judged by it, and in some longer ones, too many would be lost. Nothing has been
// held back before.
void ChunkJudge::look_for_time(const Chunk& chunk, const Chunk::Part& part) {
  const auto status = std::span(chunk.status).subspan(part.begin, part.count);
  const auto first = std::ranges::find_if(status, [](KeyStatus each) {
    return each == KeyStatus::keyed || each == KeyStatus::day_only;
  });
  timed_ = first != status.end();
  const auto refuse_at = [&](std::uint64_t at, const std::string& why) {
    throw BadParameters(
        fmt::format("{}: record {}: {}", source_, format_count(source_records_ + at + 1), why));
  };
  if (chunk.another && chunk.another->record >= part.begin &&
      chunk.another->record < part.begin + part.count)
    refuse_at(chunk.another->record - part.begin, chunk.another->reason);
  if (!timed_ || (!chunk.date && !chunk.unclear)) return;
  const auto refuse = [&](const std::string& why) {
    refuse_at(static_cast<std::uint64_t>(first - status.begin()), why);
  };
  if (chunk.unclear) refuse(chunk.unclear->reason);
  const std::string wrong =
      options_.days ? what_dates_lose(options_, judge_) : too_coarse(options_);
  if (!wrong.empty()) refuse(fmt::format("{}, and {}", chunk.date->reason, wrong));
}

// In the order of the records, because the year of a time is told by those before it.
void ChunkJudge::complete_years(Chunk& chunk, Chunk::Part& part) {
  Digest* const digests = chunk.digests.data() + part.begin;
  Nanoseconds* const times = chunk.times.data() + part.begin;
  std::size_t next = 0, kept = 0;
  for (std::size_t i = part.begin; i < part.begin + part.count; ++i) {
    if (chunk.status[i] != KeyStatus::keyed) continue;
    Nanoseconds time = times[next];
    const Digest digest = digests[next++];
    if (years_->complete(digest, time)) {
      digests[kept] = digest;
      times[kept++] = time;
      continue;
    }
    chunk.status[i] = KeyStatus::malformed;
    if (chunk.faults.size() < kMostFaults)
      chunk.faults.push_back(
          {i, fmt::format(
                  "there is no such time in its year and zone (29 February, or clocks that are "
                  "set): give the year of the first time if it is wrong: {}",
                  quoted(chunk.records[i].text()))});
  }
  part.keyed = kept;
}

// Strict: what stands before a record without its key is judged, then the run ends.
void ChunkJudge::judge_part(Chunk& chunk, Chunk::Part& part) {
  if (!timed_ && options_.event_time) look_for_time(chunk, part);
  if (years_) complete_years(chunk, part);
  const auto status = std::span(chunk.status).subspan(part.begin, part.count);
  std::size_t sound = part.keyed;
  if (infer_)
    sound = infer_->extract(std::span(chunk.records).subspan(part.begin, part.count),
                            options_.strict, status);
  bool bad = false;
  if (sound < part.count && options_.strict) {
    const auto first =
        std::ranges::find_if(status, [](KeyStatus each) { return each != KeyStatus::keyed; });
    bad = true;
    // All of those before it have a key: theirs are the first digests.
    part.count = part.keyed = static_cast<std::size_t>(first - status.begin());
  }
  if (infer_ && part.keyed < part.count) infer_->keep_keyed(status);
  if (part.count > 0) begin();
  const Judge::Batch batch = batch_of(chunk, part);
  std::ranges::fill(std::span(chunk.late.get() + part.begin, part.count), false);
  const std::size_t judged = judge_keys(batch);
  const Digest* const unjudged = judged < part.keyed ? &batch.digests[judged] : nullptr;
  if (unjudged != nullptr) shorten(chunk, part, judged);
  count(chunk, part);
  if (unjudged != nullptr) refuse_key(*unjudged);
  if (bad) refuse(chunk, part.begin + part.count);
}

std::size_t ChunkJudge::judge_keys(const Judge::Batch& batch) {
  const std::size_t size = batch.digests.size();
  std::size_t judged = act_(batch);
  while (judged < size && options_.forget_early) {
    const std::optional<std::uint64_t> forgotten = judge_.own()->forget_oldest();
    if (!forgotten) break;
    counts_.forgotten_early += *forgotten;
    judged += act_(batch.subspan(judged, size - judged));
  }
  return judged;
}

// Memory ran out after that many keys: the part ends before the record of the next key.
void ChunkJudge::shorten(const Chunk& chunk, Chunk::Part& part, std::size_t keys) {
  const KeyStatus* const status = chunk.status.data() + part.begin;
  part.keyed = keys;
  part.count = 0;
  for (std::size_t left = keys; left > 0 || status[part.count] != KeyStatus::keyed; ++part.count)
    left -= status[part.count] == KeyStatus::keyed;
}

// The filter says why; a window has nothing to add. A shared filter judges all keys, or throws.
void ChunkJudge::refuse_key(const Digest& digest) const {
  Judge& judge = *judge_.own();
  if (judge.window() == nullptr) judge.filter().observe(digest);
  const FilterStats stats = judge.filter().stats();
  throw NoMemory(fmt::format(
      "{}: record {}: there is no memory for more keys than the {} in {}: plan for less memory",
      source_, format_count(source_records_ + 1), format_count(stats.keys),
      format_size(stats.bytes)));
}

Judge::Batch ChunkJudge::batch_of(Chunk& chunk, const Chunk::Part& part) {
  Judge::Batch batch{.digests = std::span(chunk.digests).subspan(part.begin, part.keyed),
                     .verdicts = std::span(chunk.verdicts).subspan(part.begin, part.keyed)};
  if (options_.tap_keys) tapped_ = std::span(chunk.keys).subspan(part.begin, part.keyed);
  if (options_.event_time) {
    batch.times = std::span(chunk.times).subspan(part.begin, part.keyed);
    batch.late = {chunk.late.get() + part.begin, part.keyed};
  } else if (options_.clock) {
    batch.now = options_.clock();
  }
  if (infer_) {
    batch.known = infer_->known(part.keyed);
    batch.posteriors = infer_->posteriors(part.keyed);
  }
  return batch;
}

void ChunkJudge::count(Chunk& chunk, Chunk::Part& part) {
  part.duplicates =
      count_duplicates(std::span<const Verdict>(chunk.verdicts).subspan(part.begin, part.keyed));
  if (options_.event_time)
    part.late = static_cast<std::size_t>(
        std::ranges::count(std::span(chunk.late.get() + part.begin, part.keyed), true));
  counts_.duplicates += part.duplicates;
  counts_.late += part.late;
  counts_.distinct += part.keyed - part.duplicates - part.late;
  counts_.records += part.count;
  counts_.unkeyed += part.count - part.keyed;
  if (part.keyed < part.count) {
    spread(chunk, part);
    keep_faults(chunk, part);
  }
  if (infer_ && infer_->writes_posterior()) keep_posteriors(chunk, part);
  source_records_ += part.count;
  ++chunk.judged;
}

// Back to the records' places, from the end so that nothing is overwritten before it is moved.
// Records without a key count as distinct.
void ChunkJudge::spread(Chunk& chunk, const Chunk::Part& part) {
  const auto status = std::span<const KeyStatus>(chunk.status).subspan(part.begin, part.count);
  Verdict* const verdicts = chunk.verdicts.data() + part.begin;
  bool* const late = chunk.late.get() + part.begin;
  if (infer_) infer_->spread(status);
  std::size_t next = part.keyed;
  for (std::size_t i = part.count; i-- > 0;) {
    const bool has_key = status[i] == KeyStatus::keyed;
    if (has_key) --next;
    verdicts[i] = has_key ? verdicts[next] : Verdict::distinct;
    late[i] = has_key && late[next];
    counts_.malformed += !has_key && status[i] != KeyStatus::missing;
  }
}

void ChunkJudge::keep_posteriors(Chunk& chunk, const Chunk::Part& part) {
  chunk.posteriors.resize(std::max(chunk.posteriors.size(), part.begin + part.count));
  std::ranges::copy(infer_->posteriors(part.count),
                    chunk.posteriors.begin() + static_cast<std::ptrdiff_t>(part.begin));
}

// One line that ends within quotes takes nothing with it.
void ChunkJudge::keep_open_quotes(const Chunk& chunk) {
  if (chunk.records.empty()) return;
  constexpr std::size_t kShown = 60;
  const std::string_view record = chunk.records.back().text();
  const auto lines =
      static_cast<std::uint64_t>(std::ranges::count(record.substr(0, record.size() - 1), '\n') + 1);
  if (lines == 1) return;
  open_quotes_ = {source_, source_records_, record.size(), lines,
                  std::string(record.substr(0, std::min(record.find('\n'), kShown)))};
}

void ChunkJudge::keep_faults(const Chunk& chunk, const Chunk::Part& part) {
  for (const Chunk::Fault& fault : chunk.faults)
    if (faults_.size() < kMostFaults && fault.record >= part.begin &&
        fault.record < part.begin + part.count)
      faults_.push_back({source_, source_records_ + fault.record - part.begin + 1, fault.reason});
}

// The record comes after those that are counted.
void ChunkJudge::refuse(const Chunk& chunk, std::size_t record) const {
  const std::string lacks =
      "a cost or a prior cannot be read in " + quoted(chunk.records[record].text());
  throw BadRecord(fmt::format("{}: record {}: {}: mend it, or run without `strict` to {}", source_,
                              format_count(source_records_ + 1), reason_of(chunk, record, lacks),
                              options_.forget ? "leave it out" : "pass it through"));
}

void ChunkJudge::refuse_long() const {
  throw BadRecord(fmt::format(
      "{}: record {} is longer than {}: raise `max_record`, or check the record format", source_,
      format_count(source_records_ + 1), format_size(options_.most_record_bytes)));
}

}  // namespace sluice
