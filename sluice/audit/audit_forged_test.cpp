// An audit can read its own bytes, whatever it has seen and wherever it came from. If it could not,
// a filter would be saved and never loaded again.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "sluice/audit/audit.hpp"
#include "sluice/base/error.hpp"
#include "sluice/base/random.hpp"
#include "sluice/filters/catalogue.hpp"
#include "tests/support/counts.hpp"
#include "tests/support/digests.hpp"
#include "tests/support/filter_bytes.hpp"
#include "tests/support/forged_fields.hpp"

namespace sluice {
namespace {

using testing_support::copy_of;
using testing_support::count_of;
using testing_support::digest_of;
using testing_support::FieldEncoder;

constexpr Nanoseconds kSecond = 1'000'000'000;
using Bytes = std::vector<std::byte>;

struct Sample {
  std::string name;
  std::function<AnyFilter()> make;
  bool timed = false;
};

std::function<AnyFilter()> window_of(Window::Params params) {
  return [params] { return AnyFilter(Window::make(params)); };
}

std::vector<Sample> samples() {
  using Kind = WindowSpec::Kind;
  return {
      {"set", [] { return make_filter("bloom,bytes=2KiB,keys=2000,fpr=0.05", {}); }},
      {"full", [] { return make_filter("bloom,keys=10,fpr=0.5", {}); }},
      {"forgets", [] { return make_filter("stable,bytes=1KiB,fpr=0.05", {}); }},
      {"count",
       window_of(
           {.spec = {Kind::count, 500}, .anchor = Anchor::refreshed, .fpr = 0.05, .keys = 300})},
      {"delivered", window_of({.spec = {Kind::count, 200}, .fpr = 0.3})},
      {"time", window_of({.spec = {Kind::time, 100 * kSecond}, .fpr = 0.05, .keys = 30}), true},
      {"believes",
       window_of({.spec = {Kind::time, 100 * kSecond},
                  .fpr = 0.05,
                  .keys = 300,
                  .max_ahead = 200 * kSecond}),
       true},
      {"arrived", window_of({.spec = {Kind::time, 100 * kSecond}, .fpr = 0.05, .keys = 300})},
      {"hour", window_of({.spec = {Kind::landmark, 3600 * kSecond}, .fpr = 0.05, .keys = 300}),
       true}};
}

Bytes bytes_of(const Audit& audit) {
  BytesEncoder to;
  audit.encode(to);
  return to.take();
}

// A filter and its audit, and a stream that goes on for both.
class Audited {
 public:
  Audited(const Sample& sample, const Audit::Params& params, std::uint64_t seed)
      : Audited(sample, params, sample.make(), SplitMix64(seed)) {}
  // Goes on with a copy of the filter and a new audit.
  explicit Audited(const Audited& other)
      : Audited(*other.sample_, other.params_, copy_of(other.filter_), other.random_) {
    key_ = other.key_;
  }

  Audit& audit() { return audit_; }
  const AnyFilter& filter() const { return filter_; }

  // Any operations, in any order.
  void go_on(unsigned steps) {
    for (unsigned step = 0; step < steps; ++step) {
      const std::uint64_t kind = random_.next() % 16;
      if (kind == 0) audit_.ask_ghosts(random_.next() % 300);
      if (kind == 1) forget();
      observe(1 + random_.next() % (kind == 2 ? 400 : 20));
    }
  }

 private:
  Audited(const Sample& sample, const Audit::Params& params, AnyFilter filter, SplitMix64 random)
      : sample_(&sample),
        params_(params),
        filter_(std::move(filter)),
        audit_(params, filter_),
        random_(random) {}

  void observe(std::size_t count) {
    std::vector<Digest> digests(count);
    std::vector<Verdict> verdicts(count);
    std::vector<Nanoseconds> times(count);
    const auto late = std::make_unique<bool[]>(count);
    for (std::size_t i = 0; i < count; ++i, ++key_) {
      digests[i] = digest_of(random_.next() % 3 == 0 ? key_ - random_.next() % 500 : key_);
      times[i] = time() - (random_.next() % 31 == 0 ? 90 * kSecond : 0) +
                 (random_.next() % 61 == 0 ? 1000 * kSecond : 0);
    }
    if (sample_->timed) {
      const std::span<bool> are_late(late.get(), count);
      ASSERT_EQ(filter_.window()->judge(digests, times, verdicts, are_late), count);
      audit_.observe(digests, verdicts, times, are_late);
      return;
    }
    // Now and then the clock of the machine is set back.
    if (filter_.window() != nullptr && filter_.window()->params().spec.by_time())
      filter_.window()->arrive(time() - (random_.next() % 64 == 0 ? 5000 * kSecond : 0));
    ASSERT_EQ(filter_.observe(digests, verdicts), count);
    audit_.observe(digests, verdicts);
  }

  void forget() {
    if (!filter_.can_forget()) return;
    const Digest digest = digest_of(key_ - random_.next() % 1000);
    audit_.forget(digest, filter_.forget(digest));
  }

  Nanoseconds time() const { return (1'700'000'000 + Nanoseconds(key_) / 4) * kSecond; }

  const Sample* sample_;
  Audit::Params params_;
  AnyFilter filter_;
  Audit audit_;
  SplitMix64 random_;
  std::uint64_t key_ = 1000;
};

void expect_sound(const Rate& rate) {
  EXPECT_TRUE(std::isfinite(rate.errors) && std::isfinite(rate.trials));
  for (const double share : {rate.low(), rate.high(), rate.value().value_or(0)})
    EXPECT_TRUE(share >= 0 && share <= 1) << share;
  EXPECT_LE(rate.low(), rate.high());
}

void expect_sound(const Audit::Report& report) {
  for (const Rate& rate : {report.positives, report.negatives, report.ghosts, report.ghosts_now})
    expect_sound(rate);
  EXPECT_TRUE(std::isfinite(report.undecided) && report.undecided >= 0);
}

// As a server that saves and starts again.
void expect_readable(Audited& run) {
  expect_sound(run.audit().report());
  const Bytes own = bytes_of(run.audit());
  Audited again(run);
  BytesDecoder from(own);
  try {
    again.audit().decode(from);
  } catch (const Error& error) {
    FAIL() << "its own bytes are refused: " << error.what();
  }
  EXPECT_EQ(bytes_of(again.audit()), own);
}

class ForgedAudit : public testing::TestWithParam<Sample> {};
INSTANTIATE_TEST_SUITE_P(Filters, ForgedAudit, testing::ValuesIn(samples()),
                         [](const auto& test) { return test.param.name; });

// Numbers of every size, those near one that is there, and the borders of types and limits.
std::uint64_t any_bits(SplitMix64& random, std::uint64_t was) {
  const std::uint64_t any = random.next();
  switch (random.next() % 8) {
    case 0:
      return any >> any % 64;
    case 1:
      return was + any % 5 - 2;
    case 2:
      return (std::uint64_t{1} << any % 64) + random.next() % 3 - 1;
    case 3:
      return -(std::uint64_t{1} << any % 64) + random.next() % 3 - 1;
    case 4:
      return any >> 1;  // a double above 0, of any size
    case 5:
      return std::bit_cast<std::uint64_t>(
          std::bit_cast<double>(was) *
          std::ldexp(1 + random.next_unit(), static_cast<int>(any % 200) - 100));
    case 6:
      return std::bit_cast<std::uint64_t>(std::ldexp(1.0, static_cast<int>(any % 2098) - 1074));
    default: {
      constexpr double kSome[] = {0, -0.0, 5e-324, 1e-300, 1e-9, 0.5, 1, 2.9, 1e9, 1e18, 1.7e308};
      return std::bit_cast<std::uint64_t>(kSome[any % std::size(kSome)]);
    }
  }
}

Bytes forged(SplitMix64& random, const Bytes& field) {
  std::uint64_t was = 0;
  for (std::size_t i = 0; i < std::min<std::size_t>(8, field.size()); ++i)
    was |= std::to_integer<std::uint64_t>(field[i]) << (8 * i);
  if (field.size() == 8) return testing_support::raw(any_bits(random, was), 8);
  if (field.size() == 4) {
    const std::uint64_t bits = any_bits(random, was);
    const auto narrow = static_cast<float>(std::bit_cast<double>(bits));
    return testing_support::raw(
        random.next() % 2 == 0 ? bits : std::bit_cast<std::uint32_t>(narrow), 4);
  }
  BytesEncoder number;
  number.varint(any_bits(random, was));
  return number.take();
}

// Up to three numbers are changed, mostly among those before the keys and those of the first keys.
TEST_P(ForgedAudit, WhatIsReadCanBeWrittenAndReadAfterAnything) {
  const unsigned trials = count_of(20u, 100u, 20'000u);
  unsigned read = 0;
  SplitMix64 random(11);
  for (unsigned trial = 0; trial < trials && !HasFailure(); ++trial) {
    const Audit::Params params{.sample = 1 + random.next() % 9, .most_bytes = 16 << 10};
    Audited honest(GetParam(), params, random.next());
    honest.go_on(static_cast<unsigned>(random.next() % 60));
    expect_readable(honest);
    FieldEncoder good;
    honest.audit().encode(good);
    for (unsigned forgery = 0; forgery < 20 && !HasFailure(); ++forgery) {
      FieldEncoder bad = good;
      const std::size_t most = std::min<std::size_t>(bad.fields.size(), 70);
      for (std::uint64_t changes = 1 + random.next() % 3; changes > 0; --changes) {
        Bytes& field = bad.fields[random.next() % most];
        field = forged(random, field);
      }
      const Bytes bytes = bad.joined();
      Audited run(honest);
      BytesDecoder from(bytes);
      try {
        run.audit().decode(from);
      } catch (const Error&) {
        continue;
      }
      ++read;
      SCOPED_TRACE(testing::Message() << "trial " << trial << ", forgery " << forgery);
      expect_readable(run);
      for (const unsigned steps : {1, 5, 40}) {
        run.go_on(steps);
        expect_readable(run);
      }
    }
  }
  EXPECT_GT(read, 2 * trials);
}

// The reported one: a share of a ghost was asked. A weight divided by it is infinite.
TEST(ForgedAudit, GhostsAreWhole) {
  AnyFilter filter = make_filter("bloom,bytes=2KiB,keys=2000,fpr=0.05", {});
  Ghosts ghosts(3, true);
  ghosts.count(100, 100);
  ghosts.ask(filter, 8);
  FieldEncoder good;
  ghosts.encode(good);
  constexpr std::size_t kAsked = 5;
  ASSERT_EQ(good.fields[kAsked], testing_support::raw(std::bit_cast<std::uint64_t>(8.0), 8));
  for (const double asked : {5e-324, 1e-312, 1e-300, 0.5, 2.9}) {
    FieldEncoder bad = good;
    bad.fields[kAsked] = testing_support::raw(std::bit_cast<std::uint64_t>(asked), 8);
    const Bytes bytes = bad.joined();
    BytesDecoder from(bytes);
    Ghosts read(3, true);
    EXPECT_THROW(read.decode(from), CorruptSnapshot) << asked;
  }
}

// As many would be asked at once as records came since the last ones.
TEST(ForgedAudit, NoMoreGhostsAreDueThanEver) {
  Ghosts ghosts(3, true);
  ghosts.count(std::uint64_t{1} << 40, 1);
  const Bytes bytes = [&] {
    BytesEncoder to;
    ghosts.encode(to);
    return to.take();
  }();
  BytesDecoder from(bytes);
  EXPECT_THROW(ghosts.decode(from), CorruptSnapshot);
}

// The windows that are longest, grow most or err least.
std::vector<Sample> extremes() {
  using Kind = WindowSpec::Kind;
  constexpr WindowSpec kLongest{Kind::time, kLongestWindow}, kShort{Kind::time, 300 * kSecond},
      kDays{Kind::time, 300'000 * kSecond};
  return {
      {"long", window_of({.spec = kLongest, .fpr = 0.05, .keys = 300}), true},
      {"long1", window_of({.spec = kLongest, .fpr = 0.05, .keys = 300, .generations = 1}), true},
      {"long2", window_of({.spec = kLongest, .fpr = 0.05, .keys = 300, .generations = 2}), true},
      {"grows", window_of({.spec = kShort, .fpr = 1e-3, .keys = 1}), true},
      {"grows_apbf", window_of({.spec = kDays, .filter = "apbf", .fpr = 0.05, .keys = 1}), true},
      {"listed", window_of({.spec = kShort, .fpr = 1e-3, .keys = 100, .listed = true}), true},
      {"hardly_errs", window_of({.spec = {Kind::count, 1000}, .fpr = 1e-9})},
      {"never_errs", [] { return make_filter("bloom,keys=2,fpr=1e-300", {}); }},
      {"seldom_errs", [] { return make_filter("bloom,keys=2000,fpr=1e-30", {}); }},
      {"always_errs", [] { return make_filter("bloom,keys=10,fpr=0.5", {}); }}};
}

class HonestAudit : public testing::TestWithParam<Sample> {};
INSTANTIATE_TEST_SUITE_P(Filters, HonestAudit, testing::ValuesIn(extremes()),
                         [](const auto& test) { return test.param.name; });

// Without a forgery. Saved after every step.
TEST_P(HonestAudit, CanAlwaysBeReadAgain) {
  Audited run(GetParam(), {.sample = 7, .most_bytes = 8 << 10}, 5);
  for (unsigned step = 0; step < count_of(40u, 150u, 2000u) && !HasFailure(); ++step) {
    run.go_on(1);
    expect_readable(run);
  }
}

}  // namespace
}  // namespace sluice
