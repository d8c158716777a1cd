// What the experiments read from their parameters.
#pragma once

#include "repro/dautrich/streams.hpp"

namespace sluice::repro::dautrich {

// Throws BadParameters below `least` and above 2^26.
std::uint64_t whole_from(const Context& context, const char* name, unsigned least);

struct Windows {
  std::uint64_t even, large;  // [Pos ≈ Neg] and [Pos > Neg]
  std::uint64_t greatest() const { return even > large ? even : large; }
};
// 2^16 for 65536.
std::string window_name(std::uint64_t window);
Windows windows_of(const Context& context, const char* even, const char* large);

// The user's file, or what stands in for the trace.
Stream packets(const Context& context, const Length& length);

// What is published, to be drawn.
const Published& published();

}  // namespace sluice::repro::dautrich
