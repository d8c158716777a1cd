#include "sluice/judge/claims.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <vector>

#include "sluice/base/random.hpp"
#include "tests/support/counts.hpp"
#include "tests/support/host_memory.hpp"

namespace sluice {
namespace {

using testing_support::count_of;

constexpr Nanoseconds kSecond = 1'000'000'000;

// Remembers every key for `window`, while there is memory.
class PlainMemory final : public KeyMemory {
 public:
  explicit PlainMemory(Nanoseconds window = 1000 * kSecond) : window_(window) {}
  bool remembers(const Digest& key, const When& when) override {
    const auto at = last_.find(key.lo);
    return at != last_.end() && when.time - at->second < window_;
  }
  bool remember(const Digest& key, const When& when) override {
    if (!has_memory) return false;
    last_[key.lo] = when.time;
    return true;
  }
  // At a time of the caller's clock.
  bool remembers_at(const Digest& key, Nanoseconds time) { return remembers(key, {.time = time}); }
  bool has_memory = true;

 private:
  Nanoseconds window_;
  std::map<std::uint64_t, Nanoseconds> last_;
};

// The definition, written as plainly as can be: a list, searched from end to end.
class Reference {
 public:
  explicit Reference(std::size_t most) : most_(most) {}

  // Nothing: full.
  std::optional<ClaimAnswer> claim(PlainMemory& memory, const Claims::Request& request) {
    auto mine = find(request.key);
    if (mine != entries_.end() && mine->delivered) {
      if (!memory.remember(request.key, {.time = *mine->time})) return ClaimAnswer::duplicate;
      entries_.erase(mine);
      mine = entries_.end();
    }
    if (mine != entries_.end() && mine->until > request.now) {
      if (mine->token != request.token) return ClaimAnswer::pending;
      mine->until = std::max(mine->until, *request.now + request.lease);
      return ClaimAnswer::claimed;
    }
    if (memory.remembers_at(request.key, request.event_time.value_or(*request.now)))
      return ClaimAnswer::duplicate;
    if (mine != entries_.end()) entries_.erase(mine);
    for (int i = 0; i < 2; ++i) retire(memory, *request.now);
    while (entries_.size() >= most_ && retire(memory, *request.now)) {
    }
    if (entries_.size() >= most_) return {};
    entries_.push_back(
        {request.key, request.token, *request.now + request.lease, request.event_time, false});
    return ClaimAnswer::claimed;
  }
  ConfirmAnswer confirm(PlainMemory& memory, const Claims::Request& request) {
    const auto mine = find(request.key);
    const Nanoseconds time = request.event_time.value_or(*request.now);
    if (mine != entries_.end() && mine->delivered) return ConfirmAnswer::already;
    if (mine == entries_.end() || mine->until <= request.now)
      return memory.remembers_at(request.key, time) ? ConfirmAnswer::already
                                                    : ConfirmAnswer::refused;
    if (mine->token != request.token) return ConfirmAnswer::refused;
    if (!mine->time) mine->time = time;
    if (memory.remember(request.key, {.time = *mine->time}))
      entries_.erase(mine);
    else
      mine->delivered = true;
    return ConfirmAnswer::confirmed;
  }
  bool release(const Claims::Request& request) {
    const auto mine = find(request.key);
    if (mine == entries_.end() || mine->delivered || mine->until <= request.now ||
        mine->token != request.token)
      return false;
    entries_.erase(mine);
    return true;
  }
  bool retire(PlainMemory& memory, Nanoseconds now) {
    const auto first = std::ranges::min_element(entries_, {}, [](const Entry& entry) {
      return std::tuple(entry.until, entry.key.lo, entry.key.hi);
    });
    if (first == entries_.end() || first->until > now) return false;
    if (first->delivered && !memory.remember(first->key, {.time = *first->time}))
      first->until = now + Claims::kRetryAfter;
    else
      entries_.erase(first);
    return true;
  }
  Claims::State state_of(const Digest& key, Nanoseconds now) {
    const auto mine = find(key);
    if (mine == entries_.end()) return Claims::State::unknown;
    if (mine->delivered) return Claims::State::delivered;
    return mine->until > now ? Claims::State::pending : Claims::State::unknown;
  }
  std::size_t size() const { return entries_.size(); }

 private:
  struct Entry {
    Digest key;
    Claims::Token token;
    Nanoseconds until;
    std::optional<Nanoseconds> time;
    bool delivered;
  };
  std::vector<Entry>::iterator find(const Digest& key) {
    return std::ranges::find(entries_, key, &Entry::key);
  }
  std::size_t most_;
  std::vector<Entry> entries_;
};

std::vector<std::byte> bytes_of(const Claims& claims) {
  BytesEncoder encoder;
  claims.encode(encoder);
  return encoder.take();
}

Claims decoded(std::span<const std::byte> bytes, std::uint64_t most) {
  BytesDecoder decoder(bytes);
  return Claims::decode(decoder, most);
}

Digest key_of(std::uint64_t n) {
  SplitMix64 random(n);
  return {random.next(), random.next()};
}

Claims::Request request(std::uint64_t key, std::uint64_t token, Nanoseconds now) {
  return {.key = key_of(key), .token = {token, token}, .now = now, .lease = 10 * kSecond};
}

TEST(Claims, OneDeliversAndTheOthersWait) {
  PlainMemory memory;
  Claims claims(10);
  EXPECT_EQ(claims.claim(memory, request(1, 7, 0)), ClaimAnswer::claimed);
  EXPECT_EQ(claims.claim(memory, request(1, 8, 1)), ClaimAnswer::pending);
  EXPECT_EQ(claims.confirm(memory, request(1, 8, 2)), ConfirmAnswer::refused);
  EXPECT_FALSE(claims.release(key_of(1), {8, 8}, 2));
  EXPECT_EQ(claims.confirm(memory, request(1, 7, 3)), ConfirmAnswer::confirmed);
  EXPECT_EQ(claims.confirm(memory, request(1, 7, 4)), ConfirmAnswer::already);
  EXPECT_EQ(claims.claim(memory, request(1, 8, 5)), ClaimAnswer::duplicate);
  EXPECT_EQ(claims.size(), 0u);
}

TEST(Claims, WhatIsReleasedIsFree) {
  PlainMemory memory;
  Claims claims(10);
  claims.claim(memory, request(1, 7, 0));
  EXPECT_TRUE(claims.release(key_of(1), {7, 7}, 1));
  EXPECT_FALSE(claims.release(key_of(1), {7, 7}, 1));
  EXPECT_EQ(claims.claim(memory, request(1, 8, 2)), ClaimAnswer::claimed);
}

TEST(Claims, ALeaseEndsAtItsTimeAndNotBefore) {
  PlainMemory memory;
  Claims claims(10);
  claims.claim(memory, request(1, 7, 0));
  const Nanoseconds end = 10 * kSecond;
  EXPECT_EQ(claims.claim(memory, request(1, 8, end - 1)), ClaimAnswer::pending);
  EXPECT_EQ(claims.confirm(memory, request(1, 7, end)), ConfirmAnswer::refused);
  EXPECT_EQ(claims.claim(memory, request(1, 8, end)), ClaimAnswer::claimed);
  EXPECT_EQ(claims.confirm(memory, request(1, 7, end)), ConfirmAnswer::refused);
  EXPECT_EQ(claims.confirm(memory, request(1, 8, end + 1)), ConfirmAnswer::confirmed);
  EXPECT_EQ(claims.confirm(memory, request(1, 7, end + 2)), ConfirmAnswer::already);
}

TEST(Claims, TheSameTokenExtendsItsLeaseAndNeverShortensIt) {
  PlainMemory memory;
  Claims claims(10);
  claims.claim(memory, request(1, 7, 0));
  Claims::Request again = request(1, 7, 5 * kSecond);
  EXPECT_EQ(claims.claim(memory, again), ClaimAnswer::claimed);
  again.lease = 1;
  EXPECT_EQ(claims.claim(memory, again), ClaimAnswer::claimed);
  EXPECT_EQ(claims.claim(memory, request(1, 8, 15 * kSecond - 1)), ClaimAnswer::pending);
  EXPECT_EQ(claims.claim(memory, request(1, 8, 15 * kSecond)), ClaimAnswer::claimed);
}

TEST(Claims, FullIsAnErrorAndNobodyIsEvicted) {
  PlainMemory memory;
  Claims claims(3);
  for (std::uint64_t key = 0; key < 3; ++key) claims.claim(memory, request(key, 7, 0));
  EXPECT_THROW(claims.claim(memory, request(3, 7, 1)), ClaimsFull);
  // Of those that are there, one's own and others' are answered as ever.
  EXPECT_EQ(claims.claim(memory, request(0, 7, 1)), ClaimAnswer::claimed);
  EXPECT_EQ(claims.claim(memory, request(1, 8, 1)), ClaimAnswer::pending);
  for (std::uint64_t key = 0; key < 3; ++key)
    EXPECT_EQ(claims.state_of(key_of(key), 1), Claims::State::pending);
  // Leases that have ended make room.
  EXPECT_EQ(claims.claim(memory, request(3, 7, 10 * kSecond)), ClaimAnswer::claimed);
}

TEST(Claims, ConfirmingNeedsNoMemory) {
  PlainMemory memory;
  Claims claims(2);
  claims.claim(memory, request(1, 7, 0));
  memory.has_memory = false;
  EXPECT_EQ(claims.confirm(memory, request(1, 7, 1)), ConfirmAnswer::confirmed);
  EXPECT_EQ(claims.confirm(memory, request(1, 7, 2)), ConfirmAnswer::already);
  EXPECT_EQ(claims.claim(memory, request(1, 8, 20 * kSecond)), ClaimAnswer::duplicate);
  EXPECT_EQ(claims.state_of(key_of(1), 20 * kSecond), Claims::State::delivered);
  // It keeps its place, and the claims go on in what is left.
  EXPECT_EQ(claims.claim(memory, request(2, 7, 20 * kSecond)), ClaimAnswer::claimed);
  EXPECT_THROW(claims.claim(memory, request(3, 7, 20 * kSecond)), ClaimsFull);
  // With memory again it is remembered, as of when it was confirmed.
  memory.has_memory = true;
  EXPECT_EQ(claims.claim(memory, request(3, 7, 22 * kSecond)), ClaimAnswer::claimed);
  EXPECT_TRUE(memory.remembers_at(key_of(1), 999 * kSecond));
  EXPECT_FALSE(memory.remembers_at(key_of(1), 1000 * kSecond + 1));
}

// Nobody else claims anything, and the key itself comes again long after its window.
TEST(Claims, AKeyThatWaitsForMemoryIsNoDuplicateForEver) {
  PlainMemory memory(10 * kSecond);
  Claims claims(2);
  claims.claim(memory, request(1, 7, 0));
  memory.has_memory = false;
  EXPECT_EQ(claims.confirm(memory, request(1, 7, 1)), ConfirmAnswer::confirmed);
  EXPECT_EQ(claims.claim(memory, request(1, 7, 5 * kSecond)), ClaimAnswer::duplicate);
  memory.has_memory = true;
  EXPECT_EQ(claims.claim(memory, request(1, 7, 9 * kSecond)), ClaimAnswer::duplicate);
  EXPECT_EQ(claims.size(), 0u);
  EXPECT_EQ(claims.claim(memory, request(1, 7, 11 * kSecond)), ClaimAnswer::claimed);
}

// What is put off at the end of time is due again at once.
TEST(Claims, EndAtTheEndOfTime) {
  constexpr Nanoseconds kEnd = std::numeric_limits<Nanoseconds>::max();
  PlainMemory memory;
  Claims claims(1);
  claims.claim(memory, request(1, 7, kEnd - 10));
  memory.has_memory = false;
  EXPECT_EQ(claims.confirm(memory, request(1, 7, kEnd - 9)), ConfirmAnswer::confirmed);
  EXPECT_THROW(claims.claim(memory, request(2, 7, kEnd)), ClaimsFull);
  claims.tend(memory, kEnd, std::numeric_limits<std::size_t>::max());
  EXPECT_EQ(claims.size(), 1u);
}

TEST(Claims, AKeyIsRememberedAtItsEventTime) {
  PlainMemory memory;
  Claims claims(2);
  Claims::Request one = request(1, 7, 50 * kSecond);
  one.event_time = 3 * kSecond;
  claims.claim(memory, one);
  one.now = 55 * kSecond;
  EXPECT_EQ(claims.confirm(memory, one), ConfirmAnswer::confirmed);
  EXPECT_TRUE(memory.remembers_at(key_of(1), 1003 * kSecond - 1));
  EXPECT_FALSE(memory.remembers_at(key_of(1), 1003 * kSecond));
}

TEST(Claims, RefusesWhatCannotBe) {
  PlainMemory memory;
  EXPECT_THROW(Claims(0), BadParameters);
  EXPECT_THROW(Claims(Claims::kMostClaims + 1), BadParameters);
  Claims claims(1);
  Claims::Request one = request(1, 7, 0);
  for (const Nanoseconds lease : {Nanoseconds{0}, Nanoseconds{-1}}) {
    one.lease = lease;
    EXPECT_THROW(claims.claim(memory, one), BadParameters);
  }
  one.lease = std::numeric_limits<Nanoseconds>::max();
  one.now = one.lease - 1;
  EXPECT_EQ(claims.claim(memory, one), ClaimAnswer::claimed);  // without overflow
}

// Random calls of few keys and tokens, so that they meet; leases end on the way, and windows pass.
struct Mix {
  std::uint64_t seed, keys, most;
};

void run_model(const Mix& mix, int calls) {
  SplitMix64 random(mix.seed);
  PlainMemory memory(30 * kSecond), reference_memory(30 * kSecond);
  auto claims = std::make_unique<Claims>(mix.most);
  Reference reference(mix.most);
  Nanoseconds now = 0;
  for (int call = 0; call < calls; ++call) {
    now += static_cast<Nanoseconds>(random.next() % 200'000'000) + 1;
    Claims::Request ask = request(random.next() % mix.keys, random.next() % 3, now);
    ask.lease = static_cast<Nanoseconds>(random.next() % (6 * kSecond)) + 1;
    if (random.next() % 4 == 0) ask.event_time = now - 5 * kSecond;
    if (random.next() % 64 == 0)
      memory.has_memory = reference_memory.has_memory = random.next() % 2 == 0;
    switch (random.next() % 8) {
      case 0:
      case 1:
      case 2:
      case 3: {
        std::optional<ClaimAnswer> answer;
        try {
          answer = claims->claim(memory, ask);
        } catch (const ClaimsFull&) {
        }
        ASSERT_EQ(answer, reference.claim(reference_memory, ask)) << "call " << call;
        break;
      }
      case 4:
      case 5:
        ASSERT_EQ(claims->confirm(memory, ask), reference.confirm(reference_memory, ask));
        break;
      case 6:
        ASSERT_EQ(claims->release(ask.key, ask.token, now), reference.release(ask));
        break;
      case 7: {
        const std::vector<std::byte> bytes = bytes_of(*claims);
        claims = std::make_unique<Claims>(decoded(bytes, mix.most));
        ASSERT_EQ(bytes_of(*claims), bytes);
        break;
      }
    }
    ASSERT_EQ(claims->size(), reference.size()) << "call " << call;
    for (std::uint64_t key = 0; key < mix.keys; ++key)
      ASSERT_EQ(claims->state_of(key_of(key), now), reference.state_of(key_of(key), now));
  }
}

TEST(Claims, DoAsTheDefinitionSaysInAnyOrderOfCalls) {
  for (std::uint64_t seed = 1; seed <= count_of(2u, 8u, 8u); ++seed) {
    run_model({seed, 12, 4}, 2000);
    run_model({seed, 40, 1000}, 2000);
  }
  run_model({9, 300, 200}, count_of(1200, 5000, 5000));
}

TEST(Claims, EveryByteIsCountedAndBlocksAreSmall) {
  TestMemory memory_of_host;
  PlainMemory memory;
  {
    Claims claims(100'000, memory_of_host);
    for (std::uint64_t key = 0; key < 100'000; ++key) {
      claims.claim(memory, request(key, 7, 0));
      ASSERT_EQ(claims.bytes(), memory_of_host.taken());
    }
    EXPECT_THROW(claims.claim(memory, request(100'000, 7, 0)), ClaimsFull);
    EXPECT_LT(claims.bytes(), 100'000 * 75u);
    EXPECT_LE(memory_of_host.most(), 1u << 16);
    Claims moved(std::move(claims));
    EXPECT_EQ(moved.claim(memory, request(99'999, 8, 1)), ClaimAnswer::pending);
  }
  EXPECT_EQ(memory_of_host.taken(), 0u);
}

TEST(Claims, AFailedAllocationChangesNothing) {
  for (std::uint64_t n = 1; n <= 7; ++n) {
    TestMemory host;
    PlainMemory memory;
    host.fail_at(n);
    try {
      Claims claims(200, host);
      for (std::uint64_t key = 0; key < 200; ++key) {
        const std::vector<std::byte> before = bytes_of(claims);
        try {
          claims.claim(memory, request(key, 7, 0));
        } catch (const NoMemory&) {
          EXPECT_EQ(bytes_of(claims), before);
          EXPECT_EQ(claims.claim(memory, request(key, 7, 0)), ClaimAnswer::claimed);
        }
      }
      EXPECT_EQ(claims.size(), 200u);
    } catch (const NoMemory&) {
    }
    EXPECT_TRUE(host.failed());
    EXPECT_EQ(host.taken(), 0u);
  }
}

TEST(Claims, HostileBytesAreRefused) {
  PlainMemory memory;
  Claims claims(100);
  for (std::uint64_t key = 0; key < 100; ++key)
    claims.claim(memory, request(key, 7, static_cast<Nanoseconds>(key)));
  const std::vector<std::byte> bytes = bytes_of(claims);
  EXPECT_EQ(decoded(bytes, 10).most(), 100u);
  for (std::size_t cut = 0; cut < bytes.size(); cut += 7)
    EXPECT_THROW(decoded(std::span(bytes).first(cut), 100), CorruptSnapshot);
  // Any change is refused, or gives claims that can be used.
  SplitMix64 random(5);
  for (int i = 0; i < count_of(2000, 20'000, 20'000); ++i) {
    std::vector<std::byte> bad = bytes;
    for (int changes = 0; changes < 3; ++changes)
      bad[random.next() % bad.size()] = static_cast<std::byte>(random.next());
    try {
      Claims odd = decoded(bad, 100);
      EXPECT_EQ(bytes_of(odd), bad);
      for (std::uint64_t key = 0; key < 10; ++key) {
        odd.release(key_of(key), {7, 7}, 50);
        odd.confirm(memory, request(key, 7, 50));
      }
    } catch (const CorruptSnapshot&) {
    }
  }
  // A count alone reserves nothing.
  BytesEncoder forged;
  forged.u32(1u << 20);
  EXPECT_THROW(decoded(forged.written(), 1), CorruptSnapshot);
}

// Someone who knows the hash can choose similar digests: a claim must still be readable.
TEST(Claims, KeysThatAreAlikeAreReadAgain) {
  for (const unsigned shift : {0u, 20u, 40u}) {
    PlainMemory memory;
    Claims claims(5000);
    for (std::uint64_t i = 0; i < 5000; ++i) {
      Claims::Request alike = request(i, 7, 0);
      alike.key = {i << shift, 0};
      EXPECT_EQ(claims.claim(memory, alike), ClaimAnswer::claimed);
    }
    EXPECT_EQ(decoded(bytes_of(claims), 5000).size(), 5000u);
  }
}

// Keys that shared one slot whatever the salt was, in the home function before this one; and keys
// that differ in few bits only.
TEST(Claims, WhoeverChoosesKeysDoesNotChooseTheirSlots) {
  const std::uint64_t keys = count_of(5000, 20'000, 20'000);  // of the same load
  const std::vector<Digest (*)(std::uint64_t)> families = {
      [](std::uint64_t i) {
        const std::uint64_t high = (i & 2047) << 53;
        return Digest{high ^ (high >> 32), (i >> 11) << 53};
      },
      [](std::uint64_t i) {
        return Digest{i, 0};
      },
      [](std::uint64_t i) {
        return Digest{0, i << 44};
      },
      [](std::uint64_t i) {
        return Digest{i << 44, ~std::uint64_t{0}};
      },
      [](std::uint64_t i) {
        return Digest{i, i};
      },
      [](std::uint64_t i) {
        return Digest{i << 40, ~(i << 40)};
      },
  };
  for (std::size_t family = 0; family < families.size(); ++family) {
    BytesEncoder forged;
    forged.u32(static_cast<std::uint32_t>(keys));
    for (std::uint64_t i = 0; i < keys; ++i) {
      const Digest key = families[family](i);
      for (const std::uint64_t word :
           {key.lo, key.hi, std::uint64_t{1}, std::uint64_t{2}, 1000 + i, std::uint64_t{0}})
        forged.u64(word);
      forged.u8(0);
    }
    const Claims claims = decoded(forged.written(), 1);
    EXPECT_EQ(claims.size(), keys);
    // Uniform keys at this load: 11 in the median of 400 salts, 24 at most.
    EXPECT_LE(claims.longest_search(), 60u) << "family " << family;
  }
}

}  // namespace
}  // namespace sluice
