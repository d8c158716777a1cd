// At whichever call a crash or a failing disk interrupts a save, a complete state is left.
//
// The test saves Z and then A, a program under the syscall shim saves B, and call n of it is the
// one that is struck; n runs over all calls. What the kernel had not yet written out cannot be lost
// this way, so the order of syncs and renames is checked in the log.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <iterator>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "tests/integration/state_writer.hpp"

namespace sluice {
namespace {

namespace fs = std::filesystem;
using Environment = std::map<std::string, std::string>;

struct Outcome {
  int status = 0;
  std::vector<std::string> log;
  std::string printed;
};

class StateCrash : public testing::Test {
 protected:
  StateCrash() {
    std::string name = (fs::temp_directory_path() / "sluice_crash_XXXXXX").string();
    directory = mkdtemp(name.data());
    file = directory / "in" / "state";
  }
  ~StateCrash() override { fs::remove_all(directory); }

  // Z and A are saved; then B, with the shim's settings.
  Outcome run(Environment shim);
  // What a state is called; "none" without one, "damaged" when it is not whole.
  std::string name_of(const fs::path& path) const;
  std::string state() const { return name_of(file); }
  std::string previous() const { return name_of(file.string() + ".previous"); }
  std::size_t files() const {
    return static_cast<std::size_t>(
        std::distance(fs::directory_iterator(file.parent_path()), fs::directory_iterator()));
  }

  fs::path directory, file;
};

std::string contents(const fs::path& path) {
  std::ifstream in(path);
  return (std::ostringstream() << in.rdbuf()).str();
}

// Returns the exit status.
int spawn(const std::vector<std::string>& words, const Environment& environment,
          const fs::path& output) {
  std::vector<std::string> settings;
  for (const auto& [name, value] : environment) settings.push_back(name + "=" + value);
  std::vector<char*> arguments, variables;
  for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
  for (const std::string& text : settings) variables.push_back(const_cast<char*>(text.c_str()));
  arguments.push_back(nullptr);
  variables.push_back(nullptr);

  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 1, output.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
  pid_t child = 0;
  const int error =
      posix_spawn(&child, arguments[0], &actions, nullptr, arguments.data(), variables.data());
  posix_spawn_file_actions_destroy(&actions);
  EXPECT_EQ(error, 0);
  int status = 0;
  if (error == 0) waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

Outcome StateCrash::run(Environment shim) {
  fs::remove_all(file.parent_path());
  fs::create_directory(file.parent_path());
  {
    StateFile state(file);
    testing_support::save_named(state, "Z");
    testing_support::save_named(state, "A");
  }
  const fs::path log = directory / "log", output = directory / "output";
  fs::remove(log);
  shim["LD_PRELOAD"] = SLUICE_SYSCALL_SHIM;
  shim["SLUICE_SHIM_DIRECTORY"] = file.parent_path().string();
  shim["SLUICE_SHIM_LOG"] = log.string();
  // The address sanitizer wants to be the first library; behind the shim it works as well.
  shim["ASAN_OPTIONS"] = "verify_asan_link_order=0";
  Outcome outcome;
  outcome.status = spawn({SLUICE_STATE_WRITER, file.string(), "B"}, shim, output);
  std::istringstream lines(contents(log));
  for (std::string line; std::getline(lines, line);) outcome.log.push_back(line);
  outcome.printed = contents(output);
  return outcome;
}

std::string StateCrash::name_of(const fs::path& path) const {
  if (!fs::exists(path)) return "none";
  try {
    const Snapshot loaded = load_snapshot_file(path);
    const std::string name = loaded.labels.at(0).second;
    const Digest digest = loaded.hasher.digest(name);
    Verdict verdict{};
    loaded.filter.may_contain({&digest, 1}, {&verdict, 1});
    return verdict == Verdict::duplicate ? name : "emptied";
  } catch (const CorruptSnapshot& error) {
    return std::string("damaged: ") + error.what();
  }
}

TEST_F(StateCrash, SyncsTheFileBeforeTheRenameAndTheDirectoryAfter) {
  const Outcome outcome = run({});
  ASSERT_EQ(outcome.status, 0) << outcome.printed;
  EXPECT_EQ(state(), "B");
  EXPECT_EQ(previous(), "A");
  EXPECT_EQ(files(), 2u);

  const std::string name = file.string();
  const auto last = [&](const std::string& call) {
    const auto found = std::find(outcome.log.rbegin(), outcome.log.rend(), call);
    EXPECT_NE(found, outcome.log.rend()) << "never called: " << call;
    return outcome.log.rend() - found;
  };
  const auto written = last("write " + name + ".tmp ");
  const auto synced = last("fsync " + name + ".tmp ");
  const auto linked = last("link " + name + " " + name + ".previous.tmp");
  const auto replaced = last("rename " + name + ".tmp " + name);
  const auto kept = last("rename " + name + ".previous.tmp " + name + ".previous");
  const auto directory_synced = last("fsync " + file.parent_path().string() + " ");
  EXPECT_LT(written, synced);
  EXPECT_LT(synced, linked);
  EXPECT_LT(linked, replaced);
  EXPECT_LT(replaced, kept);
  EXPECT_LT(kept, directory_synced);
}

TEST_F(StateCrash, KilledBeforeAnyCallAWholeStateIsLeft) {
  bool saw_old = false, saw_new = false;
  long n = 1;
  for (;; ++n) {
    const Outcome outcome = run({{"SLUICE_SHIM_EXIT_AT", std::to_string(n)}});
    SCOPED_TRACE("killed before call " + std::to_string(n) + ", after " +
                 (outcome.log.empty() ? "nothing" : outcome.log.back()));
    if (outcome.status == 0) break;
    ASSERT_EQ(outcome.status, 137) << outcome.printed;
    const std::string now = state(), before = previous();
    EXPECT_TRUE((now == "A" && before == "Z") || (now == "B" && (before == "Z" || before == "A")))
        << now << " with " << before;
    saw_old |= now == "A";
    saw_new |= now == "B";
    // The next run can use it, and removes the leftovers.
    {
      StateFile next(file);
      EXPECT_TRUE(next.exists());
      testing_support::save_named(next, "C");
    }
    EXPECT_EQ(state(), "C");
    EXPECT_EQ(previous(), now);
    EXPECT_EQ(files(), 2u);
  }
  EXPECT_TRUE(saw_old && saw_new);
  EXPECT_GT(n, 10) << "the shim saw too few calls to be at work";
}

TEST_F(StateCrash, WhenAnyCallFailsAWholeStateIsLeft) {
  for (const int error : {ENOSPC, EIO}) {
    long failed = 0;
    for (long n = 1;; ++n) {
      const Outcome outcome = run({{"SLUICE_SHIM_FAIL_AT", std::to_string(n)},
                                   {"SLUICE_SHIM_ERRNO", std::to_string(error)}});
      if (static_cast<long>(outcome.log.size()) < n) break;
      const std::string call = outcome.log[static_cast<std::size_t>(n) - 1];
      SCOPED_TRACE("failed: " + call);
      const std::string now = state(), before = previous();
      EXPECT_TRUE((now == "A" && before == "Z") || (now == "B" && (before == "Z" || before == "A")))
          << now << " with " << before;
      if (outcome.status == 0) {
        // Only the lock file may stay: the state does not depend on its removal. And the state itself
        // may be without a lock, which is for runs that know it by another name.
        EXPECT_TRUE(call == "unlink " + file.string() + ".lock " ||
                    call == "open " + file.string() + " ")
            << call;
        continue;
      }
      ++failed;
      ASSERT_EQ(outcome.status, 1) << outcome.printed;
      EXPECT_NE(outcome.printed.find("cannot "), std::string::npos) << outcome.printed;
      EXPECT_NE(outcome.printed.find(file.parent_path().string()), std::string::npos)
          << "names no file: " << outcome.printed;
      EXPECT_NE(outcome.printed.find(std::strerror(error)), std::string::npos) << outcome.printed;
      EXPECT_EQ(files(), 2u) << "something was left behind";
    }
    EXPECT_GT(failed, 8);
  }
}

// Without links there is a moment in which only the previous state is there: never none.
TEST_F(StateCrash, WithoutLinksAStateIsLeftToo) {
  bool finished = false, only_previous = false;
  for (long n = 1; !finished; ++n) {
    const Outcome outcome =
        run({{"SLUICE_SHIM_EXIT_AT", std::to_string(n)}, {"SLUICE_SHIM_NO_LINKS", "1"}});
    finished = outcome.status == 0;
    const std::string now = state(), before = previous();
    if (now == "none") {
      only_previous = true;
      EXPECT_EQ(before, "A");
      StateFile next(file);
      EXPECT_TRUE(next.exists());
      EXPECT_THROW(next.load(), StateRefused);
    } else {
      EXPECT_TRUE((now == "A" && before == "Z") || (now == "B" && before == "A"))
          << now << " with " << before;
    }
  }
  EXPECT_TRUE(only_previous);
  EXPECT_EQ(state(), "B");
  for (long n = 1;; ++n) {
    const Outcome outcome = run({{"SLUICE_SHIM_FAIL_AT", std::to_string(n)},
                                 {"SLUICE_SHIM_ERRNO", std::to_string(ENOSPC)},
                                 {"SLUICE_SHIM_NO_LINKS", "1"}});
    if (static_cast<long>(outcome.log.size()) < n) break;
    const std::string now = state();
    EXPECT_TRUE(now == "A" || now == "B") << now << ", failed: " << outcome.log.back();
  }
}

}  // namespace
}  // namespace sluice
