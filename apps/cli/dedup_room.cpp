#include "dedup_room.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <string>

#include "connectors/files/files.hpp"
#include "connectors/files/zstd_frames.hpp"
#include "sluice/base/error.hpp"
#include "sluice/plan/nearest.hpp"

namespace sluice::cli {
namespace {

// Smaller buffers than without a limit: they are within what the process takes anyway.
constexpr std::size_t kBufferBytes = std::size_t{1} << 16;
// So is the window of a pipe that comes from `zstd -1`, and of small files.
constexpr std::uint64_t kUnplannedWindow = std::uint64_t{1} << 19;
// The part of --memory beside the process that is kept free for a window that is not known in advance.
constexpr std::uint64_t kUnknownShare = 8;

struct Windows {
  ZstdFrames widest;
  std::string file;      // that has it
  bool unknown = false;  // there may be others

  void add(const std::string& path) {
    const bool standard = path == "-";
    const Descriptor from(
        standard ? STDIN_FILENO : ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK),
        !standard);
    struct stat status;
    if (!from || ::fstat(from.number(), &status) != 0) return;  // opening it will say so
    if (!S_ISREG(status.st_mode)) {
      unknown |= S_ISFIFO(status.st_mode) || S_ISSOCK(status.st_mode);
      return;
    }
    const off_t at = standard ? std::max<off_t>(::lseek(STDIN_FILENO, 0, SEEK_CUR), 0) : 0;
    const ZstdFrames frames = zstd_frames(from.number(), static_cast<std::uint64_t>(at));
    unknown |= !frames.complete;
    if (frames.window <= widest.window) return;
    widest = frames;
    file = standard ? "standard input" : "'" + path + "'";
  }
};

// Opening a named pipe to look at it would tell its writer that it is read.
bool is_pipe(const std::string& path) {
  struct stat status;
  return path != "-" && ::stat(path.c_str(), &status) == 0 && S_ISFIFO(status.st_mode);
}

Windows windows_of(const DedupFlags& flags, const DedupRequest& request) {
  Windows windows;
  if (flags.binary) return windows;
  std::vector<std::string> files = request.files;
  for (const std::string* file : {&flags.forget, &flags.prior_table})
    if (!file->empty()) files.push_back(*file);
  for (const std::string& file : files) {
    if (is_pipe(file))
      windows.unknown = true;
    else
      windows.add(file);
  }
  return windows;
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

// Small ones are within what the process takes anyway.
std::uint64_t unpacker_bytes(std::uint64_t window) {
  return window <= kUnplannedWindow ? 0 : std::bit_ceil(window) + kUnpackerBytes;
}

std::uint64_t room_for(std::uint64_t bytes) {
  if (bytes <= kUnpackerBytes) return 0;
  const auto* const room = std::ranges::lower_bound(kRooms, bytes);
  return room == kRooms.end() ? kRooms.back() : *room;
}

// For inputs that cannot be looked at: a pipe before it is read, and the rest of a file of very many blocks.
std::uint64_t unknown_window(std::uint64_t memory) {
  if (memory <= kProcessBytes) return 0;
  return std::min(std::bit_floor((memory - kProcessBytes) / kUnknownShare), kMostWindow);
}

}  // namespace

void make_room(const DedupFlags& flags, std::optional<std::uint64_t> room, DedupRequest& request,
               std::uint64_t least_bytes) {
  const Windows windows = windows_of(flags, request);
  request.packer_bytes =
      packer_bytes(flags.output) + packer_bytes(flags.duplicates) + packer_bytes(flags.late_output);
  const std::uint64_t window = std::min(windows.widest.window, kMostWindow);
  request.room_needed = room_for(request.packer_bytes + unpacker_bytes(window));
  const std::uint64_t share = windows.unknown ? unknown_window(*request.memory) : 0;
  request.room =
      room ? *room
           : std::max(request.room_needed, room_for(request.packer_bytes + unpacker_bytes(share)));
  request.unpack.buffer_bytes = kBufferBytes;
  request.with_room = [flags](std::uint64_t other) { return understand(flags, other); };
  const std::uint64_t least = kProcessBytes + request.room_needed + least_bytes;
  if (window > kUnplannedWindow && *request.memory < least)
    throw BadParameters(fmt::format(
        "--memory {} is too little for {}: frame {} of it needs a zstd window of {}, and the "
        "process itself takes {}. Give {} or more, or unpack it on the way, as in zstd -dc "
        "-M2048MB {} | sluice ...",
        exact_size(*request.memory), windows.file, format_count(windows.widest.frame),
        format_size(window), format_size(kProcessBytes), planning::size_of_at_least(least),
        windows.file == "standard input" ? "FILE" : windows.file));
}

void share_room(std::uint64_t spare, DedupRequest& request) {
  const std::uint64_t beside = request.packer_bytes + kUnpackerBytes;
  const std::uint64_t free = spare > beside ? std::bit_floor(spare - beside) : 0;
  const std::uint64_t most_window = std::clamp(free, kUnplannedWindow, kMostWindow);
  // More --memory goes to the filter, except to one whose size is given.
  const bool fixed = request.wish.keys && request.fpr_given && !request.window;
  request.unpack.budget = std::make_shared<WindowBudget>(WindowBudget{
      most_window,
      [=, memory = *request.memory, has_state = !request.state.empty()](std::uint64_t window) {
        std::uint64_t least = kProcessBytes + kUnknownShare * std::bit_ceil(window);
        if (fixed) least = std::min(least, memory - spare + beside + std::bit_ceil(window));
        return fmt::format("{} `memory` {} or more",
                           has_state ? "start another state with" : "give",
                           planning::size_of_at_least(least));
      }});
}

}  // namespace sluice::cli
