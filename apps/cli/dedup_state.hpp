// What a run of `sluice dedup` starts from: a state that fits its request, or a new one.
#pragma once

#include <optional>

#include "connectors/files/positions.hpp"
#include "connectors/files/state_file.hpp"
#include "dedup_request.hpp"
#include "sluice/snapshot/snapshot.hpp"

namespace sluice::cli {

// Opens the state file of the request into `file` and loads it, or makes a new filter. A state
// works only with the same record format, key, hash and filter. Throws BadParameters, naming what
// differs.
Snapshot load_or_make(const DedupRequest& request, std::optional<StateFile>& file);

// What the state says of files. Throws CorruptSnapshot, naming the state.
Positions positions_of(const DedupRequest& request, const Sections& sections);

// Called before anything is read or changed: throws BadParameters when --forget is given and the
// filter cannot forget.
Snapshot checked_to_forget(const DedupRequest& request, Snapshot state);

}  // namespace sluice::cli
