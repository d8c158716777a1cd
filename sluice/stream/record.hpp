// What flows: records in a read buffer, the shape of their format, and their keys.
//
// A batch is a few hundred records cut from one buffer. Records and keys are views: nothing is
// copied on the way from the reader to the writer. Virtual calls are paid once per batch.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sluice/base/error.hpp"

namespace sluice {

// How many records travel together: enough to hide memory latency behind each other, few enough to
// stay in the first-level cache with their keys, digests and verdicts.
inline constexpr std::size_t kBatchRecords = 512;

// How many bytes past the end of a read buffer may be read (never written) by whoever holds a
// record: vector code and the JSON parser look ahead. The bytes there mean nothing.
inline constexpr std::size_t kPaddingBytes = 64;

struct Record {
  const char* data = nullptr;
  std::size_t body = 0;   // bytes without the terminator: what keys are taken from
  std::size_t whole = 0;  // bytes with the terminator: what is written
  std::string_view text() const noexcept { return {data, body}; }
};

struct Format {
  enum class Kind : std::uint8_t { lines, nul, csv, tsv, json };
  Kind kind = Kind::lines;
  bool header = true;  // csv, tsv: the first record of an input names the columns
  // What separates fields. 0: the usual of the format, which is runs of blanks and tabs for lines
  // and nul (as in awk), a comma for csv, a tab for tsv.
  char delimiter = 0;
};

// Cuts bytes into records.
class Splitter {
 public:
  virtual ~Splitter() = default;
  // `bytes` start at a record's start. Appends at most `most` records to `out` and returns how many
  // bytes they take; the rest is an unfinished record, or left because of `most`, and is presented
  // again, at its front and perhaps elsewhere in memory, with more bytes behind it. The splitter
  // remembers how much of an unfinished record it has seen, so that a long one is not scanned
  // twice. `last`: nothing follows, so what is left is a record even without its terminator.
  virtual std::size_t split(std::string_view bytes, bool last, std::size_t most,
                            std::vector<Record>& out) = 0;
  // Forgets any unfinished record: a new input begins.
  virtual void reset() = 0;
};

enum class KeyStatus : std::uint8_t { keyed, missing, malformed };

// Takes the keys out of a batch of records.
class KeyExtractor {
 public:
  virtual ~KeyExtractor() = default;
  // Fills keys[i] and status[i] for records[i] (spans of equal length, at most kBatchRecords) and
  // returns how many are keyed. Keys are views into the records or into memory of the extractor's
  // that lives until the next call; keys[i] is empty where status[i] is not `keyed`.
  virtual std::size_t extract(std::span<const Record> records, std::span<std::string_view> keys,
                              std::span<KeyStatus> status) = 0;
  // csv, tsv with a header: resolves column names. Throws BadKey when a key names no column,
  // with the columns there are. Other formats ignore it.
  virtual void set_header(const Record& /*header*/) {}
};

// A key that cannot be: the message begins with the key, so that whoever knows the flag it came by
// can put that before it.
class BadKey : public BadParameters {
 public:
  using BadParameters::BadParameters;
};

std::unique_ptr<Splitter> make_splitter(const Format& format);

// `keys` are the values of --key in their order; none means the whole record. Throws BadKey
// with a sentence that names the key and says what would be right.
std::unique_ptr<KeyExtractor> make_key_extractor(const Format& format,
                                                 std::span<const std::string> keys);

}  // namespace sluice
