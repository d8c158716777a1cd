#include "sluice/base/machine_memory.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <limits>

namespace sluice {
namespace {

constexpr std::uint64_t kNone = std::numeric_limits<std::uint64_t>::max();

// A file system with what the kernel would show of control groups.
class Groups : public ::testing::Test {
 protected:
  void SetUp() override {
    root_ =
        std::filesystem::path(::testing::TempDir()) /
        ("groups-" + std::string(::testing::UnitTest::GetInstance()->current_test_info()->name()));
    std::filesystem::remove_all(root_);
  }
  void TearDown() override { std::filesystem::remove_all(root_); }
  void write(const std::string& path, const std::string& text) {
    std::filesystem::create_directories((root_ / path).parent_path());
    std::ofstream(root_ / path) << text;
  }
  std::uint64_t limit() const { return group_memory_limit(root_.string()); }
  std::filesystem::path root_;
};

TEST_F(Groups, WithoutAnyThereIsNoLimit) {
  EXPECT_EQ(limit(), kNone);
  write("proc/self/cgroup", "no such line\n:\n0::/\n");
  EXPECT_EQ(limit(), kNone);
}

TEST_F(Groups, OfVersion2TakeTheLeastOnTheWayUp) {
  write("proc/self/cgroup", "0::/a/b/c\n");
  write("sys/fs/cgroup/a/b/c/memory.max", "max\n");
  EXPECT_EQ(limit(), kNone);
  write("sys/fs/cgroup/a/b/memory.max", "300000\n");
  write("sys/fs/cgroup/a/memory.max", "500000\n");
  EXPECT_EQ(limit(), 300'000u);
  write("sys/fs/cgroup/memory.max", "200000\n");  // as within a container
  EXPECT_EQ(limit(), 200'000u);
}

TEST_F(Groups, OfVersion1AreThoseOfMemory) {
  write("proc/self/cgroup", "9:name=systemd:/\n5:cpu,memory:/docker/x\n3:memory2:/other\n0::/\n");
  write("sys/fs/cgroup/memory/docker/x/memory.limit_in_bytes", "700000\n");
  write("sys/fs/cgroup/memory/other/memory.limit_in_bytes", "1\n");
  EXPECT_EQ(limit(), 700'000u);
  // The path is that of outside, and what is mounted is our group.
  std::filesystem::remove_all(root_ / "sys/fs/cgroup/memory/docker");
  write("sys/fs/cgroup/memory/memory.limit_in_bytes", "600000\n");
  EXPECT_EQ(limit(), 600'000u);
}

TEST_F(Groups, WhatIsNoNumberIsNoLimit) {
  write("proc/self/cgroup", "0::/a\n");
  for (const char* text : {"", "12x\n", "-1\n", "99999999999999999999999\n"}) {
    write("sys/fs/cgroup/a/memory.max", text);
    EXPECT_EQ(limit(), kNone) << text;
  }
}

TEST(MachineMemory, IsSome) {
  EXPECT_GT(machine_memory(), 64u << 20);
  EXPECT_LT(machine_memory(), std::uint64_t{1} << 50);
}

}  // namespace
}  // namespace sluice
