// How much memory there is: the machine's, or less where a control group (a container) sets a limit.
#pragma once

#include <cstdint>
#include <string>

namespace sluice {

// In bytes; asked once.
std::uint64_t machine_memory() noexcept;

// The smallest limit of the control groups that this process is in, of version 1 or 2, and all
// groups around them; the largest number if no limit is set. `root` is the root of the file system:
// "" except in tests.
std::uint64_t group_memory_limit(const std::string& root) noexcept;

}  // namespace sluice
