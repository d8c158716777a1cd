// The experiments of Dutta et al. 2012, one function per table or figure.
#pragma once

#include "repro/experiment.hpp"

namespace sluice::repro::dutta {

Run run_table2, run_table3, run_table4, run_table5, run_fig2, run_fig3, run_fig4, run_fig5,
    run_fig6, run_fig7, run_fig8, run_rules;

}  // namespace sluice::repro::dutta
