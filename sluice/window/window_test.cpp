#include "sluice/window/window.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "sluice/base/error.hpp"
#include "sluice/base/random.hpp"
#include "tests/support/digests.hpp"

namespace sluice {
namespace {

using testing_support::digest_of;

constexpr Nanoseconds kSecond = 1'000'000'000;

struct Event {
  std::uint64_t key;
  Nanoseconds time;
};

struct Judged {
  Verdict verdict;
  bool late;
  friend bool operator==(const Judged&, const Judged&) = default;
};

std::vector<Judged> judge(Window& window, const std::vector<Event>& events,
                          std::uint64_t cut_seed) {
  SplitMix64 random(cut_seed);
  std::vector<Judged> all;
  for (std::size_t at = 0; at < events.size();) {
    const std::size_t count = std::min<std::size_t>(1 + random.next() % 300, events.size() - at);
    std::vector<Digest> digests;
    std::vector<Nanoseconds> times;
    for (std::size_t i = at; i < at + count; ++i) {
      digests.push_back(digest_of(events[i].key));
      times.push_back(events[i].time);
    }
    std::vector<Verdict> verdicts(count);
    const auto late = std::make_unique<bool[]>(count);
    EXPECT_EQ(window.judge(digests, times, verdicts, std::span(late.get(), count)), count);
    for (std::size_t i = 0; i < count; ++i) all.push_back({verdicts[i], late[i]});
    at += count;
  }
  return all;
}

// What must, may not and may be remembered of a key, from the definition alone. Positions are
// deliveries or arrivals of a count window, times otherwise.
struct Truth {
  std::map<std::uint64_t, Nanoseconds> last;
  void note(std::uint64_t key, Nanoseconds at) {
    auto [entry, fresh] = last.try_emplace(key, at);
    if (!fresh) entry->second = std::max(entry->second, at);
  }
  std::optional<Nanoseconds> age(std::uint64_t key, Nanoseconds now) const {
    const auto found = last.find(key);
    if (found == last.end()) return std::nullopt;
    return now - found->second;
  }
};

struct Case {
  const char* filter;
  std::uint64_t window;
  Anchor anchor;
};

class CountWindow : public testing::TestWithParam<Case> {};

// The n-th last delivery is inside; beyond n + slack only the background error is left.
TEST_P(CountWindow, RemembersWhatItPromisesAndForgetsTheRest) {
  const auto& [filter, size, anchor] = GetParam();
  Window window = Window::make(
      {.spec = {WindowSpec::Kind::count, size}, .anchor = anchor, .filter = filter, .fpr = 1e-4});
  SplitMix64 random(size);
  std::vector<Event> events;
  const std::uint64_t universe = size * 3;
  for (std::uint64_t i = 0; i < size * 20; ++i) events.push_back({random.next() % universe, 0});
  const std::vector<Judged> judged = judge(window, events, 1);
  Truth truth;
  Nanoseconds position = 0;
  const auto slack = std::llround(static_cast<double>(size) * window.slack());
  std::uint64_t wrongly_remembered = 0, outside = 0;
  for (std::size_t i = 0; i < events.size(); ++i) {
    const auto age = truth.age(events[i].key, position);
    const bool duplicate = judged[i].verdict == Verdict::duplicate;
    if (age && *age < static_cast<Nanoseconds>(size)) {
      ASSERT_TRUE(duplicate) << "record " << i << " of age " << *age;
    } else if (!age || *age >= static_cast<Nanoseconds>(size) + slack) {
      ++outside;
      wrongly_remembered += duplicate;
    }
    if (anchor == Anchor::refreshed) ++position;
    if (!duplicate && anchor == Anchor::delivered) ++position;
    if (!duplicate || anchor == Anchor::refreshed) truth.note(events[i].key, position);
  }
  ASSERT_GT(outside, 0u);
  // At 10⁻⁴ planned: four standard errors above.
  const double expected = 1e-4 * static_cast<double>(outside);
  EXPECT_LE(static_cast<double>(wrongly_remembered), expected + 4 * std::sqrt(expected) + 1);
}

INSTANTIATE_TEST_SUITE_P(
    Windows, CountWindow,
    testing::Values(Case{"cohort", 1, Anchor::delivered}, Case{"cohort", 10, Anchor::delivered},
                    Case{"cohort", 100, Anchor::refreshed}, Case{"cohort", 1000, Anchor::delivered},
                    Case{"cohort", 1000, Anchor::refreshed},
                    Case{"cohort,slot=32", 5000, Anchor::delivered},
                    Case{"cohort,slot=48,generations=10", 3000, Anchor::refreshed},
                    Case{"cohort,generations=60", 20'000, Anchor::delivered},
                    Case{"sharded,of=cohort", 1000, Anchor::refreshed},
                    Case{"sharded,shards=3,of=cohort", 20'000, Anchor::delivered}),
    [](const auto& test) { return std::to_string(test.index); });

std::vector<Event> bursty_stream(std::uint64_t seed, std::size_t count) {
  SplitMix64 random(seed);
  std::vector<Event> events;
  Nanoseconds now = 1'700'000'000 * kSecond;
  for (std::size_t i = 0; i < count; ++i) {
    // Mostly small steps, sometimes a jump of up to a minute; some records come late.
    now += static_cast<Nanoseconds>(random.next() % (10 * kSecond / 1000));
    if (random.next() % 1000 == 0) now += static_cast<Nanoseconds>(random.next() % (60 * kSecond));
    Nanoseconds time = now;
    if (random.next() % 5 == 0) time -= static_cast<Nanoseconds>(random.next() % (25 * kSecond));
    events.push_back({random.next() % 4000, time});
  }
  return events;
}

class TimeWindow : public testing::TestWithParam<Anchor> {};

// Age below t is inside, age of t + slack or more is outside, for records in and out of order.
TEST_P(TimeWindow, RemembersWhatItPromisesAndForgetsTheRest) {
  const Anchor anchor = GetParam();
  const Nanoseconds size = 20 * kSecond;
  Window window = Window::make({.spec = {WindowSpec::Kind::time, static_cast<std::uint64_t>(size)},
                                .anchor = anchor,
                                .fpr = 1e-6,
                                .keys = 100,
                                .max_ahead = 3600 * kSecond});  // jumps are believed here
  const std::vector<Event> events = bursty_stream(3, 50'000);
  const std::vector<Judged> judged = judge(window, events, 4);
  Truth truth;
  Nanoseconds now = events[0].time;
  const auto slack = static_cast<Nanoseconds>(static_cast<double>(size) * window.slack()) + 1;
  std::uint64_t late = 0, inside = 0, outside = 0;
  for (std::size_t i = 0; i < events.size(); ++i) {
    now = std::max(now, events[i].time);
    ASSERT_EQ(judged[i].late, events[i].time <= now - size) << i;
    if (judged[i].late) {
      ++late;
      continue;
    }
    const auto age = truth.age(events[i].key, now);
    const bool duplicate = judged[i].verdict == Verdict::duplicate;
    if (age && *age < size) {
      ++inside;
      ASSERT_TRUE(duplicate) << "record " << i << " of age " << *age;
    } else if (!age || *age >= size + slack) {
      ++outside;
      ASSERT_FALSE(duplicate) << "record " << i << " age "
                              << age.value_or(-1);  // 10⁻⁶ a record: none of these thousands
    }
    if (!duplicate || anchor == Anchor::refreshed) truth.note(events[i].key, events[i].time);
  }
  EXPECT_GT(late, 100u);
  EXPECT_GT(inside, 1000u);
  EXPECT_GT(outside, 1000u);
  EXPECT_GT(window.growth().growths(), 0u) << "100 planned, thousands live: it must have grown";
}

TEST_P(TimeWindow, TheSameHoweverTheInputIsCut) {
  const std::vector<Event> events = bursty_stream(5, 20'000);
  const Window::Params params{.spec = {WindowSpec::Kind::time, 7 * kSecond}, .anchor = GetParam()};
  Window one = Window::make(params), two = Window::make(params);
  EXPECT_EQ(judge(one, events, 6), judge(two, events, 7));
}

TEST_P(TimeWindow, AGapOfAThousandWindowsForgetsEverything) {
  Window window = Window::make({.spec = {WindowSpec::Kind::time, 10 * kSecond},
                                .anchor = GetParam(),
                                .max_ahead = 1'000'000 * kSecond});
  EXPECT_EQ(judge(window, {{1, 0}, {1, 1}, {1, 10'000 * kSecond}, {1, 10'001 * kSecond}}, 1),
            (std::vector<Judged>{{Verdict::distinct, false},
                                 {Verdict::duplicate, false},
                                 {Verdict::distinct, false},
                                 {Verdict::duplicate, false}}));
}

TEST_P(TimeWindow, OneTimestampAYearAheadDoesNotWipeIt) {
  Window window = Window::make({.spec = {WindowSpec::Kind::time, 10 * kSecond},
                                .anchor = GetParam(),
                                .max_ahead = 10 * kSecond});
  const Nanoseconds year = 365 * 86'400 * kSecond;
  const std::vector<Judged> judged =
      judge(window, {{1, 0}, {2, 1}, {3, year}, {1, 2}, {3, 3}, {2, 4}}, 1);
  EXPECT_EQ(judged[3].verdict, Verdict::duplicate);
  EXPECT_EQ(judged[4].verdict, Verdict::duplicate) << "the wild record's key is remembered too";
  EXPECT_EQ(judged[5].verdict, Verdict::duplicate);
}

// A stream that is quiet for longer than --max-ahead between its records must not lose them.
TEST_P(TimeWindow, RecordsFartherApartThanAWindowAreAllLetThrough) {
  Window window = Window::make({.spec = {WindowSpec::Kind::time, 10 * kSecond},
                                .anchor = GetParam(),
                                .max_ahead = 10 * kSecond});
  for (const Judged& judged :
       judge(window, {{1, 0}, {1, 60 * kSecond}, {1, 120 * kSecond}, {1, 400 * kSecond}}, 1))
    EXPECT_EQ(judged, (Judged{Verdict::distinct, false}));
}

// The record that was not believed happened when it said, once a second one agrees.
TEST_P(TimeWindow, AfterAGapTheFirstRecordIsRememberedToo) {
  Window window = Window::make({.spec = {WindowSpec::Kind::time, 10 * kSecond},
                                .anchor = GetParam(),
                                .max_ahead = 10 * kSecond});
  const std::vector<Judged> judged = judge(
      window,
      {{1, 0}, {1, 3600 * kSecond}, {2, 3601 * kSecond}, {1, 3609 * kSecond}, {1, 3621 * kSecond}},
      1);
  EXPECT_EQ(judged[1].verdict, Verdict::distinct);
  EXPECT_EQ(judged[2].verdict, Verdict::distinct);
  EXPECT_EQ(judged[3].verdict, Verdict::duplicate) << "nine seconds after its delivery";
  EXPECT_EQ(judged[4].verdict, Verdict::distinct);
}

// In whichever order two records agree: each is remembered at its own time.
TEST_P(TimeWindow, TheLaterOfTwoThatAgreeIsNow) {
  for (const bool listed : {false, true}) {
    const Window::Params params{.spec = {WindowSpec::Kind::time, 60 * kSecond},
                                .anchor = GetParam(),
                                .max_ahead = 90 * kSecond,
                                .listed = listed};
    Window window = Window::make(params);
    const std::vector<Event> events = {{1, 0},
                                       {1, 1 * kSecond},
                                       {2, 180 * kSecond},
                                       {3, 122 * kSecond},   // agrees: now is 180
                                       {3, 178 * kSecond},   // inside, 56 seconds later
                                       {2, 239 * kSecond},   // inside, 59 seconds later
                                       {2, 1000 * kSecond},  // not believed
                                       {4, 920 * kSecond}};  // agrees, a window behind: late
    const std::vector<Judged> expected = {{Verdict::distinct, false},  {Verdict::duplicate, false},
                                          {Verdict::distinct, false},  {Verdict::distinct, false},
                                          {Verdict::duplicate, false}, {Verdict::duplicate, false},
                                          {Verdict::distinct, false},  {Verdict::distinct, true}};
    for (std::size_t i = 0; i < events.size(); ++i) {
      const Verdict peeked = window.peek(digest_of(events[i].key), events[i].time);
      const Judged judged = judge(window, {events[i]}, 1).front();
      EXPECT_EQ(judged, expected[i]) << i << (listed ? " of a list" : "");
      EXPECT_EQ(peeked, judged.verdict) << i << (listed ? " of a list" : "");
    }
    EXPECT_EQ(window.clock().now(), 1000 * kSecond);
    Window batched = Window::make(params);
    EXPECT_EQ(judge(batched, events, 7), expected);
  }
}

// Arrival time: our own clock is believed, and one that is set back makes nothing late or
// forgotten.
TEST_P(TimeWindow, ByArrivalEveryGapForgetsAndNothingIsLate) {
  Window window =
      Window::make({.spec = {WindowSpec::Kind::time, 10 * kSecond}, .anchor = GetParam()});
  const auto at = [&](Nanoseconds second, std::uint64_t key) {
    window.arrive(second * kSecond);
    return window.observe(digest_of(key));
  };
  EXPECT_EQ(at(1000, 1), Verdict::distinct);
  EXPECT_EQ(at(1009, 1), Verdict::duplicate);
  EXPECT_EQ(at(5000, 1), Verdict::distinct);
  EXPECT_EQ(at(4995, 1), Verdict::duplicate) << "a clock that goes back a little";
  EXPECT_EQ(at(100, 1), Verdict::duplicate) << "a clock that was set back";
  EXPECT_EQ(at(101, 2), Verdict::distinct);
  EXPECT_EQ(at(110, 2), Verdict::duplicate);
  EXPECT_EQ(at(112, 1), Verdict::distinct);
}

INSTANTIATE_TEST_SUITE_P(Anchors, TimeWindow, testing::Values(Anchor::delivered, Anchor::refreshed),
                         [](const auto& test) {
                           return test.param == Anchor::delivered ? "delivered" : "refreshed";
                         });

TEST(Window, RefreshRestartsTheWindowAndDeliveryDoesNot) {
  for (const Anchor anchor : {Anchor::delivered, Anchor::refreshed}) {
    Window window =
        Window::make({.spec = {WindowSpec::Kind::time, 24 * kSecond}, .anchor = anchor});
    // A repeat every 20 s: with refresh it never becomes distinct again.
    const std::vector<Judged> judged =
        judge(window, {{1, 0}, {1, 20 * kSecond}, {1, 40 * kSecond}, {1, 60 * kSecond}}, 1);
    EXPECT_EQ(judged[1].verdict, Verdict::duplicate);
    EXPECT_EQ(judged[2].verdict,
              anchor == Anchor::refreshed ? Verdict::duplicate : Verdict::distinct);
  }
}

TEST(Window, ALandmarkStartsAfresh) {
  Window window = Window::make({.spec = {WindowSpec::Kind::landmark, 3600 * kSecond}});
  const Nanoseconds hour = 3600 * kSecond;
  const std::vector<Judged> judged = judge(
      window,
      {{1, 10 * hour}, {1, 11 * hour - 1}, {1, 11 * hour}, {1, 11 * hour + 1}, {2, 11 * hour - 5}},
      1);
  EXPECT_EQ(judged[1].verdict, Verdict::duplicate);
  EXPECT_EQ(judged[2].verdict, Verdict::distinct) << "a new hour";
  EXPECT_EQ(judged[3].verdict, Verdict::duplicate);
  EXPECT_TRUE(judged[4].late) << "of the hour before";
}

TEST(Window, AFilterThatDoesNotForgetIsRefused) {
  EXPECT_THROW(Window::make({.spec = {WindowSpec::Kind::count, 100}, .filter = "bloom"}),
               BadParameters);
}

TEST(Window, AFilterThatCannotStartAfreshIsRefusedForALandmark) {
  for (const char* filter : {"timing", "timer"})
    EXPECT_THROW(
        Window::make({.spec = {WindowSpec::Kind::landmark, 3600 * kSecond}, .filter = filter}),
        BadParameters);
  for (const char* filter : {"cohort", "exact-window", "apbf", "apbbf", "apbbf,layout=column"})
    EXPECT_EQ(Window::make({.spec = {WindowSpec::Kind::landmark, 3600 * kSecond}, .filter = filter})
                  .generations(),
              0u);
}

// A hundredfold burst: the sum of the stages' planned errors stays within the target, and the
// memory comes back when the burst has left the window.
TEST(Window, GrowsInABurstAndShrinksAfterIt) {
  const double target = 1e-4;
  Window window = Window::make(
      {.spec = {WindowSpec::Kind::time, 240 * kSecond}, .fpr = target, .keys = 24'000});
  const std::uint64_t small = window.stats().bytes;
  std::uint64_t key = 0, largest = 0, false_positives = 0, asked = 0;
  for (std::int64_t second = 0; second < 1500; ++second) {
    const std::uint64_t rate = second >= 300 && second < 420 ? 10'000 : 100;
    std::vector<Event> events;
    for (std::uint64_t i = 0; i < rate; ++i)
      events.push_back({++key, second * kSecond + static_cast<Nanoseconds>(i * 1000)});
    for (const Judged& judged : judge(window, events, static_cast<std::uint64_t>(second))) {
      ++asked;
      false_positives += judged.verdict == Verdict::duplicate;
    }
    const FilterStats stats = window.stats();
    largest = std::max(largest, stats.bytes);
    ASSERT_LE(stats.planned_fpr, target) << second;
    ASSERT_LE(stats.predicted_fpr, target) << second;
  }
  EXPECT_GT(largest, 10 * small);
  EXPECT_LE(window.stats().bytes, 2 * small);
  const double expected = target * static_cast<double>(asked);
  EXPECT_LE(static_cast<double>(false_positives), expected + 4 * std::sqrt(expected));
}

// A stage is left when the rate falls, so what a burst needed is freed a window after it; the
// plan's own size and slots come back.
TEST(Window, TheMemoryOfABurstIsFreedOneWindowAfterIt) {
  constexpr int kWindow = 240;  // seconds; a generation is ten
  Window window = Window::make(
      {.spec = {WindowSpec::Kind::time, kWindow * kSecond}, .fpr = 2e-4, .keys = 24'000});
  const std::uint64_t small = window.stats().bytes;
  std::uint64_t key = 1;
  const auto run = [&](int from, int until, int rate) {
    std::vector<Event> events;
    for (int second = from; second < until; ++second)
      for (int i = 0; i < rate; ++i) events.push_back({key++, second * kSecond});
    judge(window, events, 7);
  };
  run(0, 300, 100);
  EXPECT_EQ(window.stats().bytes, small) << "the planned rate needs no growth";
  run(300, 310, 10'000);
  EXPECT_GT(window.stats().bytes, 4 * small);
  EXPECT_LE(window.stats().planned_fpr, 2e-4);
  run(310, 310 + kWindow + 40, 100);
  EXPECT_LT(window.stats().bytes, 3 * small) << "the stages of the burst are still there";
  run(310 + kWindow + 40, 310 + 3 * kWindow, 100);
  EXPECT_EQ(window.stats().capacity, 24'000u);
  EXPECT_EQ(window.growth().stage_count(), 1u);
  EXPECT_LT(window.stats().bytes, small * 4 / 3);
}

TEST(Window, SnapshotInTheMiddleOfABurst) {
  const std::vector<Event> events = bursty_stream(8, 30'000);
  Window window = Window::make({.spec = {WindowSpec::Kind::time, 20 * kSecond}, .keys = 64});
  judge(window, {events.begin(), events.begin() + 15'000}, 1);
  ASSERT_GT(window.growth().stage_count(), 1u);
  BytesEncoder header, payload;
  window.encode_header(header);
  window.encode_payload(payload);
  const std::vector<std::byte> header_bytes = header.take(), payload_bytes = payload.take();
  BytesDecoder from_header(header_bytes), from_payload(payload_bytes);
  Window copy = Window::decode(from_header, from_payload);
  const std::vector<Event> rest(events.begin() + 15'000, events.end());
  EXPECT_EQ(judge(copy, rest, 2), judge(window, rest, 3));
  EXPECT_EQ(copy.growth().growths(), window.growth().growths());
}

// Stages to come are made as the state says. A forged state must not be able to ask for gigabytes,
// or to fail in the middle of a run.
TEST(Window, AStateWhoseStagesCouldNotBeMadeIsRefused) {
  const std::string made_with = "cohort,slot=24";
  const Window window = Window::make(
      {.spec = {WindowSpec::Kind::time, 20 * kSecond}, .filter = made_with, .keys = 64});
  BytesEncoder header, payload;
  window.encode_header(header);
  window.encode_payload(payload);
  const auto decoded_with = [&](const std::string& filter) {
    std::string fields(reinterpret_cast<const char*>(header.written().data()),
                       header.written().size());
    const std::size_t at = fields.find(made_with);
    fields.replace(at - 1, 1 + made_with.size(), static_cast<char>(filter.size()) + filter);
    BytesDecoder from_header(std::as_bytes(std::span(fields))), from_payload(payload.written());
    Window::decode(from_header, from_payload);
  };
  EXPECT_NO_THROW(decoded_with(made_with));
  EXPECT_NO_THROW(decoded_with("cohort,slot=32"));
  for (const char* forged :
       {"cohort,bytes=2GiB", "cohort,slot=48,bytes=100MiB", "cohort,slot=25", "cohort,rlot=24",
        "cohort,generations=5", "bloom", "nonsense", "", "sharded,of=cohort,,"})
    EXPECT_THROW(decoded_with(forged), CorruptSnapshot) << forged;
  // As many keys as no memory holds, in the field for the keys that are expected.
  std::vector<std::byte> fields(header.written().begin(), header.written().end());
  BytesDecoder before(fields);
  before.u8();
  before.varint();
  before.view(3);  // anchor, growth, form
  before.u64();
  const auto keys_at = static_cast<std::ptrdiff_t>(fields.size() - before.remaining());
  ASSERT_EQ(fields[static_cast<std::size_t>(keys_at)], std::byte{64});
  BytesEncoder many;
  many.varint(std::uint64_t{1} << 40);
  fields.erase(fields.begin() + keys_at);
  fields.insert(fields.begin() + keys_at, many.written().begin(), many.written().end());
  BytesDecoder from_header(fields), from_payload(payload.written());
  EXPECT_THROW(Window::decode(from_header, from_payload), CorruptSnapshot);
}

// At every moment of its ageing, sweeping and wrapping, a state that was saved can be loaded.
TEST(Window, SnapshotAtEveryMoment) {
  for (const char* filter : {"cohort,slot=16", "cohort,slot=24,generations=29", "cohort,slot=32",
                             "cohort,slot=40,generations=13", "cohort,slot=48,generations=61"})
    for (const Anchor anchor : {Anchor::delivered, Anchor::refreshed}) {
      Window window = Window::make(
          {.spec = {WindowSpec::Kind::count, 700}, .anchor = anchor, .filter = filter, .fpr = 0.1});
      SplitMix64 random(9);
      for (int moment = 0; moment < 400; ++moment) {
        std::vector<Event> events;
        for (std::uint64_t i = random.next() % 60; i > 0; --i)
          events.push_back({random.next() % 2000, 0});
        judge(window, events, 1);
        BytesEncoder header, payload;
        window.encode_header(header);
        window.encode_payload(payload);
        BytesDecoder from_header(header.written()), from_payload(payload.written());
        ASSERT_NO_THROW(window = Window::decode(from_header, from_payload))
            << filter << " at " << moment;
      }
    }
}

// By cardinality a stage never gets its room back, so a steady stream needs a second one now and
// then; by density it does not.
TEST(Window, CardinalityAlternatesWhereDensityStays) {
  for (const Growth::By by : {Growth::By::density, Growth::By::cardinality}) {
    Window window = Window::make(
        {.spec = {WindowSpec::Kind::time, 100 * kSecond}, .keys = 12'000, .growth = by});
    std::uint64_t key = 0;
    std::size_t most = 0;
    for (std::int64_t second = 0; second < 1000; ++second) {
      std::vector<Event> events;
      for (int i = 0; i < 100; ++i) events.push_back({++key, second * kSecond});
      judge(window, events, 1);
      most = std::max(most, window.growth().stage_count());
    }
    EXPECT_EQ(most, by == Growth::By::density ? 1u : 2u);
  }
}

}  // namespace
}  // namespace sluice
