#include "process.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <fstream>

#include "sluice/base/error.hpp"

namespace sluice::bench {
namespace {

[[noreturn]] void become(const Command& command, int in, int out) {
  std::vector<char*> arguments;
  for (const std::string& argument : command)
    arguments.push_back(const_cast<char*>(argument.c_str()));
  arguments.push_back(nullptr);
  const int nowhere = open("/dev/null", O_RDWR | O_CLOEXEC);
  dup2(in >= 0 ? in : nowhere, STDIN_FILENO);
  dup2(out >= 0 ? out : nowhere, STDOUT_FILENO);
  dup2(nowhere, STDERR_FILENO);
  signal(SIGPIPE, SIG_DFL);
  setenv("LC_ALL", "C", 1);  // the fastest that the others can do
  execvp(arguments[0], arguments.data());
  _exit(127);
}

pid_t start(const Command& command, int in, int out) {
  const pid_t child = fork();
  if (child < 0) throw IoError("cannot start " + command[0], errno);
  if (child == 0) become(command, in, out);
  return child;
}

struct Ended {
  bool well;
  rusage usage;
};

Ended wait_for(pid_t child) {
  int status = 0;
  rusage usage{};
  while (wait4(child, &status, 0, &usage) < 0)
    if (errno != EINTR) throw IoError("cannot wait for a process", errno);
  return {WIFEXITED(status) && WEXITSTATUS(status) == 0, usage};
}

Run result(const Ended& ended, bool done, std::chrono::steady_clock::time_point started) {
  const std::chrono::duration<double> wall = std::chrono::steady_clock::now() - started;
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6;
  };
  return {done, wall.count(), seconds(ended.usage.ru_utime) + seconds(ended.usage.ru_stime),
          static_cast<double>(ended.usage.ru_maxrss) * 1024};
}

// Closed on exec, so that no child holds an end that is not its own.
struct Pipe {
  Pipe() {
    if (pipe2(ends, O_CLOEXEC) != 0) throw IoError("cannot make a pipe", errno);
  }
  int ends[2];
};

// False if nobody reads it any more.
bool write_all(int to, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = write(to, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return false;
    bytes.remove_prefix(static_cast<std::size_t>(written));
  }
  return true;
}

double resident_bytes(pid_t process) {
  std::ifstream file(fmt::format("/proc/{}/statm", process));
  double all = 0, resident = 0;
  file >> all >> resident;
  return resident * static_cast<double>(sysconf(_SC_PAGESIZE));
}

double file_bytes(const std::filesystem::path& folder) {
  double bytes = 0;
  if (folder.empty()) return bytes;
  for (const auto& file : std::filesystem::directory_iterator(folder)) {
    std::error_code removed;
    const auto size = file.file_size(removed);
    if (!removed) bytes += static_cast<double>(size);
  }
  return bytes;
}

std::filesystem::path build_directory() {
  return std::filesystem::read_symlink("/proc/self/exe").parent_path().parent_path();
}

}  // namespace

Run run(const Command& command, const std::string& input) {
  const int in = open(input.c_str(), O_RDONLY | O_CLOEXEC);
  if (in < 0) throw IoError("cannot open " + input, errno);
  const auto started = std::chrono::steady_clock::now();
  const Ended ended = wait_for(start(command, in, -1));
  close(in);
  return result(ended, ended.well, started);
}

Run run_in_pipe(const std::string& file, const Command& command) {
  const Pipe before, after;
  const auto started = std::chrono::steady_clock::now();
  const pid_t first = start({"cat", file}, -1, before.ends[1]);
  const pid_t middle = start(command, before.ends[0], after.ends[1]);
  const pid_t last = start({"cat"}, after.ends[0], -1);
  for (const int end : {before.ends[0], before.ends[1], after.ends[0], after.ends[1]}) close(end);
  const bool first_well = wait_for(first).well;
  const Ended ended = wait_for(middle);
  const bool last_well = wait_for(last).well;
  return result(ended, first_well && ended.well && last_well, started);
}

std::vector<double> bytes_while_reading(const Command& command, std::size_t parts,
                                        const std::function<std::string_view()>& next_part,
                                        const std::filesystem::path& folder) {
  // A command that ends early is seen by what write returns.
  signal(SIGPIPE, SIG_IGN);
  const Pipe pipe;
  const pid_t child = start(command, pipe.ends[0], -1);
  close(pipe.ends[0]);
  std::vector<double> bytes;
  while (bytes.size() < parts && write_all(pipe.ends[1], next_part()))
    bytes.push_back(resident_bytes(child) + file_bytes(folder));
  close(pipe.ends[1]);
  if (!wait_for(child).well) bytes.clear();
  return bytes;
}

std::string cli_program() {
  return build_directory() / "apps/cli" / "sluice";
}

std::string bench_program() {
  return build_directory() / "bench" / "sluice_bench";
}

TemporaryFile::TemporaryFile(const std::string& name)
    : path_(std::filesystem::temp_directory_path() /
            fmt::format("sluice-bench-{}-{}", getpid(), name)) {}

TemporaryFile::~TemporaryFile() {
  std::error_code ignored;
  std::filesystem::remove(path_, ignored);
}

void generate(const TemporaryFile& file, Command arguments) {
  Command command = {cli_program(), "generate"};
  command.insert(command.end(), arguments.begin(), arguments.end());
  command.insert(command.end(), {"--output", file.path()});
  if (!run(command).done)
    throw Error("'sluice generate' failed: is the command line built, and room for its output?");
}

}  // namespace sluice::bench
