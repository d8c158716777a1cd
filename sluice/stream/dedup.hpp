// The pipeline: bytes → records → keys → digests → verdicts → bytes, a read's worth at a time.
//
// With a window the filter gets the time of each record: from the record itself (event time) or
// from the caller's clock (arrival time). The path is one straight line. Two threads may carry
// chunks along it; then they take turns to read, judge and write (turns.hpp), so that the order of
// the input is kept. A record without a key is passed through and counted, never lost; with
// `strict` it stops the run instead.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "sluice/judge/stream_judge.hpp"
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
  // The same with any judge. Without one of its own (StreamJudge::own) `options` must not forget or
  // infer.
  Dedup(const DedupOptions& options, StreamJudge& judge, ByteSink& passed, ByteSink* held,
        ByteSink* late = nullptr);
  ~Dedup();

  // Runs one source to its end. `between` is called between chunks: all records up to that point
  // are judged, but perhaps not written, and no later ones. When it returns false the run stops:
  // what has been read is judged, and nothing more is read. Throws BadRecord and IoError. Call it
  // again for the next source. Returns whether the source was read to its end.
  //
  // A run that continues gives the position up to which the source was judged before; the source
  // stands at its offset. If the format has a header, read_header comes first.
  //
  // With two threads the source, the sinks, the judge and `between` are each used by one thread at
  // a time, but not always by the caller's; after the return, by none. While `between` runs, a sink
  // may be written to until flush() has returned, and the judge is not used.
  bool run(ByteSource& source, const std::function<bool()>& between,
           const SourcePosition& from = {});

  // Takes the columns from the source's header, which goes to the sinks that do not have it with the
  // first record. Reads the source from its front, and further than the header.
  void read_header(ByteSource& source);

  // How far the present source is judged. Call it from `between`, or between runs: after flush(),
  // what is judged is written too.
  const SourcePosition& position() const noexcept;

  // Writes everything judged so far to the sinks, and after a run the header of a table without records.
  // Call it between runs, or from `between`.
  void flush();
  // After flush(): what sinks hold back themselves, such as compressed ones, can be read by others soon.
  void flush_sinks();

  // The header of the sources, without a byte order mark, once it was written to the sinks that had none;
  // null before that. Call it like position().
  const std::string* written_header() const noexcept;

  // The clock that tells the years of times without one, if it is not the window's, because a year was given:
  // old records may be added to a window that has later ones. Call it like position().
  std::optional<EventClock> years() const;

  const DedupCounts& counts() const noexcept;
  // The first records without a key.
  const std::vector<RecordFault>& faults() const noexcept;
  // The first record of several lines that ended within quotes.
  const std::optional<OpenQuotes>& open_quotes() const noexcept;
  std::uint64_t bytes_out() const noexcept;
  // Fields of a key, once the first header was read: see key_text.hpp.
  std::size_t key_parts() const;
  // Empty without options.infer.
  const RecordInference* inference() const noexcept;

 private:
  struct Parts;
  class Passage;
  std::unique_ptr<Parts> parts_;
};

}  // namespace sluice
