// The least that a deduplicator of lines does: reads blocks, cuts them into lines, copies each line
// to an output buffer, writes that. It runs in a process of its own (`probe-lines FILE`), so that
// it is timed as the commands are which it is the limit of.
#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <memory>
#include <vector>

#include "options.hpp"
#include "sluice/base/error.hpp"
#include "sluice/kernels/scan.hpp"

namespace sluice::bench {
namespace {

constexpr std::size_t kBlock = 256 << 10;
constexpr std::size_t kMostLines = 4096;  // cut at a time: their places stay in the nearest cache

class Output {
 public:
  explicit Output(int to) : to_(to) {}
  void line(const char* data, std::size_t size) {
    if (size > kBlock - used_) {
      flush();
      if (size > kBlock) return write_all(data, size);
    }
    std::memcpy(buffer_.get() + used_, data, size);
    used_ += size;
  }
  void flush() {
    write_all(buffer_.get(), used_);
    used_ = 0;
  }

 private:
  void write_all(const char* data, std::size_t size) const {
    while (size > 0) {
      const ssize_t written = write(to_, data, size);
      if (written < 0) throw IoError("cannot write lines", errno);
      data += written;
      size -= static_cast<std::size_t>(written);
    }
  }
  int to_;
  std::size_t used_ = 0;
  std::unique_ptr<char[]> buffer_ = std::make_unique<char[]>(kBlock);
};

// Gives whole lines to `out` and returns how many bytes they were.
std::size_t copy_lines(const char* data, std::size_t size, std::uint32_t* ends, Output& out) {
  std::size_t start = 0, looked = 0;
  while (looked < size) {
    const Scan scan = find_all(data + looked, size - looked, {'\n', '\n'}, kMostLines, ends);
    for (std::size_t i = 0; i < scan.found; ++i) {
      const std::size_t end = looked + ends[i] + 1;
      out.line(data + start, end - start);
      start = end;
    }
    looked += scan.scanned;
  }
  return start;
}

}  // namespace

void split_and_copy(const char* file) {
  const int from = open(file, O_RDONLY);
  if (from < 0) throw IoError(std::string("cannot open ") + file, errno);
  const int to = open("/dev/null", O_WRONLY);
  if (to < 0) throw IoError("cannot open /dev/null", errno);
  Output out(to);
  std::vector<char> block(2 * kBlock);
  std::vector<std::uint32_t> ends(kMostLines + kScanSlack);
  std::size_t held = 0;  // of a line whose end has not been read
  for (;;) {
    if (block.size() - held < kBlock) block.resize(2 * block.size());
    const ssize_t got = read(from, block.data() + held, kBlock);
    if (got < 0) throw IoError(std::string("cannot read ") + file, errno);
    if (got == 0) break;
    held += static_cast<std::size_t>(got);
    const std::size_t done = copy_lines(block.data(), held, ends.data(), out);
    held -= done;
    std::memmove(block.data(), block.data() + done, held);
  }
  if (held > 0) out.line(block.data(), held);
  out.flush();
  close(to);
  close(from);
}

}  // namespace sluice::bench
