// SIGINT, SIGTERM and SIGHUP as a request to stop: the run drains and saves, then ends with 128 + the
// signal. SIGUSR1 as a question: how is it going?
#pragma once

#include <string_view>

namespace sluice::cli {

class StopSignals {
 public:
  // From here on the signals are caught; a second one of the first three ends the process at once.
  // SIGHUP stays ignored under nohup.
  StopSignals();
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;

  // Whether a question came since the last call.
  bool asked() noexcept;

  // Becomes readable with the first signal, so that a waiting read can end.
  int wake_descriptor() const noexcept;
  // 0, or the signal that came.
  int received() const noexcept;
  // "SIGINT"; empty if none came.
  std::string_view name() const noexcept;
};

}  // namespace sluice::cli
