// What is particular to timers: their units and pages, equal timers, and writes that overtake each
// other.
#include "sluice/cluster/timer_slices.hpp"

#include <gtest/gtest.h>

#include <functional>
#include <set>
#include <utility>

#include "sluice/base/error.hpp"
#include "tests/support/window_slices.hpp"

namespace sluice::cluster {
namespace {

using namespace testing_support;

constexpr std::int64_t kStart = 1'700'000'000'000;
constexpr std::int64_t kWindow = 10'000;

TEST(TimerUnits, EachCellTellsOneTime) {
  for (const unsigned bits : {16u, 32u})
    for (const std::uint32_t sites : {1u, 7u, 65536u}) {
      const TimerUnits units = TimerUnits::of(kWindow, bits, 0, sites);
      for (const std::int64_t ms : {-kStart, std::int64_t{-1}, std::int64_t{0}, kStart, kStart * 2})
        for (const std::uint32_t site : {0u, sites / 2, sites - 1}) {
          const std::int64_t unit = units.unit_of(ms);
          const std::uint32_t value = units.value_of(site, unit);
          EXPECT_GE(value, 1u);
          EXPECT_LE(value, units.units);
          EXPECT_EQ(units.unit_at(site, units.page_of(site, unit), value), unit);
          EXPECT_LE(unit * units.unit_ms, ms);
          EXPECT_GT((unit + 1) * units.unit_ms, ms);
        }
    }
  EXPECT_EQ(TimerUnits::of(600'000, 32, 0, 1).unit_ms, 1);
  // 2344 ms: a 256th of the window, rounded up.
  EXPECT_EQ(TimerUnits::of(600'000, 16, 0, 1).unit_ms, 2344);
  // Two years.
  EXPECT_EQ(TimerUnits::of(std::int64_t{2} * 365 * 86'400'000, 32, 0, 1).unit_ms, 59);
}

// Pages change one site after the other: no two of twelve within twenty windows.
TEST(TimerUnits, SitesChangeTheirPagesInTurn) {
  const TimerUnits units = TimerUnits::of(kWindow, 16, 0, 12);
  const std::int64_t window = kWindow / units.unit_ms;
  std::vector<std::int64_t> changes;
  for (std::uint32_t site = 0; site < 12; ++site)
    changes.push_back(units.unit_at(site, 1'000'000, 1) % units.units);
  std::ranges::sort(changes);
  for (std::size_t i = 1; i < changes.size(); ++i)
    EXPECT_GT(changes[i] - changes[i - 1], 20 * window);
}

SliceParams vertical(std::uint64_t timers, unsigned probes = 4) {
  return {Slicing::vertical, timers, probes, 4, 1, 1};
}

struct Timers {
  explicit Timers(const TimerSlices::Params& with, std::int64_t window_ms = kWindow)
      : params(with),
        options{.window = window_of(window_ms)},
        memories(local_memories(4, SliceMap(with.slices).site_bits(), with.timer_bits)) {}
  std::unique_ptr<TimerSlices> producer() const {
    return std::make_unique<TimerSlices>(params, options, connect_pages(memories));
  }
  TimerSlices::Params params;
  WindowSlices::Options options;
  std::vector<std::shared_ptr<LocalMemory>> memories;
};

// One timer for all keys: the sights are those of the last delivery.
TEST(TimerSlices, EqualTimersTellWhoWroteThem) {
  const Timers timers({.slices = vertical(100'000, 8), .equal = 8, .different = true});
  const auto slices = timers.producer();
  const Digest key = digest_of(1);
  const auto look = [&](std::int64_t ms) {
    Verdict verdict;
    TimerSlices::Sight sight;
    slices->observe({&key, 1}, {&ms, 1}, {&verdict, 1}, {&sight, 1});
    return std::pair(verdict, sight);
  };
  EXPECT_EQ(look(kStart).first, Verdict::distinct);
  EXPECT_EQ(look(kStart).second.equal, 8u);
  EXPECT_EQ(look(kStart + 5).first, Verdict::duplicate);
  // Another key writes one of its timers: the test fails once, and the key is written again.
  std::vector<Place> places(8);
  slices->map().places(key, places);
  const TimerUnits& units = slices->units();
  const std::int64_t unit = units.unit_of(kStart + 6);
  const std::uint32_t value = units.value_of(places[2].site, unit);
  std::uint32_t before = 0;
  LocalSite(timers.memories[places[2].site], units.page_of(places[2].site, unit))
      .ask({.verb = Verb::test_and_set,
            .positions = {&places[2].position, 1},
            .values = {&value, 1}},
           {&before, 1});
  const auto [verdict, sight] = look(kStart + 7);
  EXPECT_EQ(verdict, Verdict::distinct);
  EXPECT_TRUE(sight.all_live);
  EXPECT_EQ(sight.equal, 7u);
  EXPECT_EQ(look(kStart + 8).first, Verdict::duplicate);
}

TEST(TimerSlices, DifferentTimersAreDifferent) {
  // 16 timers and 8 probes: without it most keys have one twice.
  for (const bool different : {false, true}) {
    std::uint64_t written = 0;
    for (std::uint64_t key = 0; key < 50; ++key) {
      const Timers timers({.slices = {Slicing::vertical, 16, 8, 1, 1, 1}, .different = different});
      const auto memories = local_memories(1, 16, 32);
      TimerSlices slices(timers.params, timers.options, connect_pages(memories));
      testing_support::observe(slices, digest_of(key), kStart);
      written += memories[0]->set_bits();
    }
    if (different) {
      EXPECT_EQ(written, 400u);
    } else {
      EXPECT_LT(written, 350u);
    }
  }
}

// --- writes that overtake each other -------------------------------------------------------------

// A site that does what is asked of it only when it is told to, as if requests were on their way.
// `gate` decides what happens to a write before it is carried out.
struct Gate {
  std::function<bool(const Request&)> before = [](const Request&) { return true; };
};
class GatedSite final : public Site {
 public:
  GatedSite(std::unique_ptr<Site> site, std::shared_ptr<Gate> gate)
      : site_(std::move(site)), gate_(std::move(gate)) {}
  std::uint64_t cells() const override { return site_->cells(); }
  unsigned cell_bits() const override { return site_->cell_bits(); }
  void send(const Request& request) override {
    lost_ = request.verb == Verb::test_and_set && !gate_->before(request);
    if (!lost_) site_->send(request);
  }
  Reply receive(std::span<std::uint32_t> answers) override {
    return lost_ ? Reply{Outcome::late, 0} : site_->receive(answers);
  }

 private:
  std::unique_ptr<Site> site_;
  std::shared_ptr<Gate> gate_;
  bool lost_ = false;
};
class GatedPages final : public Pages {
 public:
  GatedPages(std::unique_ptr<Pages> pages, std::shared_ptr<Gate> gate)
      : pages_(std::move(pages)), gate_(std::move(gate)) {}
  std::uint64_t cells() const override { return pages_->cells(); }
  unsigned cell_bits() const override { return pages_->cell_bits(); }
  std::unique_ptr<Site> open(std::int64_t number) override {
    return std::make_unique<GatedSite>(pages_->open(number), gate_);
  }

 private:
  std::unique_ptr<Pages> pages_;
  std::shared_ptr<Gate> gate_;
};

// Two producers write the timers of one key, the one with the earlier event last.
struct Race : testing::Test {
  Race() {
    std::vector<std::unique_ptr<Pages>> sites;
    for (auto& pages : connect_pages(timers.memories))
      sites.push_back(std::make_unique<GatedPages>(std::move(pages), gate));
    early = std::make_unique<TimerSlices>(timers.params, timers.options, std::move(sites));
    std::vector<Place> places(4);
    early->map().places(key, places);
    std::set<std::uint32_t> sites_met;
    for (const Place& place : places) sites_met.insert(place.site);
    sites_of_key = sites_met.size();
  }
  // Once, before the early producer's first write is carried out.
  void then_once(std::function<bool()> what) {
    gate->before = [what = std::move(what), first = true](const Request&) mutable {
      return !std::exchange(first, false) || what();
    };
  }

  static constexpr std::int64_t kApart = 4000;
  const TimerSlices::Params params{.slices = {Slicing::vertical, 100'000, 4, 4, 1, 1}};
  const Timers timers{params};
  const Digest key = digest_of(1);
  std::size_t sites_of_key = 0;
  std::shared_ptr<Gate> gate = std::make_shared<Gate>();
  std::unique_ptr<TimerSlices> early, late = timers.producer(), other = timers.producer();
};

TEST_F(Race, TheLaterTimeStays) {
  then_once([&] {
    EXPECT_EQ(testing_support::observe(*late, key, kStart + kApart), Verdict::distinct);
    return true;
  });
  EXPECT_EQ(testing_support::observe(*early, key, kStart), Verdict::distinct);
  EXPECT_GE(early->repaired(), 1u);
  EXPECT_EQ(late->repaired(), 0u);
  // As if it had been the other way round.
  EXPECT_TRUE(holds(*other, key, kStart + kApart + kWindow - 1));
  EXPECT_FALSE(holds(*other, key, kStart + kApart + kWindow));
}

// While the first puts back what it has overwritten, a third writes a time that is later still.
TEST_F(Race, TheLatestOfThreeStays) {
  const auto third = timers.producer();
  std::size_t writes = 0;
  gate->before = [&](const Request&) {
    if (writes == 0) testing_support::observe(*late, key, kStart + kApart);
    // The first of those that put back: one per site.
    if (writes == sites_of_key) third->insert({&key, 1}, std::vector{kStart + 2 * kApart});
    ++writes;
    return true;
  };
  testing_support::observe(*early, key, kStart);
  EXPECT_GT(writes, 2 * sites_of_key) << "what the third wrote was put back, too";
  EXPECT_TRUE(holds(*other, key, kStart + 2 * kApart + kWindow - 1));
  EXPECT_FALSE(holds(*other, key, kStart + 2 * kApart + kWindow));
}

// The bound: a producer that dies before it has put back the later time leaves the earlier one. The
// key is forgotten early by the difference of the two events, and by no more.
TEST_F(Race, WhoDiesInBetweenLeavesTheEarlierTime) {
  std::size_t writes = 0;
  gate->before = [&](const Request&) {
    if (writes == 0) testing_support::observe(*late, key, kStart + kApart);
    return writes++ < sites_of_key;
  };
  testing_support::observe(*early, key, kStart);
  EXPECT_EQ(writes, 2 * sites_of_key);
  EXPECT_TRUE(holds(*other, key, kStart + kWindow - 1));
  EXPECT_FALSE(holds(*other, key, kStart + kWindow));
}

// An early write that is not carried out at all loses nothing of the later one.
TEST_F(Race, AWriteThatIsLostIsDoubted) {
  then_once([] { return false; });
  testing_support::observe(*early, key, kStart);
  EXPECT_TRUE(holds(*early, key, kStart + 1)) << "its site is doubted";
  EXPECT_EQ(early->traffic().unanswered, 1u);
}

TEST(TimerSlices, RefuseWhatCannotBe) {
  const auto with = [](const TimerSlices::Params& params, std::int64_t window_ms = kWindow) {
    Timers(params, window_ms).producer();
  };
  EXPECT_NO_THROW(with({.slices = vertical(100)}));
  EXPECT_THROW(with({.slices = vertical(100), .unit_ms = -1}), BadParameters);
  EXPECT_THROW(with({.slices = vertical(100), .equal = 5}), BadParameters);
  EXPECT_THROW(with({.slices = vertical(12), .different = true}), BadParameters);
  EXPECT_THROW(
      TimerSlices({.slices = vertical(100), .timer_bits = 8}, {.window = window_of(kWindow)},
                  connect_pages(local_memories(4, 25, 16))),
      BadParameters);
  // A day in ms, of which 16 bits tell a minute.
  EXPECT_THROW(with({.slices = vertical(100), .timer_bits = 16, .unit_ms = 1}, 86'400'000),
               BadParameters);
}

}  // namespace
}  // namespace sluice::cluster
