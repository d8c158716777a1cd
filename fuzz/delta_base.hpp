// The snapshots that the delta fuzzer and its seeds share.
#pragma once

#include <string>
#include <vector>

#include "sluice/filters/catalogue.hpp"
#include "sluice/snapshot/snapshot.hpp"

namespace sluice::fuzzing {

// Version `number` of a small filter: the later, the more keys.
inline std::vector<std::byte> version_of(const char* name, int number) {
  const Hasher hasher(HashKind::xxh3, Secret::from_seed(1));
  AnyFilter filter = make_filter(name, {.keys = 20});
  for (int key = 0; key < 8 + 4 * number; ++key) {
    const Digest digest = hasher.digest(std::to_string(key));
    filter.insert({&digest, 1});
  }
  BytesEncoder to;
  write_snapshot(hasher, filter, {}, to);
  return to.take();
}

inline constexpr const char* kBase = "bloom,layout=classic,bytes=512,probes=3";

}  // namespace sluice::fuzzing
