#include "connectors/files/unpacked_input.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "connectors/files/files.hpp"
#include "tests/support/packed.hpp"

namespace sluice {
namespace {

namespace fs = std::filesystem;
using testing_support::packed;
using testing_support::some_text;

constexpr Packing kBoth[] = {Packing::gzip, Packing::zstd};
constexpr bool kThreads[] = {false, true};

struct Pipe {
  Pipe() {
    int ends[2];
    EXPECT_EQ(::pipe2(ends, O_CLOEXEC), 0);
    from = {ends[0], true};
    to = {ends[1], true};
  }
  void send(std::string_view bytes) const {
    EXPECT_EQ(::write(to.number(), bytes.data(), bytes.size()), static_cast<ssize_t>(bytes.size()));
  }
  Descriptor from{-1, false};
  Descriptor to{-1, false};
};

UnpackedInput unpacked_from(const Pipe& pipe, Packing packing, bool own_thread, int wake = -1) {
  return {{.descriptor = pipe.from.number(), .wake = wake, .name = "pipe"},
          packing,
          {.own_thread = own_thread}};
}

std::string rest_of(UnpackedInput& input, std::size_t at_once = 1000) {
  std::string all;
  std::vector<char> buffer(at_once);
  while (const std::size_t got = input.read(buffer)) all.append(buffer.data(), got);
  return all;
}

class UnpackedFile : public testing::Test {
 protected:
  UnpackedFile() {
    std::string name = (fs::temp_directory_path() / "sluice_unpacked_XXXXXX").string();
    directory = mkdtemp(name.data());
    file = (directory / "file").string();
  }
  ~UnpackedFile() override { fs::remove_all(directory); }
  void write(const std::string& bytes) const { std::ofstream(file) << bytes; }
  FileSource open(bool own_thread, Archives archives = Archives::refuse) const {
    return FileSource::open(file, -1, "input", archives, {.own_thread = own_thread});
  }
  static std::string rest_of(FileSource& source) {
    std::string all;
    std::vector<char> buffer(10'000);
    while (const std::size_t got = source.read(buffer)) all.append(buffer.data(), got);
    return all;
  }
  std::string failure(bool own_thread, std::string& read) const {
    FileSource source = open(own_thread);
    std::vector<char> buffer(10'000);
    try {
      while (const std::size_t got = source.read(buffer)) read.append(buffer.data(), got);
    } catch (const BadPacked& error) {
      return error.what();
    }
    return "";
  }

  fs::path directory;
  std::string file;
};

TEST_F(UnpackedFile, ContentsAreReadAndSoughtAndPeekedAt) {
  const std::string text = some_text(3'000'000);
  for (const Packing packing : kBoth)
    for (const bool own_thread : kThreads) {
      write(packed(packing, text.substr(0, 1'000'000)) + packed(packing, text.substr(1'000'000)));
      FileSource source = open(own_thread);
      EXPECT_EQ(source.packing(), packing);
      EXPECT_EQ(rest_of(source), text);
      EXPECT_EQ(rest_of(source), "");
      EXPECT_EQ(source.packed_end(text.size()), fs::file_size(file));
      for (const std::uint64_t at : {0ul, 1ul, 999'999ul, 1'000'000ul, 2'999'999ul, 3'000'000ul}) {
        source.seek(at);
        EXPECT_EQ(source.peek(at, 100), text.substr(at, 100));
        EXPECT_TRUE(rest_of(source) == text.substr(at)) << at;
      }
      EXPECT_THROW(source.seek(3'000'001), BadPacked);
    }
}

// What a state records of a file that is not read to its end is never its end.
TEST_F(UnpackedFile, ItsEndIsReachedOnlyWithTheLastByte) {
  const std::string text = some_text(1000);
  write(packed(Packing::gzip, text));
  for (const bool own_thread : kThreads) {
    FileSource source = open(own_thread);
    EXPECT_EQ(source.packed_end(0), 0u);
    EXPECT_EQ(rest_of(source), text);
    EXPECT_EQ(source.packed_end(999), fs::file_size(file) - 1);
    EXPECT_EQ(source.packed_end(1000), fs::file_size(file));
  }
}

TEST_F(UnpackedFile, RawBytesAreReadIfAskedFor) {
  const std::string bytes = packed(Packing::gzip, "text\n");
  write(bytes);
  FileSource source = open(true, Archives::read);
  EXPECT_EQ(source.packing(), Packing::none);
  EXPECT_EQ(rest_of(source), bytes);
}

TEST_F(UnpackedFile, MessagesNameTheMemberAndTheOffset) {
  const std::string text = some_text(10'000);
  const std::string one = packed(Packing::gzip, text);
  for (const bool own_thread : kThreads) {
    const auto says = [&](const std::string& bytes, const std::string& before,
                          std::initializer_list<std::string> words) {
      write(bytes);
      std::string read;
      const std::string message = failure(own_thread, read);
      EXPECT_EQ(read.substr(0, before.size()), before);
      for (const std::string& word : words)
        EXPECT_NE(message.find(word), std::string::npos) << word << ": " << message;
    };
    const auto number = [](std::size_t value) {
      std::string digits = std::to_string(value);
      if (digits.size() > 3) digits.insert(digits.size() - 3, ",");
      return digits;
    };
    says(one + one.substr(0, 1000), text,
         {file, "cut off", "member 2", "byte " + number(one.size() + 1000)});
    std::string wrong = one + one;
    wrong[wrong.size() - 8] ^= 1;  // the checksum
    says(wrong, text + text, {"damaged", "member 2", "incorrect data check"});
    says(one + "rest", text, {"after member 1", "byte " + number(one.size()), "zcat '"});
    says(testing_support::zstd_with_window("text", 28), "",
         {"window of 256 MiB", "128 MiB", "frame 1", "zstd -dc -M2048MB"});
    says(packed(Packing::zstd, text) + "rest", text, {"after frame 1", "zstdcat '"});
  }
}

TEST(UnpackedInput, WhatAPipeBroughtIsThereWhileItIsIdle) {
  for (const Packing packing : kBoth)
    for (const bool own_thread : kThreads) {
      const Pipe pipe;
      UnpackedInput input = unpacked_from(pipe, packing, own_thread);
      EXPECT_TRUE(input.would_wait());
      EXPECT_FALSE(input.wait(1));
      const auto packer = Packer::make(packing);
      const auto send = [&](std::string_view made) { pipe.send(made); };
      std::vector<char> buffer(1000);
      for (const std::string& line :
           {std::string("one\n"), some_text(5000), std::string("two\n")}) {
        packer->pack(line, Packer::Until::flushed, send);
        std::string read;
        while (read.size() < line.size()) {
          while (!input.wait(1000)) {
          }
          EXPECT_FALSE(input.would_wait());
          const std::size_t got = input.read(buffer);
          ASSERT_GT(got, 0u);
          read.append(buffer.data(), got);
        }
        EXPECT_EQ(read, line);
        EXPECT_TRUE(input.would_wait());
      }
      // The end of a member and the first bytes of the next one make nothing.
      packer->pack("", Packer::Until::ended, send);
      pipe.send(packed(packing, "three\n").substr(0, 3));
      EXPECT_TRUE(input.would_wait());
      EXPECT_FALSE(input.wait(1));
    }
}

TEST(UnpackedInput, EndsWhenItIsToldToOrDestroyedWhileItWaits) {
  for (const bool own_thread : kThreads) {
    const Pipe pipe, wake;
    UnpackedInput input = unpacked_from(pipe, Packing::zstd, own_thread, wake.from.number());
    pipe.send(packed(Packing::zstd, "text\n").substr(0, 8));
    EXPECT_TRUE(input.would_wait());
    wake.send("x");
    EXPECT_EQ(rest_of(input), "");
    EXPECT_FALSE(input.would_wait());
  }
  for (const Packing packing : kBoth) {
    const Pipe pipe;
    UnpackedInput idle = unpacked_from(pipe, packing, true);
    EXPECT_TRUE(idle.would_wait());
    const Pipe full;
    UnpackedInput unread = unpacked_from(full, packing, true);
    full.send(packed(packing, std::string(10'000'000, 'x')));
    std::vector<char> buffer(10);
    EXPECT_EQ(unread.read(buffer), 10u);
  }
}

// A bomb: a thousand times its size. Nothing but the buffers is held.
TEST(UnpackedInput, ABombIsReadPieceByPiece) {
  const std::string text(50'000'000, '\n');
  for (const Packing packing : kBoth) {
    const std::string bomb = packed(packing, text);
    EXPECT_LT(bomb.size(), text.size() / 900);
    const Pipe pipe;
    std::thread writer([&] { pipe.send(bomb); });
    UnpackedInput input = unpacked_from(pipe, packing, true);
    std::vector<char> buffer(1 << 16);
    std::size_t all = 0;
    while (all < text.size()) all += input.read(buffer);
    writer.join();
    EXPECT_EQ(all, text.size());
    EXPECT_TRUE(input.would_wait());
  }
}

}  // namespace
}  // namespace sluice
