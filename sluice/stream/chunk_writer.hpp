// The last step of the pipeline: verdicts → bytes, a chunk at a time and in the order of the input.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sluice/stream/chunk.hpp"
#include "sluice/stream/dedup_options.hpp"
#include "sluice/stream/outlet.hpp"
#include "sluice/stream/record_inference.hpp"

namespace sluice {

// One thread may write a chunk while another judges the next, unless ChunkJudge::writes_alone().
class ChunkWriter {
 public:
  // Sinks as in Dedup; `inference` may be null.
  ChunkWriter(const DedupOptions& options, RecordInference* inference, ByteSink& passed,
              ByteSink* held, ByteSink* late);

  // Writes the judged records, and throws the chunk's error, if it has one. `worker` is the calling
  // thread, 0 or 1.
  void write(const Chunk& chunk, unsigned worker);
  void flush();
  // The input is idle: the sinks, too, should let their readers see what they have.
  void flush_sinks();

  // A header is written with the first record: until then a run may be refused, and must leave nothing
  // behind. If no source has a record, the caller writes it.
  bool has_header() const noexcept { return header_.has_value(); }
  void write_header();
  // Any thread may ask.
  bool wrote_header() const noexcept { return wrote_header_.load(std::memory_order_acquire); }

  // Counts of the chunks written so far.
  std::uint64_t bytes_out() const noexcept { return bytes_out_.load(std::memory_order_relaxed); }

 private:
  struct Header {
    std::string bytes;
    std::size_t body;
  };

  void write_part(const Chunk& chunk, const Chunk::Part& part);
  template <class Keep>
  void write_to(Outlet& outlet, const Chunk& chunk, const Chunk::Part& part, const Keep& keep);

  RecordInference* posteriors_;  // writes them with the records; may be null
  bool invert_;
  LatePolicy late_policy_;
  Outlet passed_;
  Outlet held_;
  Outlet late_;
  std::vector<Outlet*> without_header_;
  std::optional<Header> header_;  // is not written yet
  std::atomic<bool> wrote_header_{false};
  std::atomic<std::uint64_t> bytes_out_{0};
};

}  // namespace sluice
