// When an event happened, read from its record.
//
// Numbers are seconds, milliseconds, microseconds or nanoseconds since 1970, perhaps with decimals;
// the unit is told by their size unless it is given. Texts are ISO 8601 dates and times. By hand,
// because the compilers we build with do not have std::chrono::parse, and strptime knows no
// fractions, offsets or errors.
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
  iso8601,  // 2026-11-15T10:50:00.123Z, +01:00 for Z, a blank for T; 2026-11-15; without offset:
            // UTC
};

// "auto", "s", "ms", "us", "ns", "iso8601". Throws BadParameters naming `flag`.
TimeFormat parse_time_format(std::string_view flag, std::string_view text);

// Empty if `text` is not such a time, or is outside the years 1824 to 2116.
std::optional<Nanoseconds> parse_time(std::string_view text, TimeFormat format);

class EventTimes {
 public:
  // `field` is written as one --key. Throws BadParameters.
  EventTimes(const Format& format, const std::string& field, TimeFormat time_format);

  void set_header(const Record& header) { fields_->set_header(header); }

  // Fills times[i] for every record that has one, and marks the others in `status`, which holds the
  // state of their keys: a record without a time counts as a record without a key. Returns how many
  // are keyed.
  std::size_t extract(std::span<const Record> records, std::span<Nanoseconds> times,
                      std::span<KeyStatus> status);

 private:
  bool json_;
  TimeFormat time_format_;
  std::unique_ptr<KeyExtractor> fields_;
  std::vector<std::string_view> texts_;
  std::vector<KeyStatus> found_;
};

}  // namespace sluice
