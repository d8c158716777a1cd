// gnuplot, as a program that is given a script and writes a picture.
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

// Throws GnuplotFailed, naming the package, who needs it and what else can be done: "leave --plot
// out".
void need_gnuplot(std::string_view who, std::string_view otherwise);

// What gnuplot writes for a script. Throws GnuplotFailed, and IoError when it cannot be started.
std::string run_gnuplot(const std::string& script);

// A text as gnuplot reads it: in single quotes.
std::string gnuplot_text(std::string_view text);

// The colour of curve i as '#rrggbb'; they come round after eight. Apart for most who see colours
// differently.
const char* gnuplot_colour(std::size_t curve);

}  // namespace sluice
