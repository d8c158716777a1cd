// The experiments of Koloniari et al. 2011, one function a figure or table.
#pragma once

#include "repro/experiment.hpp"

namespace sluice::repro::koloniari {

Result run_fig1a(const Context& context);
Result run_fig1b(const Context& context);

}  // namespace sluice::repro::koloniari
