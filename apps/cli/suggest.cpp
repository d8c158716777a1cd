#include "suggest.hpp"

#include <algorithm>
#include <vector>

#include "sluice/base/near_miss.hpp"

namespace sluice::cli {
namespace {

// The dashes of a flag say nothing.
std::string_view letters_of(std::string_view word) {
  return word.substr(std::min(word.find_first_not_of('-'), word.size()));
}

}  // namespace

std::optional<std::string> probably_meant(std::string_view typed,
                                          std::span<const std::string> words) {
  constexpr std::size_t kLeastBeginning = 3;
  const std::string_view letters = letters_of(typed);
  std::vector<std::string> candidates;
  std::optional<std::string> begun;
  std::size_t begins = 0;
  for (const std::string& word : words) {
    candidates.emplace_back(letters_of(word));
    if (letters.size() < kLeastBeginning || !candidates.back().starts_with(letters)) continue;
    begun = word;
    ++begins;
  }
  if (begins == 1) return begun;
  const auto nearest = near_miss(letters, candidates);
  if (!nearest) return std::nullopt;
  return words[static_cast<std::size_t>(std::ranges::find(candidates, *nearest) -
                                        candidates.begin())];
}

}  // namespace sluice::cli
