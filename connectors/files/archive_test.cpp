#include "connectors/files/archive.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include "connectors/files/files.hpp"
#include "sluice/base/error.hpp"

namespace sluice {
namespace {

namespace fs = std::filesystem;
using namespace std::string_literals;

const std::string kXz = "\xfd\x37zXZ\0\0\x04\xe6\xd6"s;

TEST(Archive, IsToldByItsFirstBytes) {
  std::string tar(262, 'a');
  tar.replace(257, 5, "ustar");
  const std::vector<std::pair<std::string, std::string_view>> known = {
      {kXz, "xz"},
      {"BZh91AY&SY"s, "bzip2"},
      {"\x04\x22\x4d\x18"s, "lz4"},
      {"\x27\xb5\x2f\xfd\x04"s, "zstd 0.7"},
      {"PK\x03\x04\x14"s, "zip"},
      {"7z\xbc\xaf\x27\x1c"s, "7z"},
      {"PAR1\x15\x04"s, "Parquet"},
      {"Obj\x01\x04"s, "Avro"},
      {"SQLite format 3\0"s, "SQLite"},
      {"ORC\n\x0b\n\x03\0\0\0\x12\x04"s, "ORC"},
      {"ORC\x1d\0\0\n\x0c"s, "ORC"},
      {"]\0\0\x80\0\xff\xff\xff\xff\xff\xff\xff\xff\0"s, "lzma"},
      {"]\0\0\0\x04\x10\x27\0\0\0\0\0\0\0"s, "lzma"},
      {"\xff\x06\0\0sNaPpY\0"s, "snappy"},
      {"FEA1\0\0\0\0"s, "Feather"},
      {"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1\0"s, "OLE"},
      {"\xff\xfei\0d\0\n\0"s, "UTF-16"},
      {"\xfe\xff\0i\0d\0\n"s, "UTF-16"},
      {"\xff\xfe\x3a\x53\n\0"s, "UTF-16"},
      {tar, "tar"},
  };
  for (const auto& [bytes, name] : known) {
    const Archive* archive = archive_of(bytes);
    ASSERT_NE(archive, nullptr) << name;
    EXPECT_NE(archive->is.find(name), std::string_view::npos) << archive->is;
  }
}

TEST(Archive, TextIsNone) {
  for (const std::string& text : {""s,
                                  "a\n"s,
                                  "PAR1,5\n"s,
                                  "BZh9 is a name\n"s,
                                  "PK,1\n"s,
                                  "Obj,1\n"s,
                                  "7z\n"s,
                                  "SQLite\n"s,
                                  "\xEF\xBB\xBF{}"s,
                                  "\xff\xfe\n"s,
                                  "\x1f\x8b\n"s,
                                  "ORC\n"s,
                                  "ORC,1\r\na\tb\n"s,
                                  "ORC\0b\0"s,
                                  "ORCL\001102.5"s,
                                  "ORC,1\x1b[0m\n"s,
                                  "ORC\nid\x01\n"s,
                                  "FEA1\n"s,
                                  "]\0\0]\0"s,
                                  "\xff\xfe"s}) {
    EXPECT_EQ(archive_of(text), nullptr) << text;
  }
}

TEST(Archive, IsAwaitedWhileItMayBeOneAndNoRecordEnds) {
  EXPECT_TRUE(is_archive_start("\x1f"));
  EXPECT_TRUE(is_archive_start("\x28\xb5"));
  EXPECT_TRUE(is_archive_start("\x51\x2a\x4d"));
  EXPECT_TRUE(is_archive_start("P"));
  EXPECT_TRUE(is_archive_start("BZh9"));
  EXPECT_TRUE(is_archive_start("ORC"));
  EXPECT_FALSE(is_archive_start("ORCL"));
  EXPECT_TRUE(is_archive_start("\xfe"));
  EXPECT_TRUE(is_archive_start("\xff\xfe"));
  EXPECT_FALSE(is_archive_start("\xff\xfe\x41"));
  EXPECT_FALSE(is_archive_start("P\n"));
  EXPECT_FALSE(is_archive_start("P\0"s));
  EXPECT_FALSE(is_archive_start("Px"));
  EXPECT_FALSE(is_archive_start(kXz));
  EXPECT_FALSE(is_archive_start("\x1f\x8b\x08"));
}

// A pipe whose writer gives `pieces` one after the other, each when the one before was taken.
struct PipeOf {
  explicit PipeOf(const std::vector<std::string>& pieces) {
    path = fs::temp_directory_path() / ("sluice-archive-" + std::to_string(getpid()));
    fs::remove(path);
    EXPECT_EQ(mkfifo(path.c_str(), 0600), 0);
    writer = std::thread([this, pieces] {
      const Descriptor to(::open(path.c_str(), O_WRONLY), true);
      for (const std::string& piece : pieces) {
        EXPECT_EQ(::write(to.number(), piece.data(), piece.size()),
                  static_cast<ssize_t>(piece.size()));
        std::this_thread::sleep_for(std::chrono::milliseconds(5));
      }
    });
  }
  ~PipeOf() {
    writer.join();
    fs::remove(path);
  }
  fs::path path;
  std::thread writer;
};

std::string all_of(FileSource& source) {
  std::string all;
  std::vector<char> buffer(100);
  while (const std::size_t got = source.read(buffer)) all.append(buffer.data(), got);
  return all;
}

TEST(Archive, NoByteOfAPipeIsLost) {
  for (const std::vector<std::string>& pieces : std::vector<std::vector<std::string>>{
           {"P", "K", "x\n"}, {"P"}, {"a\nb\n"}, {"B", "Zh", "9", "1A", "\n"}}) {
    std::string want;
    for (const std::string& piece : pieces) want += piece;
    PipeOf pipe(pieces);
    FileSource source = FileSource::open(pipe.path, -1);
    EXPECT_EQ(all_of(source), want);
  }
}

TEST(Archive, APipeIsRefusedEvenByteByByte) {
  std::vector<std::string> bytes;
  for (const char byte : kXz) bytes.emplace_back(1, byte);
  for (const Archives archives : {Archives::refuse, Archives::refuse_or_insist, Archives::read}) {
    PipeOf pipe(bytes);
    FileSource source = FileSource::open(pipe.path, -1, "input", archives);
    if (archives == Archives::read) {
      EXPECT_EQ(all_of(source), kXz);
      continue;
    }
    std::vector<char> buffer(100);
    std::string why;
    try {
      source.read(buffer);
    } catch (const BadParameters& error) {
      why = error.what();
    }
    EXPECT_NE(why.find("xz"), std::string::npos) << why;
    EXPECT_EQ(why.find("`binary`") != std::string::npos, archives == Archives::refuse_or_insist);
    all_of(source);  // the writer must not be left with a closed pipe
  }
}

}  // namespace
}  // namespace sluice
