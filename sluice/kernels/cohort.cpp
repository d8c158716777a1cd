#include "sluice/kernels/cohort.hpp"

// clang-format off
#include "sluice/base/targets.hpp"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "sluice/kernels/cohort.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>
// clang-format on

#include <algorithm>

#include "sluice/kernels/cohort_places_inl.hpp"
#include "sluice/kernels/cohort_probe_inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace sluice::kernels::HWY_NAMESPACE {

// The widths that are met most are worth the longest code.
template <class F>
constexpr bool kOften = std::is_same_v<F, Format24> || std::is_same_v<F, Format32>;

template <class F>
HWY_INLINE void refresh_slot(const CohortTable& table, const CohortAges<F>& ages,
                             const CohortKey& key, std::uint64_t* refreshed_from) {
  const std::uint64_t fingerprint = fingerprint_of(table, key);
  std::byte* line = key.first;
  std::uint32_t match = probe<F>(table, ages, line, fingerprint).match;
  if (match == 0) {
    line = key.second;
    match = probe<F>(table, ages, line, fingerprint).match;
  }
  const auto slot = static_cast<unsigned>(__builtin_ctz(match));
  ++refreshed_from[get<F>(table, line, slot).generation];
  put_slot<F>(line, slot, key.slot);
}

// kGeneral: with strays or refresh; without, the loop has no branch that depends on the keys. The
// budget is not looked at. Stops before a distinct key for which there is no room.
template <class F, bool kGeneral, bool kFetch>
HWY_NOINLINE std::size_t admit_run(const CohortTable& given, const CohortBatch& batch,
                                   const Digest* digests, Verdict* verdicts, std::size_t count) {
  // A copy that nothing else can point at stays in registers while slots are written.
  const CohortTable table = given;
  const CohortAges<F> ages(table);
  return for_each_key < F, kFetch, true,
         !kGeneral &&
             kOften < F >>
                 (
                     table, digests, count,
                     [&](const auto& places, std::size_t i, std::size_t j) HWY_ATTR
                     __attribute__((always_inline)) {
                       const CohortKey key = places.get(j);
                       const CohortPair pair = probe_pair<F>(table, ages, key);
                       bool duplicate = pair.match;
                       if (kGeneral) {
                         if (!duplicate &&
                             is_stray(table, batch, key.first, fingerprint_of(table, key))) {
                           if (batch.refresh) return false;
                           duplicate = true;
                         } else if (duplicate && batch.refresh) {
                           refresh_slot<F>(table, ages, key, batch.refreshed_from);
                         }
                       }
                       // The emptier bucket takes the key.
                       constexpr std::uint32_t kFirst =
                           kApart<F> == 32 ? ~std::uint32_t{0} : (std::uint32_t{1} << kApart<F>)-1;
                       const std::size_t to_second =
                           count_ones(static_cast<std::uint32_t>(pair.free) & kFirst) <
                           count_ones(static_cast<std::uint32_t>(pair.free >> kApart<F>));
                       const std::uint32_t free =
                           static_cast<std::uint32_t>(pair.free >> (kApart<F> * to_second)) &
                           kFirst;
                       if (HWY_UNLIKELY((free | std::uint32_t{duplicate}) == 0)) {
                         verdicts[i] = Verdict::distinct;
                         return batch.make_room(batch.owner, place_of(table, digests[i]));
                       }
                       // A duplicate is written elsewhere, perhaps as slot 32, which no bucket has.
                       std::byte* const line =
                           places.line(j, to_second + 2 * std::size_t{duplicate});
                       const auto slot =
                           std::size_t{static_cast<unsigned>(std::countr_zero(free))} - kFreeBit<F>;
                       put_slot<F>(line, slot, key.slot);
                       verdicts[i] = static_cast<Verdict>(duplicate);
                       return true;
                     });
}

// A key takes at most one from the budget, so as many keys as there is budget need no watching.
template <class F, bool kGeneral>
HWY_INLINE std::size_t admit_all(const CohortTable& table, CohortBatch& batch) {
  const auto run = table.buckets * kBucketBytes >= kPrefetchFromBytes
                       ? admit_run<F, kGeneral, true>
                       : admit_run<F, kGeneral, false>;
  std::size_t judged = 0;
  while (judged < batch.count && batch.written < batch.budget) {
    const std::size_t count = static_cast<std::size_t>(
        std::min<std::uint64_t>(batch.count - judged, batch.budget - batch.written));
    Verdict* const verdicts = batch.verdicts + judged;
    const std::size_t done = run(table, batch, batch.digests + judged, verdicts, count);
    batch.written +=
        static_cast<std::uint64_t>(std::count(verdicts, verdicts + done, Verdict::distinct));
    judged += done;
    if (done < count) break;
  }
  return judged;
}

std::size_t admit(const CohortTable& table, CohortBatch& batch) {
  return with_format(table, [&](auto format) HWY_ATTR {
    using F = decltype(format);
    return batch.refresh || batch.stray_count != 0 ? admit_all<F, true>(table, batch)
                                                   : admit_all<F, false>(table, batch);
  });
}

template <class F>
HWY_NOINLINE void ask_all(const CohortTable& given, const CohortBatch& batch) {
  const CohortTable table = given;
  const CohortAges<F> ages(table);
  for_each_key<F, true, false, false>(
      table, batch.digests, batch.count,
      [&](const auto& places, std::size_t i, std::size_t j) HWY_ATTR {
        const CohortKey key = places.get(j);
        const bool match = probe_pair<F>(table, ages, key).match;
        batch.verdicts[i] = static_cast<Verdict>(
            match || is_stray(table, batch, key.first, fingerprint_of(table, key)));
        return true;
      });
}

void ask(const CohortTable& table, const CohortBatch& batch) {
  with_format(table, [&](auto format) HWY_ATTR {
    using F = decltype(format);
    ask_all<F>(table, batch);
  });
}

template <class F>
HWY_INLINE unsigned youngest(const CohortTable& table, const CohortAges<F>& ages,
                             const std::byte* line, std::uint64_t fingerprint) {
  unsigned age = kNoAge;
  for (std::uint32_t match = probe<F>(table, ages, line, fingerprint).match; match != 0;
       match &= match - 1) {
    const auto slot = static_cast<unsigned>(__builtin_ctz(match));
    const unsigned generation = get<F>(table, line, slot).generation;
    age = std::min(age, (table.now - generation) & table.generation_mask());
  }
  return age;
}

// Nearly every key that is asked for has one slot, in its first bucket or in its second: a choice
// without a branch. Several slots, or none, are looked at one by one.
template <class F>
HWY_NOINLINE void ages_of(const CohortTable& given, const Digest* digests, std::size_t count,
                          std::uint8_t* found) {
  const CohortTable table = given;
  const CohortAges<F> shared(table);
  for_each_key<F, true, false, false>(
      table, digests, count, [&](const auto& places, std::size_t i, std::size_t j) HWY_ATTR {
        const CohortKey key = places.get(j);
        const std::byte *const first = key.first, *const second = key.second;
        const std::uint64_t fingerprint = fingerprint_of(table, key);
        const std::uint64_t one = probe<F>(table, shared, first, fingerprint).match;
        const std::uint64_t two = probe<F>(table, shared, second, fingerprint).match;
        const std::uint64_t both = one | two << 32;
        if (HWY_UNLIKELY(both == 0 || (both & (both - 1)) != 0)) {
          found[i] =
              static_cast<std::uint8_t>(std::min(youngest<F>(table, shared, first, fingerprint),
                                                 youngest<F>(table, shared, second, fingerprint)));
          return true;
        }
        const std::byte* line = places.line(j, one == 0);
        const auto slot = static_cast<unsigned>(__builtin_ctzll(one | two));
        found[i] = static_cast<std::uint8_t>((table.now - get<F>(table, line, slot).generation) &
                                             table.generation_mask());
        return true;
      });
}

void ages(const CohortTable& table, const Digest* digests, std::size_t count, std::uint8_t* found) {
  with_format(table, [&](auto format) HWY_ATTR {
    using F = decltype(format);
    ages_of<F>(table, digests, count, found);
  });
}

void sweep(const CohortTable& table, std::uint64_t bucket, std::uint64_t count) {
  // By value: what is captured by reference would be read again after every store.
  with_format(table, [table, bucket, count](auto format) HWY_ATTR {
    using F = decltype(format);
    const CohortAges<F> ages(table);
    for (std::uint64_t i = 0; i < count; ++i)
      sweep_line<F>(table, ages, cleared_line_of(table, bucket + i));
  });
}

CohortMatch probe_one(const CohortTable& table, std::uint64_t bucket, std::uint64_t fingerprint) {
  return with_format(table, [&](auto format) HWY_ATTR {
    using F = decltype(format);
    return probe<F>(table, CohortAges<F>(table), cleared_line_of<false>(table, bucket),
                    fingerprint);
  });
}

}  // namespace sluice::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace sluice::kernels {

HWY_EXPORT(admit);
HWY_EXPORT(ask);
HWY_EXPORT(ages);
HWY_EXPORT(sweep);
HWY_EXPORT(probe_one);

std::size_t cohort_admit(const CohortTable& table, CohortBatch& batch) noexcept {
  return HWY_DYNAMIC_DISPATCH(admit)(table, batch);
}

void cohort_may_contain(const CohortTable& table, const CohortBatch& batch) noexcept {
  HWY_DYNAMIC_DISPATCH(ask)(table, batch);
}

void cohort_ages(const CohortTable& table, const Digest* digests, std::size_t count,
                 std::uint8_t* found) noexcept {
  HWY_DYNAMIC_DISPATCH(ages)(table, digests, count, found);
}

void cohort_sweep(const CohortTable& table, std::uint64_t bucket, std::uint64_t count) noexcept {
  HWY_DYNAMIC_DISPATCH(sweep)(table, bucket, count);
}

CohortMatch cohort_probe(const CohortTable& table, std::uint64_t bucket,
                         std::uint64_t fingerprint) noexcept {
  return HWY_DYNAMIC_DISPATCH(probe_one)(table, bucket, fingerprint);
}

CohortSlot cohort_get(const CohortTable& table, std::uint64_t bucket, unsigned slot) noexcept {
  return with_format(table, [&](auto format) {
    return get<decltype(format)>(table, cleared_line_of<false>(table, bucket), slot);
  });
}

void cohort_put(const CohortTable& table, std::uint64_t bucket, unsigned slot,
                const CohortSlot& value) noexcept {
  with_format(table, [&](auto format) {
    put<decltype(format)>(table, cleared_line_of(table, bucket), slot, value.fingerprint,
                          value.generation);
  });
}

}  // namespace sluice::kernels
#endif  // HWY_ONCE
