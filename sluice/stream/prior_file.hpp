// A table of priors as text: a key, a tab, and the chance that an arrival is that key.
//
// A key is written as the records have it: of several fields each, with tabs between; of JSON, the
// values as JSON, strings in quotes; of a key that is the whole record, the record.
#pragma once

#include <span>
#include <string>

#include "sluice/hash/hasher.hpp"
#include "sluice/infer/priors.hpp"
#include "sluice/stream/io.hpp"
#include "sluice/stream/record.hpp"

namespace sluice {

// So many keys take 768 MiB.
inline constexpr std::size_t kMostPriors = std::size_t{1} << 24;

// Throws BadParameters, naming the line, for anything that is no such table; IoError.
PriorTable read_priors(ByteSource& source, const Format& format, std::span<const std::string> keys,
                       const Hasher& hasher);

}  // namespace sluice
