// The contract of filters/window_contract.hpp, held by every window filter of the catalogue. The
// truth is tests/support/window_reference.hpp.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "sluice/base/random.hpp"
#include "sluice/filters/catalogue_row.hpp"
#include "sluice/filters/cohort/cohort.hpp"
#include "sluice/filters/exact/exact_window.hpp"
#include "sluice/kernels/simd.hpp"
#include "tests/support/counts.hpp"
#include "tests/support/filter_bytes.hpp"
#include "tests/support/window_reference.hpp"

namespace sluice {
namespace {

using testing_support::bytes_of;
using testing_support::copy_of;
using testing_support::count_of;
using testing_support::WindowReference;

struct Window {
  std::string filter;
  unsigned slack = 0;  // generations that a key may stay beyond generations() and its own
};

void PrintTo(const Window& window, std::ostream* out) {
  *out << window.filter;
}

// Those of the catalogue: held to all of the contract, or, where they may lose keys on purpose, to
// everything but that.
std::vector<Window> windows(std::span<const std::string_view> FilterRow::*which) {
  std::vector<Window> all;
  for (const FilterInfo& filter : catalogue())
    for (const std::string_view settings : filter.row->*which)
      all.push_back({std::string(settings)});
  return all;
}

constexpr std::size_t kMostLive = 1500;

// A random life of a window: batches of keys, some of them repeats of old ones, with budgets that
// may run out; late keys; rotations one by one and in bursts. One step at a time, so that two
// filters can be led through the same.
struct Step {
  enum class Kind { admit, late, rotate } kind = Kind::rotate;
  std::vector<Digest> keys;
  std::uint64_t budget = 0;
  unsigned age = 0;
};

class Life {
 public:
  Life(std::uint64_t seed, unsigned generations) : random_(seed), generations_(generations) {
    // A window of about 1200 keys for any number of generations; the longest windows get shorter
    // ones.
    batch_ = std::max<std::uint64_t>(1, 1200 / (generations + 1));
  }

  Step next() {
    Step step;
    const double draw = random_.next_unit();
    if (draw < 0.5) {
      step.kind = Step::Kind::admit;
      const std::uint64_t count = random_.next() % (batch_ + batch_ / 2 + 2);
      for (std::uint64_t i = 0; i < count; ++i) step.keys.push_back(key());
      step.budget = random_.next_unit() < 0.2 ? random_.next() % (count + 1) : count;
    } else if (draw < 0.6) {
      step.kind = Step::Kind::late;
      step.keys.push_back(key());
      step.age = static_cast<unsigned>(random_.next() % (generations_ + 1));
    }
    return step;
  }

 private:
  // Half new, half old: of those most are recent.
  Digest key() {
    const double draw = random_.next_unit();
    if (seen_.empty() || draw < 0.5) {
      seen_.push_back({random_.next(), random_.next()});
      return seen_.back();
    }
    const std::size_t reach = std::min<std::size_t>(seen_.size(), draw < 0.9 ? 1800 : seen_.size());
    return seen_[seen_.size() - 1 - random_.next() % reach];
  }

  SplitMix64 random_;
  unsigned generations_;
  std::uint64_t batch_;
  std::vector<Digest> seen_;
};

// A filter and the truth, led through the same life.
class Pair {
 public:
  Pair(const Window& window, Anchor anchor)
      : filter(make_filter(window.filter, Wish{})),
        truth(filter.generations()),
        anchor_(anchor),
        promises_(filter.promises()) {}

  void run(const Step& step) {
    if (step.kind == Step::Kind::rotate) return rotate();
    if (truth.size() + step.keys.size() > kMostLive) return rotate();
    if (step.kind == Step::Kind::late) return late(step);
    std::vector<Verdict> verdicts(step.keys.size());
    std::uint64_t budget = step.budget;
    const std::size_t judged = filter.admit(step.keys, verdicts, budget, anchor_);
    if (budget > 0) {
      ASSERT_EQ(judged, step.keys.size()) << "full with " << filter.live_keys() << " keys";
    }
    std::uint64_t spent = 0;
    for (std::size_t i = 0; i < judged; ++i) {
      check(step.keys[i], verdicts[i]);
      if (verdicts[i] == Verdict::duplicate && anchor_ == Anchor::delivered) continue;
      truth.write(step.keys[i]);
      ++spent;
    }
    EXPECT_EQ(step.budget - budget, spent);
    distinct_exactly(truth.size());
  }

  void rotate() {
    filter.rotate();
    truth.rotate();
    distinct_exactly(truth.size());
  }

  AnyFilter filter;
  WindowReference truth;
  std::uint64_t false_positives = 0, judged_new = 0, false_negatives = 0;

 private:
  void late(const Step& step) {
    const std::optional<Verdict> verdict = filter.admit_aged(step.keys[0], step.age, anchor_);
    ASSERT_TRUE(verdict.has_value());
    check(step.keys[0], *verdict);
    if (*verdict == Verdict::duplicate && anchor_ == Anchor::delivered) return;
    truth.write(step.keys[0], step.age);
  }

  void check(const Digest& key, Verdict verdict) {
    if (truth.holds(key)) {
      false_negatives += verdict == Verdict::distinct;
      if (promises_.no_false_negatives) {
        EXPECT_EQ(verdict, Verdict::duplicate) << "age " << *truth.age_of(key);
      }
    } else {
      ++judged_new;
      false_positives += verdict == Verdict::duplicate;
    }
  }

  // Filters that are never wrong know how many keys they hold.
  void distinct_exactly(std::size_t keys) const {
    if (promises_.no_false_positives) {
      EXPECT_EQ(filter.live_keys(), keys);
    }
  }

  Anchor anchor_;
  FilterPromises promises_;
};

std::string test_name(const std::string& filter) {
  std::string name = filter;
  std::ranges::replace_if(
      name, [](char c) { return !std::isalnum(static_cast<unsigned char>(c)); }, '_');
  return name;
}

class Windows : public testing::TestWithParam<Window> {
 protected:
  static AnyFilter make() { return make_filter(GetParam().filter, Wish{}); }
  static constexpr Anchor kAnchors[] = {Anchor::delivered, Anchor::refreshed};
};

TEST_P(Windows, NoFalseNegativesWithinTheWindow) {
  for (const Anchor anchor : kAnchors) {
    for (int seed = 1; seed <= count_of(1, 2, 4); ++seed) {
      Pair pair(GetParam(), anchor);
      Life life(static_cast<std::uint64_t>(seed), pair.filter.generations());
      for (int step = 0; step < count_of(400, 600, 600) && !HasFailure(); ++step)
        pair.run(life.next());
      ASSERT_GT(pair.judged_new, 100u);
      const auto new_keys = static_cast<double>(pair.judged_new);
      // Planned for 1 in 50 at most, and for more keys than come: 16-bit slots are the worst.
      EXPECT_LE(static_cast<double>(pair.false_positives), 0.03 * new_keys + 10);
      if (pair.filter.promises().no_false_positives) {
        EXPECT_EQ(pair.false_positives, 0u);
      }
    }
  }
}

// Numbers of generations wrap, in any filter here, many times over.
TEST_P(Windows, ThousandsOfRotationsKeepIt) {
  Pair pair(GetParam(), Anchor::delivered);
  Life life(9, pair.filter.generations());
  SplitMix64 random(10);
  const int steps = count_of(600, 2000, 4000);
  for (int step = 0; step < steps && !HasFailure(); ++step) {
    pair.run(life.next());
    // Now and then idle for long, and now and then only for as long as numbers last.
    const std::uint64_t pauses[] = {0, 0, 0, 0, 0, 1, 3, random.next() % 40};
    for (std::uint64_t i = pauses[random.next() % 8]; i > 0; --i) pair.rotate();
    if (step % 500 == 499)
      for (int i = 0; i < 700; ++i) pair.rotate();
  }
}

// All alone: nothing else is live that could be mistaken for the keys.
TEST_P(Windows, KeysLeaveAfterTheirGenerationsAndNoEarlier) {
  AnyFilter filter = make();
  if (!filter.promises().no_false_negatives) return;
  SplitMix64 random(3);
  for (int round = 0; round < 40; ++round) {
    std::vector<Digest> keys(100);
    for (Digest& key : keys) key = {random.next(), random.next()};
    std::vector<Verdict> verdicts(keys.size());
    std::uint64_t budget = keys.size();
    ASSERT_EQ(filter.admit(keys, verdicts, budget, Anchor::delivered), keys.size());
    const std::uint64_t live = filter.live_keys();
    for (unsigned age = 0; age < filter.generations(); ++age) filter.rotate();
    EXPECT_EQ(filter.live_keys(), live);
    filter.may_contain(keys, verdicts);
    EXPECT_EQ(std::ranges::count(verdicts, Verdict::distinct), 0);
    for (unsigned i = 0; i < 1 + GetParam().slack; ++i) filter.rotate();
    filter.may_contain(keys, verdicts);
    EXPECT_EQ(std::ranges::count(verdicts, Verdict::duplicate), 0);
    EXPECT_EQ(filter.live_keys(), 0u);
  }
}

TEST_P(Windows, LateKeysLeaveWhenTheyShould) {
  AnyFilter filter = make();
  if (!filter.promises().no_false_negatives) return;
  SplitMix64 random(4);
  const unsigned generations = filter.generations();
  for (int round = 0; round < 60; ++round) {
    const Digest key{random.next(), random.next()};
    const auto ask = [&] {
      Verdict verdict;
      filter.may_contain({&key, 1}, {&verdict, 1});
      return verdict;
    };
    const unsigned age = static_cast<unsigned>(random.next() % (generations + 1));
    EXPECT_EQ(filter.admit_aged(key, age, Anchor::delivered), Verdict::distinct);
    // A repeat that happened earlier never takes time away, and delivered ones never add any.
    EXPECT_EQ(filter.admit_aged(key, generations, Anchor::refreshed), Verdict::duplicate);
    EXPECT_EQ(filter.admit_aged(key, 0, Anchor::delivered), Verdict::duplicate);
    for (unsigned i = age; i < generations; ++i) filter.rotate();
    EXPECT_EQ(ask(), Verdict::duplicate) << age;
    for (unsigned i = 0; i < 1 + GetParam().slack; ++i) filter.rotate();
    EXPECT_EQ(ask(), Verdict::distinct) << age;
  }
}

TEST_P(Windows, RefreshingStartsTheWindowAnew) {
  AnyFilter filter = make();
  SplitMix64 random(5);
  const Digest key{random.next(), random.next()};
  Verdict verdict;
  for (int round = 0; round < 30; ++round) {
    std::uint64_t budget = 1;
    ASSERT_EQ(filter.admit({&key, 1}, {&verdict, 1}, budget, Anchor::refreshed), 1u);
    EXPECT_EQ(verdict, round == 0 ? Verdict::distinct : Verdict::duplicate) << round;
    EXPECT_EQ(budget, 0u) << "every key judged takes one";
    EXPECT_EQ(filter.live_keys(), 1u);
    for (unsigned age = 0; age < filter.generations(); ++age) filter.rotate();
  }
}

TEST_P(Windows, BatchesEqualOneByOne) {
  for (const Anchor anchor : kAnchors) {
    AnyFilter batched = make(), single = make();
    Life life(6, batched.generations());
    for (int count = 0; count < count_of(100, 300, 300); ++count) {
      const Step step = life.next();
      if (step.kind != Step::Kind::admit || batched.live_keys() + step.keys.size() > kMostLive) {
        batched.rotate();
        single.rotate();
        continue;
      }
      std::vector<Verdict> one(step.keys.size()), other(step.keys.size());
      std::uint64_t budget = step.budget, left = step.budget;
      const std::size_t judged = batched.admit(step.keys, one, budget, anchor);
      std::size_t singly = 0;
      while (singly < step.keys.size() &&
             single.admit({&step.keys[singly], 1}, {&other[singly], 1}, left, anchor) == 1)
        ++singly;
      ASSERT_EQ(judged, singly);
      ASSERT_EQ(budget, left);
      one.resize(judged);
      other.resize(judged);
      ASSERT_EQ(one, other);
      ASSERT_EQ(batched.live_keys(), single.live_keys());
      ASSERT_EQ(bytes_of(batched), bytes_of(single));
    }
  }
}

TEST_P(Windows, SnapshotsInTheMiddle) {
  for (const Anchor anchor : kAnchors) {
    Pair pair(GetParam(), anchor);
    Life life(7, pair.filter.generations());
    for (int step = 0; step < count_of(120, 300, 300) && !HasFailure(); ++step) {
      pair.run(life.next());
      if (step % 20 != 19) continue;
      AnyFilter copy = copy_of(pair.filter);
      ASSERT_EQ(bytes_of(copy), bytes_of(pair.filter));
      EXPECT_EQ(copy.live_keys(), pair.filter.live_keys());
      pair.filter = std::move(copy);  // and the life goes on with the copy
    }
  }
}

TEST_P(Windows, EverySimdLevelEqualsPortable) {
  const std::string chosen(simd_level());
  for (const Anchor anchor : kAnchors) {
    std::vector<std::byte> expected;
    for (const std::string_view level : simd_levels()) {
      force_simd_level(level);
      Pair pair(GetParam(), anchor);
      Life life(8, pair.filter.generations());
      for (int step = 0; step < count_of(80, 200, 200) && !HasFailure(); ++step)
        pair.run(life.next());
      const std::vector<std::byte> bytes = bytes_of(pair.filter);
      if (expected.empty()) expected = bytes;
      EXPECT_EQ(bytes, expected) << level;
    }
  }
  force_simd_level(chosen);
}

// Either it takes ever more keys, or it says when it is full and loses none of those it has.
TEST_P(Windows, FullIsSaidAndNothingIsLost) {
  AnyFilter filter = make();
  SplitMix64 random(11);
  std::vector<Digest> keys(20'000);
  for (Digest& key : keys) key = {random.next(), random.next()};
  std::vector<Verdict> verdicts(keys.size());
  std::uint64_t budget = keys.size();
  const std::size_t taken = filter.admit(keys, verdicts, budget, Anchor::delivered);
  const std::uint64_t capacity = filter.stats().capacity;
  if (capacity == 0) {
    EXPECT_EQ(taken, keys.size());
  } else {
    EXPECT_GE(taken, capacity);
    // Whole generations: each may be a key larger than its share.
    EXPECT_LE(filter.live_keys(),
              capacity + capacity / filter.generations() + filter.generations() + 1);
    EXPECT_LT(taken, keys.size());
    EXPECT_EQ(filter.admit_aged(keys.back(), 0, Anchor::delivered).value_or(Verdict::duplicate),
              Verdict::duplicate);
  }
  verdicts.resize(taken);
  filter.may_contain(std::span(keys).first(taken), verdicts);
  EXPECT_EQ(std::ranges::count(verdicts, Verdict::distinct), 0);
}

INSTANTIATE_TEST_SUITE_P(Filters, Windows, testing::ValuesIn(windows(&FilterRow::windows)),
                         [](const auto& test) { return test_name(test.param.filter); });
INSTANTIATE_TEST_SUITE_P(Forgetful, Windows,
                         testing::ValuesIn(windows(&FilterRow::forgetful_windows)),
                         [](const auto& test) { return test_name(test.param.filter); });

// --- what only some of them have ----------------------------------------------------------------

// A small table that is asked to hold a few keys more than it has slots: keys move, the last ones
// end in the stash, and it says that it is full before it would lose one.
TEST(CohortStash, TakesWhatTheTableCannotAndLosesNothing) {
  for (const char* settings : {"bytes=4096,keys=1380,slot=24,generations=60,fpr=0.01",
                               "bytes=4096,keys=1944,slot=16,generations=12,fpr=0.1",
                               "bytes=4096,keys=980,slot=32,generations=10,fpr=0.01",
                               "bytes=4096,keys=640,slot=48,generations=10,fpr=0.01"}) {
    const Cohort::Params params = Cohort::Params::from({}, Settings::parse(settings));
    const double slots =
        static_cast<double>(params.buckets * kernels::cohort_slots(params.slot_bits));
    ASSERT_GE(static_cast<double>(params.live_capacity()) / slots, 0.99) << settings;
    std::size_t most_strays = 0;
    bool was_full = false;
    double most_load = 0;
    for (const Anchor anchor : {Anchor::delivered, Anchor::refreshed}) {
      Cohort filter = Cohort::make(params);
      WindowReference truth(params.generations);
      SplitMix64 random(21);
      std::vector<Digest> keys;
      // More a generation than it could keep.
      const std::uint64_t each = params.live_capacity() * 3 / 2 / params.generations + 1;
      const int rounds = count_of(100, 200, 1500);
      for (int round = 0; round < rounds && !testing::Test::HasFailure(); ++round) {
        for (std::uint64_t i = 0; i < each; ++i) {
          const bool old = !keys.empty() && random.next_unit() < 0.3;
          const Digest key =
              old ? keys[keys.size() - 1 - random.next() % std::min<std::size_t>(keys.size(), 3000)]
                  : Digest{random.next(), random.next()};
          Verdict verdict;
          std::uint64_t budget = 1;
          if (filter.admit({&key, 1}, {&verdict, 1}, budget, anchor) == 0) {
            was_full = true;
            EXPECT_FALSE(!filter.may_contain(key) && truth.holds(key));
            break;
          }
          if (truth.holds(key)) {
            EXPECT_EQ(verdict, Verdict::duplicate);
          }
          if (verdict == Verdict::distinct || anchor == Anchor::refreshed) truth.write(key);
          if (!old) keys.push_back(key);
          most_strays = std::max(most_strays, filter.stray_count());
          most_load = std::max(most_load, static_cast<double>(filter.live_keys()) / slots);
        }
        if (round % 100 == 99) {
          for (const Digest& key : keys) ASSERT_TRUE(!truth.holds(key) || filter.may_contain(key));
        }
        filter.rotate();
        truth.rotate();
      }
    }
    EXPECT_GT(most_strays, 0u) << settings;
    EXPECT_LE(most_strays, Cohort::kMostStrays);
    EXPECT_TRUE(was_full) << settings;
    EXPECT_GE(most_load, 0.99) << settings;
  }
}

// A burst makes the table grow; when it has passed, the table is small again.
TEST(ExactWindowTable, GrowsAndShrinks) {
  ExactWindow filter = ExactWindow::make({.generations = 4});
  const std::uint64_t small = filter.slots();
  SplitMix64 random(31);
  const auto insert = [&](int keys) {
    for (int i = 0; i < keys; ++i) filter.insert({random.next(), random.next()});
  };
  insert(100'000);
  EXPECT_GE(filter.slots(), 100'000u);
  for (int generation = 0; generation < 5; ++generation) filter.rotate();
  EXPECT_EQ(filter.live_keys(), 0u);
  EXPECT_EQ(filter.slots(), small);
  // A steady window keeps a steady table: expired keys are swept, not collected.
  std::uint64_t most = 0;
  for (int generation = 0; generation < 500; ++generation) {
    insert(200);
    filter.rotate();
    most = std::max(most, filter.slots());
  }
  EXPECT_LE(most, 4096u);
}

}  // namespace
}  // namespace sluice
