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
  // False when it was made of the -1 of a call that failed.
  explicit operator bool() const noexcept { return number_ >= 0; }
  int number() const noexcept { return number_; }
  // It is the caller's to close from now on.
  int release() noexcept { return std::exchange(owned_, false) ? number_ : -1; }

 private:
  int number_;
  bool owned_;
};

// Which file this is, whatever its name: to see that an output is not also an input.
struct FileIdentity {
  dev_t device = 0;
  ino_t inode = 0;
  bool regular = false;
  friend bool operator==(const FileIdentity&, const FileIdentity&) = default;
};

class FileSource final : public ByteSource {
 public:
  // "-" is standard input. Throws IoError, also for a directory.
  // `wake`: a descriptor that becomes readable when the run should stop, or -1; waiting reads then
  // end.
  static FileSource open(const std::string& path, int wake, const char* what = "input");

  std::size_t read(std::span<char> into) override;
  bool would_wait() override;
  bool wait() override;
  const std::string& name() const override { return name_; }

  FileIdentity identity() const;
  // Of a regular file, from the present position; 0 for anything else.
  std::uint64_t bytes_left() const;

 private:
  FileSource(Descriptor descriptor, std::string name, int wake);

  Descriptor descriptor_;
  std::string name_;
  int wake_;
  bool regular_ = false;
};

// Whoever read our standard output has gone, as in `| head`: the end of a run, and no failure.
class OutputClosed : public IoError {
 public:
  using IoError::IoError;
};

// A run may still be refused after its outputs are opened. So what a file held stays until the
// first write, sync or finish, and a file that was created and saw none of them is removed again.
class FileSink final : public ByteSink {
 public:
  // Creates the file if there is none. Throws IoError.
  static FileSink open(const std::string& path);
  static FileSink standard_output();
  FileSink(FileSink&& other) noexcept;
  ~FileSink() override;

  // Throws IoError; OutputClosed if it is standard output that nobody reads any more.
  void write(std::string_view bytes) override;
  // The bytes are on the disk when this returns. Pipes and terminals have none: a no-op there.
  void sync();
  // The file holds what was written and nothing else, be it nothing at all.
  void finish();

  const std::string& name() const { return name_; }
  FileIdentity identity() const;

 private:
  enum class Before { nothing, contents, no_file };
  FileSink(Descriptor descriptor, std::string name, Before before);

  Descriptor descriptor_;
  std::string name_;
  Before before_;  // what is still to be made way with
};

}  // namespace sluice
