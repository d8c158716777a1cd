// The pipeline: bytes → records → keys → digests → verdicts → bytes, a batch at a time.
//
// With a window the filter is told when each record happened: by the record itself (event time) or
// by the clock of the caller (arrival time). One straight line on one thread. The order of the
// input is kept. A record without a key is passed through and counted, never lost; with `strict` it
// stops the run instead.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "sluice/filters/any_filter.hpp"
#include "sluice/hash/hasher.hpp"
#include "sluice/stream/event_time.hpp"
#include "sluice/stream/io.hpp"
#include "sluice/stream/outlet.hpp"
#include "sluice/stream/record.hpp"
#include "sluice/stream/record_inference.hpp"
#include "sluice/window/window.hpp"

namespace sluice {

class Audit;

// What becomes of a record that comes a window or more after its time.
enum class LatePolicy : std::uint8_t {
  pass,  // written, not remembered
  drop,  // held back
  mark,  // to an outlet of its own
};

struct DedupOptions {
  Format format;
  std::vector<std::string> keys;  // as for make_key_extractor
  bool strict = false;            // a record without its key is an error
  bool invert = false;            // duplicates are passed on, the rest is held back
  std::uint64_t most_record_bytes = std::uint64_t{1} << 30;
  std::optional<std::string> event_time = {};  // the field that says when, written as one --key
  TimeFormat time_format = TimeFormat::automatic;
  LatePolicy late = LatePolicy::pass;
  // Where there is no event time, when a batch of a time window arrived.
  std::function<Nanoseconds()> clock = {};
  // The keys are taken back instead of judged, and nothing is written: `duplicates` then counts
  // those that were there, `distinct` those that were not. Only for a filter that can.
  bool forget = false;
  // Told of every key that was judged, with its verdict. Must outlive the run; may be null.
  Audit* audit = nullptr;
  // Verdicts of least cost, or posteriors written with the records. Only for a filter that can.
  std::optional<InferOptions> infer = {};
  // Takes the keys, and with event time their times, in place of the filter: nothing is judged, and
  // every record counts as distinct.
  std::function<void(std::span<const Digest>, std::span<const Nanoseconds>)> tap = {};
};

struct DedupCounts {
  std::uint64_t records = 0;  // = distinct + duplicates + unkeyed + late
  std::uint64_t distinct = 0;
  std::uint64_t duplicates = 0;
  std::uint64_t unkeyed = 0;    // no key found: passed through
  std::uint64_t malformed = 0;  // of the unkeyed, those that could not be parsed
  std::uint64_t late = 0;       // a window or more behind now
  std::uint64_t bytes_in = 0;
  std::uint64_t unfinished_bytes = 0;  // of a record that a stop cut off
};

class Dedup {
 public:
  // `hasher` and `filter` must outlive this. `passed` takes what is let through, `held` (may be
  // null) what is held back, `late` what comes too late with LatePolicy::mark. Throws BadParameters
  // for keys that do not fit the format.
  Dedup(const DedupOptions& options, const Hasher& hasher, AnyFilter& filter, ByteSink& passed,
        ByteSink* held, ByteSink* late = nullptr);

  // Runs one source to its end. `between` is called between reads, with everything read so far
  // judged but perhaps not flushed; when it returns false the run stops there. Throws BadRecord and
  // IoError. Call it again for the next source.
  void run(ByteSource& source, const std::function<bool()>& between);

  // Everything judged so far reaches the sinks.
  void flush();

  const DedupCounts& counts() const noexcept { return counts_; }
  std::uint64_t bytes_out() const noexcept { return passed_.bytes(); }
  // Nothing without options.infer.
  const RecordInference* inference() const noexcept { return infer_ ? &*infer_ : nullptr; }

 private:
  bool idle(ByteSource& source, const std::function<bool()>& between);
  void make_room(const ByteSource& source);
  void judge_buffer(const ByteSource& source, bool last);
  void take_header(const Record& header, const ByteSource& source);
  void judge(std::span<const Record> records, const ByteSource& source);
  std::size_t extract(std::span<const Record> records);
  void observe(std::size_t count, std::size_t keyed);
  void observe_keyed(std::size_t keyed);
  void judge_keyed(std::span<const Digest> digests, std::span<Verdict> verdicts);
  void judge_window(std::span<const Digest> digests, std::span<Verdict> verdicts);
  void write(std::span<const Record> records);
  template <class Keep>
  void write_to(Outlet& outlet, std::span<const Record> records, const Keep& keep);
  void refuse(std::span<const Record> records, const ByteSource& source);
  [[noreturn]] void refuse_long(const ByteSource& source);

  DedupOptions options_;
  const Hasher& hasher_;
  AnyFilter& filter_;
  Window* window_;  // what the filter is, if it is one
  Outlet passed_;
  Outlet held_;
  Outlet late_outlet_;
  std::unique_ptr<Splitter> splitter_;
  std::unique_ptr<KeyExtractor> extractor_;
  std::optional<EventTimes> event_times_;
  std::optional<RecordInference> infer_;
  DedupCounts counts_;
  std::uint64_t source_records_ = 0;  // records of the present source before this batch
  bool header_due_ = false;
  std::optional<std::string> header_;  // of the first source that has one

  // The read buffer: [begin_, end_) is read and not yet judged.
  std::vector<char> buffer_;
  std::size_t begin_ = 0;
  std::size_t end_ = 0;

  // One batch.
  std::vector<Record> records_;
  std::vector<std::string_view> keys_;
  std::vector<KeyStatus> status_;
  std::vector<Digest> digests_;
  std::vector<Verdict> verdicts_;
  std::vector<Nanoseconds> times_;
  std::array<bool, kBatchRecords> late_{};
  std::size_t batch_late_ = 0;  // how many of the batch are late
};

}  // namespace sluice
