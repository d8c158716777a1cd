// Records to keys: one extractor per format and key.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "sluice/base/error.hpp"
#include "sluice/stream/record.hpp"

namespace sluice {

enum class KeyStatus : std::uint8_t {
  keyed,
  missing,
  malformed,
  day_only,  // its time is a date, where a time of day is needed
};

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

  // The texts of the event times of the records of the last extract(), if the key has them (an
  // expression with a group `time`); those of records without one have no data.
  virtual std::span<const std::string_view> times() const { return {}; }

  // How many fields make a key: the form of more than one has their lengths (key_form.hpp).
  virtual std::size_t parts() const = 0;
  // For messages: "field 3", "columns 'date', 'time'", "/user,/ad".
  virtual std::string name() const = 0;
  // Why the record has no key, as part of a sentence; empty if it has one. Slow. Keys that
  // extract() gave are lost.
  virtual std::string why_not(const Record& record) = 0;
};

// An impossible key. The message begins with the key, so that the caller can put the name of the
// flag before it.
class BadKey : public BadParameters {
 public:
  using BadParameters::BadParameters;
};

// How keys are written, and how they are compared.
struct KeyStyle {
  enum class By : std::uint8_t {
    fields,      // fields, columns or pointers
    regex,       // one regular expression, whose groups are the parts (regex_keys.cpp)
    bytes,       // ranges of bytes, as in cut -b (byte_keys.cpp)
    time_group,  // the group `time` of a regular expression: for event times
  };
  By by = By::fields;
  bool ignore_case = false;  // see folded_keys.cpp
  bool trim = false;
  // A key of fields, groups or bytes that are all empty is none. A whole record may be empty.
  bool unless_empty = false;
};

// `keys` are as a person writes them, in their order; none means the whole record. Throws BadKey
// with a sentence that names the key and says what would be right.
std::unique_ptr<KeyExtractor> make_key_extractor(const Format& format,
                                                 std::span<const std::string> keys,
                                                 const KeyStyle& style = {});

// Whether a regular expression has a group `time`. Throws BadKey.
bool has_time_group(const std::string& expression);

}  // namespace sluice
