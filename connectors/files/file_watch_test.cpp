#include "connectors/files/file_watch.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <functional>
#include <string>

namespace sluice {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

class FileWatchTest : public testing::Test {
 protected:
  FileWatchTest() : folder_(testing::TempDir() + "file_watch." + std::to_string(getpid())) {
    fs::create_directory(folder_);
  }
  ~FileWatchTest() override { fs::remove_all(folder_); }

  std::string path(const char* name) const { return (folder_ / name).string(); }
  void write(const char* name) const { std::ofstream(path(name), std::ios::app) << "x"; }

  // A wait that nothing ends takes a second: these must take less than half of that on average.
  static void expect_prompt(FileWatch& watch, const std::function<void()>& change) {
    constexpr int kRounds = 8;
    const auto start = Clock::now();
    for (int i = 0; i < kRounds; ++i) {
      change();
      watch.wait();
    }
    EXPECT_LT(Clock::now() - start, std::chrono::milliseconds(kRounds * 500));
  }

  fs::path folder_;
};

TEST_F(FileWatchTest, EndsAWaitWhenAFileChanges) {
  FileWatch watch(-1);
  watch.add(path("log"));
  expect_prompt(watch, [&] { write("log"); });
  expect_prompt(watch, [&] {
    fs::rename(path("log"), path("log.1"));
    write("log");
  });
  expect_prompt(watch, [&] {
    fs::resize_file(path("log"), 0);
    write("log");
  });
}

TEST_F(FileWatchTest, EndsAWaitWhenItIsWoken) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  FileWatch watch(ends[0]);
  watch.add(path("log"));
  ASSERT_EQ(::write(ends[1], "x", 1), 1);
  expect_prompt(watch, [] {});
  close(ends[0]);
  close(ends[1]);
}

TEST_F(FileWatchTest, AFolderThatIsNotThereIsNoError) {
  FileWatch watch(-1);
  watch.add(path("none/log"));
  watch.wait();
}

}  // namespace
}  // namespace sluice
