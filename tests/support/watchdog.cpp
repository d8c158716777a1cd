// A test that hangs fails: SIGALRM ends the program in it, and says which test it was.
#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>
#include <string>

#include "tests/support/counts.hpp"

namespace sluice::testing_support {
namespace {

std::string complaint;  // ready before the alarm: the handler may neither allocate nor wait

extern "C" void on_alarm(int) {
  // Nothing can be done when this fails, too.
  [[maybe_unused]] const ssize_t written = write(2, complaint.data(), complaint.size());
  _exit(124);
}

unsigned limit_s() {
  const char* said = std::getenv("SLUICE_TEST_LIMIT");
  if (said != nullptr) return static_cast<unsigned>(std::stoul(said));
  return count_of(300u, 3600u);
}

class Watchdog : public testing::EmptyTestEventListener {
  void OnTestStart(const testing::TestInfo& test) override {
    complaint = std::string("[  FAILED  ] ") + test.test_suite_name() + "." + test.name() +
                " took longer than " + std::to_string(limit_s()) + " s\n";
    std::signal(SIGALRM, on_alarm);
    alarm(limit_s());
  }
  void OnTestEnd(const testing::TestInfo&) override { alarm(0); }
};

[[maybe_unused]] const bool kWatched = [] {
  testing::UnitTest::GetInstance()->listeners().Append(new Watchdog);
  return true;
}();

}  // namespace
}  // namespace sluice::testing_support
