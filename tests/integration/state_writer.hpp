// The states that state_writer saves and state_crash_test expects.
#pragma once

#include <string>

#include "connectors/files/state_file.hpp"
#include "sluice/filters/catalogue.hpp"

namespace sluice::testing_support {

// Named by a label and by its only key; of several writes, so that one can be cut off between them.
inline void save_named(StateFile& state, const std::string& name) {
  const Hasher hasher(HashKind::xxh3, Secret::from_seed(3));
  AnyFilter filter = make_filter("bloom,bytes=200000", {});
  const Digest digest = hasher.digest(name);
  filter.insert({&digest, 1});
  state.save(hasher, filter, {{"name", name}});
}

}  // namespace sluice::testing_support
