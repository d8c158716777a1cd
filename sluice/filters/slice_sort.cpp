#include "sluice/filters/slice_sort.hpp"

namespace sluice {

void SliceSort::sort(std::span<const Digest> digests, unsigned slices) noexcept {
  assert(digests.size() <= space_.records && slices >= 1 && slices <= kMostSlices);
  slices_ = slices;
  records_ = digests.size();
  slices == 2 ? sort_two(digests) : sort_many(digests);
}

void SliceSort::sort_two(std::span<const Digest> digests) noexcept {
  const std::size_t apart = space_.records + SliceSpace::kApart;
  const std::size_t seconds =
      kernels::sort_two(digests.data(), digests.size(), space_.digests, apart, space_.slices);
  begin_[0] = 0;
  end_[0] = static_cast<std::uint32_t>(digests.size() - seconds);
  begin_[1] = static_cast<std::uint32_t>(apart);
  end_[1] = static_cast<std::uint32_t>(apart + seconds);
}

void SliceSort::sort_many(std::span<const Digest> digests) noexcept {
  const SliceSpace space = space_;  // which no store can change
  std::array<std::uint32_t, kMostSlices> counts{};
  for (std::size_t i = 0; i < digests.size(); ++i) {
    const unsigned slice = slice_of(digests[i], slices_);
    space.slices[i] = static_cast<std::uint8_t>(slice);
    ++counts[slice];
  }
  std::uint32_t next = 0;
  for (unsigned slice = 0; slice < slices_; ++slice) {
    begin_[slice] = end_[slice] = next;
    next += counts[slice];
  }
  for (std::size_t i = 0; i < digests.size(); ++i) {
    const std::uint32_t to = end_[space.slices[i]]++;
    space.digests[to] = digests[i];
    space.places[to] = static_cast<std::uint16_t>(i);
  }
}

void SliceSort::gather(std::span<Verdict> verdicts) const noexcept {
  assert(verdicts.size() == records_);
  if (slices_ == 2)
    return kernels::gather_two(space_.slices, records_, space_.verdicts, begin_[1],
                               verdicts.data());
  // What was sorted lies side by side, slice by slice.
  Verdict* const to = verdicts.data();
  for (std::size_t at = 0; at < records_; ++at) to[space_.places[at]] = space_.verdicts[at];
}

}  // namespace sluice
