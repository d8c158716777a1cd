// A snapshot in a file that survives crashes, full disks and power cuts.
//
// Saving writes FILE.tmp beside, syncs it, renames it over FILE and syncs the directory; the state
// before that stays as FILE.previous. At every moment FILE is a whole state, the old one or the new
// one. A state holds its hash's secret, so its files are readable by their owner only (0600).
//
// A run owns its state through a lock on FILE.lock, which vanishes with the run, however it ends.
// When FILE is a symbolic link, all of this happens beside the file that it leads to.
#pragma once

#include <filesystem>
#include <functional>
#include <vector>

#include "sluice/base/error.hpp"
#include "sluice/snapshot/snapshot.hpp"

namespace sluice {

// There is no state that this run may use: missing, used by another run, or not a regular file. A
// damaged or foreign one is a CorruptSnapshot.
class StateRefused : public Error {
 public:
  using Error::Error;
};

// Reads a snapshot from a file, without a lock. Throws CorruptSnapshot, StateRefused or IoError,
// each naming the file. Never writes.
Snapshot load_snapshot_file(const std::filesystem::path& file,
                            MemoryResource& memory = default_memory(),
                            const Understands& understands = understands_nothing);

// Follows links to where the file is or would be. Throws IoError.
std::filesystem::path link_target(std::filesystem::path path);

// FILE and all that a run may write beside it.
std::vector<std::filesystem::path> files_of_state(const std::filesystem::path& file);

class StateFile {
 public:
  // Takes the lock. Throws StateRefused when another run has it, IoError when there can be none.
  explicit StateFile(const std::filesystem::path& file);
  ~StateFile();
  StateFile(const StateFile&) = delete;
  StateFile& operator=(const StateFile&) = delete;

  // Whether there is a state, be it only the previous one. When not, a run starts empty; when yes,
  // it must load: `load` then says what to do about a state of which only the previous one is left.
  bool exists() const;

  // Throws CorruptSnapshot or StateRefused; the message names the previous state where there is
  // one, and the flag --state-previous that uses it.
  Snapshot load(const Understands& understands = understands_nothing) const;
  // The next save then replaces FILE and keeps the previous state. Throws StateRefused when FILE is
  // whole: it would be lost.
  Snapshot load_previous(const Understands& understands = understands_nothing);

  // Writes a snapshot. Whatever it throws leaves FILE as it was.
  using Write = std::function<void(Encoder& to)>;

  // Throws IoError with the file and the step that failed; FILE and FILE.previous are then still
  // whole, and nothing else is left behind.
  void save(const Hasher& hasher, const AnyFilter& filter, const Labels& labels);
  void save(const Write& write);
  // The same for a file that is no state: none before it is kept.
  void replace(const Write& write);

  std::filesystem::path previous() const;

 private:
  bool is_whole() const;
  std::filesystem::path beside(const char* suffix) const;
  void write_temporary(const Write& write) const;
  void install_temporary() const;
  void install_without_links() const;
  void lock();

  std::filesystem::path given_;   // what the user calls it
  std::filesystem::path target_;  // where it is
  int lock_ = -1;
  bool keep_previous_ = false;
};

}  // namespace sluice
