// The experiments of Guo et al. 2010, one function per table or figure.
#pragma once

#include "repro/experiment.hpp"

namespace sluice::repro::guo {

Run run_table1, run_fig1, run_fig2, run_fig3, run_fig4, run_fig5, run_fig6, run_fig7, run_fig8,
    run_fig9, run_fig10, run_fig11, run_fig12, run_fig13, run_fig14, run_fig15, run_fig16,
    run_rebuild, run_nodes;

}  // namespace sluice::repro::guo
