// What a run of `sluice dedup` starts from: a state that serves its request, or a new one.
#pragma once

#include <optional>

#include "connectors/files/state_file.hpp"
#include "dedup_request.hpp"
#include "sluice/snapshot/snapshot.hpp"

namespace sluice::cli {

// Opens the state file of the request into `file` and loads it, or makes what is asked for. A state
// serves a run that cuts, keys, hashes and remembers as it did. Throws BadParameters, naming what
// differs.
Snapshot load_or_make(const DedupRequest& request, std::optional<StateFile>& file);

// Before anything is read or changed: throws BadParameters when keys are to be taken back of a
// filter that cannot.
Snapshot checked_to_forget(const DedupRequest& request, Snapshot state);

}  // namespace sluice::cli
