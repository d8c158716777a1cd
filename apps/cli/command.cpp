#include "command.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <new>

#include "sluice/base/error.hpp"

namespace sluice::cli {
namespace {

bool colours() {
  const char* no_color = std::getenv("NO_COLOR");
  return stderr_is_terminal() && (no_color == nullptr || *no_color == '\0');
}

std::string coloured(const char* code, std::string_view text) {
  return colours() ? fmt::format("\033[{}m{}\033[0m", code, text) : std::string(text);
}

int fail(std::string_view command, std::string_view message, int exit_code) {
  fmt::print(stderr, "sluice {}: {} {}\n", command, coloured("31", "error:"), message);
  return exit_code;
}

}  // namespace

bool stderr_is_terminal() {
  return isatty(STDERR_FILENO) == 1;
}

void warn(std::string_view command, std::string_view message) {
  fmt::print(stderr, "sluice {}: {} {}\n", command, coloured("33", "warning:"), message);
}

void note(std::string_view command, std::string_view message) {
  fmt::print(stderr, "sluice {}: {}\n", command, message);
}

int guarded(std::string_view command, const std::function<int()>& body) {
  // A reader that leaves early (`| head`) must end us by an error code, not by a signal.
  std::signal(SIGPIPE, SIG_IGN);
  try {
    return body();
  } catch (const IoError& error) {
    if (error.error_number() == EPIPE) return kDone;
    return fail(command, error.what(), kFailed);
  } catch (const BadRecord& error) {
    return fail(command, error.what(), kFailed);
  } catch (const Error& error) {
    return fail(command, error.what(), kUsage);
  } catch (const std::bad_alloc&) {
    return fail(command, "out of memory: ask for a smaller filter or shorter records", kFailed);
  }
}

}  // namespace sluice::cli
