// Golden snapshots: the bytes that older builds wrote, and that every later build must read alike.
//
// A difference here means that existing state files would be misread or rewritten differently:
// either undo the change, or give the filter a new kVersion (the format a new layout::kVersion),
// keep reading the old one, keep its golden file and add a new one. To write the files of new
// filters or versions, run this test with SLUICE_GOLDEN_WRITE=1; it never overwrites a file that
// exists, so delete one that was never released.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "connectors/files/state_file.hpp"
#include "sluice/filters/catalogue_row.hpp"
#include "sluice/window/window.hpp"

namespace sluice {
namespace {

// Those of the catalogue, and a window over filters.
std::vector<GoldenSample> samples() {
  std::vector<GoldenSample> all;
  for (const FilterInfo& filter : catalogue())
    all.insert(all.end(), filter.row->golden.begin(), filter.row->golden.end());
  all.push_back({"window-1", "window"});
  return all;
}

constexpr int kKeys = 40;

std::string key(int number) {
  return "key " + std::to_string(number);
}

const Labels kLabels = {{"format", "json"}, {"key", "/user"}, {"key", "/ad"}};

std::filesystem::path path_of(const GoldenSample& golden) {
  return std::filesystem::path(SLUICE_GOLDEN_DIR) / (std::string(golden.file) + ".snapshot");
}

std::vector<char> contents(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

Hasher hasher_of(const GoldenSample& golden) {
  return Hasher(golden.highway ? HashKind::highway : HashKind::xxh3, Secret::from_seed(2024));
}

// A time window that had to grow, with keys of many ages, some of them late, and a clock that was
// not believed.
AnyFilter built_window(const Hasher& hasher) {
  constexpr Nanoseconds kSecond = 1'000'000'000;
  Window window = Window::make({.spec = {WindowSpec::Kind::time, 100 * kSecond},
                                .filter = "cohort,slot=24",
                                .fpr = 0.01,
                                .keys = 8,
                                .max_ahead = 30 * kSecond});
  for (int number = 0; number < kKeys; ++number) {
    const Digest digest = hasher.digest(key(number));
    const bool late = number % 5 == 4;
    Nanoseconds time = (1'700'000'000 + number * 2 - (late ? 7 : 0)) * kSecond;
    if (number == kKeys - 1) time += 3600 * kSecond;
    Verdict verdict{};
    bool too_late = false;
    EXPECT_EQ(window.judge({&digest, 1}, {&time, 1}, {&verdict, 1}, {&too_late, 1}), 1u);
  }
  EXPECT_GT(window.growth().stage_count(), 1u);
  EXPECT_EQ(window.clock().disbelieved(), 1u);
  return AnyFilter(std::move(window));
}

std::vector<char> built_now(const GoldenSample& golden) {
  const Hasher hasher = hasher_of(golden);
  const bool is_window = golden.filter == "window";
  AnyFilter filter = is_window ? built_window(hasher) : make_filter(golden.filter, {});
  for (int number = 0; number < kKeys && !is_window; ++number) {
    const Digest digest = hasher.digest(key(number));
    filter.insert({&digest, 1});
  }
  BytesEncoder to;
  write_snapshot(hasher, filter, kLabels, to);
  std::vector<char> bytes;
  for (const std::byte byte : to.written()) bytes.push_back(static_cast<char>(byte));
  return bytes;
}

class GoldenTest : public testing::TestWithParam<GoldenSample> {};
INSTANTIATE_TEST_SUITE_P(Files, GoldenTest, testing::ValuesIn(samples()), [](const auto& test) {
  const std::string name(test.param.file);
  return name.substr(0, name.find('-'));
});

TEST_P(GoldenTest, TheSameFilterGivesTheSameBytes) {
  const std::filesystem::path path = path_of(GetParam());
  const std::vector<char> now = built_now(GetParam());
  if (std::getenv("SLUICE_GOLDEN_WRITE") != nullptr && !std::filesystem::exists(path))
    std::ofstream(path, std::ios::binary)
        .write(now.data(), static_cast<std::streamsize>(now.size()));
  ASSERT_TRUE(std::filesystem::exists(path))
      << path << " is missing; a new one is written with SLUICE_GOLDEN_WRITE=1";
  const std::vector<char> then = contents(path);
  const auto [now_at, then_at] = std::mismatch(now.begin(), now.end(), then.begin(), then.end());
  EXPECT_TRUE(now_at == now.end() && then_at == then.end())
      << path << " differs from byte " << now_at - now.begin()
      << " on: other bytes mean a new version, or state files of older builds are misread";
}

TEST_P(GoldenTest, TheFileGivesTheExpectedVerdicts) {
  Snapshot loaded = load_snapshot_file(path_of(GetParam()));
  EXPECT_EQ(loaded.labels, kLabels);
  EXPECT_EQ(loaded.hasher.kind(), hasher_of(GetParam()).kind());
  EXPECT_TRUE(loaded.hasher.secret() == hasher_of(GetParam()).secret());

  const bool forgetful = !loaded.filter.promises().no_false_negatives;
  const bool nothing = loaded.filter.kind() == FilterKind::none;
  int duplicates = 0, false_positives = 0;
  for (int number = 0; number < 2 * kKeys; ++number) {
    const Digest digest = loaded.hasher.digest(key(number));
    Verdict verdict{};
    loaded.filter.may_contain({&digest, 1}, {&verdict, 1});
    (number < kKeys ? duplicates : false_positives) += verdict == Verdict::duplicate;
  }
  // One that forgets at random has had no time to forget many.
  EXPECT_GE(duplicates, nothing ? 0 : forgetful ? kKeys * 3 / 4 : kKeys);
  EXPECT_LE(duplicates, nothing ? 0 : kKeys);
  EXPECT_LE(false_positives, 1) << "planned for 1 in 100 at most";
}

// The bytes of a kind without a golden file are not tested.
TEST(Golden, EveryKindOfTheCatalogueHasAFile) {
  for (const FilterInfo& info : catalogue()) {
    std::set<FilterKind> kinds;
    for (const GoldenSample& golden : info.row->golden) {
      EXPECT_TRUE(golden.filter.starts_with(info.name)) << golden.filter;
      kinds.insert(make_filter(golden.filter, {}).kind());
    }
    for (const KindInfo& kind : info.row->kinds)
      EXPECT_TRUE(kinds.contains(kind.kind))
          << info.name << ", a filter of kind " << static_cast<int>(kind.kind);
  }
}

}  // namespace
}  // namespace sluice
