#include "connectors/files/stored_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "connectors/files/files.hpp"
#include "connectors/files/state_file.hpp"

namespace sluice {

// O_NONBLOCK: opening a pipe must fail, not wait.
StoredFile::StoredFile(const std::string& path) : path_(path), file_(-1) {
  Descriptor opened(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK), true);
  if (!opened && errno == ENOENT) throw StateRefused("there is no file '" + path + "'");
  if (!opened) throw IoError("cannot open '" + path + "'", errno);
  struct stat found;
  if (::fstat(opened.number(), &found) != 0) throw IoError("cannot look at '" + path + "'", errno);
  if (!S_ISREG(found.st_mode)) throw StateRefused("'" + path + "' is not a regular file");
  size_ = static_cast<std::uint64_t>(found.st_size);
  file_ = opened.release();
}

StoredFile::~StoredFile() {
  ::close(file_);
}

void StoredFile::read(std::uint64_t offset, std::span<std::byte> out) const {
  while (!out.empty()) {
    const ssize_t got = ::pread(file_, out.data(), out.size(), static_cast<off_t>(offset));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) throw IoError("cannot read from '" + path_ + "'", errno);
    if (got == 0) throw CorruptSnapshot("the file became shorter while it was read");
    offset += static_cast<std::uint64_t>(got);
    out = out.subspan(static_cast<std::size_t>(got));
  }
}

}  // namespace sluice
