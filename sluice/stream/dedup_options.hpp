// What the pipeline is told to do, and what it counts.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sluice/hash/digest.hpp"
#include "sluice/stream/event_time.hpp"
#include "sluice/stream/key_extractor.hpp"
#include "sluice/stream/record.hpp"
#include "sluice/stream/record_inference.hpp"
#include "sluice/window/clock.hpp"

namespace sluice {

// Keys that are given to another receiver than the judge. Valid during the call.
struct TappedKeys {
  std::span<const Digest> digests;
  std::span<const Nanoseconds> times;      // with event time
  std::span<const std::string_view> keys;  // their bytes, with DedupOptions::tap_keys
};

// What becomes of a record that comes a window or more after its time.
enum class LatePolicy : std::uint8_t {
  pass,  // written, not remembered
  drop,  // held back
  mark,  // written to its own sink
};

// What a sink holds before the run: nothing, or what earlier runs wrote to it.
struct SinkBefore {
  bool header = false;    // it has one, which is not written again
  bool open_end = false;  // its last record has no terminator
};

// How far a source is judged.
struct SourcePosition {
  std::uint64_t offset = 0;   // of the first byte that is not
  std::uint64_t records = 0;  // before it
  // Of the last of them, if the source ended before its terminator; else 0.
  std::uint64_t open_bytes = 0;
  friend bool operator==(const SourcePosition&, const SourcePosition&) = default;
};

struct DedupOptions {
  Format format;
  std::vector<std::string> keys;  // as for make_key_extractor
  KeyStyle key_style = {.unless_empty = true};
  bool strict = false;  // a record without its key is an error
  bool invert = false;  // duplicates are passed on, the rest is held back
  std::uint64_t most_record_bytes = std::uint64_t{1} << 30;
  std::optional<std::string> event_time = {};   // the fields with the time, written like --key
  KeyStyle::By time_by = KeyStyle::By::fields;  // time_group: of `keys`, which is an expression
  TimeReader time_format = {};
  // When this is, for times that do not say their year.
  Nanoseconds today = 0;
  // Of the run that is continued, if a year was given there: see Dedup::years().
  std::optional<EventClock> years_from = {};
  // A date without a time of day is a time. Not so in a window shorter than a day: there, such a
  // record has no key, and if it is the first with a time, the run is refused.
  bool days = true;
  LatePolicy late = LatePolicy::pass;
  // The time of arrival of a batch, for a time window without event time.
  std::function<Nanoseconds()> clock = {};
  // The keys are taken back instead of judged, and nothing is written: `duplicates` then counts
  // those that were there, `distinct` those that were not. Only for a filter that can forget.
  bool forget = false;
  // When a window has used up its `memory`, its oldest keys are forgotten early; otherwise the run
  // ends with NoMemory.
  bool forget_early = false;
  // Costs and priors of records, and posteriors written with them. Only for a judge that infers.
  std::optional<InferOptions> infer = {};
  // Threads that may work at once, 1 or 2. The second one works while input is available without
  // waiting. Order and results are the same.
  unsigned threads = 1;
  // Takes the keys in place of the judge: nothing is judged, and every record counts as distinct.
  std::function<void(const TappedKeys&)> tap = {};
  bool tap_keys = false;
  SinkBefore passed_before = {}, held_before = {}, late_before = {};
  // Called with the first source that has a header, and that header without a byte order mark, before
  // anything is judged. May throw, which ends the run.
  std::function<void(const std::string& source, const std::string& header)> check_header = {};
  // Called once, before anything is judged or written, when the first record has passed all checks.
  std::function<void()> before_first = {};
};

// A record without a key or a time, and why. The reason quotes the record: escape it.
struct RecordFault {
  std::string source;
  std::uint64_t record = 0;  // from 1, in its source
  std::string reason;        // "field 3, 'soon', is not a time"
  friend bool operator==(const RecordFault&, const RecordFault&) = default;
};

// The last record of a source, with quotes that are never closed: all lines after them are part of it.
struct OpenQuotes {
  std::string source;
  std::uint64_t record = 0;  // from 1, in its source; 0: its header
  std::uint64_t bytes = 0, lines = 0;
  std::string begin;  // its first bytes, to be shown
};

// So many are kept, the first of a run.
inline constexpr std::size_t kMostFaults = 3;

struct DedupCounts {
  std::uint64_t records = 0;  // = distinct + duplicates + unkeyed + late
  std::uint64_t distinct = 0;
  std::uint64_t duplicates = 0;
  std::uint64_t unkeyed = 0;          // no key found: passed through
  std::uint64_t malformed = 0;        // of the unkeyed, those that could not be parsed
  std::uint64_t late = 0;             // a window or more behind now
  std::uint64_t forgotten_early = 0;  // keys (DedupOptions::forget_early)
  std::uint64_t bytes_in = 0;
  std::uint64_t unfinished_bytes = 0;  // of a record cut off by a stop
  friend bool operator==(const DedupCounts&, const DedupCounts&) = default;
};

}  // namespace sluice
