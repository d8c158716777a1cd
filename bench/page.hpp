// The results as files: bench.json, performance.md, and a picture a chart.
#pragma once

#include <string>

#include "report.hpp"

namespace sluice::bench {

// Makes the directory. Throws IoError, and GnuplotFailed where there is no gnuplot.
void write_results(const std::string& directory, const Report& report);

}  // namespace sluice::bench
