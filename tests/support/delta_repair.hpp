// Makes the checksums of a tampered delta right again, so that tests and fuzzers reach what lies
// behind them. Written from docs/format.md, apart from the code that it tests.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace sluice::testing_support {

// Rewrites the header checksums (the snapshot's within it, too) and the chunks' checksums, as far as
// they lie within `delta`, and the identity of the old snapshot where there is one.
void repair_delta(std::span<std::byte> delta, std::uint64_t old_identity);

}  // namespace sluice::testing_support
