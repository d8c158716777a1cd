// The experiments of Koloniari et al. 2011, one function per figure or table.
#pragma once

#include "repro/experiment.hpp"

namespace sluice::repro::koloniari {

// analytical.cpp
Run run_fig1a, run_fig1b;
// slicing.cpp
Run run_fig5a, run_fig7a, run_fig7b, run_prop2;
// load.cpp
Run run_fig5b, run_fig5c, run_fig8, run_fig7c;
// faults.cpp
Run run_fig5d;
// failed_sites.cpp
Run run_eq7;
// timers.cpp
Run run_fig9;
// bursts.cpp
Run run_fig10, run_fig11;
// trees.cpp
Run run_table1, run_fig12a, run_fig12b, run_fig12c;

}  // namespace sluice::repro::koloniari
