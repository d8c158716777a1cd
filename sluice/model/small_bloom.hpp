// The error of small Bloom filters: numbers in, numbers out.
#pragma once

#include <vector>

namespace sluice::model {

// Chance that a key never inserted finds all its `probes` bits set among `bits`, after that many
// keys: E[(X/m)^k] for the number X of set bits. The usual formula takes the power of the mean,
// which is less: a tenth less for 64 bits and 7 probes, a half for 64 bits and 20.
//
// Up to kFewBits the distribution of X is computed exactly, for a whole number of bits and keys
// (others are rounded); above it X is taken for normal, which is off by less than 1 % where a third
// of the bits are set, and at first too high, by up to a third with one key of 40 probes.
class SmallBloom {
 public:
  static constexpr double kFewBits = 128;

  SmallBloom(double bits, unsigned probes);
  // What was computed for fewer keys is kept, so rising numbers cost least.
  double fpr(double keys);

 private:
  void add_a_key();

  double bits_;
  unsigned probes_;
  // Up to kFewBits. By the number of set bits: its chance after errors_.size() − 1 keys, and the
  // error with that many. By keys: the mean of these errors.
  std::vector<double> chances_, hits_, errors_;
};

}  // namespace sluice::model
