#include "sluice/model/column_errors.hpp"

#include <cmath>
#include <span>

// Where the numbers come from: there is no closed form, so columns were drawn at random, some
// 200,000 for each number. A plain sample tells little of errors far below one in a million, which
// come from the few columns that are crowded: those were drawn more often and weighted less (each
// generation's Poisson mean was raised by how much its keys matter to the run of matches). Standard
// errors are below 0.3 %. The tests compare them with plain samples (model::column_fpr).
namespace sluice::model {
namespace {

// −ln(1 − error) for l = 0, 1, …, k, and what each further generation adds: from l = k on, a new
// segment is like the one before it.
struct Column {
  double hazards[9];
  double further;
};

constexpr Column kFourBits[] = {
    {{0.06602, 0.13201}, 0.065978},
    {{0.00055968, 0.0047805, 0.008774}, 0.0040053},
    {{3.7044e-06, 0.00010038, 0.00039155, 0.00066876}, 0.00027749},
    {{2.3852e-08, 1.4817e-06, 1.155e-05, 3.2769e-05, 5.314e-05}, 2.0361e-05},
    {{1.6082e-10, 1.861e-08, 2.5735e-07, 1.1886e-06, 2.8132e-06, 4.3818e-06}, 1.5686e-06},
    {{1.1694e-12, 2.194e-10, 4.8552e-09, 3.4439e-08, 1.1825e-07, 2.4842e-07, 3.7466e-07},
     1.2624e-07},
    {{9.263e-15, 2.5548e-12, 8.3625e-11, 8.5885e-10, 4.1455e-09, 1.1735e-08, 2.2634e-08,
      3.3247e-08},
     1.0613e-08},
    {{8.0177e-17, 3.0367e-14, 1.3786e-12, 1.9473e-11, 1.2707e-10, 4.7582e-10, 1.1763e-09,
      2.1273e-09, 3.0554e-09},
     9.2804e-10},
};

constexpr Column kEightBits[] = {
    {{0.0049775, 0.0099436}, 0.0049622},
    {{9.7733e-07, 3.3291e-05, 6.5418e-05}, 3.2133e-05},
    {{2.0299e-10, 4.4436e-08, 3.335e-07, 6.2057e-07}, 2.8707e-07},
    {{6.0751e-14, 4.3361e-11, 1.0137e-09, 4.3851e-09, 7.7325e-09}, 3.3475e-09},
    {{2.6908e-17, 4.3586e-14, 2.3782e-12, 2.223e-11, 7.1606e-11, 1.2066e-10}, 4.9057e-11},
    {{1.7184e-20, 5.1133e-17, 5.2964e-15, 9.2647e-14, 5.2686e-13, 1.4089e-12, 2.285e-12},
     8.7609e-13},
    {{1.5294e-23, 7.2723e-20, 1.2487e-17, 3.6231e-16, 3.353e-15, 1.3965e-14, 3.2722e-14,
      5.1392e-14},
     1.867e-14},
    {{1.8279e-26, 1.2734e-22, 3.2811e-20, 1.443e-18, 2.0038e-17, 1.2363e-16, 4.1536e-16, 8.8365e-16,
      1.3485e-15},
     4.6485e-16},
};

// Errors of whole lines, k from 1 on.
constexpr double kLine8[] = {0.45428,    0.03877,    0.0033643, 0.00030464,
                             2.0114e-05, 5.7735e-07, 6.265e-09};
constexpr double kLine16[] = {0.99003,    0.56589,    0.17907,    0.051015,   0.014688,
                              0.0042709,  0.0012621,  0.00036072, 9.2832e-05, 1.9187e-05,
                              3.1717e-06, 4.1186e-07, 4.0801e-08, 2.8982e-09, 1.2769e-10};
constexpr double kLine32[] = {
    1,          0.99819,    0.91322,    0.65707,    0.39467,    0.2185,     0.117,      0.062252,
    0.033138,   0.01774,    0.0095284,  0.0051188,  0.002754,   0.0014735,  0.00078738, 0.00041322,
    0.00021035, 0.00010115, 4.6014e-05, 1.9743e-05, 7.9927e-06, 3.0487e-06, 1.0921e-06, 3.6547e-07,
    1.1396e-07, 3.2768e-08, 8.5964e-09, 2.0244e-09, 4.1478e-10, 7.1292e-11, 9.3394e-12};

double column_hazard(const Column& column, unsigned k, unsigned l) {
  return l <= k ? column.hazards[l] : column.hazards[k] + column.further * (l - k);
}

}  // namespace

std::optional<double> tabled_column_fpr(unsigned k, unsigned l, const BlockShape& shape) {
  if (k == 0) return std::nullopt;
  const unsigned segments = k + l;
  if (shape.block == 512 && (shape.bits == 4 || shape.bits == 8)) {
    if (k > 8) return std::nullopt;
    const Column& column = (shape.bits == 4 ? kFourBits : kEightBits)[k - 1];
    return -std::expm1(-column_hazard(column, k, l));
  }
  if (l == 0 || shape.block * segments != 512 || shape.bits * segments != 32) return std::nullopt;
  const std::span<const double> line = segments == 8    ? std::span<const double>(kLine8)
                                       : segments == 16 ? std::span<const double>(kLine16)
                                       : segments == 32 ? std::span<const double>(kLine32)
                                                        : std::span<const double>();
  return line.empty() ? std::nullopt : std::optional(line[k - 1]);
}

}  // namespace sluice::model
