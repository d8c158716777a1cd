#include "sluice/infer/priors.hpp"

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

void Costs::check() const {
  const auto refuse = [](const char* name, double cost) {
    if (!(cost >= 0 && cost <= kMostCost))
      throw BadParameters(
          fmt::format("the cost of {} is {}: it must be from 0 to {:g}", name, cost, kMostCost));
  };
  refuse("a lost event", lost);
  refuse("a passed duplicate", duplicate);
  if (lost == 0 && duplicate == 0)
    throw BadParameters("both errors cost nothing: give one of them a cost above 0");
}

}  // namespace sluice
