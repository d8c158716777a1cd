#include "sluice/base/random.hpp"

#include <sys/random.h>

#include <cerrno>

#include "sluice/base/error.hpp"

namespace sluice {

void system_entropy(std::span<std::byte> out) {
  while (!out.empty()) {
    const ssize_t got = getrandom(out.data(), out.size(), 0);
    if (got < 0) {
      if (errno == EINTR) continue;
      throw IoError("cannot read randomness from the system", errno);
    }
    out = out.subspan(static_cast<std::size_t>(got));
  }
}

}  // namespace sluice
