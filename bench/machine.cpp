#include "machine.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <fstream>
#include <thread>

#include "sluice/base/quantity.hpp"
#include "sluice/kernels/simd.hpp"

namespace sluice::bench {
namespace {

std::string first_line(const std::string& file) {
  std::string line;
  std::ifstream in(file);
  std::getline(in, line);
  return line;
}

std::string processor() {
  std::ifstream in("/proc/cpuinfo");
  for (std::string line; std::getline(in, line);)
    if (line.starts_with("model name")) {
      const std::size_t start = line.find_first_not_of(" \t", line.find(':') + 1);
      if (start != std::string::npos) return line.substr(start);
    }
  return "unknown";
}

// Of the first core, as the system tells: "48 KiB L1, 2 MiB L2".
std::string caches() {
  std::string all;
  for (int index = 0; index < 8; ++index) {
    const std::string of = fmt::format("/sys/devices/system/cpu/cpu0/cache/index{}/", index);
    const std::string level = first_line(of + "level"), size = first_line(of + "size");
    if (level.empty() || first_line(of + "type") == "Instruction") continue;
    const std::uint64_t bytes = std::strtoull(size.c_str(), nullptr, 10) << 10;
    all += fmt::format("{}{} L{}", all.empty() ? "" : ", ", format_size(bytes), level);
  }
  return all.empty() ? "unknown" : all;
}

// "always [madvise] never": the one in brackets is in force.
std::string huge_pages() {
  const std::string modes = first_line("/sys/kernel/mm/transparent_hugepage/enabled");
  const std::size_t open = modes.find('['), close = modes.find(']');
  if (open == std::string::npos || close == std::string::npos) return "none";
  const std::string mode = modes.substr(open + 1, close - open - 1);
  if (mode == "never") return "none";
  return mode == "always" ? "for all large blocks" : "on request, for tables of 2 MiB and more";
}

}  // namespace

std::vector<std::pair<std::string, std::string>> machine() {
  const auto memory = static_cast<std::uint64_t>(sysconf(_SC_PHYS_PAGES)) *
                      static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
  return {{"processor", processor()},
          {"cores", fmt::format("{}", std::thread::hardware_concurrency())},
          {"caches", caches()},
          {"memory", format_size(memory)},
          {"huge pages", huge_pages()},
          {"instruction set in use", std::string(simd_level())}};
}

}  // namespace sluice::bench
