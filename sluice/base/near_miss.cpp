#include "sluice/base/near_miss.hpp"

#include <algorithm>
#include <cstddef>
#include <vector>

namespace sluice {
namespace {

// No one mistypes longer ones, and the time is quadratic.
constexpr std::size_t kMostBytes = 64;

char in_lower_case(char c) {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

// The optimal string alignment distance: each row is a prefix of `a`, each column one of `b`.
std::size_t edits(std::string_view a, std::string_view b) {
  std::vector<std::size_t> before(b.size() + 1), last(b.size() + 1), row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) last[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const bool same = in_lower_case(a[i - 1]) == in_lower_case(b[j - 1]);
      row[j] = std::min({last[j] + 1, row[j - 1] + 1, last[j - 1] + (same ? 0 : 1)});
      if (i > 1 && j > 1 && in_lower_case(a[i - 1]) == in_lower_case(b[j - 2]) &&
          in_lower_case(a[i - 2]) == in_lower_case(b[j - 1]))
        row[j] = std::min(row[j], before[j - 2] + 1);
    }
    before.swap(last);
    last.swap(row);
  }
  return last[b.size()];
}

}  // namespace

std::optional<std::string_view> near_miss(std::string_view typed,
                                          std::span<const std::string> names) {
  std::optional<std::string_view> nearest;
  std::size_t fewest = kMostBytes;
  if (typed.size() > kMostBytes) return nearest;
  for (const std::string_view name : names) {
    if (name.size() > kMostBytes) continue;
    const std::size_t count = edits(typed, name);
    if (count * 3 > name.size() || count >= fewest) continue;
    nearest = name;
    fewest = count;
  }
  return nearest;
}

}  // namespace sluice
