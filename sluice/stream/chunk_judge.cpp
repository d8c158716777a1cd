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
      window_(filter.window()),
      passed_(options.forget ? nullptr : &passed, terminator_of(options.format)),
      held_(held, terminator_of(options.format)),
      late_outlet_(late, terminator_of(options.format)) {
  if (options.infer && !options.forget) infer_.emplace(options.format, *options.infer, filter);
}

void ChunkJudge::start(const std::string& source) {
  source_ = source;
  source_records_ = 0;
}

void ChunkJudge::judge(Chunk& chunk) noexcept {
  counts_.bytes_in += chunk.bytes_read;
  try {
    if (chunk.header == Chunk::Header::first && infer_)
      infer_->set_header(chunk.records.front(), source_);
    for (Chunk::Batch& batch : chunk.batches) judge_batch(chunk, batch);
    if (chunk.too_long && !chunk.error) refuse_long();
  } catch (...) {
    chunk.error = std::current_exception();
  }
}

void ChunkJudge::judge_batch(Chunk& chunk, Chunk::Batch& place) {
  const auto [begin, count, keyed, duplicates, late] = place;
  const Batch batch{.records = std::span(chunk.records).subspan(begin, count),
                    .status = std::span(chunk.status).subspan(begin, count),
                    .digests = std::span(chunk.digests).subspan(begin, keyed),
                    .times = options_.event_time ? std::span(chunk.times).subspan(begin, keyed)
                                                 : std::span(no_times_).first(keyed),
                    .verdicts = std::span(chunk.verdicts).subspan(begin, count),
                    .late = {chunk.late.get() + begin, count}};
  const std::size_t sound =
      infer_ ? infer_->extract(batch.records, options_.strict, batch.status) : keyed;
  if (sound < count && options_.strict) refuse(chunk, place, batch);
  observe(chunk, place, batch);
}

// Fills the batch's verdicts and what is late, records without a key counting as distinct. When
// memory ends, what stands before is judged and will be written; then the run ends.
void ChunkJudge::observe(Chunk& chunk, Chunk::Batch& place, Batch batch) {
  if (infer_ && batch.digests.size() < batch.records.size()) infer_->keep_keyed(batch.status);
  std::ranges::fill(batch.late, false);
  const std::size_t judged = judge_keyed(batch);
  const Digest* const unjudged = judged < batch.digests.size() ? &batch.digests[judged] : nullptr;
  if (unjudged != nullptr) shorten(place, batch, judged);
  const std::size_t count = batch.records.size(), keyed = batch.digests.size();
  place.duplicates = count_duplicates(batch.verdicts.first(keyed));
  if (options_.event_time)
    place.late = static_cast<std::size_t>(std::ranges::count(batch.late.first(keyed), true));
  counts_.duplicates += place.duplicates;
  counts_.late += place.late;
  counts_.distinct += keyed - place.duplicates - place.late;
  counts_.records += count;
  counts_.unkeyed += count - keyed;
  if (keyed < count) spread(batch);
  if (infer_ && infer_->writes_posterior()) {
    chunk.posteriors.resize(std::max(chunk.posteriors.size(), place.begin + count));
    std::ranges::copy(infer_->posteriors().first(count),
                      chunk.posteriors.begin() + static_cast<std::ptrdiff_t>(place.begin));
  }
  source_records_ += count;
  ++chunk.judged;
  if (unjudged != nullptr) refuse_key(*unjudged);
}

// To the records before the one with the key after so many.
void ChunkJudge::shorten(Chunk::Batch& place, Batch& batch, std::size_t keys) {
  std::size_t records = 0;
  for (std::size_t left = keys; left > 0 || batch.status[records] != KeyStatus::keyed; ++records)
    left -= batch.status[records] == KeyStatus::keyed;
  batch = {.records = batch.records.first(records),
           .status = batch.status.first(records),
           .digests = batch.digests.first(keys),
           .times = batch.times.first(keys),
           .verdicts = batch.verdicts.first(records),
           .late = batch.late.first(records)};
  place.count = records;
  place.keyed = keys;
}

// The filter says why; a window has nothing to add.
void ChunkJudge::refuse_key(const Digest& digest) {
  if (window_ == nullptr) filter_.observe(digest);
  const FilterStats stats = filter_.stats();
  throw NoMemory(fmt::format(
      "{}: record {}: there is no memory for more keys than the {} in {}: plan for less memory",
      source_, format_count(source_records_ + 1), format_count(stats.keys),
      format_size(stats.bytes)));
}

// Back to the records' places, from the end so that nothing is overwritten before it is moved.
void ChunkJudge::spread(const Batch& batch) {
  if (infer_) infer_->spread(batch.status);
  std::size_t next = batch.digests.size();
  for (std::size_t i = batch.records.size(); i-- > 0;) {
    const bool has_key = batch.status[i] == KeyStatus::keyed;
    if (has_key) --next;
    batch.verdicts[i] = has_key ? batch.verdicts[next] : Verdict::distinct;
    batch.late[i] = has_key && batch.late[next];
    counts_.malformed += batch.status[i] == KeyStatus::malformed;
  }
}

std::size_t ChunkJudge::judge_keyed(const Batch& batch) {
  const std::span<Verdict> verdicts = batch.verdicts.first(batch.digests.size());
  if (options_.tap) {
    options_.tap(batch.digests, options_.event_time ? batch.times : batch.times.first(0));
    std::ranges::fill(verdicts, Verdict::distinct);
    return verdicts.size();
  }
  if (options_.forget) {
    std::ranges::transform(batch.digests, verdicts.begin(), [this](const Digest& digest) {
      const bool found = filter_.forget(digest);
      if (options_.audit != nullptr) options_.audit->forget(digest, found);
      return found ? Verdict::duplicate : Verdict::distinct;
    });
    return verdicts.size();
  }
  const std::size_t judged = window_ != nullptr ? judge_window(batch)
                             : infer_           ? infer_->observe(batch.digests, verdicts)
                                                : filter_.observe(batch.digests, verdicts);
  if (options_.audit == nullptr) return judged;
  if (options_.event_time)
    options_.audit->observe(batch.digests.first(judged), verdicts.first(judged),
                            batch.times.first(judged), batch.late.first(judged));
  else
    options_.audit->observe(batch.digests.first(judged), verdicts.first(judged));
  return judged;
}

std::size_t ChunkJudge::judge_window(const Batch& batch) {
  const std::span<Verdict> verdicts = batch.verdicts.first(batch.digests.size());
  if (window_->params().spec.by_time() && !options_.event_time) {
    // Our own clock is right, whatever it says, and nothing that arrives is late.
    window_->arrive(options_.clock());
    return infer_ ? infer_->observe(batch.digests, verdicts)
                  : window_->observe(batch.digests, verdicts);
  }
  const std::span<bool> late = batch.late.first(batch.digests.size());
  return infer_ ? infer_->judge(batch.digests, batch.times, verdicts, late)
                : window_->judge(batch.digests, batch.times, verdicts, late);
}

// Strict: what stands before the bad record is judged and written, then the run ends.
void ChunkJudge::refuse(Chunk& chunk, Chunk::Batch& place, Batch batch) {
  const auto bad = std::ranges::find_if(
      batch.status, [](KeyStatus status) { return status != KeyStatus::keyed; });
  const bool malformed = *bad == KeyStatus::malformed;
  const auto before = static_cast<std::size_t>(bad - batch.status.begin());
  // All of these have a key: theirs are the first digests.
  batch.records = batch.records.first(before);
  batch.status = batch.status.first(before);
  batch.digests = batch.digests.first(before);
  batch.times = batch.times.first(before);
  batch.verdicts = batch.verdicts.first(before);
  batch.late = batch.late.first(before);
  place.count = place.keyed = before;
  observe(chunk, place, batch);
  const bool fields = infer_ && infer_->reads_fields();
  const char* lacks = fields && options_.event_time ? "lacks the key, the time, a cost or a prior"
                      : fields                      ? "lacks the key, a cost or a prior"
                      : options_.event_time         ? "lacks the key or the time"
                                                    : "lacks the key";
  throw BadRecord(fmt::format("{}: record {} {}: mend it, or run without `strict` to {}", source_,
                              format_count(source_records_ + 1), malformed ? "is malformed" : lacks,
                              options_.forget ? "leave it out" : "pass it through"));
}

void ChunkJudge::refuse_long() const {
  throw BadRecord(fmt::format(
      "{}: record {} is longer than {}: raise `max_record`, or check the record format", source_,
      format_count(source_records_ + 1), format_size(options_.most_record_bytes)));
}

void ChunkJudge::write(const Chunk& chunk, unsigned worker) {
  for (Outlet* outlet : {&passed_, &held_, &late_outlet_}) outlet->use_buffer(worker);
  if (chunk.header == Chunk::Header::first) write_header(chunk.records.front());
  for (const Chunk::Batch& batch : std::span(chunk.batches).first(chunk.judged))
    write_batch(chunk, batch);
  bytes_out_.store(passed_.bytes(), std::memory_order_relaxed);
  if (chunk.error) std::rethrow_exception(chunk.error);
}

void ChunkJudge::write_header(const Record& header) {
  const Record out = infer_ && infer_->writes_posterior() ? infer_->with_name(header) : header;
  passed_.write(out);
  held_.write(out);
  late_outlet_.write(out);
}

template <class Keep>
void ChunkJudge::write_to(Outlet& outlet, const Chunk& chunk, const Chunk::Batch& batch,
                          const Keep& keep) {
  if (!infer_ || !infer_->writes_posterior())
    return outlet.write_kept(std::span(chunk.records).subspan(batch.begin, batch.count), keep);
  if (!outlet.has_sink()) return;
  for (std::size_t i = 0; i < batch.count; ++i) {
    const std::size_t at = batch.begin + i;
    if (keep(i))
      outlet.write(
          infer_->with_posterior(chunk.records[at], chunk.posteriors[at], chunk.status[at]));
  }
}

void ChunkJudge::write_batch(const Chunk& chunk, const Chunk::Batch& batch) {
  if (batch.count == 0) return;
  if (batch.late == 0 && batch.duplicates == 0 && !(infer_ && infer_->writes_posterior())) {
    (options_.invert ? held_ : passed_)
        .write_all(std::span(chunk.records).subspan(batch.begin, batch.count));
    return;
  }
  // A late record takes the place of a duplicate (drop), of any other record (pass), or neither
  // (mark).
  Outlet& duplicates = options_.invert ? passed_ : held_;
  Outlet& others = options_.invert ? held_ : passed_;
  const Verdict* const verdicts = chunk.verdicts.data() + batch.begin;
  if (batch.late == 0) {
    write_to(others, chunk, batch,
             [=](std::size_t i) { return verdicts[i] != Verdict::duplicate; });
    write_to(duplicates, chunk, batch,
             [=](std::size_t i) { return verdicts[i] == Verdict::duplicate; });
    return;
  }
  const bool* const late = chunk.late.get() + batch.begin;
  const LatePolicy policy = options_.late;
  write_to(others, chunk, batch, [=](std::size_t i) {
    return late[i] ? policy == LatePolicy::pass : verdicts[i] != Verdict::duplicate;
  });
  write_to(duplicates, chunk, batch, [=](std::size_t i) {
    return late[i] ? policy == LatePolicy::drop : verdicts[i] == Verdict::duplicate;
  });
  if (policy == LatePolicy::mark)
    write_to(late_outlet_, chunk, batch, [=](std::size_t i) { return late[i]; });
}

void ChunkJudge::flush() {
  passed_.flush();
  held_.flush();
  late_outlet_.flush();
}

}  // namespace sluice
