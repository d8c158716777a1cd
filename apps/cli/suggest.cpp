#include "suggest.hpp"

#include <algorithm>
#include <utility>
#include <vector>

namespace sluice::cli {
namespace {

// How many slips lead from one word to the other (optimal string alignment distance).
std::size_t slips(std::string_view a, std::string_view b) {
  std::vector<std::size_t> before_last, last(b.size() + 1), row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) last[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      row[j] = std::min({last[j] + 1, row[j - 1] + 1, last[j - 1] + (a[i - 1] != b[j - 1])});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        row[j] = std::min(row[j], before_last[j - 2] + 1);
    }
    before_last = std::exchange(last, row);
  }
  return last[b.size()];
}

// The dashes of a flag say nothing.
std::string_view letters_of(std::string_view word) {
  return word.substr(std::min(word.find_first_not_of('-'), word.size()));
}

}  // namespace

std::optional<std::string> probably_meant(std::string_view typed,
                                          std::span<const std::string> words) {
  const std::string_view letters = letters_of(typed);
  // More slips than one in three letters make another word.
  constexpr std::size_t kLettersPerSlip = 3, kMostSlips = 3, kLeastBeginning = 3;
  std::size_t fewest = std::min(letters.size() / kLettersPerSlip, kMostSlips) + 1;
  std::optional<std::string> nearest, begun;
  std::size_t begins = 0;
  for (const std::string& word : words) {
    const std::string_view candidate = letters_of(word);
    if (letters.size() >= kLeastBeginning && candidate.starts_with(letters)) {
      begun = word;
      ++begins;
    }
    if (const std::size_t count = slips(letters, candidate); count < fewest) {
      fewest = count;
      nearest = word;
    }
  }
  return begins == 1 ? begun : nearest;
}

}  // namespace sluice::cli
