// The experiments of Shtul, Baquero & Almeida 2020, one function per table or figure.
#pragma once

#include "repro/experiment.hpp"

namespace sluice::repro::shtul {

Run run_table1, run_table2, run_table3, run_table4, run_table5, run_fig2, run_fig4, run_fig6,
    run_fig7, run_fig8, run_fig9;

}  // namespace sluice::repro::shtul
