// Ghosts: random digests that were never inserted. If the filter finds one, that is a false
// positive. They show errors that are too rare for a sample of the keys.
//
// Two rates: the average over the distinct events of the run, which says how many were lost, and
// the rate now, at the last probe. A filter that fills has its worst error at the end, so the two
// differ, and probes count for the average only as much as distinct events came around them: half
// of those since the probe before and half of those until the next one. Early in a run probes come
// after every sixteenth of it, so that this is accurate to 2 % if the error grows with the eighth
// power of the number of keys.
#pragma once

#include <algorithm>
#include <cstdint>

#include "sluice/audit/rate.hpp"
#include "sluice/base/codec.hpp"
#include "sluice/base/random.hpp"
#include "sluice/filters/any_filter.hpp"

namespace sluice {

class Ghosts {
 public:
  // One ghost per so many records, but at least kAtLeast at a time. With more, the audit would take
  // over 3 % of the instructions of a run (docs/audit.md).
  static constexpr std::uint64_t kEvery = 64;
  static constexpr std::uint64_t kAtLeast = 8;
  static constexpr std::uint64_t kLongestPause = 8192;
  // After this many are found at one time the rate is known to 2 %, and more ghosts add little.
  static constexpr double kEnoughFound = 10'000;

  // `empty`: the filter holds nothing yet, so it finds nothing.
  Ghosts(std::uint64_t seed, bool empty) noexcept : random_(seed), known_(empty) {}

  // That many records were judged, with that many distinct events among them.
  void count(std::uint64_t records, double distinct) noexcept {
    since_ += records;
    records_ = std::min(kMostRecords, records_ + records);
    distinct_ += distinct;
  }
  // How many should be asked now.
  std::uint64_t due() const noexcept;
  // Asks for so many, or fewer: it stops after kEnoughFound.
  void ask(const AnyFilter& filter, std::uint64_t count);

  Rate average() const noexcept;
  Rate now() const noexcept { return {last_.found, last_.asked}; }

  // All that were due must have been asked. Whatever decode() takes can be encoded and decoded
  // again after any number of calls.
  void encode(Encoder& to) const;
  void decode(Decoder& from);  // throws CorruptSnapshot

 private:
  // More than anybody counts; a state may say so all the same, and then it stays there.
  static constexpr std::uint64_t kMostRecords = std::uint64_t{1} << 62;

  // Ghosts asked between the same two records, and the distinct events that they stand for.
  struct Probe {
    double asked = 0, found = 0, weight = 0;

    double share() const noexcept { return asked > 0 ? found / asked : 0; }
  };
  struct Sums {
    double asked = 0, found = 0;
    double weight = 0;
    double errors = 0;     // weight × share found, at most `weight`
    double variance = 0;   // of `errors`
    double each2 = 0;      // squares of what each ghost that was found adds to `errors`
    double per_ghost = 0;  // squares of weights, per ghost

    void add(const Probe& probe) noexcept;
  };

  bool plausible() const noexcept;
  void close(Probe before) noexcept;

  SplitMix64 random_;
  bool known_;                 // `last_` says what the filter found at the last probe
  std::uint64_t since_ = 0;    // records since then
  double distinct_ = 0;        // distinct events since then
  std::uint64_t records_ = 0;  // in all
  Probe last_;
  Sums sums_;  // without the last probe
};

}  // namespace sluice
