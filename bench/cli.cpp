// The command line against what people would use instead: wall-clock time and peak memory of child
// processes that read one file in the page cache and write to /dev/null.
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "measure.hpp"
#include "options.hpp"
#include "sluice/base/error.hpp"
#include "sluice/base/quantity.hpp"

namespace sluice::bench {
namespace {

using Command = std::vector<std::string>;

struct Run {
  bool done = false;       // it was found and ended well
  double seconds = 0;      // by the clock on the wall
  double cpu_seconds = 0;  // of all its threads
  double peak_bytes = 0;
};

[[noreturn]] void become(const Command& command) {
  std::vector<char*> arguments;
  for (const std::string& argument : command)
    arguments.push_back(const_cast<char*>(argument.c_str()));
  arguments.push_back(nullptr);
  const int nowhere = open("/dev/null", O_WRONLY);
  if (nowhere >= 0) {
    dup2(nowhere, STDOUT_FILENO);
    dup2(nowhere, STDERR_FILENO);
  }
  // Sorting and comparing by bytes: the fastest that the others can do.
  setenv("LC_ALL", "C", 1);
  execvp(arguments[0], arguments.data());
  _exit(127);
}

Run run(const Command& command) {
  const auto started = std::chrono::steady_clock::now();
  const pid_t child = fork();
  if (child < 0) throw IoError("cannot start " + command[0], errno);
  if (child == 0) become(command);
  int status = 0;
  rusage usage{};
  while (wait4(child, &status, 0, &usage) < 0)
    if (errno != EINTR) throw IoError("cannot wait for " + command[0], errno);
  const std::chrono::duration<double> wall = std::chrono::steady_clock::now() - started;
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6;
  };
  return {WIFEXITED(status) && WEXITSTATUS(status) == 0, wall.count(),
          seconds(usage.ru_utime) + seconds(usage.ru_stime),
          static_cast<double>(usage.ru_maxrss) * 1024};
}

// The program of the same build, beside us.
std::string cli_program() {
  return std::filesystem::read_symlink("/proc/self/exe").parent_path().parent_path() / "apps/cli" /
         "sluice";
}

// A file that is removed when the measurement ends, however it ends.
class Input {
 public:
  explicit Input(std::uint64_t lines)
      : path_(std::filesystem::temp_directory_path() /
              fmt::format("sluice-bench-{}.txt", getpid())) {
    const Run made = run({cli_program(), "generate", "lines", "--records", std::to_string(lines),
                          "--duplicates", "0.3", "--length", "40", "--output", path_.string()});
    if (!made.done) throw Error("'sluice generate lines' failed: is the command line built?");
  }
  Input(const Input&) = delete;
  Input& operator=(const Input&) = delete;
  ~Input() {
    std::error_code ignored;
    std::filesystem::remove(path_, ignored);
  }
  std::string path() const { return path_.string(); }

 private:
  std::filesystem::path path_;
};

struct Subject {
  std::string name;
  Command command;
  Samples seconds{};
  Samples cpu_seconds{};
  double peak_bytes = 0;
  bool done = true;
};

}  // namespace

void run_cli(const Options& options, Report& report) {
  const std::uint64_t lines = options.quick ? 1'000'000 : 10'000'000;
  const Input input(lines);
  const std::string sluice = cli_program();
  std::vector<Subject> subjects = {
      {"sluice dedup", {sluice, "dedup", input.path()}},
      {"mawk '!seen[$0]++'", {"mawk", "!seen[$0]++", input.path()}},
      {"sluice dedup --window 1M", {sluice, "dedup", "--window", "1M", input.path()}},
      {"sluice dedup --filter exact", {sluice, "dedup", "--filter", "exact", input.path()}},
      {"sluice dedup --filter none", {sluice, "dedup", "--filter", "none", input.path()}},
      {"sort -u", {"sort", "-u", input.path()}},
      {"cat", {"cat", input.path()}},
  };
  for (int round = 0; round < 3; ++round) {
    for (Subject& subject : subjects) {
      if (!subject.done) continue;
      const Run result = run(subject.command);
      subject.done = result.done;
      subject.seconds.push_back(result.seconds);
      subject.cpu_seconds.push_back(result.cpu_seconds);
      subject.peak_bytes = std::max(subject.peak_bytes, result.peak_bytes);
    }
  }
  const Subject& base = subjects[1];
  report.table(fmt::format("Command line: {} lines of 40 bytes, 30 % duplicates, file in cache, to "
                           "/dev/null",
                           format_count(lines)),
               {"command", "× mawk's throughput", "mawk's CPU time / its", "memory / mawk's",
                "peak", "seconds"});
  for (const Subject& subject : subjects) {
    if (!subject.done) {
      report.row({subject.name, "not available"});
      continue;
    }
    const bool comparable = base.done;
    report.row(
        {subject.name,
         comparable ? fmt::format("{:.1f}", ratio(base.seconds, subject.seconds)) : "",
         comparable ? fmt::format("{:.1f}", ratio(base.cpu_seconds, subject.cpu_seconds)) : "",
         comparable ? fmt::format("{:.3f}", subject.peak_bytes / base.peak_bytes) : "",
         format_size(static_cast<std::uint64_t>(subject.peak_bytes)),
         fmt::format("{:.2f}", median(subject.seconds))});
  }
  // The bars are for the long file: on the short one a filter of the standard size is mostly empty.
  if (subjects[0].done && base.done && !options.quick) {
    report.at_least("sluice dedup / mawk: throughput", ratio(base.seconds, subjects[0].seconds),
                    10);
    report.at_most("sluice dedup / mawk: peak memory", subjects[0].peak_bytes / base.peak_bytes,
                   1.0 / 15);
  }
  if (subjects[0].done && subjects[2].done && !options.quick)
    report.at_least("sluice dedup --window 1M / without a window: throughput",
                    ratio(subjects[0].seconds, subjects[2].seconds), 0.6);
  report.flush();
}

}  // namespace sluice::bench
