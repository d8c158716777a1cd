// Errors over the stream as an SVG, drawn by gnuplot.
#pragma once

#include "compare_report.hpp"
#include "connectors/files/files.hpp"

namespace sluice::cli {

// Throws RunFailed, naming the package, when gnuplot is not there.
void need_gnuplot();

// Throws IoError, and RunFailed when gnuplot fails.
void draw(const CompareReport& report, FileSink& sink);

}  // namespace sluice::cli
