#include "sluice/stream/chunk_judge.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "sluice/audit/audit.hpp"
#include "sluice/base/error.hpp"
#include "sluice/base/quantity.hpp"

namespace sluice {
namespace {

char terminator_of(const Format& format) {
  return format.kind == Format::Kind::nul ? '\0' : '\n';
}

}  // namespace

ChunkJudge::ChunkJudge(const DedupOptions& options, AnyFilter& filter, ByteSink& passed,
                       ByteSink* held, ByteSink* late)
    : options_(options),
      filter_(filter),
      window_(filter.as<Window>()),
      passed_(options.forget ? nullptr : &passed, terminator_of(options.format)),
      held_(held, terminator_of(options.format)),
      late_outlet_(late, terminator_of(options.format)) {
  if (options.infer && !options.forget) infer_.emplace(options.format, *options.infer, filter);
}

void ChunkJudge::start(const std::string& source) {
  source_ = source;
  source_records_ = 0;
}

void ChunkJudge::judge(const Chunk& chunk, unsigned worker) {
  for (Outlet* outlet : {&passed_, &held_, &late_outlet_}) outlet->use_buffer(worker);
  counts_.bytes_in += chunk.bytes_read;
  if (chunk.header == Chunk::Header::first) write_header(chunk.records.front());
  for (const Chunk::Batch& batch : chunk.batches) judge_batch(chunk, batch);
  if (chunk.error) std::rethrow_exception(chunk.error);
  if (chunk.too_long) refuse_long();
}

void ChunkJudge::write_header(const Record& header) {
  if (infer_) infer_->set_header(header, source_);
  const Record out = infer_ && infer_->writes_posterior() ? infer_->with_name(header) : header;
  passed_.write(out);
  held_.write(out);
  late_outlet_.write(out);
}

void ChunkJudge::judge_batch(const Chunk& chunk, const Chunk::Batch& place) {
  const auto [begin, count, keyed] = place;
  Batch batch{.records = std::span(chunk.records).subspan(begin, count),
              .status = std::span(chunk.status).subspan(begin, count),
              .digests = std::span(chunk.digests).subspan(begin, keyed),
              .times = options_.event_time ? std::span(chunk.times).subspan(begin, keyed)
                                           : std::span(no_times_).first(keyed)};
  std::size_t sound = keyed;
  if (infer_) {
    std::ranges::copy(batch.status, status_.begin());
    batch.status = std::span(status_).first(count);
    sound = infer_->extract(batch.records, options_.strict, std::span(status_).first(count));
  }
  if (sound < count && options_.strict) refuse(batch);
  observe(batch);
}

// Fills verdicts_ and late_ for the batch, records without a key counting as distinct, and writes.
void ChunkJudge::observe(const Batch& batch) {
  const std::size_t count = batch.records.size();
  const std::size_t keyed = batch.digests.size();
  if (infer_ && keyed < count) infer_->keep_keyed(batch.status);
  observe_keyed(batch);
  counts_.records += count;
  counts_.unkeyed += count - keyed;
  if (keyed < count) spread(batch);
  write(batch);
  source_records_ += count;
}

// Back to the records' places, from the end so that nothing is overwritten before it is moved.
void ChunkJudge::spread(const Batch& batch) {
  if (infer_) infer_->spread(batch.status);
  std::size_t next = batch.digests.size();
  for (std::size_t i = batch.records.size(); i-- > 0;) {
    const bool has_key = batch.status[i] == KeyStatus::keyed;
    if (has_key) --next;
    verdicts_[i] = has_key ? verdicts_[next] : Verdict::distinct;
    late_[i] = has_key && late_[next];
    counts_.malformed += batch.status[i] == KeyStatus::malformed;
  }
}

void ChunkJudge::observe_keyed(const Batch& batch) {
  const std::size_t keyed = batch.digests.size();
  const std::span<Verdict> verdicts = std::span(verdicts_).first(keyed);
  judge_keyed(batch, verdicts);
  batch_duplicates_ = static_cast<std::size_t>(std::ranges::count(verdicts, Verdict::duplicate));
  counts_.duplicates += batch_duplicates_;
  counts_.late += batch_late_;
  counts_.distinct += keyed - batch_duplicates_ - batch_late_;
}

void ChunkJudge::judge_keyed(const Batch& batch, std::span<Verdict> verdicts) {
  batch_late_ = 0;
  if (options_.tap) {
    options_.tap(batch.digests, options_.event_time ? batch.times : batch.times.first(0));
    std::ranges::fill(verdicts, Verdict::distinct);
    return;
  }
  if (options_.forget) {
    std::ranges::transform(batch.digests, verdicts.begin(), [this](const Digest& digest) {
      const bool found = filter_.forget(digest);
      if (options_.audit != nullptr) options_.audit->forget(digest, found);
      return found ? Verdict::duplicate : Verdict::distinct;
    });
    return;
  }
  if (window_ != nullptr)
    judge_window(batch, verdicts);
  else if (infer_)
    infer_->observe(batch.digests, verdicts);
  else
    filter_.observe(batch.digests, verdicts);
  if (options_.audit == nullptr) return;
  if (options_.event_time)
    options_.audit->observe(batch.digests, verdicts, batch.times,
                            std::span(late_).first(batch.digests.size()));
  else
    options_.audit->observe(batch.digests, verdicts);
}

void ChunkJudge::judge_window(const Batch& batch, std::span<Verdict> verdicts) {
  if (window_->params().spec.by_time() && !options_.event_time) {
    // Our own clock is right, whatever it says, and nothing that arrives is late.
    window_->arrive(options_.clock());
    if (infer_)
      infer_->observe(batch.digests, verdicts);
    else
      window_->observe(batch.digests, verdicts);
    return;
  }
  const std::span<bool> late = std::span(late_).first(batch.digests.size());
  if (infer_)
    infer_->judge(batch.digests, batch.times, verdicts, late);
  else
    window_->judge(batch.digests, batch.times, verdicts, late);
  batch_late_ = static_cast<std::size_t>(std::ranges::count(late, true));
}

template <class Keep>
void ChunkJudge::write_to(Outlet& outlet, const Batch& batch, const Keep& keep) {
  if (!infer_ || !infer_->writes_posterior()) return outlet.write_kept(batch.records, keep);
  if (!outlet.has_sink()) return;
  for (std::size_t i = 0; i < batch.records.size(); ++i)
    if (keep(i)) outlet.write(infer_->with_posterior(batch.records[i], i, batch.status[i]));
}

void ChunkJudge::write(const Batch& batch) {
  if (batch.records.empty()) return;
  if (batch_late_ == 0 && batch_duplicates_ == 0 && !(infer_ && infer_->writes_posterior())) {
    (options_.invert ? held_ : passed_).write_all(batch.records);
    return;
  }
  // A late record takes the place of a duplicate (drop), of any other record (pass), or neither
  // (mark).
  Outlet& duplicates = options_.invert ? passed_ : held_;
  Outlet& others = options_.invert ? held_ : passed_;
  // Not members: the bytes that are copied might be theirs, for all the compiler knows.
  const Verdict* const verdicts = verdicts_.data();
  if (batch_late_ == 0) {
    write_to(others, batch, [=](std::size_t i) { return verdicts[i] != Verdict::duplicate; });
    write_to(duplicates, batch, [=](std::size_t i) { return verdicts[i] == Verdict::duplicate; });
    return;
  }
  const bool* const late = late_.data();
  const LatePolicy policy = options_.late;
  write_to(others, batch, [=](std::size_t i) {
    return late[i] ? policy == LatePolicy::pass : verdicts[i] != Verdict::duplicate;
  });
  write_to(duplicates, batch, [=](std::size_t i) {
    return late[i] ? policy == LatePolicy::drop : verdicts[i] == Verdict::duplicate;
  });
  if (policy == LatePolicy::mark)
    write_to(late_outlet_, batch, [=](std::size_t i) { return late[i]; });
}

// Strict: what stands before the bad record is judged and written, then the run ends.
void ChunkJudge::refuse(Batch batch) {
  const auto bad = std::ranges::find_if(
      batch.status, [](KeyStatus status) { return status != KeyStatus::keyed; });
  const bool malformed = *bad == KeyStatus::malformed;
  const auto before = static_cast<std::size_t>(bad - batch.status.begin());
  // All of these have a key: theirs are the first digests.
  batch.records = batch.records.first(before);
  batch.status = batch.status.first(before);
  batch.digests = batch.digests.first(before);
  batch.times = batch.times.first(before);
  observe(batch);
  const bool fields = infer_ && infer_->reads_fields();
  const char* lacks = fields && options_.event_time ? "lacks the key, the time, a cost or a prior"
                      : fields                      ? "lacks the key, a cost or a prior"
                      : options_.event_time         ? "lacks the key or the time"
                                                    : "lacks the key";
  throw BadRecord(fmt::format("{}: record {} {}: mend it, or run without --strict to {}", source_,
                              format_count(source_records_ + 1), malformed ? "is malformed" : lacks,
                              options_.forget ? "leave it out" : "pass it through"));
}

void ChunkJudge::refuse_long() const {
  throw BadRecord(fmt::format(
      "{}: record {} is longer than {}: raise --max-record, or check the record format", source_,
      format_count(source_records_ + 1), format_size(options_.most_record_bytes)));
}

void ChunkJudge::flush() {
  passed_.flush();
  held_.flush();
  late_outlet_.flush();
}

}  // namespace sluice
