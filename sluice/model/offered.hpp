// How many keys were offered to a filter that asks before it writes: numbers in, numbers out.
#pragma once

#include <cmath>
#include <cstddef>

namespace sluice::model {

// Of so many different keys offered one by one, how many are lost: the integral of the error, which
// rises with the keys offered so far. By Gauss and Legendre's eight points.
template <class Fpr>
double lost_keys(double offered, Fpr fpr) {
  constexpr double kAt[] = {0.1834346424956498, 0.5255324099163290, 0.7966664774136267,
                            0.9602898564975363};
  constexpr double kWeight[] = {0.3626837833783620, 0.3137066458778873, 0.2223810344533745,
                                0.1012285362903763};
  double sum = 0;
  for (std::size_t i = 0; i < 4; ++i)
    sum += kWeight[i] * (fpr(offered / 2 * (1 - kAt[i])) + fpr(offered / 2 * (1 + kAt[i])));
  return sum * offered / 2;
}

// What a filter has taken for new of so many: infinite where nothing tells how many were offered.
template <class Fpr>
double taken_keys(double offered, Fpr fpr) {
  return std::isfinite(offered) ? offered - lost_keys(offered, fpr) : offered;
}

// The inverse. A lost key finds all its bits set, so the bits are those of all keys
// offered: of more than the filter has taken for new. `fpr` is the error by the number of keys that
// were written. What is below a thousandth makes no difference. Newton's method, from below.
template <class Fpr>
double offered_keys(double taken, Fpr fpr) {
  constexpr double kNoticed = 1e-3, kNearlyAll = 0.9;
  double offered = taken, now = fpr(offered);
  if (!(now > kNoticed)) return taken;
  for (int step = 0; step < 8 && now < kNearlyAll; ++step) {
    const double off = taken - (offered - lost_keys(offered, fpr));
    offered += off / (1 - now);
    // The next step would be about as much as the error rises in this one: it has up to some eighth power.
    if (8 * now * off * off < 1e-4 * taken * taken) break;
    now = fpr(offered);
  }
  return offered;
}

}  // namespace sluice::model
