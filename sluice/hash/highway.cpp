#include "sluice/hash/highway.hpp"

// The algorithm is specified by its authors: Alakuijala, Cox and Wassenberg, "Fast keyed hash/pseudo-random
// function using SIMD multiply and permute", 2016, and by their library, which is the reference here.

// clang-format off
#include "sluice/base/targets.hpp"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "sluice/hash/highway.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>
// clang-format on

#include <highwayhash/highwayhash_target.h>
#include <highwayhash/instruction_sets.h>

#include <algorithm>
#include <cstring>

HWY_BEFORE_NAMESPACE();
namespace sluice::hashing::HWY_NAMESPACE {

// NEON has vectors of half a state, and the library is made for them.
#if SLUICE_PORTABLE_TARGET || HWY_TARGET == HWY_NEON

void highway_all(const HighwayKey& secret, const std::string_view* keys, std::size_t count,
                 Digest* digests) {
  for (std::size_t i = 0; i < count; ++i) digests[i] = highway_portable(secret, keys[i]);
}

#else

namespace hn = hwy::HWY_NAMESPACE;

constexpr std::size_t kPacket = 32;

// A state of one key, and of as many as a vector holds: two in 512 bits.
using One = hn::CappedTag<std::uint64_t, 4>;
using Many = hn::CappedTag<std::uint64_t, 8>;
template <class D>
constexpr std::size_t kPerVector = hn::MaxLanes(D()) / 4;

alignas(64) constexpr std::uint64_t kStart0[8] = {
    0xdbe6d5d5fe4cce2f, 0xa4093822299f31d0, 0x13198a2e03707344, 0x243f6a8885a308d3,
    0xdbe6d5d5fe4cce2f, 0xa4093822299f31d0, 0x13198a2e03707344, 0x243f6a8885a308d3};
alignas(64) constexpr std::uint64_t kStart1[8] = {
    0x3bd39e10cb0ef593, 0xc0acf169b5f18a8c, 0xbe5466cf34e90c6c, 0x452821e638d01377,
    0x3bd39e10cb0ef593, 0xc0acf169b5f18a8c, 0xbe5466cf34e90c6c, 0x452821e638d01377};
// Which byte of a half goes where when halves are mixed.
alignas(16) constexpr std::uint64_t kZipper[2] = {0x000F010E05020C03, 0x070806090D0A040B};
// The halves of a state swapped, and the halves of each word.
alignas(64) constexpr std::uint32_t kPermuted[16] = {5,  4,  7,  6,  1, 0, 3,  2,
                                                     13, 12, 15, 14, 9, 8, 11, 10};

// The states of kVectors vectors. Each step is done for all of them before the next.
template <class D, std::size_t kVectors>
struct States {
  using V = hn::Vec<D>;
  static constexpr hn::Repartition<std::uint32_t, D> d32{};
  V v0[kVectors], v1[kVectors], mul0[kVectors], mul1[kVectors];

  HWY_INLINE explicit States(V secret) {
    const V start0 = hn::Load(D(), kStart0), start1 = hn::Load(D(), kStart1);
    const V swapped = hn::BitCast(D(), hn::Shuffle2301(hn::BitCast(d32, secret)));
    for (std::size_t i = 0; i < kVectors; ++i) {
      v0[i] = hn::Xor(secret, start0);
      v1[i] = hn::Xor(swapped, start1);
      mul0[i] = start0;
      mul1[i] = start1;
    }
  }
  static HWY_INLINE V multiply(V a, V b) {
    return hn::MulEven(hn::BitCast(d32, a), hn::BitCast(d32, b));
  }
  static HWY_INLINE V zip(V v) {
    const hn::Repartition<std::uint8_t, D> d8;
    const auto order = hn::BitCast(d8, hn::LoadDup128(D(), kZipper));
    return hn::BitCast(D(), hn::TableLookupBytes(hn::BitCast(d8, v), order));
  }
  static HWY_INLINE V permute(V v) {
    const auto order = hn::SetTableIndices(d32, kPermuted);
    return hn::BitCast(D(), hn::TableLookupLanes(hn::BitCast(d32, v), order));
  }
  HWY_INLINE void update(const V (&packets)[kVectors]) {
    HWY_UNROLL(8)
    for (std::size_t i = 0; i < kVectors; ++i) {
      v1[i] = hn::Add(v1[i], hn::Add(packets[i], mul0[i]));
      mul0[i] = hn::Xor(mul0[i], multiply(v1[i], hn::ShiftRight<32>(v0[i])));
      v0[i] = hn::Add(v0[i], mul1[i]);
      mul1[i] = hn::Xor(mul1[i], multiply(v0[i], hn::ShiftRight<32>(v1[i])));
      v0[i] = hn::Add(v0[i], zip(v1[i]));
      v1[i] = hn::Add(v1[i], zip(v0[i]));
    }
  }
  // `sizes`: of the rest, in each 32-bit lane of a key.
  HWY_INLINE void add_size(std::size_t i, hn::Vec<decltype(d32)> sizes) {
    const auto v = hn::BitCast(d32, v1[i]);
    const auto others = hn::Sub(hn::Set(d32, 32), sizes);
    v0[i] = hn::Add(v0[i], hn::BitCast(D(), sizes));
    v1[i] = hn::BitCast(D(), hn::Or(hn::Shl(v, sizes), hn::Shr(v, others)));
  }
  HWY_INLINE void finish(Digest* digests) {
    for (int round = 0; round < 6; ++round) {
      V packets[kVectors];
      for (std::size_t i = 0; i < kVectors; ++i) packets[i] = permute(v0[i]);
      update(packets);
    }
    for (std::size_t i = 0; i < kVectors; ++i) {
      // The lower half of each state.
      const V sum =
          hn::Add(hn::Add(v0[i], mul0[i]), hn::SwapAdjacentBlocks(hn::Add(v1[i], mul1[i])));
      alignas(64) std::uint64_t words[hn::MaxLanes(D())];
      hn::Store(sum, D(), words);
      for (std::size_t j = 0; j < kPerVector<D>; ++j)
        digests[i * kPerVector<D> + j] = {words[4 * j], words[4 * j + 1]};
    }
  }
};

// One vector of `each(j)`, of a vector for each key.
template <class D, class Each>
HWY_INLINE hn::Vec<D> gather(const Each& each) {
  if constexpr (kPerVector<D> == 1)
    return each(0);
  else
    return hn::Combine(D(), each(1), each(0));
}

template <class T>
HWY_INLINE std::uint64_t load(const char* from) {
  T value;
  std::memcpy(&value, from, sizeof(value));
  return value;
}

// The whole words of the last `size` bytes of a key, of 4 bytes and fewer than four; zeros follow.
struct Words {
  std::uint64_t low, high;
};
HWY_INLINE Words words_of(const char* from, std::size_t size) {
  if (size >= 8) return {load<std::uint64_t>(from), size >= 12 ? load<std::uint32_t>(from + 8) : 0};
  return {size >= 4 ? load<std::uint32_t>(from) : 0, 0};
}

// What is left of a key behind its whole packets, 1 to 31 bytes, as a packet. It never goes through memory: a load
// of what was just stored in parts would wait.
HWY_INLINE hn::Vec<One> last_packet(const char* from, std::size_t size) {
  const auto packet = [](std::uint64_t a, std::uint64_t b, std::uint64_t c,
                         std::uint64_t d) HWY_ATTR {
    return hn::Vec<One>{_mm256_set_epi64x(static_cast<long long>(d), static_cast<long long>(c),
                                          static_cast<long long>(b), static_cast<long long>(a))};
  };
  if (size >= 16) {
    const Words words = words_of(from + 16, size - 16);
    // The last four bytes, some of which may be there already.
    const std::uint64_t last = load<std::uint32_t>(from + size - 4);
    return packet(load<std::uint64_t>(from), load<std::uint64_t>(from + 8), words.low,
                  words.high | last << 32);
  }
  const Words words = words_of(from, size);
  const std::size_t rest = size % 4;
  if (rest == 0) return packet(words.low, words.high, 0, 0);
  // The up to three bytes behind the words, some of them twice.
  const auto* const bytes = reinterpret_cast<const unsigned char*>(from + size - rest);
  const std::uint64_t last =
      bytes[0] | std::uint64_t{bytes[rest / 2]} << 8 | std::uint64_t{bytes[rest - 1]} << 16;
  return packet(words.low, words.high, last, 0);
}

// All of them have as many whole packets, and have a rest or none.
template <class D, std::size_t kVectors>
HWY_INLINE void hash(const HighwayKey& secret, const std::string_view* keys, Digest* digests) {
  constexpr std::size_t kPer = kPerVector<D>;
  using S = States<D, kVectors>;
  const auto words = [](const char* from) HWY_ATTR {
    return hn::LoadU(One(), reinterpret_cast<const std::uint64_t*>(from));
  };
  const auto own = hn::LoadU(One(), secret);
  S states(gather<D>([&](std::size_t) HWY_ATTR { return own; }));
  typename S::V packets[kVectors];
  const std::size_t whole = keys[0].size() / kPacket * kPacket;
  for (std::size_t at = 0; at < whole; at += kPacket) {
    for (std::size_t i = 0; i < kVectors; ++i)
      packets[i] =
          gather<D>([&](std::size_t j) HWY_ATTR { return words(keys[i * kPer + j].data() + at); });
    states.update(packets);
  }
  if (keys[0].size() != whole) {
    const hn::Repartition<std::uint32_t, One> one32;
    for (std::size_t i = 0; i < kVectors; ++i) {
      const auto rest = [&](std::size_t j) { return keys[i * kPer + j].size() - whole; };
      states.add_size(i, hn::BitCast(S::d32, gather<D>([&](std::size_t j) HWY_ATTR {
                                       return hn::BitCast(
                                           One(),
                                           hn::Set(one32, static_cast<std::uint32_t>(rest(j))));
                                     })));
      packets[i] = gather<D>([&](std::size_t j) HWY_ATTR {
        return last_packet(keys[i * kPer + j].data() + whole, rest(j));
      });
    }
    states.update(packets);
  }
  states.finish(digests);
}

// Three states leave four of AVX2's registers for the rest. On a Zen 5 core a key of 16 bytes takes 14 ns alone, as
// cores overlap keys by themselves; with 2, 3 and 4 vectors 14, 11 and 15 ns in AVX2 and 8.5, 7.4 and 9.6 ns in
// AVX-512; by the library 35 ns.
constexpr std::size_t kVectors = 3;
constexpr std::size_t kTogether = kVectors * kPerVector<Many>;

HWY_INLINE bool alike(const std::string_view* keys) {
  const std::size_t size = keys[0].size();
  bool alike = true;
  for (std::size_t i = 1; i < kTogether; ++i)
    alike &= keys[i].size() / kPacket == size / kPacket &&
             (keys[i].size() % kPacket == 0) == (size % kPacket == 0);
  return alike;
}

void highway_all(const HighwayKey& secret, const std::string_view* keys, std::size_t count,
                 Digest* digests) {
  std::size_t i = 0;
  while (i + kTogether <= count) {
    if (alike(keys + i)) {
      hash<Many, kVectors>(secret, keys + i, digests + i);
      i += kTogether;
    } else {
      for (std::size_t j = 0; j < kTogether; ++j, ++i) hash<One, 1>(secret, keys + i, digests + i);
    }
  }
  for (; i < count; ++i) hash<One, 1>(secret, keys + i, digests + i);
}

#endif

}  // namespace sluice::hashing::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace sluice::hashing {

HWY_EXPORT(highway_all);

void highway(const HighwayKey& secret, std::span<const std::string_view> keys,
             std::span<Digest> digests) noexcept {
  HWY_DYNAMIC_DISPATCH(highway_all)(secret, keys.data(), keys.size(), digests.data());
}

Digest highway_portable(const HighwayKey& secret, std::string_view key) noexcept {
  alignas(32) highwayhash::HHKey hh_key;
  static_assert(sizeof(hh_key) == sizeof(secret));
  std::memcpy(hh_key, secret, sizeof(hh_key));
  highwayhash::HHResult128 hash;
  highwayhash::InstructionSets::Run<highwayhash::HighwayHash>(hh_key, key.data(), key.size(),
                                                              &hash);
  return {hash[0], hash[1]};
}

}  // namespace sluice::hashing
#endif
