#include "sluice/stream/dedup.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "sluice/audit/audit.hpp"
#include "sluice/base/error.hpp"
#include "sluice/base/quantity.hpp"
#include "sluice/stream/csv.hpp"

namespace sluice {
namespace {

// One read: large enough that system calls do not matter, small enough that what was read is still
// in the second-level cache when it is hashed and copied.
constexpr std::size_t kReadBytes = std::size_t{1} << 18;

bool has_header(const Format& format) {
  return format.header && (format.kind == Format::Kind::csv || format.kind == Format::Kind::tsv);
}

// What is measured is all but the last byte of the terminator: that much of a record can be in the
// buffer before its end is known, so that the reads' sizes make no difference.
std::size_t count_before_long(std::span<const Record> records, std::uint64_t most) {
  const auto is_long = [most](const Record& record) {
    return record.whole - (record.whole > record.body ? 1 : 0) > most;
  };
  return static_cast<std::size_t>(std::ranges::find_if(records, is_long) - records.begin());
}

char terminator_of(const Format& format) {
  return format.kind == Format::Kind::nul ? '\0' : '\n';
}

// Puts before what is wrong with a key where it came from.
template <class Act>
auto naming(const std::string& flag, Act act) {
  try {
    return act();
  } catch (const BadKey& error) {
    throw BadParameters(fmt::format("{} {}", flag, error.what()));
  }
}

// A byte order mark is no part of a header: one input may have it and another not.
std::string_view without_mark(std::string_view header) {
  if (header.starts_with(kByteOrderMark)) header.remove_prefix(kByteOrderMark.size());
  return header;
}

}  // namespace

Dedup::Dedup(const DedupOptions& options, const Hasher& hasher, AnyFilter& filter, ByteSink& passed,
             ByteSink* held, ByteSink* late)
    : options_(options),
      hasher_(hasher),
      filter_(filter),
      window_(filter.as<Window>()),
      passed_(options.forget ? nullptr : &passed, terminator_of(options.format)),
      held_(held, terminator_of(options.format)),
      late_outlet_(late, terminator_of(options.format)),
      splitter_(make_splitter(options.format)),
      extractor_(naming("--key", [&] { return make_key_extractor(options.format, options.keys); })),
      buffer_(2 * kReadBytes + kPaddingBytes),
      keys_(kBatchRecords),
      status_(kBatchRecords),
      digests_(kBatchRecords),
      verdicts_(kBatchRecords),
      times_(kBatchRecords) {
  records_.reserve(kBatchRecords);
  if (options.event_time)
    naming("--event-time",
           [&] { event_times_.emplace(options.format, *options.event_time, options.time_format); });
  if (options.infer && !options.forget) infer_.emplace(options.format, *options.infer, filter);
}

void Dedup::run(ByteSource& source, const std::function<bool()>& between) {
  splitter_->reset();
  header_due_ = has_header(options_.format);
  source_records_ = 0;
  begin_ = end_ = 0;
  for (;;) {
    make_room(source);
    if (source.would_wait() && !idle(source, between)) break;
    const std::size_t got = source.read(std::span(buffer_).subspan(end_, kReadBytes));
    counts_.bytes_in += got;
    end_ += got;
    // A source also ends when it is told to stop. Then the tail is half a record, not the last one.
    if (got == 0 && !between()) break;
    judge_buffer(source, got == 0);
    if (got == 0) return;
    if (!between()) break;
  }
  counts_.unfinished_bytes = end_ - begin_;
}

// Nothing to read: what is judged goes out, and the caller is asked now and then. False: it says
// stop.
bool Dedup::idle(ByteSource& source, const std::function<bool()>& between) {
  flush();
  do {
    if (!between()) return false;
  } while (!source.wait());
  return true;
}

// kReadBytes of room behind end_, and the padding behind that. An unfinished record moves to the
// front; one that fills the buffer makes it twice as large.
void Dedup::make_room(const ByteSource& source) {
  const std::size_t held = end_ - begin_;
  if (held > options_.most_record_bytes) refuse_long(source);
  std::memmove(buffer_.data(), buffer_.data() + begin_, held);
  begin_ = 0;
  end_ = held;
  if (buffer_.size() - kPaddingBytes - end_ < kReadBytes)
    buffer_.resize(2 * (buffer_.size() - kPaddingBytes) + kPaddingBytes);
}

void Dedup::judge_buffer(const ByteSource& source, bool last) {
  for (;;) {
    records_.clear();
    const std::string_view unread(buffer_.data() + begin_, end_ - begin_);
    begin_ += splitter_->split(unread, last, kBatchRecords, records_);
    if (records_.empty()) return;
    const std::size_t sound = unread.size() <= options_.most_record_bytes
                                  ? records_.size()
                                  : count_before_long(records_, options_.most_record_bytes);
    std::span<const Record> batch = std::span(records_).first(sound);
    if (header_due_ && !batch.empty()) {
      take_header(batch.front(), source);
      batch = batch.subspan(1);
    }
    judge(batch, source);
    if (sound < records_.size()) refuse_long(source);
  }
}

// The first source's header goes to every outlet; the others' must be equal to it and are dropped.
void Dedup::take_header(const Record& header, const ByteSource& source) {
  header_due_ = false;
  if (!header_) {
    naming(source.name() + ": --key", [&] { extractor_->set_header(header); });
    if (event_times_)
      naming(source.name() + ": --event-time", [&] { event_times_->set_header(header); });
    if (infer_) infer_->set_header(header, source.name());
    header_ = without_mark(header.text());
    const Record out = infer_ && infer_->writes_posterior() ? infer_->with_name(header) : header;
    passed_.write(out);
    held_.write(out);
    late_outlet_.write(out);
  } else if (without_mark(header.text()) != header_) {
    throw BadRecord(
        fmt::format("{}: its header '{}' differs from the first input's '{}': "
                    "give inputs with the same columns",
                    source.name(), without_mark(header.text()), *header_));
  }
}

void Dedup::judge(std::span<const Record> records, const ByteSource& source) {
  const std::size_t count = records.size();
  const std::size_t keyed = extract(records);
  if (keyed < count && options_.strict) refuse(records, source);
  observe(count, keyed);
  write(records);
  source_records_ += count;
}

// Fills keys_, status_ and, with event time, times_.
std::size_t Dedup::extract(std::span<const Record> records) {
  const std::size_t count = records.size();
  const std::span<KeyStatus> status = std::span(status_).first(count);
  std::size_t keyed = extractor_->extract(records, std::span(keys_).first(count), status);
  if (event_times_) keyed = event_times_->extract(records, std::span(times_).first(count), status);
  if (infer_) keyed = infer_->extract(records, options_.strict, status);
  return keyed;
}

// Fills verdicts_ and late_ for the batch: records without a key count as distinct.
void Dedup::observe(std::size_t count, std::size_t keyed) {
  if (keyed < count) {
    std::size_t next = 0;
    for (std::size_t i = 0; i < count; ++i) {
      if (status_[i] != KeyStatus::keyed) continue;
      times_[next] = times_[i];
      keys_[next++] = keys_[i];
    }
    if (infer_) infer_->keep_keyed(std::span(status_).first(count));
  }
  observe_keyed(keyed);
  counts_.records += count;
  counts_.unkeyed += count - keyed;
  if (keyed == count) return;
  if (infer_) infer_->spread(std::span(status_).first(count));
  // Back to the records' places, from the end so that nothing is overwritten before it is moved.
  std::size_t next = keyed;
  for (std::size_t i = count; i-- > 0;) {
    const bool has_key = status_[i] == KeyStatus::keyed;
    if (has_key) --next;
    verdicts_[i] = has_key ? verdicts_[next] : Verdict::distinct;
    late_[i] = has_key && late_[next];
    counts_.malformed += status_[i] == KeyStatus::malformed;
  }
}

void Dedup::observe_keyed(std::size_t keyed) {
  const std::span<Digest> digests = std::span(digests_).first(keyed);
  const std::span<Verdict> verdicts = std::span(verdicts_).first(keyed);
  hasher_.digest(std::span(keys_).first(keyed), digests);
  judge_keyed(digests, verdicts);
  const auto duplicates =
      static_cast<std::uint64_t>(std::ranges::count(verdicts, Verdict::duplicate));
  counts_.duplicates += duplicates;
  counts_.late += batch_late_;
  counts_.distinct += keyed - duplicates - batch_late_;
}

void Dedup::judge_keyed(std::span<const Digest> digests, std::span<Verdict> verdicts) {
  batch_late_ = 0;
  if (options_.tap) {
    const std::span<const Nanoseconds> times = times_;
    options_.tap(digests, event_times_ ? times.first(digests.size()) : times.first(0));
    std::ranges::fill(verdicts, Verdict::distinct);
    return;
  }
  if (options_.forget) {
    std::ranges::transform(digests, verdicts.begin(), [this](const Digest& digest) {
      const bool found = filter_.forget(digest);
      if (options_.audit != nullptr) options_.audit->forget(digest, found);
      return found ? Verdict::duplicate : Verdict::distinct;
    });
    return;
  }
  if (window_ != nullptr)
    judge_window(digests, verdicts);
  else if (infer_)
    infer_->observe(digests, verdicts);
  else
    filter_.observe(digests, verdicts);
  if (options_.audit == nullptr) return;
  if (event_times_)
    options_.audit->observe(digests, verdicts, std::span(times_).first(digests.size()),
                            std::span(late_).first(digests.size()));
  else
    options_.audit->observe(digests, verdicts);
}

void Dedup::judge_window(std::span<const Digest> digests, std::span<Verdict> verdicts) {
  if (window_->params().spec.by_time() && !event_times_) {
    // Our own clock is right, whatever it says, and nothing that arrives is late.
    window_->arrive(options_.clock());
    if (infer_)
      infer_->observe(digests, verdicts);
    else
      window_->observe(digests, verdicts);
    return;
  }
  const std::span<const Nanoseconds> times = std::span(times_).first(digests.size());
  const std::span<bool> late = std::span(late_).first(digests.size());
  if (infer_)
    infer_->judge(digests, times, verdicts, late);
  else
    window_->judge(digests, times, verdicts, late);
  batch_late_ = static_cast<std::size_t>(std::ranges::count(late, true));
}

template <class Keep>
void Dedup::write_to(Outlet& outlet, std::span<const Record> records, const Keep& keep) {
  if (!infer_ || !infer_->writes_posterior()) return outlet.write_kept(records, keep);
  if (!outlet.has_sink()) return;
  for (std::size_t i = 0; i < records.size(); ++i)
    if (keep(i)) outlet.write(infer_->with_posterior(records[i], i, status_[i]));
}

void Dedup::write(std::span<const Record> records) {
  // A late record takes the place of a duplicate (drop), of any other record (pass), or neither
  // (mark).
  const bool late = batch_late_ > 0;
  const auto duplicate = [&](std::size_t i) {
    if (late && late_[i]) return options_.late == LatePolicy::drop;
    return verdicts_[i] == Verdict::duplicate;
  };
  const auto other = [&](std::size_t i) {
    if (late && late_[i]) return options_.late == LatePolicy::pass;
    return verdicts_[i] != Verdict::duplicate;
  };
  if (options_.invert) {
    write_to(passed_, records, duplicate);
    write_to(held_, records, other);
  } else {
    write_to(passed_, records, other);
    write_to(held_, records, duplicate);
  }
  if (late && options_.late == LatePolicy::mark)
    write_to(late_outlet_, records, [&](std::size_t i) { return late_[i]; });
}

// Strict: what stands before the bad record is judged and written, then the run ends.
void Dedup::refuse(std::span<const Record> records, const ByteSource& source) {
  const auto bad = std::find_if(status_.begin(), status_.end(),
                                [](KeyStatus status) { return status != KeyStatus::keyed; });
  const bool malformed = *bad == KeyStatus::malformed;
  const auto before = static_cast<std::size_t>(bad - status_.begin());
  judge(records.first(before), source);
  const bool fields = infer_ && infer_->reads_fields();
  const char* lacks = fields && options_.event_time ? "lacks the key, the time, a cost or a prior"
                      : fields                      ? "lacks the key, a cost or a prior"
                      : options_.event_time         ? "lacks the key or the time"
                                                    : "lacks the key";
  throw BadRecord(fmt::format("{}: record {} {}: mend it, or run without --strict to {}",
                              source.name(), format_count(source_records_ + 1),
                              malformed ? "is malformed" : lacks,
                              options_.forget ? "leave it out" : "pass it through"));
}

void Dedup::refuse_long(const ByteSource& source) {
  throw BadRecord(fmt::format(
      "{}: record {} is longer than {}: raise --max-record, or check the record format",
      source.name(), format_count(source_records_ + 1), format_size(options_.most_record_bytes)));
}

void Dedup::flush() {
  passed_.flush();
  held_.flush();
  late_outlet_.flush();
}

}  // namespace sluice
