// Files, pipes and terminals as sources and sinks.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "sluice/base/error.hpp"
#include "sluice/stream/io.hpp"

namespace sluice {

// A file descriptor that is closed with its owner; a borrowed one (standard input) is left open.
class Descriptor {
 public:
  Descriptor(int number, bool owned) noexcept : number_(number), owned_(owned) {}
  Descriptor(Descriptor&& other) noexcept;
  Descriptor& operator=(Descriptor&& other) noexcept;
  ~Descriptor();
  // False if it was made from -1, the result of a failed call.
  explicit operator bool() const noexcept { return number_ >= 0; }
  int number() const noexcept { return number_; }
  // The caller must close it from now on.
  int release() noexcept { return std::exchange(owned_, false) ? number_ : -1; }

 private:
  int number_;
  bool owned_;
};

// The same file, open for reading: outputs are open for writing only. False if that is not allowed.
Descriptor readable(int descriptor);

// Identifies a file independent of its name: to check that an output is not also an input.
struct FileIdentity {
  dev_t device = 0;
  ino_t inode = 0;
  bool regular = false;
  friend bool operator==(const FileIdentity&, const FileIdentity&) = default;
};

// What becomes of a file whose bytes are not records (archive.hpp).
enum class Archives : std::uint8_t {
  refuse,
  refuse_or_insist,  // and the message names `binary`
  read,
};

class FileSource final : public ByteSource {
 public:
  // "-" is standard input. Throws IoError, also for a directory, and BadParameters for an archive.
  // A pipe that turns out to be one is refused by the first read. `wake`: a descriptor that becomes
  // readable when the run should stop, or -1; it ends a read that waits.
  static FileSource open(const std::string& path, int wake, const char* what = "input",
                         Archives archives = Archives::refuse);

  std::size_t read(std::span<char> into) override;
  bool would_wait() override;
  bool wait() override;
  const std::string& name() const override { return name_; }

  FileIdentity identity() const;
  bool regular() const noexcept { return regular_; }
  // Bytes left in a regular file; 0 for anything else.
  std::uint64_t bytes_left() const;
  // Of a regular file: the offset of the next byte. seek throws IoError.
  std::uint64_t offset() const;
  void seek(std::uint64_t offset);
  int descriptor() const noexcept { return descriptor_.number(); }

 private:
  FileSource(Descriptor descriptor, std::string name, int wake, Archives archives);
  std::size_t read_some(std::span<char> into);
  void look_at_start() const;
  void refuse_archive(std::string_view first_bytes) const;

  Descriptor descriptor_;
  std::string name_;
  int wake_;
  bool regular_ = false;
  Archives archives_;
  bool unseen_;  // nothing was read yet, and may be an archive
};

// The reader of our standard output has closed it, as in `| head`: the run ends, but this is no
// failure.
class OutputClosed : public IoError {
 public:
  using IoError::IoError;
};

// A run may still be refused after its outputs are opened. So the old contents of a file stay until
// the first write, sync or finish, and a file that was created without any of these is removed
// again. A sink may also continue a file: then its first bytes stay.
class FileSink final : public ByteSink {
 public:
  // Creates the file if there is none. Throws IoError.
  static FileSink open(const std::string& path);
  static FileSink standard_output();
  FileSink(FileSink&& other) noexcept;
  ~FileSink() override;

  // Throws IoError; OutputClosed if it is standard output and its reader has closed it.
  void write(std::string_view bytes) override;
  // The bytes are on the disk when this returns, and so is the name of the file. For pipes and
  // terminals it does nothing.
  void sync();
  // Afterwards the file holds exactly what was written, even if that is nothing.
  void finish();

  const std::string& name() const { return name_; }
  FileIdentity identity() const;
  int descriptor() const noexcept { return descriptor_.number(); }

  // Continues a regular file after its first `offset` bytes; what follows them is removed when it
  // is written to.
  void continue_at(std::uint64_t offset);
  // Of a regular file: where the next byte goes. Throws IoError.
  std::uint64_t offset() const;
  // Where the file is, links followed; may be empty for standard output.
  std::string path() const;
  // Its size now, with what may yet be removed.
  std::uint64_t size() const;

 private:
  enum class Before { nothing, contents, no_file };
  FileSink(Descriptor descriptor, std::string name, Before before);

  Descriptor descriptor_;
  std::string name_;
  Before before_;              // old contents still to be removed
  std::uint64_t keep_ = 0;     // bytes of the old contents that stay
  bool unsynced_name_ = true;  // somebody may have created the file just now
};

}  // namespace sluice
