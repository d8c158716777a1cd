// What apbf and apbbf promise as windows, for every stream: no key is lost inside the window, and
// nothing depends on batches, instruction sets or when a segment is emptied.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "sluice/base/error.hpp"
#include "sluice/base/random.hpp"
#include "sluice/filters/catalogue.hpp"
#include "sluice/kernels/simd.hpp"
#include "tests/support/counts.hpp"
#include "tests/support/filter_bytes.hpp"

namespace sluice {
namespace {

using testing_support::bytes_of;
using testing_support::copy_of;
using testing_support::count_of;

constexpr const char* kFilters[] = {
    "apbf,k=4,l=3,keys=900",
    "apbf,k=7,l=5,keys=1500",
    "apbf,k=2,l=9,parts=3,keys=1800",
    "apbf,k=3,l=0,keys=300",
    "apbf,k=5,l=1,keys=300",
    "apbbf,k=2,l=5,block=512,bits=8,keys=1500",
    "apbbf,k=3,l=8,block=512,bits=4,keys=2400",
    "apbbf,k=2,l=3,block=64,bits=8,keys=900",
    "apbbf,k=1,l=4,block=64,bits=4,keys=900",
    "apbbf,layout=column,k=2,l=5,block=512,bits=8,keys=1500",
    "apbbf,layout=column,k=3,l=8,block=64,bits=4,keys=2400",
    "apbbf,layout=column,k=1,l=4,block=512,bits=4,keys=900",
    "apbbf,layout=column,k=4,l=12,block=512,bits=8,keys=3600",
    "apbbf,layout=column,k=4,l=20,block=64,bits=8,keys=6000",
    "apbbf,layout=line,k=5,l=11,keys=3300",
    "apbbf,layout=line,k=3,l=5,keys=1500",
    "apbbf,layout=line,k=7,l=1,keys=300",
    "apbbf,layout=line,k=12,l=20,keys=6000",
    "apbbf,layout=line,k=31,l=1,keys=300",
    // Of more units than the keys of a generation here can sweep.
    "apbf,k=4,l=3,keys=40k",
    "apbf,k=10,l=7,parts=2,keys=60k",
    "apbbf,k=2,l=5,block=512,bits=8,keys=60k",
    "apbbf,layout=column,k=2,l=5,block=512,bits=8,keys=60k",
    "apbbf,layout=column,k=3,l=8,block=64,bits=4,keys=60k",
    "apbbf,layout=column,k=4,l=14,block=512,bits=8,keys=60k",
    "apbbf,layout=line,k=5,l=11,keys=60k",
};

// A run of random operations on a filter, with what it must remember beside it.
class Replay {
 public:
  Replay(const char* filter, Anchor anchor, std::uint64_t seed, std::size_t most_batch)
      : filter_(make_filter(filter, Wish{})),
        anchor_(anchor),
        random_(seed),
        cuts_(seed + 77),
        most_batch_(most_batch) {}

  AnyFilter& filter() { return filter_; }
  const std::vector<Verdict>& verdicts() const { return verdicts_; }

  // One generation of up to `keys` records, in batches; some of them late.
  void generation(std::size_t keys) {
    std::vector<Digest> digests;
    for (std::size_t i = 0; i < keys; ++i) digests.push_back(next_key());
    std::size_t at = 0;
    while (at < digests.size()) {
      const std::size_t count =
          std::min<std::size_t>(1 + cuts_.next() % most_batch_, digests.size() - at);
      std::vector<Verdict> verdicts(count);
      std::uint64_t budget = count;
      const std::size_t done =
          filter_.admit(std::span(digests).subspan(at, count), verdicts, budget, anchor_);
      for (std::size_t i = 0; i < done; ++i) judged(digests[at + i], verdicts[i], 0);
      at += done;
      if (done < count) break;  // full
    }
    for (int i = 0; i < 20; ++i) {
      const auto age = static_cast<unsigned>(random_.next() % (filter_.generations() + 1));
      const Digest key = next_key();
      if (const auto verdict = filter_.admit_aged(key, age, anchor_)) judged(key, *verdict, age);
    }
  }

  void rotate() {
    filter_.rotate();
    ++now_;
  }

  // Everything that must be there is.
  void check() {
    std::vector<Digest> due;
    for (const auto& [key, generation] : held_)
      if (now_ - generation <= filter_.generations()) due.push_back({key.first, key.second});
    std::vector<Verdict> verdicts(due.size());
    filter_.may_contain(due, verdicts);
    EXPECT_EQ(std::ranges::count(verdicts, Verdict::distinct), 0) << "generation " << now_;
  }

 private:
  using Key = std::pair<std::uint64_t, std::uint64_t>;

  Digest next_key() {
    if (!recent_.empty() && random_.next_unit() < 0.3)
      return recent_[recent_.size() - 1 -
                     random_.next() % std::min<std::size_t>(recent_.size(), 3000)];
    recent_.push_back({random_.next(), random_.next()});
    return recent_.back();
  }

  void judged(const Digest& digest, Verdict verdict, unsigned age) {
    verdicts_.push_back(verdict);
    const Key key{digest.lo, digest.hi};
    const auto held = held_.find(key);
    if (held != held_.end() && now_ - held->second <= filter_.generations()) {
      EXPECT_EQ(verdict, Verdict::duplicate) << "lost within the window";
    }
    if (verdict == Verdict::duplicate && anchor_ == Anchor::delivered) return;
    const long generation = now_ - age;
    if (held == held_.end())
      held_.emplace(key, generation);
    else
      held->second = std::max(held->second, generation);
  }

  AnyFilter filter_;
  Anchor anchor_;
  SplitMix64 random_, cuts_;
  std::size_t most_batch_;
  long now_ = 0;
  std::vector<Digest> recent_;
  std::vector<Verdict> verdicts_;
  std::map<Key, long> held_;  // key to the generation in which it was last written
};

class AgePartitionWindow : public testing::TestWithParam<const char*> {
 protected:
  // Uneven generations, some empty, several full ones.
  static void drive(Replay& run, bool check) {
    SplitMix64 random(9);
    const unsigned rounds = count_of(3u, 6u, 6u) * (run.filter().generations() + 8) / 2;
    for (unsigned i = 0; i < rounds; ++i) {
      run.generation(random.next_unit() < 0.2 ? 0 : random.next() % 500);
      if (check) run.check();
      run.rotate();
      if (check) run.check();
    }
    run.generation(150);
  }
};

TEST_P(AgePartitionWindow, LosesNothingInsideTheWindow) {
  for (const Anchor anchor : {Anchor::delivered, Anchor::refreshed}) {
    Replay run(GetParam(), anchor, 1, 64);
    drive(run, true);
  }
}

TEST_P(AgePartitionWindow, BatchesDoNotMatter) {
  for (const Anchor anchor : {Anchor::delivered, Anchor::refreshed}) {
    Replay one(GetParam(), anchor, 2, 1), many(GetParam(), anchor, 2, 300);
    drive(one, false);
    drive(many, false);
    EXPECT_EQ(one.verdicts(), many.verdicts());
    EXPECT_EQ(bytes_of(one.filter()), bytes_of(many.filter()));
  }
}

TEST_P(AgePartitionWindow, EverySimdLevelEqualsPortable) {
  const std::string chosen(simd_level());
  for (const Anchor anchor : {Anchor::delivered, Anchor::refreshed}) {
    force_simd_level("portable");
    Replay portable(GetParam(), anchor, 3, 100);
    drive(portable, false);
    for (const std::string_view level : simd_levels()) {
      force_simd_level(level);
      Replay run(GetParam(), anchor, 3, 100);
      drive(run, false);
      EXPECT_EQ(run.verdicts(), portable.verdicts()) << level;
      EXPECT_EQ(bytes_of(run.filter()), bytes_of(portable.filter())) << level;
    }
  }
  force_simd_level(chosen);
}

TEST_P(AgePartitionWindow, SnapshotsKeepTheWindow) {
  Replay run(GetParam(), Anchor::delivered, 4, 50);
  drive(run, false);
  run.rotate();
  run.generation(10);  // most of the youngest segment is still to be emptied
  AnyFilter copy = copy_of(run.filter());
  EXPECT_EQ(bytes_of(copy), bytes_of(run.filter()));
  EXPECT_EQ(copy.live_keys(), run.filter().live_keys());
  copy.rotate();
  run.rotate();
  EXPECT_EQ(bytes_of(copy), bytes_of(run.filter()));
  copy.clear();
  EXPECT_EQ(bytes_of(copy), bytes_of(make_filter(GetParam(), Wish{})));
}

TEST_P(AgePartitionWindow, IsFullAfterAGenerationAndHasRoomAfterAShift) {
  AnyFilter filter = make_filter(GetParam(), Wish{});
  SplitMix64 random(6);
  std::vector<Digest> digests(20'000);
  for (Digest& digest : digests) digest = {random.next(), random.next()};
  std::vector<Verdict> verdicts(digests.size());
  std::uint64_t budget = digests.size();
  const std::size_t judged = filter.admit(digests, verdicts, budget, Anchor::delivered);
  EXPECT_LT(judged, digests.size());
  EXPECT_GT(budget, 0u);
  const std::uint64_t generations = std::max(1u, filter.generations());
  const std::uint64_t a_generation = (filter.stats().capacity + generations - 1) / generations;
  EXPECT_GE(filter.live_keys(), a_generation);
  EXPECT_EQ(filter.admit_aged(digests[judged], 0, Anchor::delivered), std::nullopt);
  EXPECT_EQ(filter.admit(std::span(digests).subspan(judged), std::span(verdicts).subspan(judged),
                         budget, Anchor::refreshed),
            0u);
  EXPECT_EQ(filter.observe(std::span(digests).subspan(judged, 1), std::span(verdicts).first(1)),
            0u);
  EXPECT_THROW(filter.observe(digests[judged]), BadParameters);
  filter.rotate();
  EXPECT_GT(filter.admit(std::span(digests).subspan(judged), std::span(verdicts).subspan(judged),
                         budget, Anchor::delivered),
            0u);
  // Once all generations have gone, so has every key.
  for (unsigned i = 0; i < filter.generations() + 40; ++i) filter.rotate();
  EXPECT_EQ(filter.live_keys(), 0u);
  filter.may_contain(digests, verdicts);
  EXPECT_EQ(std::ranges::count(verdicts, Verdict::duplicate), 0);
  EXPECT_EQ(filter.stats().predicted_fpr, 0);
}

// A key refreshed in its own generation costs nothing; in a later one it takes room once.
TEST_P(AgePartitionWindow, RefreshTakesRoomOnce) {
  AnyFilter filter = make_filter(GetParam(), Wish{});
  const Digest key{12345, 67890};
  Verdict verdict{};
  const auto refresh = [&] {
    std::uint64_t budget = 1;
    EXPECT_EQ(filter.admit({&key, 1}, {&verdict, 1}, budget, Anchor::refreshed), 1u);
    EXPECT_EQ(budget, 0u);
  };
  refresh();
  EXPECT_EQ(verdict, Verdict::distinct);
  refresh();
  refresh();
  EXPECT_EQ(verdict, Verdict::duplicate);
  EXPECT_EQ(filter.live_keys(), 1u);
  for (unsigned i = 0; i < filter.generations(); ++i) filter.rotate();
  refresh();
  EXPECT_EQ(verdict, Verdict::duplicate);
  for (unsigned i = 0; i < filter.generations(); ++i) filter.rotate();
  EXPECT_EQ(filter.live_keys(), 1u);
  filter.may_contain({&key, 1}, {&verdict, 1});
  EXPECT_EQ(verdict, Verdict::duplicate) << "the window starts at the last arrival";
}

INSTANTIATE_TEST_SUITE_P(Filters, AgePartitionWindow, testing::ValuesIn(kFilters),
                         [](const auto& test) {
                           std::string name = test.param;
                           std::ranges::replace_if(
                               name,
                               [](char c) { return !std::isalnum(static_cast<unsigned char>(c)); },
                               '_');
                           return name;
                         });

std::string error_of(std::string_view filter, const Wish& wish = {}) {
  try {
    make_filter(filter, wish);
  } catch (const BadParameters& error) {
    return error.what();
  }
  return "no error";
}

TEST(AgePartitionSizes, TheErrorAskedForIsPlanned) {
  const std::uint64_t planned = count_of(8000, 60'000);
  for (const double fpr : {0.1, 0.01, 1e-3, 1e-4, 1e-6}) {
    for (const char* name : {"apbf", "apbbf", "apbbf,layout=column", "apbbf,layout=line"}) {
      for (const auto generations : {std::optional<unsigned>(), std::optional<unsigned>(6)}) {
        if (std::string_view(name) == "apbbf,layout=line" && fpr < 1e-4) continue;
        AnyFilter filter =
            make_filter(name, Wish{.keys = planned, .fpr = fpr, .generations = generations});
        if (generations) {
          EXPECT_EQ(filter.generations(), *generations) << name;
        }
        SplitMix64 random(1);
        std::vector<Digest> digests(planned);
        std::vector<Verdict> verdicts(digests.size());
        for (unsigned i = 0; i < filter.generations() + 34; ++i) {
          filter.rotate();
          for (Digest& digest : digests) digest = {random.next(), random.next()};
          std::uint64_t budget = digests.size();
          filter.admit(digests, verdicts, budget, Anchor::delivered);  // until it is full
        }
        EXPECT_LE(filter.stats().predicted_fpr, fpr * 1.08) << name << ' ' << fpr;
      }
    }
  }
}

TEST(AgePartitionSizes, ErrorsSayWhatWouldBeRight) {
  EXPECT_NE(error_of("apbf,k=2,fpr=1e-6").find("cannot reach"), std::string::npos);
  EXPECT_NE(error_of("apbf,k=60,l=200").find("256 parts"), std::string::npos);
  EXPECT_NE(error_of("apbf,k=4,l=3,bytes=64").find("64 bytes per part"), std::string::npos);
  EXPECT_NE(error_of("apbbf,block=128").find("64 or 512"), std::string::npos);
  EXPECT_NE(error_of("apbbf,bits=5,k=2,l=5").find("bits"), std::string::npos);
  EXPECT_NE(error_of("apbbf,layout=line,k=5,l=5").find("8, 16 or 32"), std::string::npos);
  EXPECT_NE(error_of("apbbf,layout=line,bits=4").find("line"), std::string::npos);
  EXPECT_NE(error_of("apbbf,layout=line,fpr=1e-12").find("another layout"), std::string::npos);
}

}  // namespace
}  // namespace sluice
