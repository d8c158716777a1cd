// Makes the checksums of a tampered snapshot right again, so that tests and fuzzers reach what lies
// behind them. Written from docs/format.md, apart from the code that it tests.
#pragma once

#include <cstddef>
#include <span>

namespace sluice::testing_support {

// Rewrites the header checksum, the chunks' lengths and checksums, and the footer, as far as they
// lie within `snapshot`. Neither the header nor the payload is changed.
void repair_snapshot(std::span<std::byte> snapshot);

}  // namespace sluice::testing_support
