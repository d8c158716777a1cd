#include "sluice/model/growing.hpp"

#include <algorithm>
#include <cmath>

#include "sluice/model/bloom.hpp"

namespace sluice::model {

double growing_fpr(unsigned tag_bits, std::span<const std::uint64_t> by_bits) {
  double one = 0;
  // Of some sixty numbers of bits a table has a few, and judges ask often.
  for (std::size_t bits = 0; bits < by_bits.size(); ++bits)
    if (by_bits[bits] != 0)
      one += std::ldexp(static_cast<double>(by_bits[bits]), -static_cast<int>(tag_bits + bits));
  one = std::min(one, 1.0);
  return one * (2 - one);
}

double growing_fpr_bound(unsigned slots, double load, unsigned tag_bits, unsigned hash_bits,
                         double first_buckets, double buckets) {
  // A table of 2^l buckets and the slots·load·2^l keys of each doubling after: all know l +
  // hash_bits bits at least, and the first few, when 2^l is between two powers, one less.
  const double unit = std::ldexp(slots * load, -static_cast<int>(tag_bits + hash_bits));
  const double doublings = std::max(0.0, std::log2(buckets / first_buckets));
  const double first = first_buckets / std::exp2(std::floor(std::log2(first_buckets)));
  const double one = std::min(1.0, unit * (first + doublings + 1));
  return one * (2 - one);
}

double growing_bits_per_key(unsigned slot_bits, double load) {
  return slot_bits / load;
}

double tightening_series_bits_per_key(double first_keys, double factor, double tighten, double fpr,
                                      double keys) {
  double bits = 0, held = 0, size = first_keys, error = fpr * (1 - tighten);
  while (held < keys) {
    bits +=
        512 * std::min(blocked_bloom_blocks(8, size, error), blocked_bloom_blocks(16, size, error));
    held += size;
    size *= factor;
    error *= tighten;
  }
  return bits / keys;
}

}  // namespace sluice::model
