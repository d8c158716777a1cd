// A snapshot in a file that survives crashes, full disks and power cuts.
//
// Saving writes FILE.tmp, syncs it, renames it to FILE and syncs the directory; the previous state
// stays as FILE.previous. At every moment FILE is a complete state, the old one or the new one. A
// state holds its hash's secret, so its files are readable by their owner only (0600).
//
// A run owns its state through a lock on FILE.lock, which ends with the run in any case. If FILE is
// a symbolic link, all of this happens beside the file that it points to. A hard link has another
// FILE.lock, so the file itself is locked too: the one that was there at first, and each one that
// replaces it.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "connectors/files/files.hpp"
#include "sluice/base/error.hpp"
#include "sluice/snapshot/snapshot.hpp"

namespace sluice {

// There is no state that this run may use: missing, used by another run, or not a regular file. For
// a damaged or foreign file CorruptSnapshot is thrown instead.
class StateRefused : public Error {
 public:
  using Error::Error;
};

// Another process holds the state's lock.
class StateBusy : public StateRefused {
 public:
  StateBusy(const std::string& what, std::filesystem::path lock)
      : StateRefused(what), lock_(std::move(lock)) {}
  const std::filesystem::path& lock() const noexcept { return lock_; }  // FILE.lock

 private:
  std::filesystem::path lock_;
};

// Reads a snapshot from a file, without a lock. Throws CorruptSnapshot, StateRefused or IoError,
// each naming the file. Never writes.
Snapshot load_snapshot_file(const std::filesystem::path& file,
                            MemoryResource& memory = default_memory(),
                            const Understands& understands = understands_nothing);

// Follows links to where the file is or would be. Throws IoError, also for an empty path.
std::filesystem::path link_target(std::filesystem::path path);

// FILE and all that a run may write beside it.
std::vector<std::filesystem::path> files_of_state(const std::filesystem::path& file);

class StateFile {
 public:
  // Takes the lock. Throws StateBusy when another run has it, IoError when it cannot be made.
  explicit StateFile(const std::filesystem::path& file);
  ~StateFile();
  StateFile(const StateFile&) = delete;
  StateFile& operator=(const StateFile&) = delete;

  // Whether there is a state, even if only the previous one. If not, a run starts empty. If so, it
  // must call load, whose error says what to do if only the previous state is left.
  bool exists() const;

  // Throws CorruptSnapshot or StateRefused; the message names the previous state, if there is one,
  // and the flag --state-previous that uses it.
  Snapshot load(const Understands& understands = understands_nothing) const;
  // The next save then replaces FILE and keeps the previous state. Throws StateRefused when FILE is
  // intact: it would be lost.
  Snapshot load_previous(const Understands& understands = understands_nothing);

  // Writes a snapshot. If it throws, FILE is unchanged.
  using Write = std::function<void(Encoder& to)>;

  // Throws IoError with the file and the step that failed; FILE and FILE.previous are then still
  // intact, and nothing else is left behind.
  void save(const Hasher& hasher, const AnyFilter& filter, const Labels& labels,
            const Sections& sections = {});
  void save(const Write& write);
  // The same, but the file that it replaces does not become the previous one: FILE is not a state,
  // or one of no interest.
  void replace(const Write& write);

  // What a run that was killed while it saved has left beside FILE. The next save does it too.
  void remove_leftovers() const;

  std::filesystem::path previous() const;

 private:
  bool is_whole() const;
  std::filesystem::path beside(const char* suffix) const;
  Descriptor write_temporary(const Write& write) const;
  void install_temporary() const;
  void install_without_links() const;
  void lock();
  Descriptor lock_itself() const;

  std::filesystem::path given_;   // the name that the user gave
  std::filesystem::path target_;  // the file itself, links followed
  int lock_ = -1;
  Descriptor first_{-1, false};   // the state that was there at first
  Descriptor latest_{-1, false};  // the last that was saved
  bool keep_previous_ = false;
};

}  // namespace sluice
