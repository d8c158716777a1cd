// The experiments of Guo et al. 2010, one function a table or figure.
#pragma once

#include "repro/experiment.hpp"

namespace sluice::repro::guo {

Result run_table1(const Context& context);
Result run_fig1(const Context& context);
Result run_fig2(const Context& context);
Result run_fig3(const Context& context);
Result run_fig4(const Context& context);
Result run_fig5(const Context& context);
Result run_fig6(const Context& context);
Result run_fig7(const Context& context);
Result run_fig8(const Context& context);
Result run_fig9(const Context& context);
Result run_fig10(const Context& context);
Result run_fig11(const Context& context);
Result run_fig12(const Context& context);
Result run_fig13(const Context& context);
Result run_fig14(const Context& context);
Result run_fig15(const Context& context);
Result run_fig16(const Context& context);
Result run_rebuild(const Context& context);
Result run_nodes(const Context& context);

}  // namespace sluice::repro::guo
