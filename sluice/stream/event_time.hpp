// When an event happened, read from its record.
//
// A time may span fields. time_reader.hpp says how times are written.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sluice/stream/key_extractor.hpp"
#include "sluice/stream/record.hpp"
#include "sluice/stream/time_reader.hpp"
#include "sluice/window/clock.hpp"

namespace sluice {

class EventTimes {
 public:
  // `fields` are written as one --key; their texts are joined by a blank. `days`: a date without a
  // time of day is a time, too. Throws BadParameters.
  EventTimes(const Format& format, const std::string& fields, const TimeReader& reader, bool days,
             const KeyStyle& style = {});

  void set_header(const Record& header) { fields_->set_header(header); }

  // Fills times[i] for every record that has one, and marks the others in `status`, which holds the
  // state of their keys: a record without a time counts as a record without a key. Returns how many
  // are keyed.
  std::size_t extract(std::span<const Record> records, std::span<Nanoseconds> times,
                      std::span<KeyStatus> status);
  // The same for texts that are there already (KeyExtractor::times).
  std::size_t read_all(std::span<const std::string_view> texts, std::span<Nanoseconds> times,
                       std::span<KeyStatus> status);
  // As in KeyExtractor: "field 3, 'soon', is not a time".
  std::string why_not(const Record& record);
  // "field 2, '2026-01-01', is a date without a time of day" if a record that has a time is like that,
  // whether or not that is a time here; otherwise empty.
  std::string why_day(const Record& record);
  // If a record has a time, but not in the format that is read: what it looks like, and what to give.
  // Otherwise empty.
  std::string why_another(const Record& record);
  // If the time of a record may be a date without dashes or a number: what it may be, and which format
  // to give for either. Otherwise empty.
  std::string why_unclear(const Record& record);

 private:
  KeyStatus read(std::string_view form, std::size_t parts, Nanoseconds& time);
  std::optional<std::string_view> text_of(std::string_view form, std::size_t parts);

  bool json_;
  TimeReader reader_;
  bool days_;
  std::string written_;  // the fields
  std::unique_ptr<KeyExtractor> fields_;
  std::string joined_;
  std::vector<std::string_view> texts_;
  std::vector<KeyStatus> found_;
};

}  // namespace sluice
