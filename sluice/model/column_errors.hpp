// Tabulated errors of age-partitioned filters whose segments are interleaved.
#pragma once

#include <optional>

#include "sluice/model/apbf.hpp"

namespace sluice::model {

// The error just before a shift, all generations full, of the shapes that a planner chooses from:
// columns of blocks of 512 bits, 4 or 8 bits per key, k up to 8 and any l; and lines of 8, 16 or 32
// segments. Empty for others. Within half a percent of the true value.
std::optional<double> tabled_column_fpr(unsigned k, unsigned l, const BlockShape& shape);

}  // namespace sluice::model
