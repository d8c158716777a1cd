// Times by a pattern in the style of strptime: "%d.%m.%Y %H:%M:%S,%f".
//
// By hand, because strptime depends on the locale, knows no fractions, does not check what it reads,
// and reads offsets only where the C library wants to. The pattern is compiled once to a list of
// steps; reading allocates nothing.
//
//   %Y %y        year: four digits, or two (69 to 99 are 1969 to 1999, 00 to 68 are 2000 to 2068)
//   %m %b %B %h  month: number, or English name, short or full
//   %d %e        day of the month, perhaps after a blank
//   %j           day of the year, in place of month and day
//   %a %A        weekday: English name, short or full; must be that of the date
//   %H %M %S     24:00:00 is the end of the day; a second is 60 only where a leap second was
//   %I %p        hour from 1 to 12, and AM or PM
//   %f           fraction of a second: any number of digits; those after the ninth are cut off
//   %z           offset: +hh, +hhmm, +hh:mm or Z
//   %Z           UTC or GMT
//   %s           seconds since 1970
//   %F %T %R %D  %Y-%m-%d, %H:%M:%S, %H:%M, %m/%d/%y
//   %n %t blank  any number of blanks and tabs, or none
//   %%           a percent sign
//
// Numbers may have fewer digits, unless another number stands right before or after. Any other
// character stands for itself.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "sluice/window/clock.hpp"

namespace sluice {

class TimeZone;

class TimePattern {
 public:
  // Throws BadParameters about `time_format` for a pattern with an unknown conversion, or that does
  // not determine a moment. The year may be missing with `yearless`.
  TimePattern(std::string_view pattern, bool yearless);

  // Without a year: a moment to complete (civil::is_yearless).
  std::optional<Nanoseconds> read(std::string_view text, const TimeZone* zone) const noexcept;

  bool has_zone() const noexcept { return has('z') || has('s'); }
  bool has_year() const noexcept { return has('Y') || has('s'); }
  // Only dates: no time of day.
  bool only_days() const noexcept { return !has('H') && !has('s'); }

 private:
  // A conversion, of which several that say the same have one letter: Y m d j a H I p M S f z s; or
  // ' ' for blanks; or '\0' for a character that stands for itself.
  struct Step {
    char what;
    char literal;
    // A number may have fewer digits than it could.
    bool loose;
  };
  struct Parts;

  void add(std::string_view pattern, std::string_view whole);
  void say(char what, std::string_view whole);
  void check(std::string_view whole, bool yearless) const;
  bool has(char what) const noexcept;
  static bool take(const Step& step, std::string_view& text, Parts& parts) noexcept;

  std::vector<Step> steps_;
  std::uint64_t said_ = 0;  // which of the letters
};

}  // namespace sluice
