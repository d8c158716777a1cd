// apbbf where the sweep is behind: plain code, for tables in one block and in pages.
#include "sluice/kernels/age_line.hpp"

namespace sluice::kernels {
namespace {

template <bool kPaged, class Work>
auto with_shape(const ApbbfTable& table, Work work) {
  const auto of_layout = [&]<bool kColumn>() {
    if (table.block == 64)
      return table.bits == 4 ? work(BlockSegments<64, 4, kColumn, kPaged>(table))
                             : work(BlockSegments<64, 8, kColumn, kPaged>(table));
    return table.bits == 4 ? work(BlockSegments<512, 4, kColumn, kPaged>(table))
                           : work(BlockSegments<512, 8, kColumn, kPaged>(table));
  };
  return table.layout == ApbbfLayout::column ? of_layout.template operator()<true>()
                                             : of_layout.template operator()<false>();
}

// Calls `work` with the segments of a table that has blocks.
template <class Work>
auto with_segments(const ApbbfTable& table, Work work) {
  return table.pages ? with_shape<true>(table, work) : with_shape<false>(table, work);
}

template <class Work>
auto with_partition(const ApbbfTable& table, Work work) {
  return with_segments(table, [&](const auto& segments) {
    return work(AgePartition(segments, table.ring, table.strips));
  });
}

// Lines as what strips empty.
struct Lines {
  const ApbbfTable& table;

  const std::uint64_t* to_read(std::uint64_t line) const noexcept {
    if (!table.pages) return line_words(table, line);
    return reinterpret_cast<const std::uint64_t*>(table.pages.to_read(line));
  }
  std::uint64_t* to_write(std::uint64_t line) const noexcept {
    if (!table.pages) return line_words(table, line);
    return reinterpret_cast<std::uint64_t*>(table.pages.to_write(line));
  }
  // Empties the lanes of the segments that are younger than `rotations`, and what is marked.
  void sweep(std::uint64_t first, std::uint64_t end, std::uint64_t rotations) const noexcept {
    const AgeRing& ring = table.ring;
    const unsigned segments = ring.segments();
    alignas(64) std::uint64_t keep[2][kLineWords];
    for (auto& words : keep) std::ranges::fill(words, ~std::uint64_t{0});
    for (unsigned age = 0; age < segments; ++age)
      for (const bool marked : {false, true})
        if (age < rotations || (marked && age == table.strips.marked_age()))
          xor_lane(keep[marked], ring.physical(age), segments);
    for (std::uint64_t line = first; line < end; ++line) {
      const bool marked = table.strips.take_mark(line);
      std::uint64_t* const words = to_write(line);
      for (unsigned i = 0; i < kLineWords; ++i) words[i] &= keep[marked][i];
    }
  }
};

// The segments that are stale in a line, by physical number: the youngest so many, and a marked one.
std::uint64_t stale_segments(const ApbbfTable& table, std::uint64_t line) noexcept {
  const unsigned segments = table.ring.segments();
  const std::uint64_t since = table.strips.since(table.strips.strip_of(0, line));
  const auto youngest = static_cast<unsigned>(std::min<std::uint64_t>(since, segments));
  std::uint64_t stale = ((std::uint64_t{1} << youngest) - 1) << table.ring.youngest;
  stale |= stale >> segments;
  const std::uint64_t age = table.strips.marked_age();
  if (age < segments && table.strips.is_marked(static_cast<unsigned>(age), line))
    stale |= std::uint64_t{1} << table.ring.physical(static_cast<unsigned>(age));
  return stale;
}

// Which segments match; none where there is no run of them. Most keys have none in any case, and then
// stamps and marks need not be looked at.
std::uint64_t matches_of(const ApbbfTable& table, const LineLanes& lanes,
                         const Digest& digest) noexcept {
  const std::uint64_t line = line_of(table, digest), second = line_second_word(digest);
  const std::uint64_t* const words = Lines{table}.to_read(line);
  std::uint64_t missing[kLineWords];
  for (unsigned i = 0; i < kLineWords; ++i) missing[i] = line_mask(digest, second, i) & ~words[i];
  const std::uint64_t matches = line_matches(missing, table.ring.segments());
  if (!lanes.has_run<5>(matches, table.ring.segments())) return 0;
  return matches & ~stale_segments(table, line);
}

void write_line(const ApbbfTable& table, const LineLanes& lanes, const Digest& digest) noexcept {
  const std::uint64_t line = line_of(table, digest), second = line_second_word(digest);
  const std::uint64_t strip = table.strips.strip_of(0, line);
  if (table.strips.since(strip) > 0) table.strips.sweep(Lines{table}, strip);
  std::uint64_t* const words = Lines{table}.to_write(line);
  for (unsigned i = 0; i < kLineWords; ++i)
    words[i] |= line_mask(digest, second, i) & lanes.take[1][i];
}

}  // namespace

std::size_t apbbf_admit_behind(const ApbbfTable& table, AgeBatch& batch) noexcept {
  if (table.layout != ApbbfLayout::line)
    return with_partition(
        table, [&](const auto& partition) { return partition.admit(batch, table.total_bytes()); });
  const LineLanes lanes(table.ring, 0);
  std::size_t judged = 0;
  for (; judged < batch.count && batch.written < batch.room; ++judged) {
    const Digest& digest = batch.digests[judged];
    const std::uint64_t matches = matches_of(table, lanes, digest);
    const bool duplicate = lanes.has_run<5>(matches, table.ring.segments());
    batch.verdicts[judged] = static_cast<Verdict>(duplicate);
    if (batch.refresh ? lanes.holds(matches) : duplicate) continue;
    if (batch.refresh) ++batch.again[lanes.young_age(matches, table.ring.segments())];
    write_line(table, lanes, digest);
    ++batch.written;
  }
  return judged;
}

void apbbf_ask_behind(const ApbbfTable& table, const Digest* digests, std::size_t count,
                      Verdict* verdicts) noexcept {
  if (table.layout != ApbbfLayout::line)
    return with_partition(table, [&](const auto& partition) {
      partition.ask(digests, count, verdicts, table.total_bytes());
    });
  const LineLanes lanes(table.ring, 0);
  for (std::size_t i = 0; i < count; ++i)
    verdicts[i] = static_cast<Verdict>(
        lanes.has_run<5>(matches_of(table, lanes, digests[i]), table.ring.segments()));
}

bool apbbf_holds_behind(const ApbbfTable& table, const Digest& digest, unsigned age) noexcept {
  if (table.layout != ApbbfLayout::line)
    return with_partition(table,
                          [&](const auto& partition) { return partition.holds(digest, age); });
  const LineLanes lanes(table.ring, age);
  return lanes.holds(matches_of(table, lanes, digest));
}

void apbbf_write_behind(const ApbbfTable& table, const Digest& digest, unsigned age) noexcept {
  if (table.layout != ApbbfLayout::line)
    return with_partition(table, [&](const auto& partition) { partition.write(digest, age); });
  write_line(table, LineLanes(table.ring, age), digest);
}

void apbbf_sweep_behind(const ApbbfTable& table, std::uint64_t strip) noexcept {
  if (table.layout == ApbbfLayout::line) return table.strips.sweep(Lines{table}, strip);
  with_segments(table, [&](const auto& segments) { table.strips.sweep(segments, strip); });
}

}  // namespace sluice::kernels
