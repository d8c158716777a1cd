// The experiments of Dautrich & Ravishankar 2013.
#pragma once

#include "repro/experiment.hpp"

namespace sluice::repro::dautrich {

Run run_table3, run_fig7, run_fig9, run_fig11, run_claims;

}  // namespace sluice::repro::dautrich
