// The zone of times that do not say theirs.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "sluice/window/clock.hpp"

namespace sluice {

class TimeZone {
 public:
  // "UTC", or an offset from it: "+01:00", "-0800", "+05". Throws BadParameters about `time_zone`.
  static std::shared_ptr<const TimeZone> make(std::string_view name);
  static const TimeZone* utc();

  // The moment at which clocks in this zone show the time that `local` is in UTC. Nothing if they
  // show it twice, or never.
  std::optional<Nanoseconds> to_utc(Nanoseconds local) const noexcept { return local - offset_; }

 private:
  explicit TimeZone(Nanoseconds offset) : offset_(offset) {}

  Nanoseconds offset_;  // how far its clocks are ahead of UTC
};

}  // namespace sluice
