// The second half of the pipeline: digests → verdicts → bytes, a chunk at a time and in the order
// of the input.
#pragma once

#include <array>
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

class ChunkJudge {
 public:
  // As of Dedup.
  ChunkJudge(const DedupOptions& options, AnyFilter& filter, ByteSink& passed, ByteSink* held,
             ByteSink* late);

  // A new source begins; its name is for messages.
  void start(const std::string& source);
  // Judges and writes the chunk's records, then throws what ends the run behind them, if anything.
  // `worker`, 0 or 1, is who asks.
  void judge(const Chunk& chunk, unsigned worker);
  void flush();

  DedupCounts& counts() noexcept { return counts_; }
  const Outlet& passed() const noexcept { return passed_; }
  const RecordInference* inference() const noexcept { return infer_ ? &*infer_ : nullptr; }

 private:
  // What was prepared of the records that are judged together.
  struct Batch {
    std::span<const Record> records;
    std::span<const KeyStatus> status;
    std::span<const Digest> digests;  // of those with a key
    std::span<const Nanoseconds> times;
  };

  void write_header(const Record& header);
  void judge_batch(const Chunk& chunk, const Chunk::Batch& place);
  void observe(const Batch& batch);
  void observe_keyed(const Batch& batch);
  void judge_keyed(const Batch& batch, std::span<Verdict> verdicts);
  void judge_window(const Batch& batch, std::span<Verdict> verdicts);
  void spread(const Batch& batch);
  void write(const Batch& batch);
  template <class Keep>
  void write_to(Outlet& outlet, const Batch& batch, const Keep& keep);
  [[noreturn]] void refuse(Batch batch);
  [[noreturn]] void refuse_long() const;

  DedupOptions options_;
  AnyFilter& filter_;
  Window* window_;  // what the filter is, if it is one
  Outlet passed_;
  Outlet held_;
  Outlet late_outlet_;
  std::optional<RecordInference> infer_;
  DedupCounts counts_;
  std::string source_;
  std::uint64_t source_records_ = 0;  // of the present source before this batch

  // One batch.
  std::array<Verdict, kJudgeRecords> verdicts_{};
  std::array<bool, kJudgeRecords> late_{};
  std::array<KeyStatus, kBatchRecords> status_{};  // where inference has a say in it
  std::array<Nanoseconds, kJudgeRecords> no_times_{};
  std::size_t batch_late_ = 0;        // how many of the batch are late
  std::size_t batch_duplicates_ = 0;  // and how many are duplicates
};

}  // namespace sluice
