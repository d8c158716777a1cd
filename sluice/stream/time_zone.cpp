#include "sluice/stream/time_zone.hpp"

#include <fmt/format.h>

#include "sluice/base/error.hpp"
#include "sluice/stream/civil_time.hpp"

namespace sluice {

std::shared_ptr<const TimeZone> TimeZone::make(std::string_view name) {
  if (name == "UTC") return std::shared_ptr<const TimeZone>(new TimeZone(0));
  std::string_view text = name;
  const auto offset = civil::take_offset(text);
  if (!offset || !text.empty())
    throw BadParameters(fmt::format(
        "`time_zone` '{}' is not UTC or an offset from it, such as +01:00 or -0800", name));
  return std::shared_ptr<const TimeZone>(new TimeZone(*offset));
}

const TimeZone* TimeZone::utc() {
  static const TimeZone zone(0);
  return &zone;
}

}  // namespace sluice
