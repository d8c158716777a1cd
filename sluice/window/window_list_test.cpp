// Windows that start as a short list: exact before they have a table, and whole when they get one.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <random>
#include <vector>

#include "sluice/base/error.hpp"
#include "sluice/filters/any_filter.hpp"
#include "sluice/snapshot/clone.hpp"
#include "sluice/window/window.hpp"
#include "tests/support/counts.hpp"
#include "tests/support/digests.hpp"
#include "tests/support/filter_bytes.hpp"
#include "tests/support/host_memory.hpp"

namespace sluice {
namespace {

using testing_support::count_of;
using testing_support::digest_of;

constexpr Nanoseconds kSecond = 1'000'000'000;
constexpr Nanoseconds kStart = 1'700'000'000 * kSecond;

Window::Params listed(const WindowSpec& spec, Anchor anchor = Anchor::delivered) {
  return {.spec = spec, .anchor = anchor, .listed = true};
}

struct Event {
  std::uint64_t key;
  Nanoseconds time;
};

struct Judged {
  Verdict verdict;
  bool late;
  friend bool operator==(const Judged&, const Judged&) = default;
};

std::vector<Judged> judge(Window& window, std::span<const Event> events, std::size_t together) {
  std::vector<Judged> all;
  for (std::size_t at = 0; at < events.size(); at += together) {
    const auto part = events.subspan(at, std::min(together, events.size() - at));
    std::vector<Digest> digests;
    std::vector<Nanoseconds> times;
    for (const Event& event : part) {
      digests.push_back(digest_of(event.key));
      times.push_back(event.time);
    }
    std::vector<Verdict> verdicts(part.size());
    const auto late = std::make_unique<bool[]>(part.size());
    EXPECT_EQ(window.judge(digests, times, verdicts, {late.get(), part.size()}), part.size());
    for (std::size_t i = 0; i < part.size(); ++i) all.push_back({verdicts[i], late[i]});
  }
  return all;
}

// By the definition alone: the last time of each key, and now the greatest time so far.
std::vector<Judged> truth(const WindowSpec& spec, Anchor anchor, std::span<const Event> events) {
  std::map<std::uint64_t, Nanoseconds> last;
  std::vector<Judged> all;
  const auto size = static_cast<Nanoseconds>(spec.size);
  Nanoseconds now = 0, written = 0;
  for (const auto& [key, time] : events) {
    now = std::max(now, time);
    const auto inside = [&](Nanoseconds at) {
      if (spec.kind == WindowSpec::Kind::count) return at >= written - size;
      if (spec.kind == WindowSpec::Kind::landmark) return at / size == now / size;
      return now - at < size;
    };
    const bool count = spec.kind == WindowSpec::Kind::count;
    if (!count && !inside(time)) {
      all.push_back({Verdict::distinct, true});
      continue;
    }
    const auto found = last.find(key);
    const bool known = found != last.end() && inside(found->second);
    all.push_back({known ? Verdict::duplicate : Verdict::distinct, false});
    if (known && anchor == Anchor::delivered) continue;
    const Nanoseconds at = count ? written++ : time;
    last[key] = found == last.end() ? at : std::max(at, found->second);
  }
  return all;
}

std::vector<Event> stream(unsigned seed, std::size_t count, std::uint64_t keys) {
  std::mt19937_64 random(seed);
  std::vector<Event> events;
  Nanoseconds now = kStart;
  for (std::size_t i = 0; i < count; ++i) {
    now += static_cast<Nanoseconds>(random() % (4 * kSecond));
    const bool behind = i > 2 && random() % 4 == 0;
    events.push_back(
        {random() % keys, now - (behind ? Nanoseconds(random() % (90 * kSecond)) : 0)});
  }
  return events;
}

struct Case {
  WindowSpec spec;
  Anchor anchor;
};

const Case kCases[] = {
    {{WindowSpec::Kind::time, 60 * kSecond}, Anchor::delivered},
    {{WindowSpec::Kind::time, 60 * kSecond}, Anchor::refreshed},
    {{WindowSpec::Kind::landmark, 3600 * kSecond}, Anchor::delivered},
    {{WindowSpec::Kind::count, 25}, Anchor::delivered},
    {{WindowSpec::Kind::count, 25}, Anchor::refreshed},
};

// Not to the nearest generation: to the nanosecond, and to the key.
TEST(WindowList, IsExact) {
  for (const Case& it : kCases)
    for (const unsigned seed : {1u, 2u, 3u}) {
      const auto events = stream(seed, 4000, 60);
      Window window = Window::make(listed(it.spec, it.anchor));
      const auto judged = judge(window, events, 1 + seed * 7);
      const auto expected = truth(it.spec, it.anchor, events);
      ASSERT_TRUE(window.listed());
      for (std::size_t i = 0; i < events.size(); ++i)
        ASSERT_EQ(judged[i], expected[i]) << "record " << i << ", seed " << seed;
      EXPECT_EQ(window.stats().predicted_fpr, 0);
      EXPECT_EQ(window.stats().listed, window.stats().keys);
      EXPECT_GT(window.stats().keys, 0u);
    }
}

TEST(WindowList, EndsAtTheVeryNanosecond) {
  Window window = Window::make(listed({WindowSpec::Kind::time, 60 * kSecond}));
  const std::vector<Event> events = {{1, kStart},
                                     {2, kStart + 1},
                                     {1, kStart + 60 * kSecond - 1},
                                     {1, kStart + 60 * kSecond},
                                     {2, kStart + 60 * kSecond}};
  const Verdict expected[] = {Verdict::distinct, Verdict::distinct, Verdict::duplicate,
                              Verdict::distinct, Verdict::duplicate};
  const auto judged = judge(window, events, 2);
  for (std::size_t i = 0; i < events.size(); ++i) EXPECT_EQ(judged[i].verdict, expected[i]) << i;
}

TEST(WindowList, AnswersForALaterTimeWithoutChange) {
  Window window = Window::make(listed({WindowSpec::Kind::time, 60 * kSecond}));
  window.arrive(kStart);
  EXPECT_EQ(window.observe(digest_of(1)), Verdict::distinct);
  const auto before = testing_support::bytes_of(window);
  EXPECT_TRUE(window.may_contain(digest_of(1), kStart + 60 * kSecond - 1));
  EXPECT_FALSE(window.may_contain(digest_of(1), kStart + 60 * kSecond));
  EXPECT_TRUE(window.may_contain(digest_of(1), kStart - 5 * kSecond)) << "a clock that is behind";
  EXPECT_TRUE(window.may_contain(digest_of(1)));
  EXPECT_EQ(testing_support::bytes_of(window), before);
}

// Deliveries are the clock of a count window: a time that is told changes nothing.
TEST(WindowList, OfDeliveriesHasNoTime) {
  AnyFilter filter(Window::make(listed({WindowSpec::Kind::count, 500})));
  const auto before = testing_support::bytes_of(*filter.window());
  filter.window()->arrive(kStart);
  EXPECT_EQ(testing_support::bytes_of(*filter.window()), before);
  AnyFilter copy = clone(filter);
  EXPECT_EQ(copy.window()->observe(digest_of(1)), Verdict::distinct);
}

// Wild clocks, corrections and claims: as a window with a table judges them, but for slack.
TEST(WindowList, ReadsTimesAsATableDoes) {
  std::mt19937_64 random(5);
  std::size_t compared = 0;
  for (int round = 0; round < 200; ++round) {
    std::vector<Event> events;
    Nanoseconds now = kStart;
    for (int i = 0; i < 60; ++i) {
      now += Nanoseconds(random() % (9 * kSecond));
      const auto choice = random() % 20;
      const Nanoseconds time = choice == 0   ? now + Nanoseconds(random() % (4000 * kSecond))
                               : choice == 1 ? now - Nanoseconds(random() % (400 * kSecond))
                                             : now;
      events.push_back({random() % 12, time});
    }
    Window::Params params = listed({WindowSpec::Kind::time, 60 * kSecond});
    params.filter = "exact-window,generations=60";
    Window list = Window::make(params);
    params.listed = false;
    Window table = Window::make(params);
    const auto one = judge(list, events, 7), other = judge(table, events, 13);
    for (std::size_t i = 0; i < events.size(); ++i) {
      ASSERT_EQ(one[i].late, other[i].late) << round << " " << i;
      // The table remembers up to a second too long; from there on the two differ.
      if (one[i].verdict != other[i].verdict) {
        ASSERT_EQ(other[i].verdict, Verdict::duplicate) << round << " " << i;
        break;
      }
      ++compared;
    }
  }
  EXPECT_GT(compared, 6000u);
}

TEST(WindowList, BecomesATableThatHasForgottenNothing) {
  for (const Case& it : kCases)
    for (const std::size_t together : {1u, 50u, 5000u}) {
      Window::Params params = listed(it.spec, it.anchor);
      if (params.spec.kind == WindowSpec::Kind::count) params.spec.size = 3000;
      if (params.spec.kind == WindowSpec::Kind::time) params.spec.size = 2000 * kSecond;
      Window window = Window::make(params);
      const auto events = stream(9, 5000, 1500);
      const auto judged = judge(window, events, together);
      const auto expected = truth(params.spec, it.anchor, events);
      EXPECT_FALSE(window.listed());
      EXPECT_EQ(window.stats().listed, 0u);
      std::size_t slack = 0;
      for (std::size_t i = 0; i < events.size(); ++i) {
        if (judged[i] == expected[i]) continue;
        // A generation too long at most: it is never forgotten too early. From then on the two
        // have delivered different events.
        ASSERT_EQ(judged[i].verdict, Verdict::duplicate) << i;
        if (++slack > 0) break;
      }
    }
}

// A key that the new table finds by mistake, as an older one, must not be forgotten with that one.
// Each key comes again when its window is nearly over, as late as it still must be known.
TEST(WindowList, BecomesATableThatTakesNoKeyForAnOlderOne) {
  constexpr Nanoseconds kLong = 3600 * kSecond;
  const unsigned seeds = count_of(2u, 6u, 60u);
  std::size_t repeats = 0, tables = 0;
  for (const char* filter : {"cohort,slot=16", "cohort", "timing", "timer", "apbf", "apbbf",
                             "exact-window", "sharded,of=cohort,shards=2"})
    for (const bool by_count : {false, true})
      for (const Anchor anchor : {Anchor::delivered, Anchor::refreshed})
        for (const double fpr : {0.3, 0.05})
          for (const std::uint64_t keys : {30u, 100u, 400u})
            for (unsigned seed = 0; seed < seeds; ++seed) {
              Window::Params params = listed({WindowSpec::Kind::time, kLong}, anchor);
              if (by_count) params.spec = {WindowSpec::Kind::count, keys};
              params.filter = filter;
              params.fpr = fpr;
              if (!by_count) params.keys = keys;
              Window window = Window::make(params);
              // Half of a window of new keys, and again each just before it leaves.
              std::vector<Event> events;
              for (std::uint64_t i = 0; i < keys; ++i) {
                const Nanoseconds at = kStart + Nanoseconds(i) * (kLong / 2 / Nanoseconds(keys));
                events.push_back({seed * 1000 + i, at});
                events.push_back({seed * 1000 + i, at + kLong - 1});
              }
              std::ranges::stable_sort(events, {}, &Event::time);
              std::map<std::uint64_t, Nanoseconds> last;
              Nanoseconds written = 0;
              const auto size = static_cast<Nanoseconds>(params.spec.size);
              for (const Event& event : events) {
                const Judged judged = judge(window, std::span(&event, 1), 1).front();
                const Nanoseconds now = by_count ? written : event.time;
                const auto known = last.find(event.key);
                if (known != last.end() && now - known->second < size + (by_count ? 1 : 0)) {
                  ++repeats;
                  ASSERT_EQ(judged.verdict, Verdict::duplicate)
                      << filter << " by count " << by_count << ", " << keys << " keys, fpr " << fpr
                      << ", seed " << seed;
                }
                if (judged.verdict == Verdict::duplicate && anchor == Anchor::delivered) continue;
                last[event.key] = now;
                ++written;
              }
              tables += !window.listed();
            }
  EXPECT_GT(repeats, 10'000u);
  EXPECT_GT(tables, count_of(60u, 200u, 200u));
}

TEST(WindowList, BytesDependOnTheRecordsAlone) {
  for (const Case& it : kCases) {
    const auto events = stream(4, 300, 40);
    Window one = Window::make(listed(it.spec, it.anchor));
    Window other = Window::make(listed(it.spec, it.anchor));
    judge(one, events, 1);
    judge(other, events, 300);
    EXPECT_EQ(testing_support::bytes_of(one), testing_support::bytes_of(other));
  }
}

// The first table is as large as the keys of a list need, and what follows grows with the keys: at no
// time does a window of unknown size take more than its keys would in a list with a quarter free.
TEST(WindowList, GrowsFromSmallTables) {
  HostMemory memory(malloc_calls());
  Window window = Window::make(listed({WindowSpec::Kind::time, 600 * kSecond}), memory);
  const auto digests = testing_support::random_digests(3, 100'000);
  std::vector<Verdict> verdicts(64);
  for (std::size_t keys = 64; keys <= digests.size(); keys += verdicts.size()) {
    ASSERT_EQ(window.observe(std::span(digests).subspan(keys - 64, 64), verdicts), 64u);
    ASSERT_LE(window.bytes(), keys * ShortList::kKeyBytes * 5 / 4 + 512) << keys << " keys";
    ASSERT_FALSE(window.stats().over_target) << keys << " keys";
    if (keys == 960) {
      EXPECT_LE(window.bytes(), 9000u);
    }
  }
}

// A stream of an even pace, from its first key through three windows. The bits per key and the error are
// those of a window that was sized for more keys, but for the first few.
TEST(WindowList, GrowsWithThePaceOfItsStream) {
  for (const std::uint64_t keys : {600u, 2000u, 10'000u, 40'000u, 100'000u}) {
    SCOPED_TRACE(keys);
    Window::Params params = listed({WindowSpec::Kind::time, 600 * kSecond});
    params.fpr = 1e-3;
    Window window = Window::make(params);
    const auto digests = testing_support::random_digests(keys, 3 * keys);
    std::vector<Verdict> verdicts(keys / 100);
    std::uint64_t wrong = 0, most = 0;
    for (std::size_t at = 0; at < digests.size(); at += verdicts.size()) {
      window.arrive(kStart + static_cast<Nanoseconds>(600 * kSecond / keys * at));
      ASSERT_EQ(window.observe(std::span(digests).subspan(at, verdicts.size()), verdicts),
                verdicts.size());
      wrong += count_duplicates(verdicts);
      most = std::max(most, window.bytes());
      ASSERT_FALSE(window.stats().over_target) << at;
    }
    const double expected = 1e-3 * static_cast<double>(digests.size());
    EXPECT_LE(static_cast<double>(wrong), expected + 5 * std::sqrt(expected));
    EXPECT_LE(8 * most, 112 * keys + 8 * 4096);
  }
}

// A window of ten keys and what is made of it in a host: everything that the resource counts.
TEST(WindowList, TenKeysTakeLittle) {
  HostMemory memory(malloc_calls());
  {
    AnyFilter filter(Window::make(listed({WindowSpec::Kind::time, 600 * kSecond}), memory));
    EXPECT_LE(filter.bytes(), 144u) << "empty";
    for (std::uint64_t key = 0; key < 10; ++key) {
      filter.window()->arrive(kStart + static_cast<Nanoseconds>(key) * kSecond);
      EXPECT_EQ(filter.observe(digest_of(key)), Verdict::distinct);
    }
    EXPECT_EQ(memory.taken(), filter.bytes());
    EXPECT_LE(memory.taken(), 400u);
  }
  EXPECT_EQ(memory.taken(), 0u);
}

// A host has many windows, most of them quiet: what a burst took comes back when its keys have left.
TEST(WindowList, ReturnsTheMemoryOfKeysThatLeft) {
  for (const Case& it : kCases) {
    const bool by_count = it.spec.kind == WindowSpec::Kind::count;
    if (by_count && it.anchor == Anchor::delivered) continue;  // as many keys, always
    Window::Params params = listed(it.spec, it.anchor);
    if (by_count) params.spec.size = 60;
    const std::uint64_t burst = by_count ? 50 : 200;
    HostMemory memory(malloc_calls());
    AnyFilter filter(Window::make(params, memory));
    const std::uint64_t empty = memory.taken();
    std::vector<Event> events;
    for (std::uint64_t key = 0; key < burst; ++key) events.push_back({key, kStart});
    judge(*filter.window(), events, 50);
    EXPECT_GE(memory.taken(), empty + burst * ShortList::kKeyBytes);
    const std::vector<Event> later(by_count ? 400 : 1, {1000, kStart + 5 * 3600 * kSecond});
    judge(*filter.window(), later, 7);
    EXPECT_LE(memory.taken(), empty + (by_count ? 8 : 4) * ShortList::kKeyBytes);
    EXPECT_EQ(filter.bytes(), memory.taken());
    EXPECT_EQ(filter.stats().keys, 1u);
    EXPECT_EQ(filter.observe(digest_of(1000)), Verdict::duplicate);
    if (by_count) continue;
    judge(*filter.window(), std::vector<Event>(200, {1, kStart + 9 * 3600 * kSecond}), 1);
    filter.window()->arrive(kStart + 20 * 3600 * kSecond);
    EXPECT_LE(memory.taken(), empty + 4 * ShortList::kKeyBytes) << "time alone";
  }
}

// At an even pace the block keeps its size: nothing is allocated for every key.
TEST(WindowList, KeepsItsBlockAtAnEvenPace) {
  TestMemory memory;
  Window window = Window::make(listed({WindowSpec::Kind::time, 60 * kSecond}), memory);
  for (std::uint64_t key = 0; key < 10'000; ++key) {
    if (key == 1000) memory.fail_at(0);  // counts from here
    window.arrive(kStart + Nanoseconds(key) * kSecond);
    EXPECT_EQ(window.observe(digest_of(key)), Verdict::distinct);
  }
  EXPECT_LE(memory.calls(), 4u);
}

// By another path, the same keys: shrinking, forgetting and refused memory make no difference.
TEST(WindowList, ShrinksWithoutADifference) {
  std::size_t shrunk = 0;
  for (const Case& it : kCases)
    for (unsigned seed = 0; seed < count_of(5u, 20u, 20u); ++seed) {
      TestMemory memory;
      AnyFilter filter(Window::make(listed(it.spec, it.anchor), memory));
      Window& window = *filter.window();
      Window reference = Window::make(listed(it.spec, it.anchor));
      std::mt19937_64 random(seed);
      Nanoseconds now = kStart;
      for (int round = 0; round < 30; ++round) {
        now += Nanoseconds(random() % 200) * kSecond;
        std::vector<Event> events;
        for (std::size_t i = random() % (round % 5 == 0 ? 150 : 6); i > 0; --i)
          events.push_back({random() % 300, now});
        const std::uint64_t before = window.bytes();
        const auto expected = judge(reference, events, 300);
        if (events.empty()) continue;
        memory.fail_at(1 + random() % 3);
        std::size_t at = 0;
        for (const Event& event : events) {
          const Digest digest = digest_of(event.key);
          Verdict verdict{};
          bool late = false;
          const auto once = [&] {
            return window.judge({&digest, 1}, {&event.time, 1}, {&verdict, 1}, {&late, 1});
          };
          if (once() == 0) {
            ASSERT_EQ(once(), 1u);
          }
          ASSERT_EQ((Judged{verdict, late}), expected[at++]);
        }
        memory.fail_at(0);
        for (int i = 0; i < 100; ++i) {
          const Digest digest = digest_of(random() % 300);
          ASSERT_EQ(window.forget(digest), reference.forget(digest));
        }
        shrunk += window.bytes() < before;
        ASSERT_EQ(testing_support::bytes_of(window), testing_support::bytes_of(reference));
        ASSERT_EQ(memory.taken(), filter.bytes());
        const AnyFilter copy = clone(filter);
        ASSERT_EQ(testing_support::bytes_of(*copy.window()), testing_support::bytes_of(reference));
      }
    }
  EXPECT_GT(shrunk, 0u);
}

TEST(WindowList, EveryAllocationThatFailsLeavesItAsItWas) {
  const auto events = stream(4, 900, 800);
  for (std::uint64_t call = 1; call < 60; ++call) {
    TestMemory memory(std::size_t{1} << 20);
    Window window = Window::make(listed({WindowSpec::Kind::time, 100'000 * kSecond}), memory);
    Window reference = Window::make(listed({WindowSpec::Kind::time, 100'000 * kSecond}));
    memory.fail_at(call);
    for (std::size_t at = 0; at < events.size(); ++at) {
      const Digest digest = digest_of(events[at].key);
      Verdict verdict{}, expected{};
      bool late = false;
      const auto once = [&](Window& of, Verdict& to) {
        return of.judge({&digest, 1}, {&events[at].time, 1}, {&to, 1}, {&late, 1});
      };
      if (once(window, verdict) == 0) {
        ASSERT_EQ(once(window, verdict), 1u) << call << " " << at;
      }
      ASSERT_EQ(once(reference, expected), 1u);
      ASSERT_EQ(verdict, expected) << "call " << call << ", record " << at;
    }
    ASSERT_EQ(testing_support::bytes_of(window), testing_support::bytes_of(reference)) << call;
  }
}

// Wild clocks too: where there is no memory for a record, its time has not been read, nobody's claim
// has been believed, and no key has aged.
TEST(WindowList, EveryAllocationThatFailsLeavesItsClaimsAsTheyWere) {
  std::size_t refused = 0;
  const unsigned seeds = count_of(2u, 10u, 100u);
  for (const WindowSpec& spec : {WindowSpec{WindowSpec::Kind::time, 100 * kSecond},
                                 WindowSpec{WindowSpec::Kind::landmark, 3600 * kSecond}})
    for (const Nanoseconds ahead : {1, 30, 500})
      for (unsigned seed = 0; seed < seeds; ++seed)
        for (const std::uint64_t call : {1u, 2u, 3u, 5u}) {
          Window::Params params = listed(spec);
          params.max_ahead = ahead * kSecond;
          TestMemory memory(std::size_t{1} << 20);
          AnyFilter filter(Window::make(params, memory));
          Window& window = *filter.window();
          Window reference = Window::make(params);
          std::mt19937_64 random(seed);
          memory.fail_at(call);
          Nanoseconds now = kStart;
          for (int i = 0; i < 120; ++i) {
            now += Nanoseconds(random() % 3) * kSecond;
            const auto choice = random() % 8;
            const Event event{random() % 200,
                              choice == 0   ? now + Nanoseconds(random() % 400) * kSecond
                              : choice == 1 ? now - Nanoseconds(random() % 130) * kSecond
                                            : now};
            const Digest digest = digest_of(event.key);
            Verdict verdict{}, expected{};
            bool late = false, expected_late = false;
            const auto before = testing_support::bytes_of(window);
            if (window.judge({&digest, 1}, {&event.time, 1}, {&verdict, 1}, {&late, 1}) == 0) {
              ++refused;
              if (window.listed()) {
                ASSERT_EQ(testing_support::bytes_of(window), before) << "record " << i;
              }
              ASSERT_NO_THROW(clone(filter)) << "record " << i;
              ASSERT_EQ(window.judge({&digest, 1}, {&event.time, 1}, {&verdict, 1}, {&late, 1}),
                        1u);
              memory.fail_at(call);
            }
            ASSERT_EQ(reference.judge({&digest, 1}, {&event.time, 1}, {&expected, 1},
                                      {&expected_late, 1}),
                      1u);
            ASSERT_EQ(verdict, expected) << "record " << i;
            ASSERT_EQ(late, expected_late) << "record " << i;
            ASSERT_EQ(testing_support::bytes_of(window), testing_support::bytes_of(reference));
          }
          memory.fail_at(0);
        }
  EXPECT_GT(refused, count_of(200u, 1000u, 1000u));
}

// Windows with the same parameters share what is known of them, whatever others are made in between,
// and so do those that are decoded: each is forecast once.
TEST(WindowPlans, OfAHundredAreSharedInTurn) {
  constexpr std::uint64_t kPlans = 100;
  const auto params = [](std::uint64_t plan) {
    const bool count = plan % 3 == 0;
    return Window::Params{
        .spec = count ? WindowSpec{WindowSpec::Kind::count, 1000 + plan}
                      : WindowSpec{WindowSpec::Kind::time, (plan + 1) * 1'000'000'000},
        .anchor = plan % 5 == 0 ? Anchor::refreshed : Anchor::delivered,
        .filter = plan % 4 == 0 ? "apbf" : "cohort",
        .fpr = plan % 7 == 0 ? 1e-3 : 1e-6,
        .keys = count ? std::nullopt : std::optional(100 + plan % 50),
        .listed = plan % 2 == 0};
  };
  std::vector<Window> windows;
  for (std::uint64_t plan = 0; plan < kPlans; ++plan) windows.push_back(Window::make(params(plan)));
  for (int round = 0; round < 3; ++round)
    for (std::uint64_t plan = 0; plan < kPlans; ++plan) {
      const Window again = Window::make(params(plan));
      ASSERT_EQ(&again.params(), &windows[plan].params()) << plan;
      BytesEncoder header, payload;
      again.encode_header(header);
      again.encode_payload(payload);
      BytesDecoder from_header(header.written()), from_payload(payload.written());
      const Window copy = Window::decode(from_header, from_payload);
      ASSERT_EQ(&copy.params(), &windows[plan].params()) << plan;
    }
  HostMemory host(malloc_calls());
  EXPECT_NE(&Window::make(params(0), host).params(), &windows[0].params()) << "other costs";
}

// A host may be asked for any number of different ones: the oldest make room.
TEST(WindowPlans, OfManyAreNotKeptForever) {
  const auto make = [](std::uint64_t size) {
    return Window::make({.spec = {WindowSpec::Kind::count, size}, .listed = true});
  };
  const Window first = make(500);
  for (std::uint64_t size = 501; size < 1600; ++size) make(size);
  const Window recent = make(1500);
  EXPECT_EQ(&make(1500).params(), &recent.params());
  EXPECT_NE(&make(500).params(), &first.params());
}

}  // namespace
}  // namespace sluice
