// The second half of the pipeline: digests → verdicts → bytes, a chunk at a time and in the order
// of the input.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <optional>
#include <string>

#include "sluice/filters/any_filter.hpp"
#include "sluice/stream/chunk.hpp"
#include "sluice/stream/dedup_options.hpp"
#include "sluice/stream/outlet.hpp"
#include "sluice/stream/record_inference.hpp"
#include "sluice/window/window.hpp"

namespace sluice {

// One thread may write a chunk while another judges the next, unless writes_alone().
class ChunkJudge {
 public:
  // As of Dedup.
  ChunkJudge(const DedupOptions& options, AnyFilter& filter, ByteSink& passed, ByteSink* held,
             ByteSink* late);

  // A new source begins; its name is for messages.
  void start(const std::string& source);
  // Judges the chunk's records. What ends the run, be it here or behind the chunk's last record, is
  // the chunk's error then.
  void judge(Chunk& chunk) noexcept;
  // Writes what is judged, and throws the chunk's error, if it has one. `worker`, 0 or 1, is who
  // asks.
  void write(const Chunk& chunk, unsigned worker);
  void flush();
  // Nothing may be judged while a chunk is written.
  bool writes_alone() const noexcept { return infer_.has_value(); }

  DedupCounts& counts() noexcept { return counts_; }
  // Of the chunks that are written.
  std::uint64_t bytes_out() const noexcept { return bytes_out_.load(std::memory_order_relaxed); }
  const RecordInference* inference() const noexcept { return infer_ ? &*infer_ : nullptr; }

 private:
  // What was prepared of the records that are judged together, and room for what comes of them.
  struct Batch {
    std::span<const Record> records;
    std::span<KeyStatus> status;
    std::span<const Digest> digests;  // of those with a key
    std::span<const Nanoseconds> times;
    std::span<Verdict> verdicts;
    std::span<bool> late;
  };

  void judge_batch(Chunk& chunk, Chunk::Batch& place);
  void observe(Chunk& chunk, Chunk::Batch& place, Batch batch);
  // Return how many keys were judged: all, unless memory ended.
  std::size_t judge_keyed(const Batch& batch);
  std::size_t judge_window(const Batch& batch);
  void shorten(Chunk::Batch& place, Batch& batch, std::size_t keys);
  [[noreturn]] void refuse_key(const Digest& digest);
  void spread(const Batch& batch);
  [[noreturn]] void refuse(Chunk& chunk, Chunk::Batch& place, Batch batch);
  [[noreturn]] void refuse_long() const;

  void write_header(const Record& header);
  void write_batch(const Chunk& chunk, const Chunk::Batch& batch);
  template <class Keep>
  void write_to(Outlet& outlet, const Chunk& chunk, const Chunk::Batch& batch, const Keep& keep);

  DedupOptions options_;
  AnyFilter& filter_;
  Window* window_;  // what the filter is, if it is one
  Outlet passed_;
  Outlet held_;
  Outlet late_outlet_;
  std::optional<RecordInference> infer_;
  DedupCounts counts_;
  std::atomic<std::uint64_t> bytes_out_{0};
  std::string source_;
  std::uint64_t source_records_ = 0;  // of the present source before this batch
  std::array<Nanoseconds, kJudgeRecords> no_times_{};
};

}  // namespace sluice
