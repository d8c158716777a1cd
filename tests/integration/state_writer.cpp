// Saves one named state: `state_writer FILE NAME`. Run by state_crash_test under the syscall shim.
#include "tests/integration/state_writer.hpp"

#include <cstdio>

int main(int count, char** arguments) {
  if (count != 3) return 2;
  try {
    sluice::StateFile state(arguments[1]);
    sluice::testing_support::save_named(state, arguments[2]);
  } catch (const sluice::IoError& error) {
    std::puts(error.what());
    return 1;
  }
  return 0;
}
