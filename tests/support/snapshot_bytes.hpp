// A snapshot as bytes in memory.
#pragma once

#include <cstddef>
#include <vector>

#include "sluice/base/codec.hpp"
#include "sluice/snapshot/snapshot.hpp"

namespace sluice::testing_support {

inline std::vector<std::byte> snapshot_bytes(const Hasher& hasher, const AnyFilter& filter,
                                             const Labels& labels = {},
                                             const Sections& sections = {}) {
  BytesEncoder to;
  write_snapshot(hasher, filter, labels, to, sections);
  return to.take();
}

}  // namespace sluice::testing_support
