// Input files that earlier runs of a state have read: which of the files given now they are, and
// where each is to be read on. docs/resuming.md has the rules.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "connectors/files/files.hpp"
#include "connectors/files/positions.hpp"
#include "sluice/stream/dedup_options.hpp"

namespace sluice::cli {

std::string file_name(const std::string& path);

std::uint64_t size_of(const FileSource& input);

// Whether a file may have been written to after the state was saved: only its last bytes are compared,
// and none before the first checkpoint. The system's clock of files has ticks of some milliseconds, so
// a file of the same tick may be newer.
bool as_new_as(const std::string& state, int descriptor);

// An input as given, and where it stood at first: standard input need not be at the front.
struct GivenInput {
  const std::string& name;
  const FileSource& source;
  std::uint64_t base;
};

// The file has what was read of the known one, and this run would begin before that point.
bool holds(const GivenInput& input, const InputPosition& known, const Hasher& hasher);
// The same, under another name or in another folder: the known name leads to it no longer.
bool holds_moved(const GivenInput& input, const InputPosition& known, const Hasher& hasher);

// For each input the known file that it is, or null. By its name, then by its file name in another
// folder, then by its inode; and in any case by its contents.
std::vector<const InputPosition*> find_known(const std::vector<GivenInput>& inputs,
                                             const RunPosition& run, const Hasher& hasher);

// A file in the folder of `beside` that holds what was read of the known one; empty if none does.
// `renamed`: only if it is the same file, not a copy.
std::string found_beside(const std::string& beside, const InputPosition& known,
                         const Hasher& hasher, bool renamed = false);

// Where to read on in a file that was read up to `known`. If the file then ended within a line, that
// line was judged as it stood: what is left of its terminator is skipped; if the line was continued,
// it begins where the line does, and `again` is true.
struct ReadOn {
  SourcePosition from;  // the offset counts from `base`
  bool again = false;
};
ReadOn read_on(const GivenInput& input, const InputPosition& known, const Format& format);

}  // namespace sluice::cli
