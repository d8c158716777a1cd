// The first half of the pipeline: bytes → records → keys → digests, a read's worth at a time.
//
// A chunk owns all its data, that of the second half too, so that one thread can fill or write a
// chunk while another judges the next. Reading and cutting follow the order of the input: only one
// thread at a time uses a ChunkReader. The keys and digests of a chunk do not depend on other
// chunks: each thread has its own ChunkKeys.
#pragma once

#include <exception>
#include <memory>
#include <memory_resource>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sluice/base/verdict.hpp"
#include "sluice/hash/hasher.hpp"
#include "sluice/stream/dedup_options.hpp"
#include "sluice/stream/event_time.hpp"
#include "sluice/stream/io.hpp"
#include "sluice/stream/key_extractor.hpp"
#include "sluice/stream/record.hpp"
#include "sluice/stream/splitter.hpp"

namespace sluice {

// One read: large enough that system calls do not matter, small enough that what was read is still
// in the second-level cache when it is hashed and copied.
inline constexpr std::size_t kReadBytes = std::size_t{1} << 18;

// A chunk has no more records than this, however short they are: they take memory, too.
inline constexpr std::size_t kChunkRecords = 16 * kBatchRecords;

// Records in a row that have keys are judged together, up to this many: filters hide the latency of
// one key behind other keys, and the first keys of a batch have none.
inline constexpr std::size_t kJudgeRecords = 4 * kBatchRecords;

// Bytes that are not initialized: pages that no record needs stay untouched.
class ReadBuffer {
 public:
  char* data() const noexcept { return bytes_.get(); }
  std::size_t size() const noexcept { return size_; }
  // Makes room for `bytes` bytes and the padding after them; keeps the first `kept` bytes.
  void reserve(std::size_t size, std::size_t kept);
  void release() noexcept;

 private:
  std::unique_ptr<char[]> bytes_;
  std::size_t size_ = 0;
};

struct Chunk {
  // Records that are judged together.
  struct Part {
    std::size_t begin;  // in `records` and `status`
    std::size_t count;
    std::size_t keyed;                     // their digests and times start at `begin`, without gaps
    std::size_t duplicates = 0, late = 0;  // when it is judged
  };
  // A record without a key, and why.
  struct Fault {
    std::size_t record;  // in `records`
    std::string reason;
  };
  // The first header of the run is written, those of other inputs are not.
  enum class Header : std::uint8_t { none, first, again };

  void clear();

  ReadBuffer buffer;
  std::size_t bytes_read = 0;
  std::uint64_t end = 0;         // offset in the source where its last record ends
  std::uint64_t open_bytes = 0;  // of its last record, if that has no terminator; else 0
  std::vector<Record> records;   // with a header, that is the first
  Header header = Header::none;
  bool ended_quoted = false;  // its last record, at the end of the source
  std::vector<Part> parts;    // without the header
  std::size_t judged = 0;     // of the parts, from the front
  std::vector<KeyStatus> status;
  std::vector<Fault> faults;  // the first kMostFaults
  // The first record of all that has a time, if it has only a date. The first two chunks may have one each.
  std::optional<Fault> date;
  // The same, if its time may be a date or a number.
  std::optional<Fault> unclear;
  // A record before all that have a time, whose time is in another format.
  std::optional<Fault> another;
  std::vector<Digest> digests;
  std::vector<Nanoseconds> times;
  // With DedupOptions::tap_keys: the bytes of each key, in the buffer or in key_bytes.
  std::vector<std::string_view> keys;
  std::unique_ptr<std::pmr::monotonic_buffer_resource> key_bytes;
  // The verdict on each record. Records without a key count as distinct.
  std::vector<Verdict> verdicts;
  std::unique_ptr<bool[]> late;                   // one per record
  std::vector<std::optional<double>> posteriors;  // if they are written
  // The error that ends the run after these records, if any.
  bool too_long = false;
  std::exception_ptr error;
};

class ChunkReader {
 public:
  explicit ChunkReader(const DedupOptions& options);

  // Begins at this offset, where the source stands and a record begins.
  void start(ByteSource& source, std::uint64_t offset);
  bool expects_header() const noexcept { return has_header_; }
  ByteSource& source() const noexcept { return *source_; }

  // Bytes that were read and belong to no chunk yet.
  std::size_t held() const noexcept { return held_; }
  // These bytes contain complete records: nothing need be read.
  bool has_records() const noexcept { return has_records_; }
  // These bytes belong to a record that is already too long.
  bool is_too_long() const noexcept { return !has_records_ && held_ > most_record_bytes_; }

  // Reads into the chunk, after the bytes that were held. Returns what the source returned.
  std::size_t read(Chunk& chunk);
  // Cuts the chunk into records. `last`: nothing follows.
  void cut(Chunk& chunk, bool last);

 private:
  void place(Chunk& chunk);

  std::unique_ptr<Splitter> splitter_;
  std::uint64_t most_record_bytes_;
  bool has_header_;
  bool skips_mark_;
  ByteSource* source_ = nullptr;
  std::uint64_t cut_to_ = 0;  // offset in the source
  bool header_due_ = false;
  bool mark_due_ = false;  // the next record may have a byte order mark before it
  ReadBuffer carry_;       // what is held between chunks
  std::size_t held_ = 0;
  bool placed_ = false;  // the held bytes are already at the front of a chunk
  bool has_records_ = false;
};

class ChunkKeys {
 public:
  // `hasher` must outlive this. Throws BadParameters for keys that do not fit the format.
  // `digests`: whether they are needed.
  ChunkKeys(const DedupOptions& options, const Hasher& hasher, bool digests);

  void set_header(const Record& header, const std::string& source);
  std::size_t parts() const { return extractor_->parts(); }
  // Fills parts, status, digests and times.
  void prepare(Chunk& chunk);

 private:
  void prepare_part(Chunk& chunk, std::size_t begin, std::size_t count);
  void explain(Chunk& chunk, std::size_t begin, std::size_t count);
  void look_for_date(Chunk& chunk, std::size_t begin, std::size_t count);
  static void keep(std::span<const std::string_view> keys, std::size_t begin, Chunk& chunk);

  const Hasher& hasher_;
  bool digests_;
  bool keeps_;                          // the keys, in the chunk
  bool merges_;                         // inference takes one batch at a time
  std::string key_field_, time_field_;  // for messages
  std::unique_ptr<KeyExtractor> extractor_;
  std::optional<EventTimes> event_times_;
  bool times_of_keys_ = false;  // the key gives the texts of the times
  bool timed_ = false;          // a record with a time was seen
  std::vector<std::string_view> keys_;
};

}  // namespace sluice
