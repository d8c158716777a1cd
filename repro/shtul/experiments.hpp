// The experiments of Shtul, Baquero & Almeida 2020, one function a table or figure.
#pragma once

#include "repro/experiment.hpp"

namespace sluice::repro::shtul {

Result run_table1(const Context& context);
Result run_table2(const Context& context);
Result run_table3(const Context& context);
Result run_table4(const Context& context);
Result run_table5(const Context& context);
Result run_fig2(const Context& context);
Result run_fig4(const Context& context);
Result run_fig6(const Context& context);
Result run_fig7(const Context& context);
Result run_fig8(const Context& context);
Result run_fig9(const Context& context);

}  // namespace sluice::repro::shtul
