// Errors over the stream as an SVG, drawn by gnuplot.
#pragma once

#include "compare_report.hpp"
#include "connectors/files/files.hpp"

namespace sluice::cli {

// Throws IoError and GnuplotFailed.
void draw(const CompareReport& report, FileSink& sink);

}  // namespace sluice::cli
