// Times other programs: alone, or in a pipe between two `cat` processes; or watches what they hold while
// they read.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace sluice::bench {

using Command = std::vector<std::string>;

struct Run {
  bool done = false;       // all were found and ended without error
  double seconds = 0;      // wall-clock time
  double cpu_seconds = 0;  // of all threads of the measured command
  double peak_bytes = 0;   // the same
};

// Runs it with standard output and errors to /dev/null, in the C locale; standard input is the
// file, if there is one.
Run run(const Command& command, const std::string& input = "/dev/null");
// cat FILE | command | cat >/dev/null; CPU time and memory are the command's.
Run run_in_pipe(const std::string& file, const Command& command);

// Writes so many parts to the command's standard input; returns the bytes that it holds after each: in
// memory, and in the files of `folder`, if there is one. Empty if it is not found or fails.
std::vector<double> bytes_while_reading(const Command& command, std::size_t parts,
                                        const std::function<std::string_view()>& next_part,
                                        const std::filesystem::path& folder = {});

// The command line and the benchmark of this build.
std::string cli_program();
std::string bench_program();

// A file that is removed when the measurement ends, however it ends.
class TemporaryFile {
 public:
  explicit TemporaryFile(const std::string& name);
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;
  ~TemporaryFile();
  std::string path() const { return path_.string(); }
  std::uint64_t bytes() const { return std::filesystem::file_size(path_); }

 private:
  std::filesystem::path path_;
};

// `sluice generate ARG...` into a file. Throws Error when it fails.
void generate(const TemporaryFile& file, Command arguments);

}  // namespace sluice::bench
