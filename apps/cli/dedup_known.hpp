// Input files that earlier runs of a state have read: which of the files given now they are, and
// where each is to be read on. docs/resuming.md has the rules.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "connectors/files/files.hpp"
#include "connectors/files/positions.hpp"
#include "sluice/stream/dedup_options.hpp"

namespace sluice::cli {

std::string file_name(const std::string& path);

// What stands between the name of a log and what its rotation adds: node1.2 is of node1, and node12 is not.
constexpr bool is_mark(char c) noexcept {
  return c == '.' || c == '-' || c == '_';
}

std::uint64_t size_of(const FileSource& input);

bool leads_to(const std::string& path, const FileIdentity& file);

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

// Finds files that were renamed, by their inodes. Each folder is listed once.
class RenamedFiles {
 public:
  // `except`: files that are none of them.
  explicit RenamedFiles(std::vector<FileIdentity> except = {}) : except_(std::move(except)) {}
  // The file in the folder of `beside` that has the inode of the known one, and what was read of it; empty if
  // there is none.
  std::string find(const std::string& beside, const InputPosition& known, const Hasher& hasher);

 private:
  std::vector<FileIdentity> except_;
  std::unordered_map<std::string, std::unordered_multimap<std::uint64_t, std::string>> folders_;
};

// Whether the input is another file than the known one, although it may hold the same bytes: two logs may begin
// with the same header. The known one is beside it under another name.
bool is_replaced(const GivenInput& input, const InputPosition& known, const Hasher& hasher,
                 RenamedFiles& renamed);

// When a file was last written to, and how long it is. The time is 0 if a later write may get the same.
struct FileStamp {
  std::uint64_t size = 0;
  std::uint64_t modified_ns = 0;  // as in InputPosition
};
// The system's clock of files has ticks of some milliseconds. If the file was written to in this tick,
// this waits for the next one.
FileStamp stamp_of(int descriptor);
// The time to record of a file that was read up to `end`; `before`: when its reading began. 0 if it does
// not end there, or may have been changed while it was read. If it grew, that is why its time has changed.
std::uint64_t modified_since(const FileStamp& before, int descriptor, std::uint64_t end);
// Whether a file that was read to its end is as long as it was, but was written to: only its last bytes
// are compared, so it may have been edited before them.
bool is_rewritten(const GivenInput& input, const InputPosition& known, const FileStamp& now);

// For each input the one of the unfinished run that it is; null for further files. Empty if one of the
// run is missing, if they come in another order, or if there is a further pipe. As find_known(), and by contents
// under any name; if these do not fit, by file names alone, which is then to be refused.
struct Unfinished {
  std::vector<const InputPosition*> found = {};
  bool by_names_alone = false;
};
Unfinished find_unfinished(const std::vector<GivenInput>& inputs, const RunPosition& run,
                           const Hasher& hasher, RenamedFiles& renamed);

// For each input that is followed the one of the run that it is, in any order; else null. As find_known(), and
// by its inode alone if nothing was read of it.
std::vector<const InputPosition*> find_followed(const std::vector<GivenInput>& inputs,
                                                const RunPosition& run, const Hasher& hasher,
                                                RenamedFiles& renamed);

// Sets `found`, where it is null, to the known file that the input is, if it is one. By its name and inode, by
// its inode, and where no file beside it has that inode, by its name, or by its file name in another folder (a
// disk may be copied or mounted elsewhere); and in any case by its contents.
void find_known(const std::vector<GivenInput>& inputs,
                std::initializer_list<const std::vector<InputPosition>*> lists,
                const Hasher& hasher, RenamedFiles& renamed,
                std::vector<const InputPosition*>& found);

// Whether the name of a plain file that was read leads to it no longer.
bool was_moved_away(const InputPosition& known, const Hasher& hasher);
// Of these plain files, the one whose bytes, as far as they were read, the contents of a packed file begin
// with; of several the longest. Null if there is none. Another file may begin with the same records: so
// both must have the name of one log, and a short file must have been read as a whole.
const InputPosition* read_before_packing(const FileSource& input,
                                         std::vector<const InputPosition*> plain,
                                         const Hasher& hasher);

// Whether enough was read of the file that another with the same bytes seems to be a copy.
bool may_be_copied(const InputPosition& known);

// A file in the folder of `beside` that holds what was read of the known one, and is none of the outputs;
// empty if none does. Of several, the one whose name is most like that of `beside`, and then the longest: the
// others may be copies of what was delivered. `renamed`: only if it is the same file, not a copy.
std::string found_beside(const std::string& beside, const InputPosition& known,
                         const Hasher& hasher, const std::vector<FileIdentity>& outputs,
                         bool renamed = false);

// Where to read on in a file that was read up to `known`. If the file then ended within a record, that was
// judged as it stood: what is left of its terminator is skipped; if the record was continued, it begins
// where the record does, and `again` is true.
struct ReadOn {
  SourcePosition from;  // the offset counts from `base`
  bool again = false;
  bool within_quotes = false;  // the record ended with a newline
};
ReadOn read_on(const GivenInput& input, const InputPosition& known, const Format& format);

}  // namespace sluice::cli
