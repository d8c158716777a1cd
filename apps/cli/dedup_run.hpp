// Carries out a DedupRequest: inputs, state, outputs, checkpoints, report.
#pragma once

#include "dedup_request.hpp"

namespace sluice::cli {

// Returns the exit code; throws what command.hpp's guarded() understands.
int run_dedup(const DedupRequest& request);

}  // namespace sluice::cli
