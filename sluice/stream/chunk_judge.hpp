// The third step of the pipeline: digests → verdicts, a chunk at a time and in the order of the
// input.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sluice/judge/stream_judge.hpp"
#include "sluice/stream/chunk.hpp"
#include "sluice/stream/dedup_options.hpp"
#include "sluice/stream/record_inference.hpp"
#include "sluice/stream/year_guess.hpp"

namespace sluice {

class ChunkJudge {
 public:
  // `judge` must outlive this. Throws BadParameters.
  ChunkJudge(const DedupOptions& options, StreamJudge& judge);

  // A new source begins, or is continued; its name is for messages.
  void start(const std::string& source, const SourcePosition& from);
  // Judges the chunk's records. An error that ends the run, here or after the chunk's last record,
  // is stored in the chunk.
  void judge(Chunk& chunk) noexcept;
  // Calls options.before_first, once. If it throws, it is called again the next time.
  void begin();
  // True: nothing may be judged while a chunk is written.
  bool writes_alone() const noexcept { return infer_.has_value(); }

  DedupCounts& counts() noexcept { return counts_; }
  const std::vector<RecordFault>& faults() const noexcept { return faults_; }
  const std::optional<OpenQuotes>& open_quotes() const noexcept { return open_quotes_; }
  // Where in the source the last judged chunk ends.
  const SourcePosition& position() const noexcept { return position_; }
  // See Dedup::years().
  std::optional<EventClock> years() const;
  // Null without options.infer.
  RecordInference* inference() noexcept { return infer_ ? &*infer_ : nullptr; }

 private:
  // Processes the keys: they are judged, taken back, or passed to another receiver. Returns how many
  // were.
  using Act = std::function<std::size_t(const Judge::Batch&)>;

  Act act_for();
  void judge_part(Chunk& chunk, Chunk::Part& part);
  std::size_t judge_keys(const Judge::Batch& batch);
  void look_for_time(const Chunk& chunk, const Chunk::Part& part);
  void complete_years(Chunk& chunk, Chunk::Part& part);
  Judge::Batch batch_of(Chunk& chunk, const Chunk::Part& part);
  static void shorten(const Chunk& chunk, Chunk::Part& part, std::size_t keys);
  void count(Chunk& chunk, Chunk::Part& part);
  void spread(Chunk& chunk, const Chunk::Part& part);
  void keep_posteriors(Chunk& chunk, const Chunk::Part& part);
  void keep_open_quotes(const Chunk& chunk);
  void keep_faults(const Chunk& chunk, const Chunk::Part& part);
  [[noreturn]] void refuse_key(const Digest& digest) const;
  [[noreturn]] void refuse(const Chunk& chunk, std::size_t record) const;
  [[noreturn]] void refuse_long() const;

  DedupOptions options_;
  StreamJudge& judge_;
  Act act_;
  std::span<const std::string_view> tapped_;  // keys of the part that is judged
  std::optional<RecordInference> infer_;
  DedupCounts counts_;
  std::vector<RecordFault> faults_;
  std::optional<OpenQuotes> open_quotes_;
  bool timed_ = false;              // a record had a time
  std::optional<YearGuess> years_;  // if times may have none
  std::string source_;
  std::uint64_t source_records_ = 0;  // of the present source, judged
  SourcePosition position_;
};

}  // namespace sluice
