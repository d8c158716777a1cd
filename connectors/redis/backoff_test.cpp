#include "connectors/redis/backoff.hpp"

#include <gtest/gtest.h>

#include "sluice/base/random.hpp"

namespace sluice::redis {
namespace {

using namespace std::chrono_literals;

TEST(Backoff, DoublesUpToALimitWithJitterInTheSecondHalf) {
  for (const double unit : {0.0, 0.5, 0.999999}) {
    Backoff backoff(50ms, 1s);
    TimePoint now{1h};
    for (const auto whole : {50ms, 100ms, 200ms, 400ms, 800ms, 1000ms, 1000ms, 1000ms}) {
      backoff.failed(now, unit);
      EXPECT_FALSE(backoff.may_try(now));
      EXPECT_GE(backoff.next(), now + whole / 2);
      EXPECT_LT(backoff.next(), now + whole);
      EXPECT_FALSE(backoff.may_try(backoff.next() - 1ns));
      now = backoff.next();
      EXPECT_TRUE(backoff.may_try(now));
    }
    backoff.succeeded();
    EXPECT_TRUE(backoff.may_try(TimePoint{}));
    backoff.failed(now, unit);
    EXPECT_LT(backoff.next(), now + 50ms);
  }
}

TEST(Backoff, ClientsThatFailTogetherComeBackApart) {
  SplitMix64 random(1);
  Backoff one(1s, 30s), other(1s, 30s);
  one.failed(TimePoint{1h}, random.next_unit());
  other.failed(TimePoint{1h}, random.next_unit());
  EXPECT_NE(one.next(), other.next());
}

TEST(Backoff, ALongOutageDoesNotOverflow) {
  Backoff backoff(1ms, 1h);
  TimePoint now{1h};
  for (int i = 0; i < 10000; ++i) {
    backoff.failed(now, 0.999);
    EXPECT_LE(backoff.next(), now + 1h);
    now = backoff.next();
  }
}

}  // namespace
}  // namespace sluice::redis
