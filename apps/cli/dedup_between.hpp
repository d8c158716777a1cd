// Files of a log that `sluice dedup --follow` never saw under the log's name: it was rotated more than once
// between two looks. They are looked for beside it.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "connectors/files/files.hpp"
#include "dedup_rotated.hpp"

namespace sluice::cli {

// A file under any name. An inode may be used again: so the time at which the file was made belongs to it.
struct FileBirth {
  std::uint64_t inode = 0;
  std::int64_t born_ns = 0;  // 0 if the file system does not tell
  friend auto operator<=>(const FileBirth&, const FileBirth&) = default;
};

// The files beside a log whose names begin with its name.
class FilesBeside {
 public:
  // A new list, if the folder may have changed since this one was made. None within a second: an older list lets
  // more files pass for new ones, and misses none.
  std::optional<FilesBeside> renewed(const std::string& log) const;
  bool known() const noexcept { return known_; }
  bool has_path(const std::string& path) const { return by_path_.contains(path); }
  bool has_file(const std::string& path, const FileBirth& file) const;
  bool has_file(const FileBirth& file) const;

 private:
  std::map<std::string, FileBirth> by_path_;
  FileTime folder_ = {};
  FileTime looked_ = {};
  bool known_ = false;
};

struct FilesBetween {
  struct File {
    std::string path;
    FileSource source;
  };
  std::vector<File> read;           // the oldest first
  std::vector<std::string> unsure;  // that may be some, but are not named or not written like it
};
// Files that had the name `log` after `old`, the last one that was seen there, and before `now`, as far as
// they are still beside it. `old` may be null. `before`: what was beside it at that time or earlier. `is_ours`: the
// path leads to a file that is none in any case. `is_known`: it was read, or is a copy of what was. Names may change
// while it looks: then it looks again, since one file may have been seen under two names, or under none.
FilesBetween files_between(
    const std::string& log, const FileSource* old, const FileSource& now, const FilesBeside& before,
    const std::function<bool(const std::string&, const FileIdentity&)>& is_ours,
    const std::function<bool(const FileSource&)>& is_known,
    const std::function<FileSource(const std::string&)>& open);

}  // namespace sluice::cli
