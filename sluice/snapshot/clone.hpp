// A copy of a filter, with memory of its own: for a fork of a stream, a replica, a what-if.
//
// It goes through the snapshot's own fields and payload, so that whatever a snapshot carries over a
// clone has too, and nothing else. Tables go from one filter to the other without a second copy in
// between.
#pragma once

#include "sluice/base/memory_resource.hpp"
#include "sluice/filters/any_filter.hpp"

namespace sluice {

// Throws NoMemory when the memory for it cannot be had.
AnyFilter clone(const AnyFilter& filter, MemoryResource& memory = default_memory());

}  // namespace sluice
