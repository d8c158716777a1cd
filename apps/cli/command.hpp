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

// A run that was understood and could not be finished: exit code 1.
class RunFailed : public Error {
 public:
  using Error::Error;
};

// Runs a command's body and turns what it throws into one sentence on standard error, headed by
// `command`, and an exit code. A reader of standard output that has gone is no error: 0, quietly.
int guarded(std::string_view command, const std::function<int()>& body);

// "sluice dedup: warning: …" on standard error, in colour on a terminal unless NO_COLOR is set.
void warn(std::string_view command, std::string_view message);
void note(std::string_view command, std::string_view message);

// Text on standard error as it is. When that cannot be written, nobody is left to be told.
void say(std::string_view text);

bool stderr_is_terminal();

// A program may be started with standard input, output or error closed. Then the next file opened
// would take its number, and messages would end in it: each gets something that fails instead.
void hold_standard_descriptors();

}  // namespace sluice::cli
