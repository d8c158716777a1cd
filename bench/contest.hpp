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
  bool done = true;   // found, and ended well every time
  bool again = true;  // may be asked once more
};

// Each once per round, with the file as last argument, or as standard input; one that failed is not
// asked again.
void race(std::vector<Contestant>& contestants, int rounds, const std::string& file);
// The same, each between two cats.
void race_in_pipe(std::vector<Contestant>& contestants, int rounds, const std::string& file);

// How many times as fast `one` is as `other`. Only of those that are done.
inline double times_as_fast(const Contestant& one, const Contestant& other) {
  return ratio(other.seconds, one.seconds);
}

}  // namespace sluice::bench
