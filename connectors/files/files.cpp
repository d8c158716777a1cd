#include "connectors/files/files.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <utility>

#include "connectors/files/archive.hpp"

namespace sluice {
namespace {

namespace fs = std::filesystem;

// A pipe holds 64 KiB by default: a larger one means fewer switches between its two ends. The
// system refuses this to unprivileged users over the limit, which does no harm.
constexpr int kPipeBytes = 1 << 20;

constexpr const char* kStandardInput = "standard input";

// The longest wait for input: checkpoints of an idle stream are at most this late.
constexpr int kWaitMilliseconds = 1000;

// A packed output is flushed no more often: each flush costs some bytes and a part of the compression.
constexpr auto kFlushEvery = std::chrono::seconds(1);

void widen_if_pipe([[maybe_unused]] int descriptor) {
#ifdef F_SETPIPE_SZ
  struct stat status;
  if (fstat(descriptor, &status) == 0 && S_ISFIFO(status.st_mode))
    fcntl(descriptor, F_SETPIPE_SZ, kPipeBytes);
#endif
}

FileIdentity identity_of(int descriptor) {
  struct stat status;
  if (fstat(descriptor, &status) != 0) return {};
  return {status.st_dev, status.st_ino, S_ISREG(status.st_mode) != 0};
}

// As many of these bytes as can be read: whoever reads the file will say why there are not more.
std::string bytes_at(int descriptor, std::uint64_t offset, std::size_t count) {
  std::string bytes(count, '\0');
  const ssize_t got = ::pread(descriptor, bytes.data(), count, static_cast<off_t>(offset));
  bytes.resize(got < 0 ? 0 : static_cast<std::size_t>(got));
  return bytes;
}

std::string bytes_at(UnpackedInput& contents, std::uint64_t offset, std::size_t count) {
  std::string bytes(count, '\0');
  std::size_t filled = 0;
  try {
    contents.seek(offset);
    while (filled < count) {
      const std::size_t got = contents.read(std::span(bytes).subspan(filled));
      if (got == 0) break;
      filled += got;
    }
  } catch (const IoError&) {
  }
  bytes.resize(filled);
  return bytes;
}

}  // namespace

Descriptor::Descriptor(Descriptor&& other) noexcept
    : number_(other.number_), owned_(std::exchange(other.owned_, false)) {}

Descriptor& Descriptor::operator=(Descriptor&& other) noexcept {
  std::swap(number_, other.number_);
  std::swap(owned_, other.owned_);
  return *this;
}

Descriptor::~Descriptor() {
  if (owned_ && number_ >= 0) ::close(number_);
}

Descriptor readable(int descriptor) {
  const int flags = ::fcntl(descriptor, F_GETFL);
  if (flags >= 0 && (flags & O_ACCMODE) != O_WRONLY) return {descriptor, false};
  const std::string link = "/proc/self/fd/" + std::to_string(descriptor);
  return {::open(link.c_str(), O_RDONLY | O_CLOEXEC), true};
}

FileSource FileSource::open(const std::string& path, int wake, const char* what, Archives archives,
                            const UnpackOptions& unpack) {
  if (path == "-") return {Descriptor(STDIN_FILENO, false), kStandardInput, wake, archives, unpack};
  // O_NONBLOCK for the opening only: waiting here for the writer of a named pipe would miss a
  // request to stop. The first read waits instead.
  const int number = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (number < 0) throw IoError(std::string("cannot open ") + what + " '" + path + "'", errno);
  fcntl(number, F_SETFL, fcntl(number, F_GETFL) & ~O_NONBLOCK);
  return {Descriptor(number, true), path, wake, archives, unpack};
}

FileSource::FileSource(Descriptor descriptor, std::string name, int wake, Archives archives,
                       const UnpackOptions& unpack)
    : descriptor_(std::move(descriptor)),
      name_(std::move(name)),
      wake_(wake),
      archives_(archives),
      unpack_(unpack),
      unseen_(archives != Archives::read) {
  struct stat status;
  if (fstat(descriptor_.number(), &status) != 0)
    throw IoError("cannot read input '" + name_ + "'", errno);
  if (S_ISDIR(status.st_mode)) throw IoError("cannot read input '" + name_ + "'", EISDIR);
  regular_ = S_ISREG(status.st_mode);
#ifdef POSIX_FADV_SEQUENTIAL
  if (regular_) posix_fadvise(descriptor_.number(), 0, 0, POSIX_FADV_SEQUENTIAL);
#endif
  widen_if_pipe(descriptor_.number());
  if (regular_ && std::exchange(unseen_, false)) look_at_start();
}

// Where reading will start, without moving there. What cannot be read is for the first read to say.
void FileSource::look_at_start() {
  const off_t at = lseek(descriptor_.number(), 0, SEEK_CUR);
  char bytes[kArchiveBytes];
  const ssize_t got = ::pread(descriptor_.number(), bytes, sizeof bytes, at);
  if (at >= 0 && got > 0) begin_with({bytes, static_cast<std::size_t>(got)}, {});
}

// `unread`: of these bytes, those that a read would not give again.
void FileSource::begin_with(std::string_view first_bytes, std::string unread) {
  const Packing packing = packing_of(first_bytes);
  if (packing == Packing::none) return refuse_archive(first_bytes);
  unpacked_ = std::make_unique<UnpackedInput>(PackedBytes{.descriptor = descriptor_.number(),
                                                          .regular = regular_,
                                                          .offset = regular_ ? offset() : 0,
                                                          .wake = wake_,
                                                          .name = name_,
                                                          .first = std::move(unread)},
                                              packing, unpack_);
}

void FileSource::refuse_archive(std::string_view first_bytes) const {
  if (const Archive* archive = archive_of(first_bytes))
    throw BadParameters(refusal_of(*archive, name_ == kStandardInput ? "" : name_,
                                   archives_ == Archives::refuse_or_insist));
}

// Whether what a pipe has brought so far tells what it brings.
bool FileSource::is_told() const {
  return ended_ ||
         (!first_.empty() && (first_.size() >= kArchiveBytes || !is_archive_start(first_)));
}

// Looks at the first bytes of a pipe: all that it takes, or without waiting for them.
void FileSource::take_first(bool wait) {
  while (!is_told() && (wait || ready(0))) {
    char bytes[kArchiveBytes];
    const std::size_t got = read_some({bytes, kArchiveBytes - first_.size()});
    first_.append(bytes, got);
    ended_ = got == 0;
  }
}

std::size_t FileSource::read(std::span<char> into) {
  if (unseen_) {
    take_first(true);
    unseen_ = false;
    begin_with(first_, first_);
    if (unpacked_) first_.clear();
  }
  if (unpacked_) return unpacked_->read(into);
  if (first_.empty()) return read_some(into);
  const std::size_t count = first_.copy(into.data(), into.size());
  first_.erase(0, count);
  return count;
}

std::size_t FileSource::read_some(std::span<char> into) {
  for (;;) {
    if (!regular_) {
      // A read alone would miss a signal that came just before it, and would take a named pipe
      // without a writer for one that has ended. poll ignores a wake_ of -1.
      pollfd waiting[2] = {{descriptor_.number(), POLLIN, 0}, {wake_, POLLIN, 0}};
      if (::poll(waiting, 2, -1) < 0 && errno != EINTR)
        throw IoError("cannot wait for input '" + name_ + "'", errno);
      if (waiting[1].revents != 0) return 0;
      if (waiting[0].revents == 0) continue;
    }
    const ssize_t got = ::read(descriptor_.number(), into.data(), into.size());
    if (got >= 0) return static_cast<std::size_t>(got);
    if (errno != EINTR && errno != EAGAIN)
      throw IoError("cannot read input '" + name_ + "'", errno);
  }
}

// Whether a pipe has something, or has ended, or the run is to stop.
bool FileSource::ready(int milliseconds) const {
  pollfd waiting[2] = {{descriptor_.number(), POLLIN, 0}, {wake_, POLLIN, 0}};
  const int ready = ::poll(waiting, 2, milliseconds);
  // The signal may be for the caller, so return to it.
  return ready > 0 || (ready < 0 && errno != EINTR);
}

bool FileSource::would_wait() {
  if (regular_) return false;
  if (unseen_) {
    take_first(false);
    if (!is_told()) return true;
    if (packing_of(first_) == Packing::none) return false;
    unseen_ = false;
    begin_with(first_, first_);
    first_.clear();
  }
  if (unpacked_) return unpacked_->would_wait();
  pollfd waiting{descriptor_.number(), POLLIN, 0};
  return first_.empty() && ::poll(&waiting, 1, 0) == 0;
}

bool FileSource::wait() {
  if (regular_) return true;
  if (unpacked_) return unpacked_->wait(kWaitMilliseconds);
  if (!ready(kWaitMilliseconds)) return false;
  // A few bytes of something packed are not enough to read any of it.
  return !unseen_ || !would_wait();
}

FileIdentity FileSource::identity() const {
  return identity_of(descriptor_.number());
}

std::uint64_t FileSource::bytes_left() const {
  struct stat status;
  if (!regular_ || fstat(descriptor_.number(), &status) != 0) return 0;
  const off_t at = lseek(descriptor_.number(), 0, SEEK_CUR);
  return at < status.st_size ? static_cast<std::uint64_t>(status.st_size - at) : 0;
}

std::uint64_t FileSource::offset() const {
  const off_t at = lseek(descriptor_.number(), 0, SEEK_CUR);
  return at < 0 ? 0 : static_cast<std::uint64_t>(at);
}

std::string FileSource::peek(std::uint64_t offset, std::size_t count) const {
  if (!unpacked_) return bytes_at(descriptor_.number(), offset, count);
  UnpackedInput contents = contents_again();
  return bytes_at(contents, offset, count);
}

UnpackedInput FileSource::contents_again() const {
  UnpackOptions options = unpack_;
  options.own_thread = false;
  return {{.descriptor = descriptor_.number(), .regular = true, .offset = offset(), .name = name_},
          packing(),
          options};
}

void FileSource::seek(std::uint64_t offset) {
  if (unpacked_) return unpacked_->seek(offset);
  if (lseek(descriptor_.number(), static_cast<off_t>(offset), SEEK_SET) < 0)
    throw IoError("cannot continue in input '" + name_ + "'", errno);
}

std::string first_contents(int descriptor, Packing packing, std::size_t count) {
  if (packing == Packing::none) return bytes_at(descriptor, 0, count);
  UnpackedInput contents({.descriptor = descriptor, .regular = true}, packing,
                         {.own_thread = false});
  return bytes_at(contents, 0, count);
}

FileSink FileSink::open(const std::string& path) {
  int number = ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  if (number >= 0) return {Descriptor(number, true), path, Before::no_file};
  number = ::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
  if (number < 0) throw IoError("cannot open output '" + path + "'", errno);
  return {Descriptor(number, true), path, Before::contents};
}

FileSink FileSink::standard_output() {
  return {Descriptor(STDOUT_FILENO, false), "standard output", Before::nothing};
}

FileSink::FileSink(Descriptor descriptor, std::string name, Before before)
    : descriptor_(std::move(descriptor)), name_(std::move(name)), before_(before) {
  widen_if_pipe(descriptor_.number());
  if (descriptor_.number() != STDOUT_FILENO) packed_.packing = packing_of_name(name_);
}

FileSink::FileSink(FileSink&& other) noexcept
    : descriptor_(std::move(other.descriptor_)),
      name_(std::move(other.name_)),
      before_(std::exchange(other.before_, Before::nothing)),
      keep_(other.keep_),
      unsynced_name_(other.unsynced_name_),
      packed_(other.packed_),
      packer_(std::move(other.packer_)),
      in_member_(std::exchange(other.in_member_, false)),
      unflushed_(other.unflushed_),
      empty_(other.empty_),
      broken_(other.broken_),
      flushed_at_(other.flushed_at_) {}

FileSink::~FileSink() {
  if (before_ == Before::no_file) ::unlink(name_.c_str());
  // A run that failed leaves what it wrote, as it does in a plain file.
  try {
    if (in_member_) end_member();
  } catch (const Error&) {
  }
}

void FileSink::finish() {
  begin();
  end_member();
}

void FileSink::begin() {
  // Devices and pipes cannot be truncated and need not be.
  if (std::exchange(before_, Before::nothing) != Before::contents || !identity().regular) return;
  if (ftruncate(descriptor_.number(), static_cast<off_t>(keep_)) != 0)
    throw IoError(
        "cannot " + std::string(keep_ == 0 ? "empty" : "shorten") + " output '" + name_ + "'",
        errno);
  if (lseek(descriptor_.number(), static_cast<off_t>(keep_), SEEK_SET) < 0)
    throw IoError("cannot continue output '" + name_ + "'", errno);
}

void FileSink::continue_at(std::uint64_t offset, const PackedSoFar& before) {
  if (before_ != Before::no_file) before_ = Before::contents;
  keep_ = offset;
  empty_ = offset == 0;
  packed_.contents = before.contents;
  packed_.last = before.last;
}

std::uint64_t FileSink::offset() const {
  if (before_ != Before::nothing) return keep_;
  // Before its first write, a file that is appended to has no offset.
  const bool appends = (fcntl(descriptor_.number(), F_GETFL) & O_APPEND) != 0;
  const off_t at = lseek(descriptor_.number(), 0, appends ? SEEK_END : SEEK_CUR);
  if (at < 0) throw IoError("cannot tell where output '" + name_ + "' ends", errno);
  return static_cast<std::uint64_t>(at);
}

std::string FileSink::path() const {
  std::error_code error;
  const fs::path link = "/proc/self/fd/" + std::to_string(descriptor_.number());
  const fs::path found = fs::read_symlink(link, error);
  if (!error || descriptor_.number() == STDOUT_FILENO) return found.string();
  return fs::weakly_canonical(name_, error).string();
}

std::uint64_t FileSink::size() const {
  struct stat status;
  return fstat(descriptor_.number(), &status) == 0 ? static_cast<std::uint64_t>(status.st_size) : 0;
}

void FileSink::write(std::string_view bytes) {
  begin();
  if (bytes.empty()) return;
  if (packed_.packing == Packing::none) return write_raw(bytes);
  if (!packer_) packer_ = Packer::make(packed_.packing);
  in_member_ = unflushed_ = true;
  packer_->pack(bytes, Packer::Until::taken, [this](std::string_view made) { write_raw(made); });
  packed_.contents += bytes.size();
  packed_.last = bytes.back();
}

void FileSink::flush() {
  if (!unflushed_) return;
  const auto now = std::chrono::steady_clock::now();
  if (now - flushed_at_ < kFlushEvery) return;
  flushed_at_ = now;
  unflushed_ = false;
  packer_->pack({}, Packer::Until::flushed, [this](std::string_view made) { write_raw(made); });
}

// An empty file is none that can be unpacked: it gets an empty member.
void FileSink::end_member() {
  if (packed_.packing == Packing::none || !(in_member_ || empty_)) return;
  if (!packer_) packer_ = Packer::make(packed_.packing);
  in_member_ = unflushed_ = false;
  packer_->pack({}, Packer::Until::ended, [this](std::string_view made) { write_raw(made); });
}

void FileSink::write_raw(std::string_view bytes) {
  if (broken_) return;
  empty_ = false;
  broken_ = packed_.packing != Packing::none;  // unless all goes well
  while (!bytes.empty()) {
    const ssize_t written = ::write(descriptor_.number(), bytes.data(), bytes.size());
    if (written < 0) {
      if (errno == EINTR) continue;
      if (errno == EAGAIN) {
        pollfd waiting{descriptor_.number(), POLLOUT, 0};
        ::poll(&waiting, 1, -1);
        continue;
      }
      const std::string what = "cannot write to '" + name_ + "'";
      if (errno == EFBIG)
        throw IoError(what + ", which is as long as this process may make a file (ulimit -f)",
                      errno);
      if (errno == EPIPE && descriptor_.number() == STDOUT_FILENO) throw OutputClosed(what, errno);
      throw IoError(what, errno);
    }
    bytes.remove_prefix(static_cast<std::size_t>(written));
  }
  broken_ = false;
}

void FileSink::sync() {
  begin();
  end_member();
  if (fsync(descriptor_.number()) != 0 && errno != EINVAL && errno != EROFS && errno != ENOTSUP)
    throw IoError("cannot sync '" + name_ + "' to the disk", errno);
  if (!std::exchange(unsynced_name_, false) || !identity().regular) return;
  const std::string directory = fs::path(path()).parent_path().string();
  const Descriptor opened(::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC), true);
  // A directory that may be written to but not read cannot be synced.
  if (opened && fsync(opened.number()) != 0 && errno != EINVAL && errno != ENOTSUP)
    throw IoError("cannot sync the directory of '" + name_ + "' to the disk", errno);
}

FileIdentity FileSink::identity() const {
  return identity_of(descriptor_.number());
}

}  // namespace sluice
