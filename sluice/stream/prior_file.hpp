// A table of priors as text: a key, a tab, and the chance that an arrival is that key.
//
// A key is written as in the records: several fields are separated by tabs; JSON values are written
// as JSON, with strings in quotes; if the key is the whole record, the record.
#pragma once

#include <span>
#include <string>

#include "sluice/hash/hasher.hpp"
#include "sluice/infer/priors.hpp"
#include "sluice/stream/io.hpp"
#include "sluice/stream/key_extractor.hpp"
#include "sluice/stream/record.hpp"

namespace sluice {

// This many keys take 768 MiB.
inline constexpr std::size_t kMostPriors = std::size_t{1} << 24;

// Throws BadParameters, naming the line, for anything that is not such a table; IoError.
PriorTable read_priors(ByteSource& source, const Format& format, std::span<const std::string> keys,
                       const KeyStyle& style, const Hasher& hasher);

}  // namespace sluice
