// Times as the formats of common logs write them.
//
// Names of months and weekdays are English, in any case, whatever the locale. A weekday that is not
// that of the date makes the text no time: one of the two is wrong, and nobody knows which.
#pragma once

#include <optional>
#include <string_view>

#include "sluice/window/clock.hpp"

namespace sluice {

class TimeZone;

// The Common Log Format of Apache and nginx: 10/Oct/2000:13:55:36 -0700, perhaps in brackets, of
// which either may be missing, as in fields split at blanks. Without an offset the zone says, and
// without either it is no time: the offset is usually in the next field.
std::optional<Nanoseconds> parse_clf(std::string_view text, const TimeZone* zone);

// RFC 3164: Oct 10 13:55:36, with a day of one or two digits, perhaps after <34>. The result has no
// year (civil::is_yearless). The times of RFC 5424 are ISO 8601.
std::optional<Nanoseconds> parse_bsd_syslog(std::string_view text);

// RFC 2822, mail and HTTP: Tue, 10 Oct 2000 13:55:36 -0700. The weekday and the seconds may be
// missing, the year may have two digits, and the zone may be UT, GMT, Z, or one of the American ones
// that the RFC defines. Without a zone as for parse_clf.
std::optional<Nanoseconds> parse_rfc2822(std::string_view text, const TimeZone* zone);

}  // namespace sluice
