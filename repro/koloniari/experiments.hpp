// The experiments of Koloniari et al. 2011, one function a figure or table.
#pragma once

#include "repro/experiment.hpp"

namespace sluice::repro::koloniari {

// analytical.cpp
Result run_fig1a(const Context& context);
Result run_fig1b(const Context& context);
// slicing.cpp
Result run_fig5a(const Context& context);
Result run_fig7a(const Context& context);
Result run_fig7b(const Context& context);
Result run_prop2(const Context& context);
// load.cpp
Result run_fig5b(const Context& context);
Result run_fig5c(const Context& context);
Result run_fig8(const Context& context);
Result run_fig7c(const Context& context);
// faults.cpp
Result run_fig5d(const Context& context);
// failed_sites.cpp
Result run_eq7(const Context& context);
// timers.cpp
Result run_fig9(const Context& context);
// bursts.cpp
Result run_fig10(const Context& context);
Result run_fig11(const Context& context);
// trees.cpp
Result run_table1(const Context& context);
Result run_fig12a(const Context& context);
Result run_fig12b(const Context& context);
Result run_fig12c(const Context& context);

}  // namespace sluice::repro::koloniari
