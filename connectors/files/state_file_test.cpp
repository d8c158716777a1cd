#include "connectors/files/state_file.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>
#include <functional>
#include <iterator>
#include <sstream>
#include <string>

#include "sluice/filters/catalogue.hpp"

namespace sluice {
namespace {

namespace fs = std::filesystem;

class StateFileTest : public testing::Test {
 protected:
  StateFileTest() {
    std::string name = (fs::temp_directory_path() / "sluice_state_XXXXXX").string();
    directory = mkdtemp(name.data());
    file = directory / "state";
  }
  ~StateFileTest() override { fs::remove_all(directory); }

  fs::path directory, file;
};

// A state that knows its name.
void save(StateFile& state, const std::string& name, const char* filter = "bloom,bytes=4096") {
  const Hasher hasher(HashKind::xxh3, Secret::from_seed(3));
  AnyFilter made = make_filter(filter, {});
  const Digest digest = hasher.digest(name);
  made.insert({&digest, 1});
  state.save(hasher, made, {{"name", name}});
}

std::string name_in(const Snapshot& snapshot) {
  return snapshot.labels.at(0).second;
}

std::string contents(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  return (std::ostringstream() << in.rdbuf()).str();
}

void write(const fs::path& path, const std::string& text) {
  std::ofstream(path, std::ios::binary) << text;
}

std::size_t files_in(const fs::path& directory) {
  return static_cast<std::size_t>(
      std::distance(fs::directory_iterator(directory), fs::directory_iterator()));
}

template <class E>
std::string message(const std::function<void()>& act) {
  try {
    act();
  } catch (const E& error) {
    return error.what();
  }
  ADD_FAILURE() << "no error of that type was thrown";
  return "";
}

void expect_words(const std::string& text, std::initializer_list<std::string> words) {
  for (const std::string& word : words)
    EXPECT_NE(text.find(word), std::string::npos) << "'" << word << "' is not in: " << text;
}

TEST_F(StateFileTest, SavesLoadsAndKeepsThePreviousOne) {
  {
    StateFile state(file);
    EXPECT_FALSE(state.exists());
    save(state, "one");
    EXPECT_TRUE(state.exists());
    EXPECT_FALSE(fs::exists(state.previous()));
    save(state, "two");
    save(state, "three");
    EXPECT_EQ(name_in(state.load()), "three");
    EXPECT_EQ(name_in(load_snapshot_file(state.previous())), "two");
  }
  EXPECT_EQ(files_in(directory), 2u) << "only the state and its previous one stay";
  struct stat found;
  ASSERT_EQ(stat(file.c_str(), &found), 0);
  EXPECT_EQ(found.st_mode & 0777, 0600u) << "it holds a secret";
}

TEST_F(StateFileTest, HoldsAFilterOfManyChunks) {
  StateFile state(file);
  save(state, "large", "bloom,bytes=5MiB");
  const Snapshot loaded = state.load();
  EXPECT_EQ(loaded.filter.stats().keys, 1u);
  EXPECT_GT(fs::file_size(file), std::uintmax_t{5} << 20);
}

TEST_F(StateFileTest, RefusesADamagedFileAndNamesThePreviousOne) {
  StateFile state(file);
  save(state, "one");
  std::string bytes = contents(file);
  bytes[1000] ^= 1;
  write(file, bytes);
  const std::string alone = message<CorruptSnapshot>([&] { state.load(); });
  expect_words(alone, {file.string(), "chunk 0 is damaged", "Nothing was changed"});
  EXPECT_EQ(alone.find("`state_previous`"), std::string::npos) << "there is none: " << alone;

  write(file, bytes);
  save(state, "two");
  write(file, bytes);
  const std::string with = message<CorruptSnapshot>([&] { state.load(); });
  expect_words(with, {file.string(), state.previous().string(), "`state_previous`"});
  EXPECT_EQ(contents(file), bytes) << "it was to be left untouched";
}

TEST_F(StateFileTest, RefusesForeignFiles) {
  for (const std::string& foreign : {std::string(), std::string("user,ad\n1,2\n")}) {
    write(file, foreign);
    StateFile state(file);
    EXPECT_TRUE(state.exists());
    expect_words(message<CorruptSnapshot>([&] { state.load(); }),
                 {file.string(), "not a sluice snapshot"});
    EXPECT_EQ(contents(file), foreign);
  }
}

TEST_F(StateFileTest, OnlyThePreviousOneLeftIsNoEmptyStart) {
  StateFile state(file);
  save(state, "one");
  save(state, "two");
  fs::remove(file);
  EXPECT_TRUE(state.exists());
  expect_words(message<StateRefused>([&] { state.load(); }),
               {"there is no state file", state.previous().string(), "`state_previous`"});
}

// Else the first checkpoint would put the damaged state in the place of the good one.
TEST_F(StateFileTest, UsingThePreviousOneKeepsIt) {
  StateFile state(file);
  save(state, "one");
  save(state, "two");
  write(file, "damaged");
  EXPECT_EQ(name_in(state.load_previous()), "one");
  save(state, "three");
  EXPECT_EQ(name_in(state.load()), "three");
  EXPECT_EQ(name_in(load_snapshot_file(state.previous())), "one");
  save(state, "four");
  EXPECT_EQ(name_in(load_snapshot_file(state.previous())), "three");
}

TEST_F(StateFileTest, NoPreviousOneIsSaid) {
  StateFile state(file);
  save(state, "one");
  expect_words(message<StateRefused>([&] { state.load_previous(); }),
               {"there is no state file", state.previous().string()});
}

TEST_F(StateFileTest, OtherThingsThanFilesAreRefused) {
  fs::create_directory(file);
  expect_words(message<StateRefused>([&] { StateFile(file).load(); }), {"is a directory"});
  expect_words(message<StateRefused>([&] {
                 StateFile state(file);
                 save(state, "one");
               }),
               {"is a directory", "another file"});
  EXPECT_TRUE(fs::is_directory(file));
  fs::remove(file);
  ASSERT_EQ(mkfifo(file.c_str(), 0600), 0);
  expect_words(message<StateRefused>([&] { StateFile(file).load(); }), {"is a pipe"});
  expect_words(message<StateRefused>([&] {
                 StateFile state(file);
                 save(state, "one");
               }),
               {"is a pipe"});
  EXPECT_TRUE(fs::is_fifo(file));
  expect_words(message<StateRefused>([&] { load_snapshot_file("/dev/null"); }), {"is a device"});
}

TEST_F(StateFileTest, ASecondRunIsRefused) {
  {
    const StateFile first(file);
    expect_words(message<StateBusy>([&] { StateFile second(file); }),
                 {file.string(), "in use by another run", file.string() + ".lock"});
    const StateFile other(directory / "other");
  }
  const StateFile next(file);
}

// A run that was killed leaves its lock file and temporaries behind, but not its lock.
TEST_F(StateFileTest, LeftoversOfAKilledRunDoNoHarm) {
  write(file.string() + ".lock", "");
  write(file.string() + ".tmp", "half a sta");
  write(file.string() + ".previous.tmp", "something");
  {
    StateFile state(file);
    EXPECT_FALSE(state.exists());
    save(state, "one");
    EXPECT_EQ(name_in(state.load()), "one");
  }
  EXPECT_EQ(files_in(directory), 1u);
}

TEST_F(StateFileTest, ALinkLeadsToTheFile) {
  fs::create_directory(directory / "real");
  const fs::path link = directory / "link";
  fs::create_symlink("real/state", link);
  {
    StateFile state(link);
    EXPECT_FALSE(state.exists());
    save(state, "one");
    save(state, "two");
    EXPECT_EQ(name_in(state.load()), "two");
    EXPECT_THROW(StateFile(directory / "real/state"), StateRefused) << "the same state";
  }
  EXPECT_TRUE(fs::is_symlink(link));
  EXPECT_TRUE(fs::is_regular_file(directory / "real/state"));
  EXPECT_TRUE(fs::is_regular_file(directory / "real/state.previous"));
  EXPECT_EQ(files_in(directory), 2u);

  fs::create_symlink("loop", directory / "loop");
  EXPECT_THROW(StateFile(directory / "loop"), IoError);
}

TEST_F(StateFileTest, AFileNeedsAName) {
  expect_words(message<IoError>([&] { StateFile unnamed{fs::path()}; }), {"empty file name"});
}

TEST_F(StateFileTest, AMissingDirectoryIsSaidAtOnce) {
  expect_words(message<IoError>([&] { StateFile(directory / "nowhere" / "state"); }),
               {(directory / "nowhere" / "state").string(), "No such file"});
}

// Full disks and the like: tests/integration/state_crash_test.cpp.
TEST_F(StateFileTest, ATemporaryThatCannotBeMadeIsNamed) {
  StateFile state(file);
  save(state, "one");
  fs::create_directory(file.string() + ".tmp");
  expect_words(message<IoError>([&] { save(state, "two"); }), {file.string() + ".tmp"});
  EXPECT_EQ(name_in(state.load()), "one");
  fs::remove(file.string() + ".tmp");
  save(state, "two");
  EXPECT_EQ(name_in(state.load()), "two");
}

}  // namespace
}  // namespace sluice
