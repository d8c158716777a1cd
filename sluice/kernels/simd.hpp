// Which instruction set the kernels run on: the widest the processor has, unless told otherwise.
//
// Every kernel is built for `portable` (plain C++, also the reference in tests) and for the wider
// sets of its architecture: `avx2` and `avx512` on x86-64, `neon` on arm64.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace sluice {

// The name of the set in use.
std::string_view simd_level();

// The sets that this processor can run, widest first; `portable` is always the last.
std::vector<std::string_view> simd_levels();

// Makes all kernels run on `level`, for the whole process. Throws BadParameters when this processor
// has no such set. For tests and measurements: results are the same on every level.
void force_simd_level(std::string_view level);

}  // namespace sluice
