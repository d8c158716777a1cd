// Software prefetch for batched probes of a table.
#pragma once

#include <cstddef>

namespace sluice::kernels {

// How many keys ahead the table is prefetched. Throughput is flat from 12 to 40 on the machines
// tried
// (`./dev bench`); fewer leaves misses uncovered, more overflows the line-fill buffers.
inline constexpr std::size_t kPrefetchDistance = 24;

// A table at most this large stays in the second-level cache, where prefetching costs more than it
// saves.
inline constexpr std::size_t kPrefetchFromBytes = std::size_t{1} << 19;

// Calls judge(i) for each i of a batch in order, and prefetches the cache line at address_of(i)
// ahead of it when a table of `table_bytes` is out of cache. Always inlined: it must take on its
// caller's instruction set, or judge could not be inlined into it. Only measurements of the two
// constants pass others.
template <class AddressOf, class Judge>
[[gnu::always_inline]] inline void with_prefetch(std::size_t count, std::size_t table_bytes,
                                                 AddressOf address_of, Judge judge,
                                                 std::size_t distance = kPrefetchDistance,
                                                 std::size_t from_bytes = kPrefetchFromBytes) {
  if (table_bytes < from_bytes) {
    for (std::size_t i = 0; i < count; ++i) judge(i);
    return;
  }
  // The builtin stands here and in no function of its own: GCC takes a function that only
  // prefetches for one without effect, and drops the call.
  const std::size_t ahead = count < distance ? count : distance;
  for (std::size_t i = 0; i < ahead; ++i) __builtin_prefetch(address_of(i), 1);
  for (std::size_t i = 0; i + ahead < count; ++i) {
    __builtin_prefetch(address_of(i + ahead), 1);
    judge(i);
  }
  for (std::size_t i = count - ahead; i < count; ++i) judge(i);
}

}  // namespace sluice::kernels
