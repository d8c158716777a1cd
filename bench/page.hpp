// The results as files: bench.json, performance.md, and one picture per chart.
#pragma once

#include <string>

#include "report.hpp"

namespace sluice::bench {

// Makes the directory. Throws IoError, and GnuplotFailed if gnuplot is missing.
void write_results(const std::string& directory, const Report& report);

}  // namespace sluice::bench
