#include "connectors/files/stored_file.hpp"

#include <gtest/gtest.h>

#include <array>
#include <filesystem>
#include <fstream>

#include "connectors/files/state_file.hpp"

namespace sluice {
namespace {

TEST(StoredFile, ReadsAtAnyPlaceAndNotBeyond) {
  const std::string path = testing::TempDir() + "stored_file_test";
  std::ofstream(path) << "0123456789";
  const StoredFile file(path);
  EXPECT_EQ(file.size(), 10u);
  EXPECT_EQ(file.name(), path);
  std::array<std::byte, 3> three;
  file.read(6, three);
  EXPECT_EQ(three[0], std::byte{'6'});
  EXPECT_EQ(three[2], std::byte{'8'});
  EXPECT_THROW(file.read(8, three), CorruptSnapshot);
  std::filesystem::remove(path);
  EXPECT_THROW(StoredFile{path}, StateRefused);
  EXPECT_THROW(StoredFile{testing::TempDir()}, StateRefused);
}

// A file that is not a state has no previous one, and a writer that fails leaves the file
// unchanged.
TEST(StoredFile, ReplacedWithoutAPreviousOne) {
  const std::string path = testing::TempDir() + "replaced_file_test";
  const auto text = [](const char* written) {
    return [written](Encoder& to) { to.bytes(std::as_bytes(std::span(written, 3))); };
  };
  StateFile(path).replace(text("one"));
  StateFile(path).replace(text("two"));
  EXPECT_FALSE(std::filesystem::exists(path + ".previous"));
  EXPECT_THROW(StateFile(path).replace([](Encoder& to) {
    to.u8(1);
    throw CorruptSnapshot("no");
  }),
               CorruptSnapshot);
  std::array<std::byte, 3> three;
  StoredFile(path).read(0, three);
  EXPECT_EQ(three[1], std::byte{'w'});
  EXPECT_FALSE(std::filesystem::exists(path + ".tmp"));
  std::filesystem::remove(path);
}

}  // namespace
}  // namespace sluice
