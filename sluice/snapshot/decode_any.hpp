// Any filter from its fields and payload, windows included.
#pragma once

#include <cstdint>

#include "sluice/base/codec.hpp"
#include "sluice/base/memory_resource.hpp"
#include "sluice/filters/any_filter.hpp"

namespace sluice {

// Throws CorruptSnapshot for a kind or version that this build does not know, and for fields that no
// filter could have written.
AnyFilter decode_any(std::uint16_t kind, std::uint16_t version, Decoder& header, Decoder& payload,
                     MemoryResource& memory);

}  // namespace sluice
