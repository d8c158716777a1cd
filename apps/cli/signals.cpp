#include "signals.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <csignal>

#include "sluice/base/error.hpp"

namespace sluice::cli {
namespace {

// A signal handler can only use globals; any thread may read these.
std::atomic<int> g_received = 0;
std::atomic<bool> g_asked = false;
static_assert(std::atomic<int>::is_always_lock_free && std::atomic<bool>::is_always_lock_free);
int g_pipe[2] = {-1, -1};

extern "C" void on_stop_signal(int number) {
  const int saved = errno;
  g_received = number;
  [[maybe_unused]] const ssize_t written = write(g_pipe[1], "", 1);
  errno = saved;
}

extern "C" void on_question(int) {
  g_asked = true;
}

}  // namespace

StopSignals::StopSignals() {
  if (pipe2(g_pipe, O_CLOEXEC | O_NONBLOCK) != 0) throw IoError("cannot make a pipe", errno);
  struct sigaction action = {};
  action.sa_handler = on_stop_signal;
  // SA_RESETHAND: the second signal gets the default action.
  action.sa_flags = static_cast<int>(SA_RESTART | SA_RESETHAND);
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
  // Ignored when we start: nohup, or a shell whose jobs are to survive it.
  struct sigaction hang_up = {};
  if (sigaction(SIGHUP, nullptr, &hang_up) == 0 && hang_up.sa_handler != SIG_IGN)
    sigaction(SIGHUP, &action, nullptr);
  action.sa_handler = on_question;
  action.sa_flags = SA_RESTART;
  sigaction(SIGUSR1, &action, nullptr);
}

bool StopSignals::asked() noexcept {
  return g_asked.exchange(false);
}

int StopSignals::wake_descriptor() const noexcept {
  return g_pipe[0];
}

int StopSignals::received() const noexcept {
  return g_received;
}

std::string_view StopSignals::name() const noexcept {
  switch (g_received) {
    case SIGINT:
      return "SIGINT";
    case SIGTERM:
      return "SIGTERM";
    case SIGHUP:
      return "SIGHUP";
    default:
      return "";
  }
}

}  // namespace sluice::cli
