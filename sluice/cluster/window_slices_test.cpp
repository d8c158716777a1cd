// Windows over slices, in process: verdicts against an exact reference, late events, clocks that
// differ, pages that are lost.
#include "sluice/cluster/window_slices.hpp"

#include <gtest/gtest.h>

#include <tuple>

#include "sluice/base/error.hpp"
#include "tests/support/counts.hpp"
#include "tests/support/window_slices.hpp"

namespace sluice::cluster {
namespace {

using namespace testing_support;
using model::FaultRule;

constexpr std::int64_t kWindow = 30'000;
constexpr std::int64_t kStart = 1'700'000'000'000;
// So many that there are no false positives.
constexpr std::uint64_t kCells = 400'000;

const std::vector<Slicing> kSlicings = {Slicing::horizontal, Slicing::vertical,
                                        Slicing::horizontal_vertical, Slicing::vertical_horizontal,
                                        Slicing::general};

ExactWindow exact_of(const WindowSlices& slices) {
  if (const auto* aged = dynamic_cast<const AgedSlices*>(&slices))
    return {kWindow, aged->generation_ms(), aged->params().l};
  const std::int64_t unit = dynamic_cast<const TimerSlices&>(slices).units().unit_ms;
  return {kWindow, unit, (kWindow - 1 + unit - 1) / unit};
}

class WindowsOverSlices : public testing::TestWithParam<WindowCase> {
 protected:
  LocalWindow vertical(const WindowSlices::Options& options = {.window = window_of(kWindow)}) {
    return {GetParam(), GetParam().slices(Slicing::vertical, kCells), options};
  }
};
INSTANTIATE_TEST_SUITE_P(Of, WindowsOverSlices, testing::ValuesIn(kWindows),
                         [](const auto& which) { return which.param.name; });

// Over many windows, with late events, some too late. Timers of 16 bits and a unit of 1 ms change
// their page several times meanwhile, each site at another time: they judge as absolute times do.
TEST_P(WindowsOverSlices, JudgeAsAnExactWindow) {
  const TimedKeys keys = timed_keys(1, count_of(1000u, 4000u, 20000u), 300, 200, kWindow * 5 / 4);
  // A key that fades out of aged slices is found by one bit of another key.
  const std::uint64_t cells = GetParam().aged() ? 10 * kCells : kCells;
  for (const Slicing slicing : kSlicings) {
    for (const bool claims : {false, true}) {
      const LocalWindow window(GetParam(), GetParam().slices(slicing, cells),
                               {.window = window_of(kWindow), .claims = claims});
      std::vector<Verdict> expected;
      for (const std::size_t batch : {1u, 37u, 3000u}) {
        if (claims && batch != 37) continue;
        const auto slices = LocalWindow(window.window, window.slices, window.options).producer();
        ExactWindow exact = exact_of(*slices);
        if (expected.empty()) expected = exact_verdicts(exact, keys);
        const std::vector<Verdict> verdicts = observe(*slices, keys, batch);
        const auto wrong = std::ranges::mismatch(verdicts, expected).in1 - verdicts.begin();
        EXPECT_EQ(wrong, std::ssize(expected)) << name_of(slicing) << batch << claims;
        EXPECT_EQ(slices->traffic().keys, keys.size());
        if (exact.late > 0) {
          EXPECT_EQ(slices->late(), exact.late);
        }
      }
      const auto distinct = std::ranges::count(expected, Verdict::distinct);
      EXPECT_GT(distinct, std::ssize(expected) / 8);
      EXPECT_LT(distinct, std::ssize(expected) * 2 / 3);
    }
  }
}

// A few bits per key, so that false positives are compared, too: whichever way a stream is cut, and
// whoever asks.
TEST_P(WindowsOverSlices, EveryBatchJudgesAlike) {
  const TimedKeys keys = timed_keys(2, 4000, 1500, 100, kWindow / 2);
  for (const Slicing slicing : kSlicings) {
    std::vector<Verdict> expected;
    for (const std::size_t batch : {1u, 37u, 4000u}) {
      const LocalWindow window(GetParam(), GetParam().slices(slicing, 1000),
                               {.window = window_of(kWindow)});
      const auto slices = window.producer();
      const std::vector<Verdict> verdicts = observe(*slices, keys, batch);
      if (expected.empty()) expected = verdicts;
      EXPECT_EQ(verdicts, expected) << name_of(slicing) << batch;
    }
    ExactWindow exact = exact_of(
        *LocalWindow(GetParam(), GetParam().slices(slicing, 1000), {.window = window_of(kWindow)})
             .producer());
    EXPECT_LT(std::ranges::count(expected, Verdict::distinct),
              std::ranges::count(exact_verdicts(exact, keys), Verdict::distinct));
  }
}

// Producers take turns, and their clocks differ by less than `ahead`: no key is let through twice
// within the window, and each is again after the window and its slack.
TEST_P(WindowsOverSlices, ProducersWhoseClocksDifferShareTheWindow) {
  const LocalWindow window = vertical();
  const auto first = window.producer(), second = window.producer();
  const std::int64_t skew = first->ahead_ms();
  ASSERT_GT(skew, 0);
  SplitMix64 random(3);
  std::map<std::uint64_t, std::int64_t> last;  // true times of deliveries
  std::int64_t now = kStart;
  std::size_t again = 0;
  for (int i = 0; i < count_of(2000, 6000, 60000); ++i) {
    now += static_cast<std::int64_t>(random.next() % 100);
    const std::uint64_t key = random.next() % 2000;
    const bool ahead = random.next() % 2 == 0;
    const std::int64_t says = ahead ? now + skew : now;
    const Verdict verdict = observe(ahead ? *first : *second, digest_of(key), says);
    const auto found = last.find(key);
    const std::int64_t age = found == last.end() ? 1'000'000'000 : now - found->second;
    // Whoever is ahead takes a key of the other for that much older.
    if (age < kWindow - skew) {
      EXPECT_EQ(verdict, Verdict::duplicate) << i << " " << age;
    }
    if (age >= kWindow + skew + first->slack_ms()) {
      EXPECT_EQ(verdict, Verdict::distinct) << i << " " << age;
    }
    again += found != last.end() && verdict == Verdict::distinct;
    if (verdict == Verdict::distinct) last[key] = now;
  }
  EXPECT_GT(again, 100u);
}

TEST_P(WindowsOverSlices, ATimeThatIsFarAheadMovesOnlyItsOwnKey) {
  const LocalWindow window = vertical();
  const auto slices = window.producer(), other = window.producer();
  const std::vector<Digest> keys = keys_from(0, 200);
  EXPECT_EQ(delivered(*slices, keys, kStart), 200u);
  const std::int64_t year = 31'536'000'000;
  EXPECT_EQ(observe(*slices, digest_of(777), kStart + year), Verdict::distinct);
  EXPECT_EQ(delivered(*slices, keys, kStart + 1000), 0u);
  EXPECT_EQ(held(*other, keys, kStart + 1000), 200u);
  EXPECT_EQ(delivered(*slices, keys_from(1000, 200), kStart + 2000), 200u);
  EXPECT_EQ(held(*other, keys_from(1000, 200), kStart + 2000), 200u);
  EXPECT_EQ(slices->late(), 0u);
}

// After a quiet time longer than the window everything is new, and is remembered from the first
// event on.
TEST_P(WindowsOverSlices, AfterAQuietTimeAllIsNew) {
  const LocalWindow window = vertical();
  const auto slices = window.producer();
  const std::vector<Digest> keys = keys_from(0, 100);
  for (const std::int64_t after : {0, 40'000, 900'000'000}) {
    EXPECT_EQ(delivered(*slices, keys, kStart + after * 10), 100u);
    EXPECT_EQ(delivered(*slices, keys, kStart + after * 10 + kWindow / 2), 0u);
  }
}

TEST_P(WindowsOverSlices, InsertRemembersAtTheEventsOwnTime) {
  const LocalWindow window = vertical();
  const auto slices = window.producer();
  const std::vector<Digest> keys = keys_from(0, 100);
  const std::int64_t age = kWindow / 2;
  slices->insert({&keys[0], 1}, std::vector{kStart + age});
  slices->insert(keys, std::vector(keys.size(), kStart));
  EXPECT_EQ(held(*slices, keys, kStart + kWindow - 1), 100u);
  EXPECT_TRUE(holds(*slices, keys[0], kStart + age + kWindow - 1));
  EXPECT_EQ(held(*slices, {&keys[1], 99}, kStart + kWindow + slices->slack_ms()), 0u);
  // Too late.
  slices->insert({&keys[1], 1}, std::vector{kStart + age - kWindow});
  EXPECT_EQ(slices->late(), 1u);
}

// --- faults --------------------------------------------------------------------------------------

TEST_P(WindowsOverSlices, FailedSitesCountAsTheRuleSays) {
  const LocalWindow window = vertical();
  const auto with = [&](FaultRule rule) {
    return window.producer({.window = window_of(kWindow), .rule = rule});
  };
  const auto as_duplicate = with({}), hybrid = with(FaultRule::hybrid(1)),
             as_distinct = with(FaultRule::distinct(GetParam().k));
  const std::vector<Digest> seen = keys_from(0, 300), fresh = keys_from(5000, 300);
  EXPECT_EQ(delivered(*as_duplicate, seen, kStart), 300u);
  for (const auto& memory : window.memories) memory->fail();
  EXPECT_EQ(held(*as_duplicate, seen, kStart), 300u);
  EXPECT_EQ(held(*as_duplicate, fresh, kStart), 300u);
  EXPECT_EQ(as_duplicate->ruled(), 600u);
  EXPECT_EQ(held(*as_distinct, seen, kStart), 0u);
  EXPECT_EQ(held(*hybrid, seen, kStart), 0u);
  EXPECT_GT(as_duplicate->traffic().unanswered, 0u);
  // Half of the sites: a key with a set bit there, and none that is not set, is a duplicate to two.
  for (int i = 0; i < 5; ++i) window.memories[i]->come_back();
  EXPECT_EQ(held(*as_duplicate, seen, kStart), 300u);
  EXPECT_GT(held(*hybrid, seen, kStart), 240u);
  EXPECT_LT(held(*hybrid, seen, kStart), 300u);
  EXPECT_LT(held(*as_distinct, seen, kStart), 60u);
  EXPECT_LT(held(*as_duplicate, fresh, kStart), 150u);
  for (const auto& memory : window.memories) memory->come_back();
  EXPECT_EQ(held(*as_distinct, seen, kStart), 300u);
  EXPECT_EQ(held(*as_duplicate, fresh, kStart), 0u);
}

// What was lost is doubted until it is out of the window, and no longer.
TEST_P(WindowsOverSlices, APageThatIsLostIsDoubtedUntilItWouldBeEmpty) {
  const LocalWindow window = vertical({.window = window_of(kWindow), .rule = FaultRule::hybrid(1)});
  const auto slices = window.producer();
  const std::vector<Digest> seen = keys_from(0, 300), later = keys_from(1000, 300);
  EXPECT_EQ(delivered(*slices, seen, kStart), 300u);
  for (const std::int64_t page : window.memories[3]->pages()) window.memories[3]->lose(page);
  EXPECT_EQ(held(*slices, seen, kStart), 300u);
  EXPECT_FALSE(slices->trusted(3));
  EXPECT_TRUE(slices->trusted(2));
  // Repeats fill it again.
  EXPECT_EQ(delivered(*slices, seen, kStart), 0u);
  slices->trust(3);
  EXPECT_EQ(held(*slices, seen, kStart), 300u);
  // It came back empty with all else.
  window.memories[3]->come_back_empty();
  EXPECT_EQ(delivered(*slices, later, kStart + kWindow / 2), 300u);
  EXPECT_FALSE(slices->trusted(3));
  EXPECT_EQ(held(*slices, seen, kStart + kWindow - 1), 300u);
  const std::int64_t gone =
      kStart + kWindow / 2 + kWindow + slices->slack_ms() + slices->ahead_ms();
  for (std::int64_t time = kStart + kWindow; time < gone; time += kWindow / 7)
    delivered(*slices, seen, time);
  observe(*slices, digest_of(1), gone);
  EXPECT_TRUE(slices->trusted(3));
}

TEST_P(WindowsOverSlices, ASiteThatMissedAWriteIsNotBelieved) {
  const LocalWindow window = vertical({.window = window_of(kWindow), .rule = FaultRule::hybrid(1)});
  const auto slices = window.producer();
  const std::vector<Digest> seen = keys_from(0, 200);
  delivered(*slices, keys_from(900, 20), kStart);
  window.memories[3]->fail();
  EXPECT_EQ(delivered(*slices, seen, kStart), 200u);
  window.memories[3]->come_back();
  EXPECT_EQ(held(*slices, seen, kStart + 1), 200u);
  EXPECT_FALSE(slices->trusted(3));
  EXPECT_GT(slices->ruled(), 0u);
}

// Time passes for the sites as it does for the stream: old pages go, and nothing of the window with
// them. When the stream stands still for less than the grace nothing is lost; when it does for
// longer, that is noticed.
TEST_P(WindowsOverSlices, PagesGoByThemselves) {
  const LocalWindow window = vertical({.window = window_of(kWindow), .rule = FaultRule::hybrid(1)});
  const auto slices = window.producer();
  std::int64_t now = kStart;
  std::size_t most = 0;
  const auto go_on = [&](std::int64_t until, std::uint64_t first) {
    for (; now < until; now += 500) {
      const std::vector<Digest> keys = keys_from(first + static_cast<std::uint64_t>(now), 3);
      EXPECT_EQ(delivered(*slices, keys, now), 3u);
      window.pass(500);
      most = std::max(most, window.pages());
      if (now < kStart + kWindow) continue;
      // A key that was delivered nearly a window ago.
      const std::int64_t then = now - kWindow + 500;
      EXPECT_EQ(held(*slices, keys_from(first + static_cast<std::uint64_t>(then), 3), now), 3u);
    }
  };
  go_on(kStart + 20 * kWindow, 0);
  if (GetParam().aged()) {
    // Of 10 sites: k + l generations, one that is ahead, half a window of grace, and the present.
    EXPECT_LE(most, 10u * (4 + 6 + 1 + 3 + 2));
    EXPECT_GT(most, 100u);
  } else {
    EXPECT_LE(most, GetParam().unit_ms == 1 ? 40u : 20u);
  }
  for (std::uint32_t site = 0; site < 10; ++site) EXPECT_TRUE(slices->trusted(site)) << site;
  const std::vector<Digest> seen = keys_from(7, 300);
  EXPECT_EQ(delivered(*slices, seen, now), 300u);
  window.pass(kWindow / 2 - 1000);
  EXPECT_EQ(held(*slices, seen, now), 300u);
  for (std::uint32_t site = 0; site < 10; ++site) EXPECT_TRUE(slices->trusted(site)) << site;
  // Two months, for timers' pages.
  window.pass(std::int64_t{1} << 33);
  EXPECT_EQ(window.pages(), 0u);
  EXPECT_EQ(held(*slices, seen, now), 0u);
  EXPECT_EQ(slices->ruled(), 300u);
  for (std::uint32_t site = 0; site < 10; ++site) EXPECT_FALSE(slices->trusted(site)) << site;
}

// --- what cannot be ------------------------------------------------------------------------------

TEST_P(WindowsOverSlices, RefuseWhatCannotBe) {
  const LocalWindow window = vertical();
  const auto with = [&](const WindowSlices::Options& options) { window.producer(options); };
  const auto problem = [&](const WindowSlices::Options& options) -> std::string {
    try {
      window.producer(options);
    } catch (const BadParameters& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_NE(problem({.window = {WindowSpec::Kind::count, 1000}}).find("no site sees the whole"),
            std::string::npos);
  EXPECT_THROW(with({.window = {WindowSpec::Kind::landmark, 1000}}), BadParameters);
  EXPECT_THROW(with({.window = {WindowSpec::Kind::time, 0}}), BadParameters);
  EXPECT_THROW(with({.window = window_of(kWindow), .rule = FaultRule::hybrid(5)}), BadParameters);
  EXPECT_THROW(with({.window = window_of(kWindow), .ahead = std::chrono::hours(1)}), BadParameters);
  EXPECT_THROW(with({.window = window_of(kWindow), .grace = std::chrono::seconds(0)}),
               BadParameters);
  const std::uint64_t cells = SliceMap(window.slices).site_bits();
  for (const auto& [count, each, bits] : {std::tuple(std::size_t{9}, cells, GetParam().cell_bits()),
                                          {std::size_t{10}, cells - 1, GetParam().cell_bits()},
                                          {std::size_t{10}, cells, GetParam().aged() ? 16u : 1u}})
    EXPECT_THROW(GetParam().make(window.slices, window.options,
                                 connect_pages(local_memories(count, each, bits))),
                 BadParameters);
  const auto slices = window.producer();
  const Digest key = digest_of(1);
  Verdict verdict;
  EXPECT_THROW(slices->observe({&key, 1}, {}, {&verdict, 1}), BadParameters);
  const std::int64_t far = WindowSlices::kFarthestMs + 1;
  EXPECT_THROW(slices->observe({&key, 1}, {&far, 1}, {&verdict, 1}), BadParameters);
  EXPECT_EQ(slices->traffic().requests, 0u);
}

}  // namespace
}  // namespace sluice::cluster
