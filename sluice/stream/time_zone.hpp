// The zone of times that do not say theirs: an offset from UTC, or the offsets of a place through
// the years, as the tz database has them.
//
// Where clocks are set back, an hour of local time occurs twice, and nobody knows which one a text
// means; where they are set forward, an hour never occurs. Neither is a time here. To guess would
// make one hour of two, and repeats that are an hour apart would be lost.
#pragma once

#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "sluice/window/clock.hpp"

namespace sluice {

class TimeZone {
 public:
  // "UTC", or an offset from it: "+01:00", "-0800", "+05". Null for other texts.
  static std::shared_ptr<const TimeZone> of_offset(std::string_view text);
  // From the bytes of a file of the tz database: RFC 8536, version 2 or later. Throws
  // BadParameters: "it is not …".
  static std::shared_ptr<const TimeZone> of_file(std::string_view bytes);
  static const TimeZone* utc();

  // The moment at which clocks in this zone show the time that `local` is in UTC. Nothing if they
  // show it twice, or never.
  std::optional<Nanoseconds> to_utc(Nanoseconds local) const noexcept;

 private:
  // From this moment to the next change. The first begins before all times.
  struct Change {
    Nanoseconds from;
    Nanoseconds offset;  // how far clocks are ahead of UTC
  };
  friend class ZoneFile;

  explicit TimeZone(std::vector<Change> changes);

  std::vector<Change> changes_;
};

}  // namespace sluice
