#include "dedup_room.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <string>

#include "connectors/files/files.hpp"
#include "connectors/files/packing.hpp"

namespace sluice::cli {
namespace {

// Smaller buffers than without a limit: they are within what the process takes anyway.
constexpr std::size_t kBufferBytes = std::size_t{1} << 16;
// So is the window of a pipe that comes from `zstd -1`, and of small files. That of others is not known
// before they are read.
constexpr std::uint64_t kUnplannedWindow = std::uint64_t{1} << 19;
// Of a zstd file whose first bytes do not tell: no level up to 19 needs more.
constexpr std::uint64_t kUsualWindow = std::uint64_t{8} << 20;

// The window of a regular file; 0 if it needs none.
std::uint64_t window_of(const std::string& path) {
  const bool standard = path == "-";
  const Descriptor file(
      standard ? STDIN_FILENO : ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK), !standard);
  struct stat status;
  if (!file || ::fstat(file.number(), &status) != 0 || !S_ISREG(status.st_mode)) return 0;
  const off_t at = standard ? ::lseek(STDIN_FILENO, 0, SEEK_CUR) : 0;
  char bytes[18];
  const ssize_t got = ::pread(file.number(), bytes, sizeof bytes, std::max<off_t>(at, 0));
  const std::string_view first(bytes, got > 0 ? static_cast<std::size_t>(got) : 0);
  if (packing_of(first) != Packing::zstd) return 0;
  const std::uint64_t window = zstd_window(first);
  return std::min(window == 0 ? kUsualWindow : window, kMostWindow);
}

std::uint64_t packer_bytes(const std::string& output) {
  switch (packing_of_name(output)) {
    case Packing::gzip:
      return kGzipPackerBytes;
    case Packing::zstd:
      return kZstdPackerBytes;
    case Packing::none:
      break;
  }
  return 0;
}

}  // namespace

void make_room(const DedupFlags& flags, std::optional<std::uint64_t> room, DedupRequest& request) {
  std::uint64_t window = 0;
  if (!flags.binary) {
    for (const std::string& file : request.files) window = std::max(window, window_of(file));
    for (const std::string* file : {&flags.forget, &flags.prior_table})
      if (!file->empty()) window = std::max(window, window_of(*file));
  }
  std::uint64_t needed =
      packer_bytes(flags.output) + packer_bytes(flags.duplicates) + packer_bytes(flags.late_output);
  if (window > kUnplannedWindow) needed += std::bit_ceil(window) + kUnpackerBytes;
  request.unpack.within_memory = true;
  request.unpack.most_window = std::bit_ceil(std::max(window, kUnplannedWindow));
  request.unpack.buffer_bytes = kBufferBytes;
  request.room = room ? *room
                 : needed <= kUnpackerBytes
                     ? 0
                     : std::clamp(std::bit_ceil(needed), kLeastRoom, kMostRoom);
  request.with_room = [flags](std::uint64_t other) { return understand(flags, other); };
}

}  // namespace sluice::cli
