#include "sluice/snapshot/clone.hpp"

// Holds a window as it does any filter: its decoder must be known.
#include "sluice/window/window.hpp"

namespace sluice {

AnyFilter clone(const AnyFilter& filter, MemoryResource& memory) {
  return filter.clone(memory);
}

}  // namespace sluice
