#include "contest.hpp"

#include <algorithm>

namespace sluice::bench {
namespace {

template <class Start>
void take_turns_at(std::vector<Contestant>& contestants, int rounds, Start start) {
  for (int round = 0; round < rounds; ++round) {
    for (Contestant& each : contestants) {
      if (!each.done || !each.again) continue;
      const Run result = start(each);
      each.done = result.done;
      each.seconds.push_back(result.seconds);
      each.cpu_seconds.push_back(result.cpu_seconds);
      each.peak_bytes = std::max(each.peak_bytes, result.peak_bytes);
    }
  }
}

}  // namespace

void race(std::vector<Contestant>& contestants, int rounds, const std::string& file) {
  take_turns_at(contestants, rounds, [&](const Contestant& each) {
    if (each.reads_input_only) return run(each.command, file);
    Command command = each.command;
    command.push_back(file);
    return run(command);
  });
}

void race_in_pipe(std::vector<Contestant>& contestants, int rounds, const std::string& file) {
  take_turns_at(contestants, rounds,
                [&](const Contestant& each) { return run_in_pipe(file, each.command); });
}

}  // namespace sluice::bench
