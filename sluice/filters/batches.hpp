// Batches of filters whose keys are asked for one after the other.
#pragma once

#include <cassert>
#include <span>

#include "sluice/base/line_table.hpp"
#include "sluice/base/verdict.hpp"
#include "sluice/hash/digest.hpp"

namespace sluice {

// verdicts[i] is holds(words, digests[i]) over the words of a table. Without prefetch: half of the
// absent keys are known after one probe, and most after two.
template <class Holds>
void ask_each(const LineTable& table, std::span<const Digest> digests, std::span<Verdict> verdicts,
              Holds holds) noexcept {
  assert(digests.size() == verdicts.size());
  with_words(table, [&](auto words) {
    for (std::size_t i = 0; i < digests.size(); ++i)
      verdicts[i] = static_cast<Verdict>(holds(words, digests[i]));
  });
}

template <class F>
std::size_t insert_each(F& filter, std::span<const Digest> digests) noexcept {
  for (const Digest& digest : digests) filter.insert(digest);
  return digests.size();
}

}  // namespace sluice
