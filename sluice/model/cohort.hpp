// Errors and sizes of the cohort filter.
#pragma once

#include <cstdint>

namespace sluice::model {

// Chance that a key never seen meets its fingerprint among the live slots of its two buckets, at
// `load` live slots per slot: 1 − (1 − slots · load / 2^f)². No fingerprint occurs twice in a
// bucket, since the second key would have been taken for the first; so a bucket's chance is a
// simple proportion.
double cohort_fpr(unsigned slots_a_bucket, unsigned fingerprint_bits, double load);

// Chance that one given live key has the fingerprint of another and stands in one of its two
// buckets.
double cohort_match(std::uint64_t buckets, unsigned fingerprint_bits);

// The planned load of a table of this slot size: nearly every key finds a free slot in one of its
// two buckets, so that moves are rare (measured: docs/filters/cohort.md).
double cohort_load(unsigned slot_bits);

// Slack of a window cut into `generations`: a key stays up to one generation too long.
double window_slack(unsigned generations);

}  // namespace sluice::model
