#include "sluice/base/machine_memory.hpp"

#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <exception>
#include <fstream>
#include <limits>
#include <string_view>

namespace sluice {
namespace {

constexpr std::uint64_t kNone = std::numeric_limits<std::uint64_t>::max();

// A number, or "max" or no file at all: no limit.
std::uint64_t limit_in(const std::string& file) {
  std::ifstream in(file);
  std::string text;
  std::uint64_t bytes = 0;
  if (!(in >> text)) return kNone;
  const auto end = text.data() + text.size();
  const auto parsed = std::from_chars(text.data(), end, bytes);
  return parsed.ec == std::errc() && parsed.ptr == end ? bytes : kNone;
}

// Of the group and of those around it, up to where groups are mounted. Within a container the
// group's own path may not be there, and what is mounted is the group.
std::uint64_t least_limit(const std::string& mount, std::string group, const char* file) {
  std::uint64_t least = kNone;
  for (;;) {
    while (!group.empty() && group.back() == '/') group.pop_back();
    least = std::min(least, limit_in(mount + group + "/" + file));
    if (group.empty()) return least;
    const std::size_t slash = group.rfind('/');
    group.erase(slash == group.npos ? 0 : slash);
  }
}

// Of "cpu,memory".
bool names_memory(std::string_view controllers) {
  for (;;) {
    const std::size_t comma = controllers.find(',');
    if (controllers.substr(0, comma) == "memory") return true;
    if (comma == controllers.npos) return false;
    controllers.remove_prefix(comma + 1);
  }
}

}  // namespace

std::uint64_t group_memory_limit(const std::string& root) noexcept {
  try {
    std::uint64_t least = kNone;
    std::ifstream groups(root + "/proc/self/cgroup");
    // "0::/path" in version 2, "7:cpu,memory:/path" in version 1.
    for (std::string line; std::getline(groups, line);) {
      const std::size_t first = line.find(':');
      const std::size_t second = first == line.npos ? line.npos : line.find(':', first + 1);
      if (second == line.npos) continue;
      const std::string_view controllers = std::string_view(line).substr(first, second - first);
      const std::string group = line.substr(second + 1);
      if (controllers == ":")
        least = std::min({least, least_limit(root + "/sys/fs/cgroup", group, "memory.max"),
                          least_limit(root + "/sys/fs/cgroup/unified", group, "memory.max")});
      else if (names_memory(controllers.substr(1)))
        least = std::min(
            least, least_limit(root + "/sys/fs/cgroup/memory", group, "memory.limit_in_bytes"));
    }
    return least;
  } catch (const std::exception&) {
    return kNone;
  }
}

std::uint64_t machine_memory() noexcept {
  static const std::uint64_t bytes = std::min(static_cast<std::uint64_t>(sysconf(_SC_PHYS_PAGES)) *
                                                  static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE)),
                                              group_memory_limit(""));
  return bytes;
}

}  // namespace sluice
