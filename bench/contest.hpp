// Commands that take turns over one file.
#pragma once

#include <string>
#include <vector>

#include "measure.hpp"
#include "process.hpp"

namespace sluice::bench {

struct Contestant {
  std::string name;
  Command command;
  bool reads_input_only = false;  // takes no file's name
  Samples seconds = {};
  Samples cpu_seconds = {};
  double peak_bytes = 0;
  bool done = true;   // found, and ended without error every time
  bool again = true;  // may run once more
};

// Runs each once per round, with the file as last argument, or as standard input; a command that
// failed is not run again.
void race(std::vector<Contestant>& contestants, int rounds, const std::string& file);
// The same, each in a pipe between two `cat` processes.
void race_in_pipe(std::vector<Contestant>& contestants, int rounds, const std::string& file);

// How many times as fast `one` is as `other`. Both must be done.
inline double times_as_fast(const Contestant& one, const Contestant& other) {
  return ratio(other.seconds, one.seconds);
}

}  // namespace sluice::bench
