// Runs gnuplot: a script in, a picture out.
#pragma once

#include <string>
#include <string_view>

#include "sluice/base/error.hpp"

namespace sluice {

// It is not installed, or it did not understand the script.
class GnuplotFailed : public Error {
 public:
  using Error::Error;
};

// Throws GnuplotFailed if gnuplot is missing. The message names the package, `who` needs it and the
// alternative, such as "leave --plot out".
void need_gnuplot(std::string_view who, std::string_view otherwise);

// Returns what gnuplot writes for a script. Throws GnuplotFailed, and IoError when it cannot be
// started.
std::string run_gnuplot(const std::string& script);

// A text as gnuplot reads it: in single quotes.
std::string gnuplot_text(std::string_view text);

// The colour of curve i as '#rrggbb'; they repeat after eight. Most colour-blind readers can tell
// them apart.
const char* gnuplot_colour(std::size_t curve);

}  // namespace sluice
