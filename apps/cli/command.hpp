// What every subcommand shares: exit codes, messages, and how errors become both.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "sluice/base/error.hpp"

namespace sluice::cli {

// 0 done; 1 the run failed (unreadable input, full disk, --strict); 2 usage, or a state file
// refused.
inline constexpr int kDone = 0;
inline constexpr int kFailed = 1;
inline constexpr int kUsage = 2;

// The flags were right but the run could not be finished: exit code 1.
class RunFailed : public Error {
 public:
  using Error::Error;
};

// Runs a command's body and turns what it throws into one sentence on standard error, headed by
// `command`, and an exit code. If the reader of standard output has closed it, that is no error: it
// returns 0 and says nothing.
int guarded(std::string_view command, const std::function<int()>& body);

// "sluice dedup: warning: …" on standard error, in colour on a terminal unless NO_COLOR is set.
void warn(std::string_view command, std::string_view message);
// If the output is a plain file although its name says that it is compressed.
void warn_if_seems_packed(std::string_view command, const std::string& output);
void note(std::string_view command, std::string_view message);

// Writes text to standard error unchanged. Errors of that write are ignored.
void say(std::string_view text);

bool stderr_is_terminal();

// A program may be started with standard input, output or error closed. Then the next file opened
// would get its number, and messages would be written into it. So each closed one is replaced by a
// descriptor that fails.
void hold_standard_descriptors();

}  // namespace sluice::cli
