// What a state remembers of files, in the same durable record as its filter: where each output
// ends, and how far the inputs are read. With these a run that was stopped, killed or cut off
// continues where its state ends, and one that follows a finished run reads only what is new.
//
// A file is recognized by its last bytes, and then by its name or inode: a copy of a disk, mounted
// elsewhere, continues too, and a file that was rotated or edited is not taken for the old one.
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "connectors/files/packing.hpp"
#include "sluice/hash/hasher.hpp"
#include "sluice/snapshot/sections.hpp"
#include "sluice/snapshot/snapshot.hpp"
#include "sluice/window/clock.hpp"

namespace sluice {

// How far a file is written or read, and a digest of the bytes before that point.
struct FileEnd {
  static constexpr std::uint64_t kMostChecked = 65536;

  std::uint64_t offset = 0;
  std::uint64_t checked = 0;  // bytes in the digest, the last ones before the offset
  Digest digest;

  // Reads the descriptor, without moving its offset. Nothing is checked if it is not a regular file
  // or cannot be read.
  static FileEnd at(int descriptor, std::uint64_t offset, const Hasher& hasher);
  // Whether the file is at least that long and has these bytes before the offset. Throws IoError if
  // it cannot be read.
  bool matches(int descriptor, const Hasher& hasher) const;

  friend bool operator==(const FileEnd&, const FileEnd&) = default;
};

// The header of the table that runs wrote to an output: enough to compare it and to show it.
struct WrittenHeader {
  enum class Kind : std::uint8_t {
    unknown,  // the state is of a version that did not record it
    none,     // none was written: no input had one yet, or the format has none
    known,
  };
  static constexpr std::size_t kMostShown = 512;

  Kind kind = Kind::unknown;
  std::string shown = {};  // its first bytes
  Digest digest = {};      // of the whole

  static WrittenHeader nothing() { return {.kind = Kind::none}; }
  // Without a byte order mark.
  static WrittenHeader of(std::string_view header, const Hasher& hasher);
  friend bool operator==(const WrittenHeader&, const WrittenHeader&) = default;
};

// A file that runs wrote to.
struct OutputPosition {
  std::string path;  // absolute; empty: standard output, if the system does not tell its path
  FileEnd end;
  PackedSoFar packed = {};
  WrittenHeader header = {};
  friend bool operator==(const OutputPosition&, const OutputPosition&) = default;
};

// An input that runs read.
struct InputPosition {
  std::string name;  // as given; "-" is standard input
  bool regular = false;
  // Of a file: the records before it are in outputs and state. In a packed file it may be a little after
  // the last of these, but is its end only if it was read to its end.
  FileEnd end = {};
  std::uint64_t records = 0;  // before it
  std::uint64_t inode = 0;    // of a file, which keeps it when it is renamed
  bool drained = false;       // a pipe that was read to its end
  // Of the last record before the end, if it had no terminator: it may go on. Else 0.
  std::uint64_t open_bytes = 0;
  // When a file that ended there was last written to, if nothing was written to it while it was read
  // but at its end; in nanoseconds since 1970, modulo 2^64. 0: not known.
  std::uint64_t modified_ns = 0;
  // Of a packed file that was unpacked: bytes of its contents that are in outputs and state.
  Packing packing = Packing::none;
  std::uint64_t unpacked = 0;
  friend bool operator==(const InputPosition&, const InputPosition&) = default;
};

enum class OutputRole : std::uint8_t { passed, duplicates, late };
inline constexpr std::size_t kOutputRoles = 3;

// How far a run has come.
struct RunPosition {
  static constexpr std::uint8_t kNoFile = 0xFE;  // an output that is a pipe, terminal or device
  static constexpr std::size_t kMostOthers = 1024;

  std::vector<InputPosition> inputs;  // at least one
  // The input that is being read. Past the last one: the run is finished.
  std::uint64_t current = 0;
  bool begun = false;  // it has judged records
  // For each role that the run writes, its place among the outputs, or kNoFile.
  std::array<std::optional<std::uint8_t>, kOutputRoles> outputs = {};
  std::string forgot;  // the file whose keys it took back before it began to read; empty: none
  std::string shape;   // the flags that decide what goes to which output
  // Files that runs before it with the same flags and outputs have read, and it has not: the last
  // ones last.
  std::vector<InputPosition> others = {};

  bool finished() const { return current == inputs.size(); }
  friend bool operator==(const RunPosition&, const RunPosition&) = default;
};

struct Positions {
  static constexpr std::size_t kMostOutputs = 64;

  std::vector<OutputPosition> outputs;  // those of the last run last
  // The last run, if it is unfinished; otherwise the last one whose outputs and one of whose inputs were
  // files. So if that was killed just before it ended, or is run again, nothing is delivered again.
  std::optional<RunPosition> run;

  // What tells the years of its records, if they have none and it was given the first: Dedup::years().
  std::optional<EventClock> years = {};

  bool unfinished() const { return run && !run->finished(); }
  // Replaces the position in that file, or adds it, as the last one. Forgets the oldest if there
  // are too many.
  void set_output(OutputPosition output);
  friend bool operator==(const Positions&, const Positions&) = default;
};

// Names of the sections: "outputs", "headers", "inputs" and "years". A reader may skip them, but not the inputs of an
// unfinished run, which must not be taken for a finished one.
bool is_positions(std::string_view section_name);
Sections sections_of(const Positions& positions);
// Throws CorruptSnapshot.
Positions positions_in(const Sections& sections);

// load_snapshot_file with these sections, which are then known to be sound.
Snapshot load_state(const std::filesystem::path& file);

}  // namespace sluice
