#include "command.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <iterator>
#include <new>
#include <system_error>

#include "connectors/files/files.hpp"
#include "connectors/gnuplot/gnuplot.hpp"
#include "printable.hpp"
#include "sluice/base/error.hpp"
#include "words.hpp"

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
  say(fmt::format("sluice {}: {} {}\n", command, coloured("31", "error:"),
                  printable(in_flags(message))));
  return exit_code;
}

[[noreturn]] void throw_stdout_failed() {
  const int error = errno;
  if (error == EPIPE) throw OutputClosed("cannot write to 'standard output'", error);
  throw IoError("cannot write to 'standard output'", error);
}

// Whether a person would take a file with this name for a compressed one, though it is none.
bool seems_packed(const std::string& path) {
  if (packing_of_name(path) != Packing::none) return false;
  std::string end = path.substr(std::min(path.rfind('.'), path.size()));
  for (char& c : end)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  constexpr std::string_view kEnds[] = {".gz",   ".gzip", ".z",  ".zst",
                                        ".zstd", ".bz2",  ".xz", ".lz4"};
  return std::ranges::find(kEnds, end) != std::end(kEnds);
}

}  // namespace

bool stderr_is_terminal() {
  return isatty(STDERR_FILENO) == 1;
}

void say(std::string_view text) {
  [[maybe_unused]] const std::size_t written = std::fwrite(text.data(), 1, text.size(), stderr);
}

void hold_standard_descriptors() {
  // Opened for the wrong direction, so that using one fails instead of doing nothing.
  constexpr int kWrongWay[] = {O_WRONLY, O_RDONLY, O_RDONLY};
  for (int number = STDIN_FILENO; number <= STDERR_FILENO; ++number)
    if (fcntl(number, F_GETFD) < 0 && errno == EBADF) open("/dev/null", kWrongWay[number]);
}

void warn(std::string_view command, std::string_view message) {
  say(fmt::format("sluice {}: {} {}\n", command, coloured("33", "warning:"),
                  printable(in_flags(message))));
}

void warn_if_seems_packed(std::string_view command, const std::string& output) {
  if (seems_packed(output))
    warn(command, fmt::format("'{}' is written as plain text: only files whose names end in .gz or "
                              ".zst are compressed",
                              output));
}

void note(std::string_view command, std::string_view message) {
  say(fmt::format("sluice {}: {}\n", command, in_flags(message)));
}

int guarded(std::string_view command, const std::function<int()>& body) {
  // If the reader leaves early (`| head`), writing must fail with an error code, not kill us with a
  // signal.
  std::signal(SIGPIPE, SIG_IGN);
  // So must writing past the limit on a file's size.
  std::signal(SIGXFSZ, SIG_IGN);
  try {
    const int exit_code = body();
    if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0) throw_stdout_failed();
    return exit_code;
  } catch (const OutputClosed&) {
    return kDone;
  } catch (const IoError& error) {
    return fail(command, error.what(), kFailed);
  } catch (const BadRecord& error) {
    return fail(command, error.what(), kFailed);
  } catch (const GnuplotFailed& error) {
    return fail(command, error.what(), kFailed);
  } catch (const RunFailed& error) {
    return fail(command, error.what(), kFailed);
  } catch (const Error& error) {
    return fail(command, error.what(), kUsage);
  } catch (const std::system_error& error) {  // what fmt::print throws
    if (error.code().value() == EPIPE) return kDone;
    return fail(command, error.what(), kFailed);
  } catch (const std::bad_alloc&) {
    return fail(command, "out of memory: ask for a smaller filter or shorter records", kFailed);
  }
}

}  // namespace sluice::cli
