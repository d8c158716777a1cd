#include "sluice/stream/chunk_writer.hpp"

#include <exception>
#include <span>

namespace sluice {
namespace {

char terminator_of(const Format& format) {
  return format.kind == Format::Kind::nul ? '\0' : '\n';
}

}  // namespace

ChunkWriter::ChunkWriter(const DedupOptions& options, RecordInference* inference, ByteSink& passed,
                         ByteSink* held, ByteSink* late)
    : posteriors_(inference != nullptr && inference->writes_posterior() ? inference : nullptr),
      invert_(options.invert),
      late_policy_(options.late),
      passed_(options.forget ? nullptr : &passed, terminator_of(options.format),
              options.passed_before.open_end),
      held_(held, terminator_of(options.format), options.held_before.open_end),
      late_(late, terminator_of(options.format), options.late_before.open_end) {
  if (!options.passed_before.header) without_header_.push_back(&passed_);
  if (!options.held_before.header) without_header_.push_back(&held_);
  if (!options.late_before.header) without_header_.push_back(&late_);
}

void ChunkWriter::write(const Chunk& chunk, unsigned worker) {
  for (Outlet* outlet : {&passed_, &held_, &late_}) outlet->use_buffer(worker);
  if (chunk.header == Chunk::Header::first) {
    const Record& header = chunk.records.front();
    header_ = {std::string(header.data, header.whole), header.body};
  }
  for (const Chunk::Part& part : std::span(chunk.parts).first(chunk.judged))
    write_part(chunk, part);
  bytes_out_.store(passed_.bytes(), std::memory_order_relaxed);
  if (chunk.error) std::rethrow_exception(chunk.error);
}

void ChunkWriter::write_header() {
  if (!header_) return;
  const Record header{header_->bytes.data(), header_->body, header_->bytes.size()};
  const Record out = posteriors_ != nullptr ? posteriors_->with_name(header) : header;
  for (Outlet* outlet : without_header_) outlet->write(out);
  wrote_header_.store(true, std::memory_order_release);
  header_.reset();
  bytes_out_.store(passed_.bytes(), std::memory_order_relaxed);
}

template <class Keep>
void ChunkWriter::write_to(Outlet& outlet, const Chunk& chunk, const Chunk::Part& part,
                           const Keep& keep) {
  if (posteriors_ == nullptr)
    return outlet.write_kept(std::span(chunk.records).subspan(part.begin, part.count), keep);
  if (!outlet.has_sink()) return;
  for (std::size_t i = 0; i < part.count; ++i) {
    const std::size_t at = part.begin + i;
    if (keep(i))
      outlet.write(
          posteriors_->with_posterior(chunk.records[at], chunk.posteriors[at], chunk.status[at]));
  }
}

void ChunkWriter::write_part(const Chunk& chunk, const Chunk::Part& part) {
  if (part.count == 0) return;
  write_header();
  Outlet& duplicates = invert_ ? passed_ : held_;
  Outlet& others = invert_ ? held_ : passed_;
  if (part.late == 0 && part.duplicates == 0 && posteriors_ == nullptr)
    return others.write_all(std::span(chunk.records).subspan(part.begin, part.count));
  const Verdict* const verdicts = chunk.verdicts.data() + part.begin;
  if (part.late == 0) {
    write_to(others, chunk, part, [=](std::size_t i) { return verdicts[i] != Verdict::duplicate; });
    write_to(duplicates, chunk, part,
             [=](std::size_t i) { return verdicts[i] == Verdict::duplicate; });
    return;
  }
  // A late record takes the place of a duplicate (drop), of any other record (pass), or neither
  // (mark).
  const bool* const late = chunk.late.get() + part.begin;
  const LatePolicy policy = late_policy_;
  write_to(others, chunk, part, [=](std::size_t i) {
    return late[i] ? policy == LatePolicy::pass : verdicts[i] != Verdict::duplicate;
  });
  write_to(duplicates, chunk, part, [=](std::size_t i) {
    return late[i] ? policy == LatePolicy::drop : verdicts[i] == Verdict::duplicate;
  });
  if (policy == LatePolicy::mark)
    write_to(late_, chunk, part, [=](std::size_t i) { return late[i]; });
}

void ChunkWriter::flush() {
  passed_.flush();
  held_.flush();
  late_.flush();
}

void ChunkWriter::flush_sinks() {
  flush();
  passed_.flush_sink();
  held_.flush_sink();
  late_.flush_sink();
}

}  // namespace sluice
