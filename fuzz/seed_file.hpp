// What the programs that write seeds have in common.
#pragma once

#include <cstddef>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <span>

namespace sluice::fuzzing {

inline void write_seed_file(const std::filesystem::path& path, std::span<const std::byte> bytes) {
  std::ofstream(path, std::ios::binary)
      .write(reinterpret_cast<const char*>(bytes.data()),
             static_cast<std::streamsize>(bytes.size()));
}

// main() of such a program: `write_all` gets the folder that was named.
template <class WriteAll>
int write_seeds(int count, char** arguments, WriteAll write_all) {
  if (count != 2) {
    std::fprintf(stderr, "usage: %s DIRECTORY\n", arguments[0]);
    return 2;
  }
  std::filesystem::create_directories(arguments[1]);
  write_all(std::filesystem::path(arguments[1]));
  return 0;
}

}  // namespace sluice::fuzzing
