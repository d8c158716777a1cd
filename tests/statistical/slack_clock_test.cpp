// What a window holds back past its end, where clocks are wrong, records come out of order and streams
// pause: the slack meter's count against one that follows the rules of docs/windows.md, record by record.
// Every key is in the sample, so the two are equal. Seeds are fixed.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>
#include <unordered_map>
#include <vector>

#include "sluice/base/random.hpp"
#include "sluice/judge/judge.hpp"
#include "tests/support/counts.hpp"

namespace sluice {
namespace {

using testing_support::count_of;

constexpr Nanoseconds kSecond = 1'000'000'000;
constexpr Nanoseconds kStart = 1'700'000'000 * kSecond;
constexpr Nanoseconds kWindow = 600 * kSecond;

Digest digest_of(std::uint64_t key) {
  SplitMix64 random(key * 2 + 1);
  return {random.next(), random.next()};
}

struct Record {
  std::uint64_t key;
  Nanoseconds time;
};

using Stream = std::vector<Record>;

struct Habits {
  double wild = 0;     // share of times up to ten windows ahead or behind
  double gap = 0;      // chance of a pause of up to three windows before a record
  double again = 0;    // share of records that are sent again at once
  double behind = 0;   // records come up to this share of a window after their time
  bool first = false;  // the first time is wild
};

// Each of 2,800 keys comes every 700 seconds on average.
Stream stream_of(const Habits& habits, std::size_t count, SplitMix64 random) {
  Stream stream;
  const auto seconds = [](double value) { return static_cast<Nanoseconds>(value) * kSecond; };
  double now = 0;
  while (stream.size() < count) {
    now += -std::log(1 - random.next_unit()) / 4;
    if (random.next_unit() < habits.gap) now += 1800 * random.next_unit();
    double time = now - 600 * habits.behind * random.next_unit();
    if (random.next_unit() < habits.wild || (habits.first && stream.empty()))
      time += 6000 * (random.next_unit() - (stream.empty() ? 0 : 0.2));
    stream.push_back({random.next() % 2800, kStart + seconds(time)});
    if (random.next_unit() < habits.again) stream.push_back(stream.back());
  }
  return stream;
}

// The rules, as docs/windows.md has them.
class Rules {
 public:
  Rules(Nanoseconds max_ahead, Anchor anchor) : max_ahead_(max_ahead), anchor_(anchor) {}

  // Returns whether the record is late.
  bool read(const Record& record, Verdict verdict) {
    bool believed = true;
    if (!now_) {
      now_ = record.time;
      first_ = record;
    } else if (record.time - *now_ > max_ahead_) {
      believed = agrees(record);
      if (believed) {
        written(waiting_->key, waiting_->time);
        move_to(std::max(record.time, waiting_->time));
      } else {
        waiting_ = record;
      }
    } else if (record.time > *now_) {
      move_to(record.time);
    } else if (first_ && *now_ - record.time >= kWindow) {
      last_.clear();
      waiting_ = Record{first_->key, *now_};
      now_ = record.time;
      first_ = record;
    } else if (first_ && !is_same(*first_, record)) {
      first_.reset();
    }
    if (believed && *now_ - record.time >= kWindow) return true;
    const bool duplicate = verdict == Verdict::duplicate;
    if (const auto before = last_.find(record.key); duplicate && before != last_.end())
      lost_ += *now_ - before->second >= kWindow;
    if (!duplicate || anchor_ == Anchor::refreshed)
      written(record.key, std::min(record.time, *now_));
    return false;
  }
  std::uint64_t lost() const { return lost_; }

 private:
  static bool is_same(const Record& a, const Record& b) {
    return a.key == b.key && a.time == b.time;
  }
  bool agrees(const Record& record) const {
    return waiting_ && !is_same(*waiting_, record) &&
           std::abs(record.time - waiting_->time) <= std::max(max_ahead_, kWindow);
  }
  void move_to(Nanoseconds time) {
    now_ = time;
    waiting_.reset();
    first_.reset();
  }
  void written(std::uint64_t key, Nanoseconds time) {
    const auto [at, fresh] = last_.emplace(key, time);
    at->second = std::max(at->second, time);
  }

  Nanoseconds max_ahead_;
  Anchor anchor_;
  std::optional<Nanoseconds> now_;
  std::optional<Record> first_, waiting_;  // first: until a second record agrees with it
  std::unordered_map<std::uint64_t, Nanoseconds> last_;
  std::uint64_t lost_ = 0;
};

struct Outcome {
  std::uint64_t counted = 0, predicted = 0, weight = 0, disbelieved = 0, truth = 0;
  friend bool operator==(const Outcome&, const Outcome&) = default;
};

Outcome run(const Stream& stream, Anchor anchor, Nanoseconds max_ahead, std::size_t most,
            SplitMix64 random) {
  Judge judge({HashKind::xxh3, Secret::from_seed(1)},
              AnyFilter(Window::make({.spec = {WindowSpec::Kind::time, kWindow},
                                      .anchor = anchor,
                                      .keys = 2000,
                                      .max_ahead = max_ahead,
                                      .listed = true})));
  Rules rules(max_ahead, anchor);
  for (std::size_t at = 0; at < stream.size();) {
    const std::size_t size =
        most >= stream.size() ? stream.size()
                              : std::min<std::size_t>(stream.size() - at, 1 + random.next() % most);
    std::vector<Digest> digests;
    std::vector<Nanoseconds> times;
    for (std::size_t i = at; i < at + size; ++i) {
      digests.push_back(digest_of(stream[i].key));
      times.push_back(stream[i].time);
    }
    std::vector<Verdict> verdicts(size);
    const auto late = std::make_unique<bool[]>(size);
    EXPECT_EQ(judge.judge({.digests = digests,
                           .verdicts = verdicts,
                           .times = times,
                           .late = std::span(late.get(), size)}),
              size);
    for (std::size_t i = 0; i < size; ++i)
      EXPECT_EQ(rules.read(stream[at + i], verdicts[i]), late[i]) << at + i;
    at += size;
  }
  return {.counted = judge.slack()->counted(),
          .predicted = judge.slack()->predicted(),
          .weight = judge.slack()->weight(),
          .disbelieved = judge.window()->clock().disbelieved(),
          .truth = rules.lost()};
}

TEST(SlackClockError, CountsExactlyHoweverClocksAreWrongAndRecordsAreCut) {
  const Habits all[] = {
      {},
      {.behind = 0.4},
      {.wild = 0.02, .behind = 0.1},
      {.gap = 0.002, .again = 0.05, .behind = 0.1},
      {.wild = 0.1, .gap = 0.002, .again = 0.1, .behind = 0.3, .first = true},
  };
  std::uint64_t disbelieved = 0, lost = 0;
  for (std::size_t which = 0; which < std::size(all); ++which)
    for (std::uint64_t seed = 1; seed <= count_of(3u, 20u); ++seed) {
      const Stream stream = stream_of(all[which], 12'000, SplitMix64(seed));
      for (const Anchor anchor : {Anchor::delivered, Anchor::refreshed})
        for (const Nanoseconds ahead : {kWindow, kWindow / 60, 5 * kWindow}) {
          SCOPED_TRACE(testing::Message()
                       << "habits " << which << " seed " << seed << " ahead " << ahead / kSecond
                       << (anchor == Anchor::refreshed ? " refreshed" : ""));
          const Outcome whole = run(stream, anchor, ahead, 4096, SplitMix64(seed));
          EXPECT_EQ(whole.weight, 1u);
          EXPECT_EQ(whole.counted, whole.truth);
          for (const std::size_t most : {1, 40, 1000})
            EXPECT_EQ(run(stream, anchor, ahead, most, SplitMix64(seed + most)), whole);
          disbelieved += whole.disbelieved;
          lost += whole.truth;
        }
    }
  EXPECT_GT(disbelieved, 1000u);
  EXPECT_GT(lost, 1000u);
}

// A time that is confirmed later was not believed when the records in between were judged.
TEST(SlackClockError, AConfirmedTimeAgesNothingBeforeItsConfirmation) {
  for (const std::size_t most : {1, 4}) {
    const Stream stream = {{1, kStart},
                           {2, kStart + 800 * kSecond},
                           {1, kStart + 300 * kSecond},
                           {3, kStart + 900 * kSecond}};
    const Outcome outcome = run(stream, Anchor::delivered, kWindow, most, SplitMix64(1));
    EXPECT_EQ(outcome.counted, 0u);
  }
}

// With `refreshed`, a record of a key from a loaded state may be older than the state's last one.
TEST(SlackClockError, ARecordOutOfOrderDoesNotTellWhenAKeyOfAStateCame) {
  Window window = Window::make(
      {.spec = {WindowSpec::Kind::time, kWindow}, .anchor = Anchor::refreshed, .keys = 2000});
  const Digest key = digest_of(1);
  const auto judge = [&](SlackMeter& meter, int second) {
    const Nanoseconds time = kStart + second * kSecond;
    Verdict verdict{};
    bool late = false;
    EXPECT_EQ(window.judge({&key, 1}, {&time, 1}, {&verdict, 1}, {&late, 1}), 1u);
    meter.look({&key, 1}, {&verdict, 1}, {&time, 1}, {&late, 1});
    return verdict;
  };
  SlackMeter before(window);
  judge(before, 100);
  SlackMeter loaded(window);
  EXPECT_EQ(judge(loaded, 0), Verdict::duplicate);
  EXPECT_EQ(judge(loaded, 650), Verdict::duplicate);
  EXPECT_EQ(loaded.counted(), 0u);
  EXPECT_EQ(loaded.unknown(), 2u);
  // The last one came after all that the state held: from now on its time is known.
  EXPECT_EQ(judge(loaded, 1255), Verdict::duplicate);
  EXPECT_EQ(loaded.counted(), 1u);
  EXPECT_EQ(loaded.unknown(), 2u);
}

}  // namespace
}  // namespace sluice
