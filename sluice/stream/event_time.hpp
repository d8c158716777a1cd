// When an event happened, read from its record.
//
// Numbers are seconds, milliseconds, microseconds or nanoseconds since 1970, perhaps with decimals;
// the unit is told by their size unless it is given. Texts are ISO 8601 dates and times, which may
// span fields. By hand, because the compilers we build with do not have std::chrono::parse, and
// strptime knows no fractions, offsets or errors.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sluice/stream/key_extractor.hpp"
#include "sluice/stream/record.hpp"
#include "sluice/window/clock.hpp"

namespace sluice {

enum class TimeFormat : std::uint8_t {
  automatic,  // below 10^11 s, below 10^14 ms, below 10^17 us, from there ns; or ISO 8601
  seconds,
  milliseconds,
  microseconds,
  nanoseconds,
  // 2026-11-15T10:50:00.123Z; with +01:00, +0100 or +01 for Z, a blank before it, or " UTC"; without
  // an offset: UTC; with a blank for T; 20261115T105000Z; 2026-11-15, and 20261115 unless it may be a
  // number. 24:00:00 is the end of a day, and a second is 60 only where a leap second was inserted.
  iso8601,
};

// "auto", "s", "ms", "us", "ns", "iso8601". Throws BadParameters naming `flag`.
TimeFormat parse_time_format(std::string_view flag, std::string_view text);

// Empty if `text` is not such a time, or is outside the years 1824 to 2116.
std::optional<Nanoseconds> parse_time(std::string_view text, TimeFormat format);

// In UTC: 2026-11-15T10:50:00Z, with up to nine decimals; parse_time reads it.
std::string format_time(Nanoseconds time);

// What a number may be instead, if nobody says: 20260101 is a day of 2026, or 235 days after 1970 began;
// 202601011000 a minute of that day, or a time of 1976 in milliseconds.
enum class Unclear : std::uint8_t { no, day, minute };
Unclear is_unclear(std::string_view time, TimeFormat format);

// Whether a text that parse_time can read is a date without a time of day.
bool is_day(std::string_view time, TimeFormat format);

class EventTimes {
 public:
  // `fields` are written as one --key; their texts are joined by a blank. `days`: a date without a
  // time of day is a time, too. Throws BadParameters.
  EventTimes(const Format& format, const std::string& fields, TimeFormat time_format, bool days);

  void set_header(const Record& header) { fields_->set_header(header); }

  // Fills times[i] for every record that has one, and marks the others in `status`, which holds the
  // state of their keys: a record without a time counts as a record without a key. Returns how many
  // are keyed.
  std::size_t extract(std::span<const Record> records, std::span<Nanoseconds> times,
                      std::span<KeyStatus> status);
  // As in KeyExtractor: "field 3, 'soon', is not a time".
  std::string why_not(const Record& record);
  // "field 2, '2026-01-01', is a date without a time of day" if a record that has a time is like that,
  // whether or not that is a time here; otherwise empty.
  std::string why_day(const Record& record);
  // If the time of a record may be a date without dashes or a number: what it may be, and which format
  // to give for either. Otherwise empty.
  std::string why_unclear(const Record& record);

 private:
  KeyStatus read(std::string_view form, std::size_t parts, Nanoseconds& time);
  std::optional<std::string_view> text_of(std::string_view form, std::size_t parts);

  bool json_;
  TimeFormat time_format_;
  bool days_;
  std::unique_ptr<KeyExtractor> fields_;
  std::string joined_;
  std::vector<std::string_view> texts_;
  std::vector<KeyStatus> found_;
};

}  // namespace sluice
