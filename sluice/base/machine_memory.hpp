// How much memory there is: the machine's, or less where a control group (a container) sets a limit.
#pragma once

#include <cstdint>
#include <string>

namespace sluice {

// In bytes; asked once.
std::uint64_t machine_memory() noexcept;

// The smallest limit of the control groups that this process is in, of version 1 or 2, and all
// groups around them; the most there can be where none is set. `root` is where the file system
// begins: "" but in tests.
std::uint64_t group_memory_limit(const std::string& root) noexcept;

}  // namespace sluice
