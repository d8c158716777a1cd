#include "sluice/kernels/blocked.hpp"

// clang-format off
#include "sluice/base/targets.hpp"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "sluice/kernels/blocked.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>
// clang-format on

#include "sluice/kernels/prefetch.hpp"
#include "sluice/kernels/vectors_inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace sluice::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

#if SLUICE_PORTABLE_TARGET

// Two words at a time, for which the baseline has a register.
using Words = std::uint64_t __attribute__((vector_size(16), may_alias));

template <unsigned kProbes, bool kRemember, bool kPaged>
bool judge_one(const BlockedTable& table, const Digest digest) {
  // As a constant, the number of probes turns block_mask into straight code.
  const BlockedTable fixed{table.words, table.blocks, kProbes, table.pages};
  auto* const block = reinterpret_cast<Words*>(kPaged ? block_in_pages<kRemember>(fixed, digest)
                                                      : block_of(fixed, digest));
  Words missing = {};
  for (unsigned i = 0; i < kBlockWords / 2; ++i) {
    const Words mask = {block_mask(fixed, digest, 2 * i), block_mask(fixed, digest, 2 * i + 1)};
    const Words held = block[i];
    missing |= mask & ~held;
    if (kRemember) block[i] = held | mask;
  }
  return (missing[0] | missing[1]) == 0;
}

#else

// One vector of a key's mask. `Lane` is the width of a lane of the layout: 64 bits for 8 probes, 32
// for 16. A block takes 64 / sizeof(vector) of them; `part` is which.
using Tag64 = hn::CappedTag<std::uint64_t, 8>;
using Tag32 = hn::CappedTag<std::uint32_t, 16>;
constexpr std::size_t kVectorBytes = hn::MaxLanes(Tag64()) * sizeof(std::uint64_t);
constexpr std::size_t kParts = kBlockBytes / kVectorBytes;
constexpr std::size_t kLanes64 = hn::MaxLanes(Tag64());
constexpr std::size_t kLanes32 = hn::MaxLanes(Tag32());

alignas(64) constexpr std::uint64_t kShift64[8] = {0, 6, 12, 18, 24, 30, 36, 42};
alignas(64) constexpr std::uint32_t kShift32[16] = {0,  0,  0,  0,  5,  5,  5,  5,
                                                    10, 10, 10, 10, 15, 15, 15, 15};

HWY_INLINE hn::Vec<Tag64> mask8(const Digest& digest, std::size_t part) {
  const Tag64 d;
  const auto shift = hn::Load(d, kShift64 + part * kLanes64);
  const auto position = hn::And(hn::Set(d, digest.hi) >> shift, hn::Set(d, 63));
  return hn::Set(d, 1) << position;
}

HWY_INLINE hn::Vec<Tag64> mask16(const Digest& digest, std::uint64_t second, std::size_t part) {
  const Tag32 d;
  alignas(16) const std::uint64_t words[2] = {digest.hi, second};
  const auto source = hn::BitCast(d, hn::LoadDup128(Tag64(), words));
  const auto shift = hn::Load(d, kShift32 + part * kLanes32);
  const auto position = hn::And(source >> shift, hn::Set(d, 31));
  return hn::BitCast(Tag64(), hn::Set(d, 1) << position);
}

// All is read before anything is written: a load behind a store to who knows where would wait.
template <unsigned kProbes, bool kRemember, bool kPaged>
HWY_INLINE bool judge_one(const BlockedTable& table, const Digest digest) {
  const Tag64 d;
  std::uint64_t* block =
      kPaged ? block_in_pages<kRemember>(table, digest) : block_of(table, digest);
  const std::uint64_t second = kProbes == 16 ? second_word(digest) : 0;
  hn::Vec<Tag64> filled[kParts];
  auto missing = hn::Zero(d);
  for (std::size_t part = 0; part < kParts; ++part) {
    const auto mask = kProbes == 8 ? mask8(digest, part) : mask16(digest, second, part);
    const auto words = hn::Load(d, block + part * kLanes64);
    missing = hn::Or(missing, hn::AndNot(words, mask));
    filled[part] = hn::Or(words, mask);
  }
  if (kRemember)
    for (std::size_t part = 0; part < kParts; ++part)
      hn::Store(filled[part], d, block + part * kLanes64);
  return is_zero(d, missing);
}

#endif

template <unsigned kProbes, bool kRemember, bool kPaged>
std::size_t judge_all(const BlockedTable& given, const Digest* digests, std::size_t count,
                      Verdict* verdicts) {
  // A copy that nothing else can point at stays in registers while blocks are written.
  const BlockedTable table = given;
  std::size_t duplicates = 0;
  with_prefetch(
      count, table.blocks * kBlockBytes,
      [&](std::size_t i) {
        if constexpr (kPaged)
          return static_cast<const void*>(table.pages.at(scale_to(digests[i].lo, table.blocks)));
        else
          return block_of(table, digests[i]);
      },
      [&](std::size_t i) HWY_ATTR {
        const bool duplicate = judge_one<kProbes, kRemember, kPaged>(table, digests[i]);
        verdicts[i] = static_cast<Verdict>(duplicate);
        duplicates += duplicate;
      });
  return count - duplicates;
}

template <bool kRemember>
std::size_t judge(const BlockedTable& table, const Digest* digests, std::size_t count,
                  Verdict* verdicts) {
  if (table.pages)
    return table.probes == 8 ? judge_all<8, kRemember, true>(table, digests, count, verdicts)
                             : judge_all<16, kRemember, true>(table, digests, count, verdicts);
  return table.probes == 8 ? judge_all<8, kRemember, false>(table, digests, count, verdicts)
                           : judge_all<16, kRemember, false>(table, digests, count, verdicts);
}

std::size_t observe(const BlockedTable& table, const Digest* digests, std::size_t count,
                    Verdict* verdicts) {
  return judge<true>(table, digests, count, verdicts);
}
std::size_t may_contain(const BlockedTable& table, const Digest* digests, std::size_t count,
                        Verdict* verdicts) {
  return judge<false>(table, digests, count, verdicts);
}

}  // namespace sluice::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace sluice::kernels {

HWY_EXPORT(observe);
HWY_EXPORT(may_contain);

std::size_t blocked_observe(const BlockedTable& table, const Digest* digests, std::size_t count,
                            Verdict* verdicts) noexcept {
  return HWY_DYNAMIC_DISPATCH(observe)(table, digests, count, verdicts);
}

void blocked_may_contain(const BlockedTable& table, const Digest* digests, std::size_t count,
                         Verdict* verdicts) noexcept {
  HWY_DYNAMIC_DISPATCH(may_contain)(table, digests, count, verdicts);
}

}  // namespace sluice::kernels
#endif  // HWY_ONCE
