// What every command that talks to servers shares: their address and password, and how to wait.
#pragma once

#include <chrono>
#include <string>
#include <string_view>

#include "apps/cli/signals.hpp"
#include "connectors/redis/address.hpp"
#include "connectors/redis/connection.hpp"

namespace sluice::cli {

// The variable of the environment that has the password, if no file has it.
inline constexpr const char* kPasswordVariable = "SLUICE_REDIS_PASSWORD";

// Throws BadParameters and IoError. An empty file: the environment, if it has one.
redis::Settings settings_of(const std::string& password_file);

// "sluice cluster create redis://…", with the file of the password.
std::string command_line(std::string_view command, std::string_view url,
                         const std::string& password_file);

// Waits for servers, a little longer each time, and says so now and then.
class ServerWait {
 public:
  explicit ServerWait(const char* command) : command_(command) {}

  void attach(const StopSignals& signals) { signals_ = &signals; }
  // False: a signal came.
  bool again(std::string_view problem);

 private:
  using Clock = std::chrono::steady_clock;

  const char* command_;
  const StopSignals* signals_ = nullptr;
  std::chrono::milliseconds pause_{0};
  Clock::time_point last_{}, said_{};
};

}  // namespace sluice::cli
