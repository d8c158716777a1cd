#include "sluice/filters/forecast.hpp"

#include <algorithm>
#include <limits>

#include "sluice/base/line_table.hpp"

namespace sluice {
namespace {

constexpr std::uint64_t kLargestPage = LinePages::kPageLines * kCacheLineBytes;
// The pages of a GrowableMemory; those of a LineTable are larger.
constexpr std::uint64_t kSmallestPage = (std::uint64_t{64} << 10) - kCacheLineBytes;
constexpr std::uint64_t kGranuleBytes = LinePages::kGranuleLines * kCacheLineBytes;
constexpr std::uint64_t kSmallBlocks = 6;  // holders, lists of stages, counts of generations
constexpr std::uint64_t kPointer = sizeof(void*);

// Beyond the bytes of all tables together: what aligns them and, for a large one, what aligns each
// page and finds it, a bit per granule that says whether it was cleared, and the rest of the last one.
std::uint64_t around_tables(std::uint64_t bytes, std::uint64_t tables, const BlockCosts& costs) {
  if (!costs.pages || bytes <= LineTable::kPagesFromBytes) return tables * costs.padding;
  const std::uint64_t pages = bytes / kSmallestPage + tables;
  return pages * (costs.padding + kPointer) + bytes / kGranuleBytes / 8 +
         tables * (kGranuleBytes + 3 * kPointer);
}

// A whole page is just below a size class of every allocator; other blocks may lie anywhere.
std::uint64_t rounding(std::uint64_t bytes, std::uint64_t tables) {
  constexpr std::uint64_t kOfPage = 4096;
  const std::uint64_t blocks = 4 * tables + kSmallBlocks;
  return std::min(bytes, tables * kLargestPage) / 4 + blocks * BlockCosts::kLeastRounding +
         bytes / kLargestPage * kOfPage;
}

}  // namespace

std::uint64_t bytes_in(const Forecast& forecast, const BlockCosts& costs) noexcept {
  // Above this no budget has room, and sums could overflow.
  constexpr std::uint64_t kMost = std::numeric_limits<std::uint64_t>::max() / 4;
  if (forecast.bytes > kMost || costs == BlockCosts{}) return forecast.bytes;
  const std::uint64_t bytes =
      costs.pages ? std::max(forecast.bytes, forecast.paged_bytes) : forecast.bytes;
  const std::uint64_t all = bytes + around_tables(bytes, forecast.tables, costs);
  return costs.rounds ? all + rounding(all, forecast.tables) : all;
}

}  // namespace sluice
