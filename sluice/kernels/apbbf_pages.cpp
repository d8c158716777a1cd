// apbbf over a table in pages: plain code, in a file of its own. Beside the vector forms it would
// keep the compiler from inlining those.
#include "sluice/kernels/age_line.hpp"

namespace sluice::kernels {
namespace {

template <class Work>
auto with_segments(const ApbbfTable& table, Work work) {
  const auto of_layout = [&]<bool kColumn>() {
    if (table.block == 64)
      return table.bits == 4 ? work(BlockSegments<64, 4, kColumn, true>(table))
                             : work(BlockSegments<64, 8, kColumn, true>(table));
    return table.bits == 4 ? work(BlockSegments<512, 4, kColumn, true>(table))
                           : work(BlockSegments<512, 8, kColumn, true>(table));
  };
  return table.layout == ApbbfLayout::column ? of_layout.template operator()<true>()
                                             : of_layout.template operator()<false>();
}

std::uint64_t* line_to_write(const ApbbfTable& table, std::uint64_t line) noexcept {
  return reinterpret_cast<std::uint64_t*>(table.pages.to_write(line));
}

std::uint64_t matches_of(const ApbbfTable& table, const LineLanes& lanes,
                         const Digest& digest) noexcept {
  const std::uint64_t line = line_of(table, digest), second = line_second_word(digest);
  const auto* words = reinterpret_cast<const std::uint64_t*>(table.pages.to_read(line));
  const std::uint64_t* const keep = lanes.keep[StaleUnits(table.stale).has(line)];
  std::uint64_t missing[kLineWords];
  for (unsigned i = 0; i < kLineWords; ++i)
    missing[i] = line_mask(digest, second, i) & ~(words[i] & keep[i]);
  return line_matches(missing, table.ring.segments());
}

void refresh_line(const ApbbfTable& table, std::uint64_t line) noexcept {
  if (!StaleUnits(table.stale).has(line)) return;
  apbbf_empty_paged(table, line);
  StaleUnits(table.stale).remove(line);
}

void write_line(const ApbbfTable& table, const LineLanes& lanes, const Digest& digest) noexcept {
  const std::uint64_t line = line_of(table, digest), second = line_second_word(digest);
  refresh_line(table, line);
  std::uint64_t* const words = line_to_write(table, line);
  for (unsigned i = 0; i < kLineWords; ++i)
    words[i] |= line_mask(digest, second, i) & lanes.take[1][i];
}

}  // namespace

std::size_t apbbf_admit_paged(const ApbbfTable& table, AgeBatch& batch) noexcept {
  if (table.layout != ApbbfLayout::line)
    return with_segments(table, [&](const auto& segments) {
      return AgePartition(segments, table.ring, table.stale).admit(batch, table.total_bytes());
    });
  const LineLanes lanes(table.ring, 0);
  std::size_t judged = 0;
  for (; judged < batch.count && batch.written < batch.room; ++judged) {
    const Digest& digest = batch.digests[judged];
    const std::uint64_t matches = matches_of(table, lanes, digest);
    const bool duplicate = lanes.has_run<5>(matches, table.ring.segments());
    batch.verdicts[judged] = static_cast<Verdict>(duplicate);
    // A line that is touched is fresh from then on, for either verdict.
    refresh_line(table, line_of(table, digest));
    if (batch.refresh ? lanes.holds(matches) : duplicate) continue;
    if (batch.refresh) ++batch.again[lanes.young_age(matches, table.ring.segments())];
    write_line(table, lanes, digest);
    ++batch.written;
  }
  return judged;
}

void apbbf_ask_paged(const ApbbfTable& table, const Digest* digests, std::size_t count,
                     Verdict* verdicts) noexcept {
  if (table.layout != ApbbfLayout::line)
    return with_segments(table, [&](const auto& segments) {
      AgePartition(segments, table.ring, table.stale)
          .ask(digests, count, verdicts, table.total_bytes());
    });
  const LineLanes lanes(table.ring, 0);
  for (std::size_t i = 0; i < count; ++i)
    verdicts[i] = static_cast<Verdict>(
        lanes.has_run<5>(matches_of(table, lanes, digests[i]), table.ring.segments()));
}

bool apbbf_holds_paged(const ApbbfTable& table, const Digest& digest, unsigned age) noexcept {
  if (table.layout != ApbbfLayout::line)
    return with_segments(table, [&](const auto& segments) {
      return AgePartition(segments, table.ring, table.stale).holds(digest, age);
    });
  const LineLanes lanes(table.ring, age);
  return lanes.holds(matches_of(table, lanes, digest));
}

void apbbf_write_paged(const ApbbfTable& table, const Digest& digest, unsigned age) noexcept {
  if (table.layout != ApbbfLayout::line)
    return with_segments(table, [&](const auto& segments) {
      AgePartition(segments, table.ring, table.stale).write(digest, age);
    });
  write_line(table, LineLanes(table.ring, age), digest);
}

void apbbf_empty_paged(const ApbbfTable& table, std::uint64_t unit) noexcept {
  if (table.layout != ApbbfLayout::line)
    return with_segments(table,
                         [&](const auto& segments) { segments.empty(table.ring.youngest, unit); });
  const unsigned bytes = table.block / 8;
  auto* const line = reinterpret_cast<std::byte*>(line_to_write(table, unit));
  std::memset(line + table.ring.youngest * bytes, 0, bytes);
}

}  // namespace sluice::kernels
