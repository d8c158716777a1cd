// The pipeline: bytes → records → keys → digests → verdicts → bytes, a read's worth at a time.
//
// With a window the filter is told when each record happened: by the record itself (event time) or
// by the clock of the caller (arrival time). One straight line; two threads may carry chunks along
// it, and reading, judging and writing then go by turns (turns.hpp), so that the order of the input
// is kept.
// A record without a key is passed through and counted, never lost; with `strict` it stops the run
// instead.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "sluice/judge/judge.hpp"
#include "sluice/stream/dedup_options.hpp"
#include "sluice/stream/io.hpp"

namespace sluice {

class Dedup {
 public:
  // `judge` must outlive this. `passed` takes what is let through, `held` (may be
  // null) what is held back, `late` what comes too late with LatePolicy::mark. Throws BadParameters
  // for keys that do not fit the format.
  Dedup(const DedupOptions& options, Judge& judge, ByteSink& passed, ByteSink* held,
        ByteSink* late = nullptr);
  ~Dedup();

  // Runs one source to its end. `between` is called between chunks, with all records up to one of
  // them judged and none behind it, though perhaps not written; when it returns false the run
  // stops: what has been read is judged, and nothing more is read. Throws BadRecord and IoError.
  // Call it again for the next source.
  //
  // With two threads the source, the sinks, the judge and `between` are each used by one thread at
  // a time, but not always by the caller's; at the return by none. While `between` runs, a sink may
  // be written to until flush() has returned, and the judge is not used.
  void run(ByteSource& source, const std::function<bool()>& between);

  // Everything judged so far reaches the sinks. Between runs, or from `between`.
  void flush();

  const DedupCounts& counts() const noexcept;
  std::uint64_t bytes_out() const noexcept;
  // Nothing without options.infer.
  const RecordInference* inference() const noexcept;

 private:
  struct Parts;
  class Passage;
  std::unique_ptr<Parts> parts_;
};

}  // namespace sluice
