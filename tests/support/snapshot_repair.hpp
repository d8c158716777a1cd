// Makes the checksums of a tampered snapshot right again, so that tests and fuzzers reach what lies
// behind them. Written from docs/format.md, apart from the code that it tests.
#pragma once

#include <cstddef>
#include <span>

namespace sluice::testing_support {

// Rewrites all checksums as far as they lie within `snapshot`, and in the header the bytes of the
// payload to what is there, if that number takes no other length. Nothing else is changed.
void repair_snapshot(std::span<std::byte> snapshot);

}  // namespace sluice::testing_support
