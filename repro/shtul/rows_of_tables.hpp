// Which filters the paper's tables are of.
#pragma once

#include <fmt/format.h>

#include <array>
#include <string>

namespace sluice::repro::shtul {

struct Cut {
  unsigned k, l;
};

inline constexpr std::array<Cut, 25> kTable2 = {
    {{4, 3},   {5, 7},   {6, 14},  {7, 28},  {8, 56},  {7, 5},   {8, 8},   {9, 14},  {10, 25},
     {11, 46}, {10, 7},  {11, 9},  {12, 14}, {13, 23}, {14, 40}, {14, 11}, {15, 15}, {16, 22},
     {17, 36}, {18, 63}, {17, 13}, {18, 16}, {19, 22}, {20, 33}, {21, 54}}};
// The first row of each error.
inline constexpr std::array<Cut, 5> kLowest = {{{4, 3}, {7, 5}, {10, 7}, {14, 11}, {17, 13}}};
// All of the error .1.
inline constexpr std::array<Cut, 5> kTenth = {{{4, 3}, {5, 7}, {6, 14}, {7, 28}, {8, 56}}};

struct BlockCut {
  unsigned k, l, block, bits;
  std::string name() const { return fmt::format("{}-{}-{}-{}", k, l, block, bits); }
};

inline constexpr std::array<BlockCut, 16> kTable3 = {{{2, 3, 64, 4},
                                                      {2, 3, 512, 4},
                                                      {2, 5, 64, 4},
                                                      {2, 5, 512, 4},
                                                      {3, 5, 64, 4},
                                                      {3, 5, 512, 4},
                                                      {3, 8, 64, 4},
                                                      {3, 8, 512, 4},
                                                      {2, 3, 64, 8},
                                                      {2, 3, 512, 8},
                                                      {2, 5, 64, 8},
                                                      {2, 5, 512, 8},
                                                      {3, 5, 64, 8},
                                                      {3, 5, 512, 8},
                                                      {3, 8, 64, 8},
                                                      {3, 8, 512, 8}}};
inline constexpr std::array<BlockCut, 4> kTable4 = {
    {{2, 5, 512, 4}, {3, 8, 512, 4}, {2, 5, 512, 8}, {3, 8, 512, 8}}};

// 1.2·10^-4, for an axis.
inline std::string error_name(double error) {
  const std::string text = fmt::format("{:.1e}", error);
  const std::size_t e = text.find('e');
  return fmt::format("{}·10^{}", text.substr(0, e), std::stoi(text.substr(e + 1)));
}

}  // namespace sluice::repro::shtul
