// The experiments of Dautrich & Ravishankar 2013.
#pragma once

#include "repro/experiment.hpp"

namespace sluice::repro::dautrich {

Result run_table3(const Context& context);
Result run_fig7(const Context& context);   // and 8: the same trials
Result run_fig9(const Context& context);   // and 10
Result run_fig11(const Context& context);  // and 12
Result run_claims(const Context& context);

}  // namespace sluice::repro::dautrich
