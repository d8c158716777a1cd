// Clicks, each user and ad once in ten minutes. Times come with the events; what is remembered
// survives in a file.
#include <sluice/sluice.hpp>

#include <chrono>
#include <cstdio>
#include <filesystem>
#include <string>

using namespace std::chrono_literals;

int main(int argc, char** argv) {
  const std::filesystem::path file = argc > 1 ? argv[1] : "clicks.sluice";
  const sluice::Seen::Time noon = std::chrono::sys_days{std::chrono::year{2026} / 1 / 1} + 12h;
  try {
    {
      sluice::Seen seen({.window = 10min, .rate = 5000, .fpr = 1e-6});
      std::printf("12:00 %s\n", seen.first("user-17:ad-3", noon) ? "counts" : "held back");
      std::printf("12:08 %s\n", seen.first("user-17:ad-3", noon + 8min) ? "counts" : "held back");
      seen.save(file);
    }
    sluice::Seen seen = sluice::Seen::load(file);
    std::printf("12:09 %s\n", seen.first("user-17:ad-3", noon + 9min) ? "counts" : "held back");
    std::printf("12:10 %s\n", seen.first("user-17:ad-3", noon + 10min) ? "counts" : "held back");
    for (const auto& path : {file, std::filesystem::path(file.string() + ".lock")})
      std::filesystem::remove(path);
  } catch (const sluice::Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
