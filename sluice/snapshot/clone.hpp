// A copy of a filter, with memory of its own: for a fork of a stream, a replica, a what-if.
//
// It uses the snapshot's fields and payload, so a clone has exactly what a snapshot would restore.
// Tables are copied directly from one filter to the other.
#pragma once

#include "sluice/base/memory_resource.hpp"
#include "sluice/filters/any_filter.hpp"

namespace sluice {

// Throws NoMemory.
AnyFilter clone(const AnyFilter& filter, MemoryResource& memory = default_memory());

}  // namespace sluice
