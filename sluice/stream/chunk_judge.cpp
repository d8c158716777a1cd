#include "sluice/stream/chunk_judge.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>

#include "sluice/base/error.hpp"
#include "sluice/base/quantity.hpp"

namespace sluice {

ChunkJudge::ChunkJudge(const DedupOptions& options, Judge& judge)
    : options_(options), judge_(judge), act_(act_for()) {
  assert(!options.infer || judge.inference() != nullptr);
  if (options.infer && !options.forget)
    infer_.emplace(options.format, *options.infer, judge.has_prior_table());
}

ChunkJudge::Act ChunkJudge::act_for() const {
  if (options_.tap)
    return [tap = options_.tap](const Judge::Batch& batch) {
      tap(batch.digests, batch.times);
      std::ranges::fill(batch.verdicts, Verdict::distinct);
      return batch.digests.size();
    };
  if (options_.forget)
    return [&judge = judge_](const Judge::Batch& batch) {
      judge.forget(batch.digests, batch.verdicts);
      return batch.digests.size();
    };
  return [&judge = judge_](const Judge::Batch& batch) { return judge.judge(batch); };
}

void ChunkJudge::start(const std::string& source, const SourcePosition& from) {
  source_ = source;
  source_records_ = from.records;
  position_ = from;
}

void ChunkJudge::judge(Chunk& chunk) noexcept {
  counts_.bytes_in += chunk.bytes_read;
  try {
    if (chunk.header == Chunk::Header::first && infer_)
      infer_->set_header(chunk.records.front(), source_);
    for (Chunk::Part& part : chunk.parts) judge_part(chunk, part);
    if (chunk.too_long && !chunk.error) refuse_long();
    if (!chunk.error) position_ = {chunk.end, source_records_};
  } catch (...) {
    chunk.error = std::current_exception();
  }
}

// Strict: what stands before a record without its key is judged, then the run ends.
void ChunkJudge::judge_part(Chunk& chunk, Chunk::Part& part) {
  const auto status = std::span(chunk.status).subspan(part.begin, part.count);
  std::size_t sound = part.keyed;
  if (infer_)
    sound = infer_->extract(std::span(chunk.records).subspan(part.begin, part.count),
                            options_.strict, status);
  std::optional<KeyStatus> bad;
  if (sound < part.count && options_.strict) {
    const auto first =
        std::ranges::find_if(status, [](KeyStatus each) { return each != KeyStatus::keyed; });
    bad = *first;
    // All of those before it have a key: theirs are the first digests.
    part.count = part.keyed = static_cast<std::size_t>(first - status.begin());
  }
  if (infer_ && part.keyed < part.count) infer_->keep_keyed(status);
  const Judge::Batch batch = batch_of(chunk, part);
  std::ranges::fill(std::span(chunk.late.get() + part.begin, part.count), false);
  const std::size_t judged = act_(batch);
  const Digest* const unjudged = judged < part.keyed ? &batch.digests[judged] : nullptr;
  if (unjudged != nullptr) shorten(chunk, part, judged);
  count(chunk, part);
  if (unjudged != nullptr) refuse_key(*unjudged);
  if (bad) refuse(*bad);
}

// Memory ran out after that many keys: the part ends before the record of the next key.
void ChunkJudge::shorten(const Chunk& chunk, Chunk::Part& part, std::size_t keys) {
  const KeyStatus* const status = chunk.status.data() + part.begin;
  part.keyed = keys;
  part.count = 0;
  for (std::size_t left = keys; left > 0 || status[part.count] != KeyStatus::keyed; ++part.count)
    left -= status[part.count] == KeyStatus::keyed;
}

// The filter says why; a window has nothing to add.
void ChunkJudge::refuse_key(const Digest& digest) const {
  if (judge_.window() == nullptr) judge_.filter().observe(digest);
  const FilterStats stats = judge_.filter().stats();
  throw NoMemory(fmt::format(
      "{}: record {}: there is no memory for more keys than the {} in {}: plan for less memory",
      source_, format_count(source_records_ + 1), format_count(stats.keys),
      format_size(stats.bytes)));
}

Judge::Batch ChunkJudge::batch_of(Chunk& chunk, const Chunk::Part& part) {
  Judge::Batch batch{.digests = std::span(chunk.digests).subspan(part.begin, part.keyed),
                     .verdicts = std::span(chunk.verdicts).subspan(part.begin, part.keyed)};
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
  if (part.keyed < part.count) spread(chunk, part);
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
    counts_.malformed += status[i] == KeyStatus::malformed;
  }
}

void ChunkJudge::keep_posteriors(Chunk& chunk, const Chunk::Part& part) {
  chunk.posteriors.resize(std::max(chunk.posteriors.size(), part.begin + part.count));
  std::ranges::copy(infer_->posteriors(part.count),
                    chunk.posteriors.begin() + static_cast<std::ptrdiff_t>(part.begin));
}

void ChunkJudge::refuse(KeyStatus status) const {
  const bool fields = infer_ && infer_->reads_fields();
  const char* lacks = fields && options_.event_time ? "lacks the key, the time, a cost or a prior"
                      : fields                      ? "lacks the key, a cost or a prior"
                      : options_.event_time         ? "lacks the key or the time"
                                                    : "lacks the key";
  throw BadRecord(fmt::format("{}: record {} {}: mend it, or run without `strict` to {}", source_,
                              format_count(source_records_ + 1),
                              status == KeyStatus::malformed ? "is malformed" : lacks,
                              options_.forget ? "leave it out" : "pass it through"));
}

void ChunkJudge::refuse_long() const {
  throw BadRecord(fmt::format(
      "{}: record {} is longer than {}: raise `max_record`, or check the record format", source_,
      format_count(source_records_ + 1), format_size(options_.most_record_bytes)));
}

}  // namespace sluice
