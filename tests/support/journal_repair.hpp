// Makes the checksums of a tampered journal right again, so that fuzzers reach what lies behind them.
// Written from docs/format.md, apart from the code that it tests.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace sluice::testing_support {

// Rewrites the head, for a journal that continues `identity`, and of each record the checks of its
// length and body, as far as they lie within `journal`. Lengths are left as they are.
void repair_journal(std::span<std::byte> journal, std::uint64_t identity);

}  // namespace sluice::testing_support
