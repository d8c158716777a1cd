#include "connecting.hpp"

#include <fmt/format.h>
#include <poll.h>

#include <algorithm>
#include <cstdlib>

#include "apps/cli/command.hpp"

namespace sluice::cli {

redis::Settings settings_of(const std::string& password_file) {
  redis::Settings settings;
  const char* const variable = std::getenv(kPasswordVariable);
  if (!password_file.empty())
    settings.password = redis::password_from_file(password_file);
  else if (variable != nullptr && *variable != '\0')
    settings.password = redis::password_from_environment(kPasswordVariable);
  return settings;
}

std::string command_line(std::string_view command, std::string_view url,
                         const std::string& password_file) {
  return fmt::format("sluice cluster {} {}{}", command, url,
                     password_file.empty() ? "" : " --password-file " + password_file);
}

bool ServerWait::again(std::string_view problem) {
  using std::chrono::milliseconds, std::chrono::seconds;
  constexpr milliseconds kFirst{50}, kLongest{1000};
  // After so long without a question, the servers have answered in between.
  constexpr seconds kAnother{5}, kSayEvery{10};
  const Clock::time_point now = Clock::now();
  const bool another = last_ == Clock::time_point{} || now - last_ > kAnother;
  if (another) pause_ = kFirst;
  // Not for a server that is back at once.
  if (pause_ > kFirst * 4 && (said_ == Clock::time_point{} || now - said_ > kSayEvery)) {
    warn(command_, fmt::format("waits for the servers of the filter: {}", problem));
    said_ = now;
  }
  if (signals_ != nullptr && signals_->received() != 0) return false;
  pollfd wake{signals_ == nullptr ? -1 : signals_->wake_descriptor(), POLLIN, 0};
  ::poll(&wake, 1, static_cast<int>(pause_.count()));
  pause_ = std::min(pause_ * 2, kLongest);
  last_ = Clock::now();
  return signals_ == nullptr || signals_->received() == 0;
}

}  // namespace sluice::cli
