// The verdict on an event, and the bytes that stand for it in batches.
#pragma once

#include <cstdint>

namespace sluice {

// `distinct`: let it through. `duplicate`: hold it back. One byte, so that a batch of verdicts is a
// plain array which SIMD code can write.
enum class Verdict : std::uint8_t { distinct = 0, duplicate = 1 };

}  // namespace sluice
