// Files that `sluice dedup --follow` was reading, and that were rotated: under new names, or as copies.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "connectors/files/files.hpp"
#include "connectors/files/positions.hpp"
#include "dedup_request.hpp"

namespace sluice::cli {

struct Found {
  FileIdentity identity;
  std::uint64_t size = 0;
};

// None if nothing has the name; errno says why.
std::optional<Found> found_at(const std::string& name);

// Of an input: its size, which may be less than what was read of it, and when it was last written to.
struct Present {
  std::uint64_t size = 0;
  std::chrono::nanoseconds modified = {};
};
Present present(const FileSource& file);
std::uint64_t present_size(const FileSource& file);
// Of a file or folder; of the present one if the path is empty.
std::filesystem::file_time_type written_at(const std::string& path);

// Whether the path begins with that name as the name of a rotated file does, and with no longer one of those that
// are followed: app.log.err.1 belongs to app.log.err.
bool belongs_to(const std::string& path, const std::string& name,
                const std::vector<std::string>& followed);
// Files in the folder of `name` that belong to others that are followed, and not to it.
std::vector<FileIdentity> of_other_logs(const std::string& name,
                                        const std::vector<std::string>& followed);

// A file beside `name` with this inode, or empty.
std::string renamed_beside(const std::string& name, std::uint64_t inode);

using FileTime = std::filesystem::file_time_type;
// A file, and a descriptor of it.
using IsKnown = std::function<bool(const FileIdentity&, int)>;
// A log that was copied and truncated may begin with what was read of it before. Then a copy that was written to
// since has more, and the log does not hold that. Empty if there is none; of several, the longest.
std::string copy_with_more(const std::string& name, const std::vector<std::string>& followed,
                           const FileSource& log, const FileEnd& read, FileTime since,
                           const Hasher& hasher, const IsKnown& is_known);

// Files that were rotated while the state's unfinished run was down: what it has read is looked for beside its
// name. One that has grown since is opened and added to `inputs` and `request`, to be read on before the file
// that has its name now. Of one that is not found, a warning says what may be missing. `known` is changed to
// fit. Returns for each input whether it was added.
std::vector<bool> find_rotated(DedupRequest& request, const std::vector<std::string>& missing,
                               Positions& known, std::vector<FileSource>& inputs,
                               const Hasher& hasher, int wake);

}  // namespace sluice::cli
