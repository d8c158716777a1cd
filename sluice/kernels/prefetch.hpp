// Software prefetch for batched probes of a table.
#pragma once

#include <cstddef>

namespace sluice::kernels {

// How many keys ahead the table is prefetched. Throughput is flat from 16 to 40, and falls by a
// tenth at 8 (`sluice_bench prefetch`).
inline constexpr std::size_t kPrefetchDistance = 24;

// From this table size on prefetching pays. A smaller table stays in or near the second-level
// cache, so that out-of-order execution hides the latency, and prefetching costs up to a quarter
// more than it saves (same measurement, second-level cache of 1 MiB).
inline constexpr std::size_t kPrefetchFromBytes = std::size_t{2} << 20;

// The locality argument of __builtin_prefetch for lines in memory: the second-level cache. The
// first level can wait for only a few lines at a time (16 on Golden Cove); the second level for
// three times as many. With it, random updates of lines of a large table take 0.6 to 0.8 × the
// time, and the fetch from the second level is hidden.
inline constexpr int kPrefetchLocality = 2;

// Calls judge(i) for each i of a batch in order, and prefetches the cache line at address_of(i)
// ahead of it when a table of `table_bytes` is out of cache. Always inlined: it must use its
// caller's instruction set, or judge could not be inlined into it. The default constants suit
// nearly all callers.
template <class AddressOf, class Judge>
[[gnu::always_inline]] inline void with_prefetch(std::size_t count, std::size_t table_bytes,
                                                 AddressOf address_of, Judge judge,
                                                 std::size_t distance = kPrefetchDistance,
                                                 std::size_t from_bytes = kPrefetchFromBytes) {
  if (table_bytes < from_bytes) {
    for (std::size_t i = 0; i < count; ++i) judge(i);
    return;
  }
  // The builtin is written here and not in a function of its own: GCC assumes that a function that
  // only prefetches has no effect, and drops the call.
  const std::size_t ahead = count < distance ? count : distance;
  for (std::size_t i = 0; i < ahead; ++i) __builtin_prefetch(address_of(i), 0, kPrefetchLocality);
  for (std::size_t i = 0; i + ahead < count; ++i) {
    __builtin_prefetch(address_of(i + ahead), 0, kPrefetchLocality);
    judge(i);
  }
  for (std::size_t i = count - ahead; i < count; ++i) judge(i);
}

}  // namespace sluice::kernels
