// Files, pipes and terminals as sources and sinks.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "connectors/files/packing.hpp"
#include "connectors/files/unpacked_input.hpp"
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

// What becomes of a file whose bytes are not records (archive.hpp). gzip and zstd are unpacked, unless the
// bytes are to be read.
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
                         Archives archives = Archives::refuse, const UnpackOptions& unpack = {});

  std::size_t read(std::span<char> into) override;
  bool would_wait() override;
  bool wait() override;
  const std::string& name() const override { return name_; }

  FileIdentity identity() const;
  bool regular() const noexcept { return regular_; }
  // Whether it is unpacked: what is read are the contents. Of a pipe, this is known after the first read.
  Packing packing() const noexcept { return unpacked_ ? unpacked_->packing() : Packing::none; }
  // Bytes left in a regular file, as it is on the disk; 0 for anything else.
  std::uint64_t bytes_left() const;
  // Of a regular file: the offset of the next byte, in a packed one where its first byte is. seek throws
  // IoError; in a packed file it counts the bytes of the contents from there, and unpacks them again.
  std::uint64_t offset() const;
  void seek(std::uint64_t offset);
  // Of a packed file: see UnpackedInput.
  std::uint64_t packed_end(std::uint64_t unpacked) const noexcept {
    return unpacked_->packed_end(unpacked);
  }
  // Up to `count` bytes of the file, or of the contents of a packed one, from the offset that seek would
  // have. Does not disturb reading. Fewer if they cannot be read.
  std::string peek(std::uint64_t offset, std::size_t count) const;
  // The contents of a packed file once more, from their beginning.
  UnpackedInput contents_again() const;
  int descriptor() const noexcept { return descriptor_.number(); }

 private:
  FileSource(Descriptor descriptor, std::string name, int wake, Archives archives,
             const UnpackOptions& unpack);
  std::size_t read_some(std::span<char> into);
  bool ready(int milliseconds) const;
  void look_at_start();
  bool is_told() const;
  void take_first(bool wait);
  void begin_with(std::string_view first_bytes, std::string unread);
  void refuse_archive(std::string_view first_bytes) const;

  Descriptor descriptor_;
  std::string name_;
  int wake_;
  bool regular_ = false;
  Archives archives_;
  UnpackOptions unpack_;
  bool unseen_;         // of a pipe: it is not known yet what it brings
  bool ended_ = false;  // while it was looked at
  std::string first_;   // what a pipe brought when it was looked at, and was not read yet
  std::unique_ptr<UnpackedInput> unpacked_;
};

// Up to `count` bytes of the contents of a regular file, open for reading. Fewer if they cannot be read.
std::string first_contents(int descriptor, Packing packing, std::size_t count);

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
  // Creates the file if there is none. Throws IoError. A file named .gz or .zst is packed.
  static FileSink open(const std::string& path);
  static FileSink standard_output();
  FileSink(FileSink&& other) noexcept;
  ~FileSink() override;

  // Throws IoError; OutputClosed if it is standard output and its reader has closed it.
  void write(std::string_view bytes) override;
  // Packed: what was written can be unpacked from the file. At most once per second, since it costs space;
  // ask again later.
  void flush() override;
  // The bytes are on the disk when this returns, and so is the name of the file. For pipes and
  // terminals it does nothing. Packed: ends the member, so the file can be cut and continued here.
  void sync();
  // Afterwards the file holds exactly what was written, even if that is nothing.
  void finish();

  const std::string& name() const { return name_; }
  FileIdentity identity() const;
  int descriptor() const noexcept { return descriptor_.number(); }

  // Continues a regular file after its first `offset` bytes; what follows them is removed when it
  // is written to. `before`: what is packed in these.
  void continue_at(std::uint64_t offset, const PackedSoFar& before = {});
  // Of a regular file: where the next byte goes. Packed: after a sync. Throws IoError.
  std::uint64_t offset() const;
  const PackedSoFar& packed() const noexcept { return packed_; }
  // Where the file is, links followed; may be empty for standard output.
  std::string path() const;
  // Its size now, with what may yet be removed.
  std::uint64_t size() const;

 private:
  enum class Before { nothing, contents, no_file };
  FileSink(Descriptor descriptor, std::string name, Before before);
  void begin();
  void end_member();
  void write_raw(std::string_view bytes);

  Descriptor descriptor_;
  std::string name_;
  Before before_;              // old contents still to be removed
  std::uint64_t keep_ = 0;     // bytes of the old contents that stay
  bool unsynced_name_ = true;  // somebody may have created the file just now
  PackedSoFar packed_;
  std::unique_ptr<Packer> packer_;  // made when it is first used
  bool in_member_ = false;          // it is begun and not ended
  bool unflushed_ = false;
  bool empty_ = true;    // nothing was written, neither now nor before
  bool broken_ = false;  // a packed byte could not be written: what follows could not be unpacked
  std::chrono::steady_clock::time_point flushed_at_ = {};
};

}  // namespace sluice
