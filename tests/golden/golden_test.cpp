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
#include <string>
#include <string_view>
#include <vector>

#include "connectors/files/state_file.hpp"
#include "sluice/filters/catalogue.hpp"
#include "sluice/window/window.hpp"

namespace sluice {
namespace {

struct Golden {
  const char* file;
  const char* filter;
  HashKind hash;
};

// One a kind, layout and version of filter, each of a few hundred bytes or a few thousand.
constexpr Golden kGolden[] = {
    {"none-1.snapshot", "none", HashKind::xxh3},
    {"exact-1.snapshot", "exact,keys=40", HashKind::highway},
    {"bloom-1.snapshot", "bloom,layout=classic,bytes=128,probes=5,keys=100,fpr=0.01",
     HashKind::highway},
    {"blocked_bloom-1.snapshot", "bloom,layout=blocked,bytes=256,probes=8,keys=100,fpr=0.01",
     HashKind::xxh3},
    {"blocked_bloom16-1.snapshot", "bloom,layout=blocked,bytes=512,probes=16,keys=100,fpr=1e-6",
     HashKind::xxh3},
    {"counting-1.snapshot", "counting,bytes=512,probes=5,keys=100,fpr=0.01", HashKind::highway},
    {"dynamic-1.snapshot", "dynamic,keys=12,fpr=0.001,layout=matrix", HashKind::highway},
    {"dynamic_counted-1.snapshot", "dynamic,keys=12,fpr=0.001,forget=yes", HashKind::xxh3},
    {"dynamic_tighten-1.snapshot", "dynamic,keys=12,fpr=0.001,tighten=0.5", HashKind::xxh3},
    {"exact_window-1.snapshot", "exact-window,keys=40,generations=3", HashKind::xxh3},
    {"timing-1.snapshot", "timing,keys=100,fpr=0.01,generations=6,probes=5", HashKind::highway},
    {"timer-1.snapshot", "timer,keys=100,fpr=0.01,generations=6,probes=5", HashKind::xxh3},
    {"apbf-1.snapshot", "apbf,k=7,l=5,bytes=768,keys=250,fpr=0.01", HashKind::xxh3},
    {"apbbf-1.snapshot", "apbbf,k=2,l=5,block=512,bits=8,bytes=896,keys=200,fpr=0.01",
     HashKind::highway},
    {"apbbf_column-1.snapshot",
     "apbbf,layout=column,k=2,l=5,block=512,bits=4,bytes=448,keys=200,fpr=0.01", HashKind::xxh3},
    {"apbbf_line-1.snapshot", "apbbf,layout=line,k=5,l=11,bytes=1280,keys=440,fpr=0.02",
     HashKind::xxh3},
    {"stable-1.snapshot", "stable,bytes=1024,probes=4,decrements=9,max=3,fpr=0.01,seed=3",
     HashKind::xxh3},
    {"stable_independent-1.snapshot",
     "stable,bytes=512,probes=2,decrements=4,draws=independent,fpr=0.1", HashKind::highway},
    {"reservoir-1.snapshot", "reservoir,bytes=512,filters=5,resets=2,fpr=0.1,seed=3",
     HashKind::xxh3},
    {"reservoir_paper-1.snapshot",
     "reservoir,bytes=512,filters=3,variant=paper,threshold=0.04,fpr=0.1", HashKind::highway},
    {"cohort16-1.snapshot", "cohort,slot=16,keys=100,fpr=0.02", HashKind::xxh3},
    {"cohort24-1.snapshot", "cohort,slot=24,keys=100,fpr=0.01", HashKind::xxh3},
    {"cohort32-1.snapshot", "cohort,slot=32,keys=100,fpr=0.01", HashKind::highway},
    {"cohort40-1.snapshot", "cohort,slot=40,keys=100,fpr=0.01", HashKind::xxh3},
    {"cohort48-1.snapshot", "cohort,slot=48,keys=100,fpr=0.01", HashKind::xxh3},
    {"growing16-1.snapshot", "growing,slot=16,keys=1,fpr=0.05", HashKind::xxh3},
    {"growing32-1.snapshot", "growing,slot=32,keys=1", HashKind::highway},
    {"growing64-1.snapshot", "growing,slot=64,keys=1", HashKind::xxh3},
    {"sharded-1.snapshot", "sharded,shards=3,of=bloom,layout=blocked,keys=100,fpr=0.01",
     HashKind::xxh3},
    {"sharded_window-1.snapshot", "sharded,shards=2,of=cohort,slot=24,keys=100,fpr=0.01",
     HashKind::highway},
    {"window-1.snapshot", "window", HashKind::xxh3},
};

constexpr int kKeys = 40;

std::string key(int number) {
  return "key " + std::to_string(number);
}

const Labels kLabels = {{"format", "json"}, {"key", "/user"}, {"key", "/ad"}};

std::filesystem::path path_of(const Golden& golden) {
  return std::filesystem::path(SLUICE_GOLDEN_DIR) / golden.file;
}

std::vector<char> contents(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

Hasher hasher_of(const Golden& golden) {
  return Hasher(golden.hash, Secret::from_seed(2024));
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

std::vector<char> built_now(const Golden& golden) {
  const Hasher hasher = hasher_of(golden);
  const bool is_window = golden.filter == std::string_view("window");
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

class GoldenTest : public testing::TestWithParam<Golden> {};
INSTANTIATE_TEST_SUITE_P(Files, GoldenTest, testing::ValuesIn(kGolden), [](const auto& test) {
  const std::string name = test.param.file;
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
  EXPECT_EQ(loaded.hasher.kind(), GetParam().hash);
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

// A kind without a golden file is a kind whose bytes nobody watches.
TEST(Golden, EveryFilterOfTheCatalogueHasAFile) {
  for (const FilterInfo& info : catalogue()) {
    bool found = false;
    for (const Golden& golden : kGolden)
      found |= std::string_view(golden.filter).starts_with(info.name);
    EXPECT_TRUE(found) << info.name;
  }
}

}  // namespace
}  // namespace sluice
