#include "sluice/filters/cohort/generation_counts.hpp"

#include "sluice/base/error.hpp"

namespace sluice {

void GenerationCounts::encode(Encoder& to) const {
  for (std::size_t age = 0; age < counts_.size(); ++age) to.u64(at(static_cast<unsigned>(age)));
}

void GenerationCounts::decode(Decoder& from, std::uint64_t most) {
  clear();
  for (std::size_t age = 0; age < counts_.size(); ++age) {
    const std::uint64_t keys = from.u64();
    if (keys > most - live_)
      throw CorruptSnapshot("a window filter claims more keys than it takes");
    add(static_cast<unsigned>(age), keys);
  }
}

}  // namespace sluice
