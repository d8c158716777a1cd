#include "connectors/files/positions.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <random>
#include <sstream>
#include <string>

#include "connectors/files/files.hpp"
#include "sluice/base/error.hpp"

namespace sluice {
namespace {

namespace fs = std::filesystem;

const Hasher kHasher(HashKind::xxh3, Secret::from_seed(1));

Positions some_positions() {
  const FileEnd end{.offset = 100'000, .checked = FileEnd::kMostChecked, .digest = {1, 2}};
  RunPosition run{.inputs = {{"a", true, end, 9, 77, false, 100'000, 1'700'000'000'123'456'789},
                             {"-", false, {}, 3, 0, true},
                             {"b", true, {}, 0, 78}},
                  .current = 1,
                  .begun = true,
                  .outputs = {1, RunPosition::kNoFile, 0},
                  .forgot = "gone",
                  .shape = "--invert",
                  .others = {{"c", true, end, 2, 79}}};
  return {.outputs = {{"/there/late", end}, {"", {.offset = 5, .checked = 0, .digest = {}}}},
          .run = run};
}

TEST(Positions, AreTheSameAfterARoundTrip) {
  Positions positions = some_positions();
  EXPECT_EQ(positions_in(sections_of(positions)), positions);
  EXPECT_TRUE(positions.unfinished());
  EXPECT_TRUE(sections_of(positions).back().must_understand);
  positions.run->current = 3;
  EXPECT_EQ(positions_in(sections_of(positions)), positions);
  EXPECT_FALSE(positions.unfinished());
  EXPECT_FALSE(sections_of(positions).back().must_understand);
  EXPECT_TRUE(sections_of({}).empty());
}

TEST(Positions, FieldsThatNoRunHasAreRefused) {
  const auto refused = [](auto change) {
    Positions positions = some_positions();
    change(positions.run->inputs);
    EXPECT_THROW(positions_in(sections_of(positions)), CorruptSnapshot);
  };
  refused([](auto& inputs) { inputs[0].open_bytes = 100'001; });
  refused([](auto& inputs) { inputs[1].open_bytes = 1; });
  refused([](auto& inputs) { inputs[1].modified_ns = 1; });
  refused([](auto& inputs) { inputs[0].drained = true; });
}

TEST(Positions, HeadersOfOutputsAreKept) {
  Positions positions = some_positions();
  ASSERT_EQ(sections_of(positions).size(), 2u) << "none is known";
  positions.outputs[0].header = WrittenHeader::of("id,n", kHasher);
  EXPECT_EQ(positions_in(sections_of(positions)), positions);
  positions.outputs[1].header = WrittenHeader::nothing();
  const Sections sections = sections_of(positions);
  EXPECT_EQ(positions_in(sections), positions);
  ASSERT_EQ(sections.size(), 3u);
  EXPECT_FALSE(sections[1].must_understand);
  // A state of a version that does not know them.
  EXPECT_EQ(positions_in({sections[0], sections[2]}), some_positions());
  // A long one is compared whole, and shown in part. So is one with zero bytes.
  const std::string text(5000, 'x');
  const WrittenHeader header = WrittenHeader::of(text, kHasher);
  EXPECT_LT(header.shown.size(), text.size());
  EXPECT_NE(header, WrittenHeader::of(text + "y", kHasher));
  positions.outputs[0].header = WrittenHeader::of(std::string("a\0b", 3), kHasher);
  EXPECT_EQ(positions_in(sections_of(positions)), positions);
}

// Any byte may be anything: what is accepted has one form, and the rest is refused.
TEST(Positions, HostileBytesAreRefusedOrSound) {
  Positions positions = some_positions();
  positions.outputs[0].header = WrittenHeader::of("id,n", kHasher);
  const Sections whole = sections_of(positions);
  std::mt19937_64 random(1);
  std::size_t refused = 0;
  for (std::size_t trial = 0; trial < 20'000; ++trial) {
    Sections changed = whole;
    std::vector<std::byte>& bytes = changed[trial % whole.size()].bytes;
    if (trial % 5 == 0) bytes.resize(random() % bytes.size());
    if (!bytes.empty()) bytes[random() % bytes.size()] = static_cast<std::byte>(random());
    try {
      EXPECT_EQ(sections_of(positions_in(changed)), changed);
    } catch (const CorruptSnapshot&) {
      ++refused;
    }
  }
  EXPECT_GT(refused, 1000u);
}

TEST(Positions, RememberTheLastOutputs) {
  Positions positions;
  for (std::size_t i = 0; i < Positions::kMostOutputs + 2; ++i)
    positions.set_output({"/" + std::to_string(i), {}});
  EXPECT_EQ(positions.outputs.size(), Positions::kMostOutputs);
  EXPECT_EQ(positions.outputs.front().path, "/2");
  positions.set_output({"/2", {.offset = 9, .checked = 0, .digest = {}}});
  EXPECT_EQ(positions.outputs.size(), Positions::kMostOutputs);
  EXPECT_EQ(positions.outputs.front().path, "/3");
  EXPECT_EQ(positions.outputs.back().end.offset, 9u);
}

class FilePositions : public testing::Test {
 protected:
  FilePositions() {
    std::string name = (fs::temp_directory_path() / "sluice_positions_XXXXXX").string();
    directory = mkdtemp(name.data());
    file = (directory / "file").string();
  }
  ~FilePositions() override { fs::remove_all(directory); }

  void write(const std::string& text) const { std::ofstream(file) << text; }
  std::string contents() const {
    std::ifstream in(file);
    return (std::ostringstream() << in.rdbuf()).str();
  }

  fs::path directory;
  std::string file;
};

TEST_F(FilePositions, AFileIsRecognizedByTheBytesBeforeTheOffset) {
  std::string text(200'000, 'x');
  write(text);
  const FileSink sink = FileSink::open(file);  // for writing only
  const FileEnd end = FileEnd::at(sink.descriptor(), 150'000, kHasher);
  EXPECT_EQ(end.checked, FileEnd::kMostChecked);
  const auto matches = [&] { return end.matches(sink.descriptor(), kHasher); };
  EXPECT_TRUE(matches());
  text[150'000] = 'y';
  write(text);
  EXPECT_TRUE(matches()) << "what follows does not matter";
  text[149'999] = 'y';
  write(text);
  EXPECT_FALSE(matches());
  text[149'999] = 'x';
  text[150'000 - FileEnd::kMostChecked] = 'y';
  write(text);
  EXPECT_FALSE(matches());
  write(std::string(149'999, 'x'));
  EXPECT_FALSE(matches()) << "shorter";
  write(std::string(150'000, 'x'));
  EXPECT_TRUE(matches());
  EXPECT_FALSE(end.matches(sink.descriptor(), Hasher(HashKind::xxh3, Secret::from_seed(2))));
}

TEST_F(FilePositions, ASinkContinuesAFileAndCutsItAtTheFirstWrite) {
  write("kept torn");
  {
    FileSink sink = FileSink::open(file);
    sink.continue_at(5);
    EXPECT_EQ(sink.offset(), 5u);
    EXPECT_EQ(sink.size(), 9u);
  }
  EXPECT_EQ(contents(), "kept torn") << "a run that is refused changes nothing";
  FileSink sink = FileSink::open(file);
  sink.continue_at(5);
  sink.write("on");
  EXPECT_EQ(contents(), "kept on");
  EXPECT_EQ(sink.offset(), 7u);
  sink.sync();
  EXPECT_EQ(sink.path(), fs::canonical(file).string());
}

}  // namespace
}  // namespace sluice
