#include "connectors/files/state_file.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace sluice {
namespace {

namespace fs = std::filesystem;

// The kernel's own limit on links to follow.
constexpr int kMostLinks = 40;

std::string quoted(const fs::path& path) {
  std::string text = "'";
  text += path.string();
  text += '\'';
  return text;
}

[[noreturn]] void fail(const std::string& step, const fs::path& path, int error = errno) {
  throw IoError("cannot " + step + " " + quoted(path), error);
}

Descriptor open_file(const fs::path& path, int flags, mode_t mode = 0) {
  return {::open(path.c_str(), flags | O_CLOEXEC, mode), true};
}

// Large enough that small fields cost no calls; chunks of the payload go out in one piece.
constexpr std::size_t kBufferBytes = 64 * 1024;

class FileEncoder final : public Encoder {
 public:
  FileEncoder(int file, const fs::path& path) : file_(file), path_(path) {}

  void bytes(std::span<const std::byte> data) override {
    if (buffer_.size() + data.size() > kBufferBytes) flush();
    if (data.size() > kBufferBytes)
      write_all(data);
    else
      buffer_.insert(buffer_.end(), data.begin(), data.end());
  }

  void flush() {
    write_all(buffer_);
    buffer_.clear();
  }

 private:
  void write_all(std::span<const std::byte> data) {
    while (!data.empty()) {
      const ssize_t written = ::write(file_, data.data(), data.size());
      if (written < 0 && errno == EINTR) continue;
      if (written < 0) fail("write the state to", path_);
      data = data.subspan(static_cast<std::size_t>(written));
    }
  }

  int file_;
  const fs::path& path_;
  std::vector<std::byte> buffer_;
};

class FileDecoder final : public Decoder {
 public:
  FileDecoder(int file, const fs::path& path, std::uint64_t size)
      : file_(file), path_(path), unread_(size) {}

  std::uint64_t remaining() const override { return unread_ + buffer_.size() - position_; }

  void bytes(std::span<std::byte> out) override {
    if (out.size() > remaining())
      throw CorruptSnapshot("the file ends where " + std::to_string(out.size()) +
                            " more bytes should be");
    while (!out.empty()) {
      if (position_ == buffer_.size() && out.size() >= kBufferBytes) {
        out = out.subspan(read_some(out));
        continue;
      }
      if (position_ == buffer_.size()) refill();
      const std::size_t taken = std::min(out.size(), buffer_.size() - position_);
      std::copy_n(buffer_.begin() + static_cast<std::ptrdiff_t>(position_), taken, out.begin());
      position_ += taken;
      out = out.subspan(taken);
    }
  }

 private:
  void refill() {
    buffer_.resize(static_cast<std::size_t>(std::min<std::uint64_t>(kBufferBytes, unread_)));
    position_ = 0;
    buffer_.resize(read_some(buffer_));
  }

  std::size_t read_some(std::span<std::byte> out) {
    for (;;) {
      const ssize_t got = ::read(file_, out.data(), out.size());
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) fail("read the state from", path_);
      if (got == 0) throw CorruptSnapshot("the file became shorter while it was read");
      unread_ -= static_cast<std::uint64_t>(got);
      return static_cast<std::size_t>(got);
    }
  }

  int file_;
  const fs::path& path_;
  std::uint64_t unread_;
  std::vector<std::byte> buffer_;
  std::size_t position_ = 0;
};

const char* type_of(mode_t mode) {
  if (S_ISDIR(mode)) return "a directory";
  if (S_ISFIFO(mode)) return "a pipe";
  if (S_ISSOCK(mode)) return "a socket";
  return "a device";
}

// False if nothing has that name; any other error must not count as "nothing there".
bool is_there(const fs::path& path) {
  struct stat found;
  if (::stat(path.c_str(), &found) == 0) return true;
  if (errno != ENOENT) fail("look at the state file", path);
  return false;
}

void remove_if_there(const fs::path& path) {
  if (::unlink(path.c_str()) != 0 && errno != ENOENT) fail("remove the leftover", path);
}

void sync_directory(const fs::path& directory) {
  const Descriptor opened = open_file(directory, O_RDONLY | O_DIRECTORY);
  if (!opened) fail("open the state's directory", directory);
  // EINVAL: this file system cannot sync directories.
  if (::fsync(opened.number()) != 0 && errno != EINVAL)
    fail("sync the state's directory", directory);
}

}  // namespace

fs::path link_target(fs::path path) {
  if (path.empty()) fail("use the empty file name", path, EINVAL);
  for (int links = 0; links < kMostLinks; ++links) {
    struct stat found;
    if (::lstat(path.c_str(), &found) != 0 || !S_ISLNK(found.st_mode)) {
      std::error_code lost;
      fs::path target = fs::absolute(path, lost);
      if (lost) fail("find the directory of", path, lost.value());
      return target;
    }
    std::error_code error;
    const fs::path next = fs::read_symlink(path, error);
    if (error) fail("follow the link", path, error.value());
    path = path.parent_path() / next;
  }
  fail("follow the link", path, ELOOP);
}

std::vector<fs::path> files_of_state(const fs::path& file) {
  std::vector<fs::path> files;
  for (const char* suffix : {"", ".previous", ".tmp", ".previous.tmp", ".lock"})
    files.push_back(link_target(file) += suffix);
  return files;
}

Snapshot load_snapshot_file(const fs::path& file, MemoryResource& memory,
                            const Understands& understands) {
  // O_NONBLOCK: opening a pipe must fail, not wait.
  const Descriptor opened = open_file(file, O_RDONLY | O_NONBLOCK);
  if (!opened && errno == ENOENT) throw StateRefused("there is no state file " + quoted(file));
  if (!opened) fail("open the state file", file);
  struct stat found;
  if (::fstat(opened.number(), &found) != 0) fail("look at the state file", file);
  if (!S_ISREG(found.st_mode))
    throw StateRefused(quoted(file) + " is " + type_of(found.st_mode) + ", not a state file");
  FileDecoder from(opened.number(), file, static_cast<std::uint64_t>(found.st_size));
  try {
    return read_snapshot(from, memory, understands);
  } catch (const CorruptSnapshot& error) {
    const std::string_view what = error.what();
    constexpr std::string_view kThis = "this is ";
    if (what.starts_with(kThis))
      throw CorruptSnapshot(quoted(file) + " is " + std::string(what.substr(kThis.size())));
    throw CorruptSnapshot("state file " + quoted(file) + " is refused: " + error.what());
  } catch (const BadParameters& error) {
    throw BadParameters("state file " + quoted(file) + " cannot be loaded: " + error.what());
  }
}

StateFile::StateFile(const fs::path& file) : given_(file), target_(link_target(file)) {
  lock();
  try {
    first_ = lock_itself();
  } catch (...) {
    ::unlink(beside(".lock").c_str());
    ::close(lock_);
    throw;
  }
}

StateFile::~StateFile() {
  // Removed while it is held: a run that has opened it meanwhile notices that it is gone (see
  // lock).
  ::unlink(beside(".lock").c_str());
  ::close(lock_);
}

void StateFile::lock() {
  const fs::path path = beside(".lock");
  for (;;) {
    Descriptor opened = open_file(path, O_RDWR | O_CREAT | O_NOFOLLOW, 0600);
    if (!opened && (errno == ENOENT || errno == ENOTDIR || errno == EACCES || errno == EROFS))
      fail("keep the state file " + quoted(given_) + " in the directory", path.parent_path());
    if (!opened) fail("lock the state file " + quoted(given_) + " by", path);
    while (::flock(opened.number(), LOCK_EX | LOCK_NB) != 0) {
      if (errno == EINTR) continue;
      if (errno == EWOULDBLOCK)
        throw StateBusy("state file " + quoted(given_) +
                            " is in use by another run of sluice, which holds " + quoted(path) +
                            ": wait for it to end, or give this run a state file of its own",
                        path);
      fail("lock the state file " + quoted(given_) + " by", path);
    }
    // The run that held it may have removed it between our opening and our lock.
    struct stat ours, there;
    if (::fstat(opened.number(), &ours) != 0) fail("look at the lock", path);
    if (::stat(path.c_str(), &there) == 0 && ours.st_ino == there.st_ino &&
        ours.st_dev == there.st_dev) {
      lock_ = opened.release();
      return;
    }
  }
}

// Empty if there is no file yet, or if it cannot be locked: FILE.lock is then all there is.
Descriptor StateFile::lock_itself() const {
  Descriptor opened = open_file(target_, O_RDONLY | O_NONBLOCK);
  struct stat found;
  if (!opened || ::fstat(opened.number(), &found) != 0 || !S_ISREG(found.st_mode))
    return {-1, false};
  while (::flock(opened.number(), LOCK_EX | LOCK_NB) != 0) {
    if (errno == EINTR) continue;
    if (errno != EWOULDBLOCK) return {-1, false};
    throw StateBusy("state file " + quoted(given_) +
                        " is in use by another run of sluice, which knows it by another name: wait "
                        "for it to end, or give this run a state file of its own",
                    target_);
  }
  return opened;
}

fs::path StateFile::beside(const char* suffix) const {
  fs::path path = target_;
  path += suffix;
  return path;
}

fs::path StateFile::previous() const {
  return beside(".previous");
}

bool StateFile::exists() const {
  return is_there(target_) || is_there(previous());
}

Snapshot StateFile::load(const Understands& understands) const {
  const auto hint = [this](const char* what, const char* otherwise) {
    std::string sentence = std::string(what) + ". Nothing was changed";
    std::error_code ignored;
    if (fs::is_regular_file(previous(), ignored))
      sentence +=
          "; the state before it is " + quoted(previous()) + ": use it with `state_previous`";
    else
      sentence += otherwise;
    return sentence;
  };
  try {
    return load_snapshot_file(given_, default_memory(), understands);
  } catch (const CorruptSnapshot& error) {
    throw CorruptSnapshot(
        hint(error.what(), "; restore a copy, or move it away to begin with an empty state"));
  } catch (const StateRefused& error) {
    throw StateRefused(hint(error.what(), ""));
  }
}

bool StateFile::is_whole() const {
  try {
    load_snapshot_file(given_, default_memory(), understands_all);
    return true;
  } catch (const CorruptSnapshot&) {
    return false;
  } catch (const StateRefused&) {
    return false;
  }
}

Snapshot StateFile::load_previous(const Understands& understands) {
  if (is_there(previous()) && is_whole())
    throw StateRefused("state file " + quoted(given_) +
                       " is intact, and `state_previous` would replace it: leave that out, "
                       "or move the file away");
  Snapshot loaded = load_snapshot_file(previous(), default_memory(), understands);
  keep_previous_ = true;
  return loaded;
}

void StateFile::save(const Hasher& hasher, const AnyFilter& filter, const Labels& labels,
                     const Sections& sections) {
  save([&](Encoder& to) { write_snapshot(hasher, filter, labels, to, sections); });
}

void StateFile::replace(const Write& write) {
  keep_previous_ = true;
  save(write);
}

void StateFile::save(const Write& write) {
  // Renaming would replace a device or pipe by a file, for all users.
  struct stat found {};
  if (::stat(target_.c_str(), &found) == 0 && !S_ISREG(found.st_mode))
    throw StateRefused(quoted(given_) + " is " + type_of(found.st_mode) +
                       ", which is not replaced: write to another file");
  Descriptor saved(-1, false);
  try {
    saved = write_temporary(write);
    install_temporary();
  } catch (...) {
    ::unlink(beside(".tmp").c_str());
    ::unlink(beside(".previous.tmp").c_str());
    throw;
  }
  sync_directory(target_.parent_path());
  keep_previous_ = false;
  latest_ = std::move(saved);
}

// We hold the lock, so no other run is writing them.
void StateFile::remove_leftovers() const {
  remove_if_there(beside(".tmp"));
  remove_if_there(beside(".previous.tmp"));
}

// Returns the file, locked: it keeps its lock when it is renamed.
Descriptor StateFile::write_temporary(const Write& write) const {
  const fs::path path = beside(".tmp");
  remove_leftovers();
  Descriptor file = open_file(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0600);
  if (!file) fail("create", path);
  FileEncoder to(file.number(), path);
  write(to);
  to.flush();
  if (::fsync(file.number()) != 0) fail("sync", path);
  ::flock(file.number(), LOCK_EX | LOCK_NB);
  return file;
}

void StateFile::install_temporary() const {
  const fs::path temporary = beside(".tmp"), old = beside(".previous.tmp");
  const bool keep_old = !keep_previous_ && is_there(target_);
  if (keep_old && ::link(target_.c_str(), old.c_str()) != 0) {
    if (errno != EPERM && errno != EOPNOTSUPP && errno != ENOSYS && errno != EMLINK)
      fail("keep the previous state as", old);
    install_without_links();
    return;
  }
  // The old state gets its second name before the new state replaces it, and replaces the previous
  // state only afterwards: a failure in between loses neither.
  if (::rename(temporary.c_str(), target_.c_str()) != 0) fail("replace the state file", target_);
  if (keep_old && ::rename(old.c_str(), previous().c_str()) != 0)
    fail("keep the previous state as", previous());
}

// For a moment there is only the previous state. After a crash in that moment, `load` says so.
void StateFile::install_without_links() const {
  const fs::path temporary = beside(".tmp");
  if (::rename(target_.c_str(), previous().c_str()) != 0)
    fail("keep the previous state as", previous());
  if (::rename(temporary.c_str(), target_.c_str()) == 0) return;
  const int error = errno;
  ::rename(previous().c_str(), target_.c_str());
  fail("replace the state file", target_, error);
}

}  // namespace sluice
