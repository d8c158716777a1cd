#include "sluice/filters/slice_sort.hpp"

namespace sluice {

void SliceSort::sort(std::span<const Digest> digests, unsigned slices) noexcept {
  assert(digests.size() <= space_.records && slices >= 1 && slices <= kMostSlices);
  slices == 2 ? sort_two(digests) : sort_many(digests, slices);
}

// One pass without a branch: how many went to the second slice is all there is to know.
void SliceSort::sort_two(std::span<const Digest> digests) noexcept {
  const SliceSpace space = space_;  // which no store can change
  const std::size_t apart = space.records;
  std::size_t seconds = 0;
  for (std::size_t i = 0; i < digests.size(); ++i) {
    const std::size_t second = slice_of(digests[i], 2);
    const std::size_t to = second != 0 ? apart + seconds : i - seconds;
    space.digests[to] = digests[i];
    space.places[to] = static_cast<std::uint16_t>(i);
    seconds += second;
  }
  begin_[0] = 0;
  end_[0] = static_cast<std::uint32_t>(digests.size() - seconds);
  begin_[1] = static_cast<std::uint32_t>(apart);
  end_[1] = static_cast<std::uint32_t>(apart + seconds);
}

void SliceSort::sort_many(std::span<const Digest> digests, unsigned slices) noexcept {
  const SliceSpace space = space_;
  std::array<std::uint32_t, kMostSlices> counts{};
  for (std::size_t i = 0; i < digests.size(); ++i) {
    const unsigned slice = slice_of(digests[i], slices);
    space.slices[i] = static_cast<std::uint8_t>(slice);
    ++counts[slice];
  }
  std::uint32_t next = 0;
  for (unsigned slice = 0; slice < slices; ++slice) {
    begin_[slice] = end_[slice] = next;
    next += counts[slice];
  }
  for (std::size_t i = 0; i < digests.size(); ++i) {
    const std::uint32_t to = end_[space.slices[i]]++;
    space.digests[to] = digests[i];
    space.places[to] = static_cast<std::uint16_t>(i);
  }
}

void SliceSort::gather(std::span<Verdict> verdicts, unsigned slices) const noexcept {
  Verdict* const to = verdicts.data();
  const std::uint16_t* const places = space_.places;
  const Verdict* const from = space_.verdicts;
  for (unsigned slice = 0; slice < slices; ++slice) {
    const std::uint32_t end = end_[slice];
    for (std::uint32_t at = begin_[slice]; at < end; ++at) to[places[at]] = from[at];
  }
}

}  // namespace sluice
