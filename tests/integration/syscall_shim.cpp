// Preloaded into a test program (LD_PRELOAD): logs the calls by which files become durable, and
// stops or fails the n-th of them. Only calls on files below SLUICE_SHIM_DIRECTORY count.
//
//   SLUICE_SHIM_DIRECTORY  where to look
//   SLUICE_SHIM_LOG        file to which each call is appended: its name, its file, its second file
//   SLUICE_SHIM_EXIT_AT    end the process, as a kill would, before call n (a write: in its middle)
//   SLUICE_SHIM_FAIL_AT    let call n fail with errno SLUICE_SHIM_ERRNO
//   SLUICE_SHIM_NO_LINKS   every link fails, as on a file system without them
#include <dlfcn.h>
#include <fcntl.h>
#include <stdarg.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>

namespace {

constexpr int kMostFiles = 256;
constexpr std::size_t kMostPath = 1024;

char names[kMostFiles][kMostPath];  // of open files that count; empty: does not count
long calls = 0;

long number_in(const char* variable) {
  const char* text = std::getenv(variable);
  return text == nullptr ? 0 : std::atol(text);
}

bool counts(const char* path) {
  const char* directory = std::getenv("SLUICE_SHIM_DIRECTORY");
  return directory != nullptr && std::strncmp(path, directory, std::strlen(directory)) == 0;
}

void log_text(int log, const char* text) {
  syscall(SYS_write, log, text, std::strlen(text));
}

void log_call(const char* call, const char* one, const char* two) {
  const char* path = std::getenv("SLUICE_SHIM_LOG");
  if (path == nullptr) return;
  const int log = static_cast<int>(
      syscall(SYS_openat, AT_FDCWD, path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600));
  log_text(log, call);
  log_text(log, " ");
  log_text(log, one);
  log_text(log, " ");
  log_text(log, two);
  log_text(log, "\n");
  syscall(SYS_close, log);
}

// True when this call is to fail; does not return when the process is to end here.
template <class Last>
bool fails(const char* call, const char* one, const char* two, Last before_exit) {
  ++calls;
  if (calls == number_in("SLUICE_SHIM_EXIT_AT")) {
    before_exit();
    _exit(137);
  }
  log_call(call, one, two);
  if (calls != number_in("SLUICE_SHIM_FAIL_AT")) return false;
  errno = static_cast<int>(number_in("SLUICE_SHIM_ERRNO"));
  return true;
}

bool fails(const char* call, const char* one, const char* two = "") {
  return fails(call, one, two, [] {});
}

bool known(int file) {
  return file >= 0 && file < kMostFiles && names[file][0] != '\0';
}

template <class Function>
Function* real(Function*, const char* name) {
  return reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name));
}

int open_as(const char* name, const char* path, int flags, mode_t mode) {
  const bool counted = counts(path);
  if (counted && fails((flags & O_CREAT) != 0 ? "create" : "open", path)) return -1;
  const int file = real(&::open, name)(path, flags, mode);
  if (counted && file >= 0 && file < kMostFiles && std::strlen(path) < kMostPath)
    std::strcpy(names[file], path);
  return file;
}

}  // namespace

extern "C" {

int open(const char* path, int flags, ...) {
  va_list arguments;
  va_start(arguments, flags);
  const mode_t mode = (flags & O_CREAT) != 0 ? va_arg(arguments, mode_t) : 0;
  va_end(arguments);
  return open_as("open", path, flags, mode);
}

int open64(const char* path, int flags, ...) {
  va_list arguments;
  va_start(arguments, flags);
  const mode_t mode = (flags & O_CREAT) != 0 ? va_arg(arguments, mode_t) : 0;
  va_end(arguments);
  return open_as("open64", path, flags, mode);
}

int close(int file) {
  if (known(file)) names[file][0] = '\0';
  return real(&::close, "close")(file);
}

ssize_t write(int file, const void* data, size_t size) {
  if (known(file) && fails("write", names[file], "", [&] {
        // A kill may come at any byte.
        syscall(SYS_write, file, data, size / 2);
      }))
    return -1;
  return real(&::write, "write")(file, data, size);
}

int fsync(int file) {
  if (known(file) && fails("fsync", names[file])) return -1;
  return real(&::fsync, "fsync")(file);
}

int fdatasync(int file) {
  if (known(file) && fails("fsync", names[file])) return -1;
  return real(&::fdatasync, "fdatasync")(file);
}

int ftruncate(int file, off_t size) {
  if (known(file) && fails("truncate", names[file])) return -1;
  return real(&::ftruncate, "ftruncate")(file, size);
}

int ftruncate64(int file, off64_t size) {
  if (known(file) && fails("truncate", names[file])) return -1;
  return real(&::ftruncate64, "ftruncate64")(file, size);
}

int rename(const char* from, const char* to) {
  if (counts(from) && fails("rename", from, to)) return -1;
  return real(&::rename, "rename")(from, to);
}

int link(const char* from, const char* to) {
  if (counts(from) && fails("link", from, to)) return -1;
  if (counts(from) && std::getenv("SLUICE_SHIM_NO_LINKS") != nullptr) {
    errno = EPERM;
    return -1;
  }
  return real(&::link, "link")(from, to);
}

int unlink(const char* path) {
  if (counts(path) && fails("unlink", path)) return -1;
  return real(&::unlink, "unlink")(path);
}

}  // extern "C"
