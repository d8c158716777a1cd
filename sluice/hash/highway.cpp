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

using D64 = hn::CappedTag<std::uint64_t, 4>;
using D32 = hn::CappedTag<std::uint32_t, 8>;
using D8 = hn::CappedTag<std::uint8_t, 32>;
using V = hn::Vec<D64>;

alignas(32) constexpr std::uint64_t kStart0[4] = {0xdbe6d5d5fe4cce2f, 0xa4093822299f31d0,
                                                  0x13198a2e03707344, 0x243f6a8885a308d3};
alignas(32) constexpr std::uint64_t kStart1[4] = {0x3bd39e10cb0ef593, 0xc0acf169b5f18a8c,
                                                  0xbe5466cf34e90c6c, 0x452821e638d01377};
// Which byte of a half goes where when halves are mixed.
alignas(32) constexpr std::uint64_t kZipper[4] = {0x000F010E05020C03, 0x070806090D0A040B,
                                                  0x000F010E05020C03, 0x070806090D0A040B};
// Halves swapped, and the halves of each word.
alignas(32) constexpr std::uint32_t kPermuted[8] = {5, 4, 7, 6, 1, 0, 3, 2};

HWY_INLINE V swap_words(V v) {
  return hn::BitCast(D64(), hn::Shuffle2301(hn::BitCast(D32(), v)));
}
HWY_INLINE V multiply(V a, V b) {
  return hn::MulEven(hn::BitCast(D32(), a), hn::BitCast(D32(), b));
}
HWY_INLINE V zip(V v) {
  const auto order = hn::BitCast(D8(), hn::Load(D64(), kZipper));
  return hn::BitCast(D64(), hn::TableLookupBytes(hn::BitCast(D8(), v), order));
}
HWY_INLINE V permute(V v) {
  const auto order = hn::SetTableIndices(D32(), kPermuted);
  return hn::BitCast(D64(), hn::TableLookupLanes(hn::BitCast(D32(), v), order));
}

// The states of `kKeys` keys. Each step is done for all of them before the next.
template <std::size_t kKeys>
struct States {
  V v0[kKeys], v1[kKeys], mul0[kKeys], mul1[kKeys];

  HWY_INLINE explicit States(const HighwayKey& secret) {
    const V key = hn::LoadU(D64(), secret);
    const V start0 = hn::Load(D64(), kStart0), start1 = hn::Load(D64(), kStart1);
    for (std::size_t i = 0; i < kKeys; ++i) {
      v0[i] = hn::Xor(key, start0);
      v1[i] = hn::Xor(swap_words(key), start1);
      mul0[i] = start0;
      mul1[i] = start1;
    }
  }
  HWY_INLINE void update_one(std::size_t i, V packet) {
    v1[i] = hn::Add(v1[i], hn::Add(packet, mul0[i]));
    mul0[i] = hn::Xor(mul0[i], multiply(v1[i], hn::ShiftRight<32>(v0[i])));
    v0[i] = hn::Add(v0[i], mul1[i]);
    mul1[i] = hn::Xor(mul1[i], multiply(v0[i], hn::ShiftRight<32>(v1[i])));
    v0[i] = hn::Add(v0[i], zip(v1[i]));
    v1[i] = hn::Add(v1[i], zip(v0[i]));
  }
  HWY_INLINE void update(const V (&packets)[kKeys]) {
    HWY_UNROLL(8)
    for (std::size_t i = 0; i < kKeys; ++i) update_one(i, packets[i]);
  }
  HWY_INLINE void finish(Digest* digests) {
    for (int round = 0; round < 6; ++round) {
      V packets[kKeys];
      for (std::size_t i = 0; i < kKeys; ++i) packets[i] = permute(v0[i]);
      update(packets);
    }
    const hn::Half<D64> half;
    for (std::size_t i = 0; i < kKeys; ++i)
      hn::StoreU(hn::Add(hn::LowerHalf(half, hn::Add(v0[i], mul0[i])),
                         hn::UpperHalf(half, hn::Add(v1[i], mul1[i]))),
                 half, &digests[i].lo);
  }
};

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
HWY_INLINE V last_packet(const char* from, std::size_t size) {
  const auto packet = [](std::uint64_t a, std::uint64_t b, std::uint64_t c, std::uint64_t d) {
    return V{_mm256_set_epi64x(static_cast<long long>(d), static_cast<long long>(c),
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

// All of them have a rest behind their whole packets, or none has.
template <std::size_t kKeys>
HWY_INLINE void hash(const HighwayKey& secret, const std::string_view* keys, Digest* digests) {
  States<kKeys> states(secret);
  for (std::size_t i = 0; i < kKeys; ++i)
    for (std::size_t at = 0; at + kPacket <= keys[i].size(); at += kPacket)
      states.update_one(
          i, hn::LoadU(D64(), reinterpret_cast<const std::uint64_t*>(keys[i].data() + at)));
  if (keys[0].size() % kPacket != 0) {
    V packets[kKeys];
    for (std::size_t i = 0; i < kKeys; ++i) {
      const std::size_t rest = keys[i].size() % kPacket;
      const auto left = hn::Set(D32(), static_cast<std::uint32_t>(rest));
      const auto right = hn::Set(D32(), static_cast<std::uint32_t>(32 - rest));
      const auto v1 = hn::BitCast(D32(), states.v1[i]);
      states.v0[i] = hn::Add(states.v0[i], hn::BitCast(D64(), left));
      states.v1[i] = hn::BitCast(D64(), hn::Or(hn::Shl(v1, left), hn::Shr(v1, right)));
      packets[i] = last_packet(keys[i].data() + keys[i].size() - rest, rest);
    }
    states.update(packets);
  }
  states.finish(digests);
}

// Three states leave four of AVX2's registers for the rest. On a Zen 5 core a key of 16 bytes takes 13.3 ns alone, as
// cores overlap keys by themselves, 10.7 ns with 3 or 6 together, 13.5 ns with 4; by the library 33 ns.
constexpr std::size_t kTogether = 3;

void highway_all(const HighwayKey& secret, const std::string_view* keys, std::size_t count,
                 Digest* digests) {
  std::size_t i = 0;
  for (; i + kTogether <= count; i += kTogether) {
    std::size_t whole = 0;
    for (std::size_t j = i; j < i + kTogether; ++j) whole += keys[j].size() % kPacket == 0;
    if (whole == 0 || whole == kTogether)
      hash<kTogether>(secret, keys + i, digests + i);
    else
      for (std::size_t j = i; j < i + kTogether; ++j) hash<1>(secret, keys + j, digests + j);
  }
  for (; i < count; ++i) hash<1>(secret, keys + i, digests + i);
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
