// What tests of filter slices share, in process and on servers: streams with times, and the exact
// truth about them, kept in the plainest way.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include "sluice/base/random.hpp"
#include "sluice/cluster/filter_slices.hpp"
#include "tests/support/digests.hpp"

namespace sluice::testing_support {

struct TimedStream {
  std::vector<Digest> digests;
  std::vector<std::int64_t> times_ms;
  std::int64_t jitter_ms = 0;
};

struct StreamSettings {
  std::uint64_t seed = 1;
  std::size_t records = 0;
  std::uint64_t keys = 0;  // different ones
  std::int64_t start_ms = 0;
  std::int64_t step_ms = 1;    // from record to record
  std::int64_t jitter_ms = 0;  // a time is up to that much earlier than it should be
};

inline TimedStream timed_stream(const StreamSettings& settings) {
  SplitMix64 random(settings.seed);
  TimedStream stream;
  stream.jitter_ms = settings.jitter_ms;
  for (std::size_t i = 0; i < settings.records; ++i) {
    stream.digests.push_back(digest_of(random.next() % settings.keys));
    const auto early = static_cast<std::int64_t>(
        random.next() % static_cast<std::uint64_t>(settings.jitter_ms + 1));
    stream.times_ms.push_back(settings.start_ms + static_cast<std::int64_t>(i) * settings.step_ms -
                              early);
  }
  return stream;
}

// Batches of that many keys.
inline std::vector<Verdict> judge(cluster::FilterSlices& slices, std::span<const Digest> digests,
                                  std::span<const std::int64_t> times_ms, std::size_t batch) {
  std::vector<Verdict> verdicts(digests.size());
  for (std::size_t at = 0; at < digests.size(); at += batch) {
    const std::size_t count = std::min(batch, digests.size() - at);
    slices.observe(digests.subspan(at, count),
                   times_ms.empty() ? times_ms : times_ms.subspan(at, count),
                   std::span(verdicts).subspan(at, count));
  }
  return verdicts;
}

inline void expect_truth_forever(std::span<const Digest> digests,
                                 std::span<const Verdict> verdicts) {
  std::set<std::pair<std::uint64_t, std::uint64_t>> seen;
  for (std::size_t i = 0; i < digests.size(); ++i) {
    const bool repeat = !seen.emplace(digests[i].lo, digests[i].hi).second;
    ASSERT_EQ(verdicts[i] == Verdict::duplicate, repeat) << "record " << i;
  }
}

// A key that was let through less than a window before must be held back, and let through again
// when it is `forgotten_ms` old. In between, and where the site's clock may be ahead of the
// record's time by the jitter, both are right.
inline void expect_truth_in_window(const TimedStream& stream, std::span<const Verdict> verdicts,
                                   std::int64_t window_ms, std::int64_t forgotten_ms) {
  std::map<std::pair<std::uint64_t, std::uint64_t>, std::int64_t> delivered;
  std::size_t held = 0, passed_again = 0;
  for (std::size_t i = 0; i < verdicts.size(); ++i) {
    const std::pair key(stream.digests[i].lo, stream.digests[i].hi);
    const std::int64_t time = stream.times_ms[i];
    const bool duplicate = verdicts[i] == Verdict::duplicate;
    const auto found = delivered.find(key);
    if (found == delivered.end()) {
      ASSERT_FALSE(duplicate) << "record " << i << " is new";
    } else if (time - found->second < window_ms - stream.jitter_ms) {
      ASSERT_TRUE(duplicate) << "record " << i << " of age " << time - found->second;
      ++held;
    } else if (time - found->second >= forgotten_ms) {
      ASSERT_FALSE(duplicate) << "record " << i << " of age " << time - found->second;
      ++passed_again;
    }
    if (!duplicate) delivered[key] = time;
  }
  // Of both there was something to get wrong.
  EXPECT_GT(held, verdicts.size() / 20);
  EXPECT_GT(passed_again, verdicts.size() / 20);
}

}  // namespace sluice::testing_support
