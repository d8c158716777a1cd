#include "sluice/infer/prior_table.hpp"

#include <fmt/format.h>

#include "sluice/base/error.hpp"

namespace sluice {

void PriorTable::grow() {
  std::vector<Slot> larger(slots_.empty() ? 64 : slots_.size() * 2);
  for (const Slot& slot : slots_)
    if (slot.chance != 0) larger[place(larger, slot.digest)] = slot;
  slots_.swap(larger);
}

void PriorTable::add(const Digest& digest, double chance) {
  if (!(chance > 0 && chance < 1))
    throw BadParameters(fmt::format("a prior is a chance above 0 and below 1, not {}", chance));
  if (size_ + 1 > slots_.size() / 4 * 3) grow();
  Slot& slot = slots_[place(slots_, digest)];
  size_ += slot.chance == 0;
  slot = {digest, chance};
}

}  // namespace sluice
