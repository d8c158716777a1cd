#include "sluice/model/cohort.hpp"

#include <cmath>

namespace sluice::model {

double cohort_fpr(unsigned slots_a_bucket, unsigned fingerprint_bits, double load) {
  const double one = std::ldexp(slots_a_bucket * load, -static_cast<int>(fingerprint_bits));
  return one * (2 - one);
}

double cohort_match(std::uint64_t buckets, unsigned fingerprint_bits) {
  return std::ldexp(2 / static_cast<double>(buckets), -static_cast<int>(fingerprint_bits));
}

double cohort_load(unsigned slot_bits) {
  switch (slot_bits) {
    case 16:
      return 0.92;
    case 24:
      return 0.88;
    case 32:
      return 0.91;
    case 40:
      return 0.90;
    default:
      return 0.89;
  }
}

double window_slack(unsigned generations) {
  return generations == 0 ? 0 : 1.0 / generations;
}

}  // namespace sluice::model
