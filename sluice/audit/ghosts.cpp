#include "sluice/audit/ghosts.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include "sluice/base/error.hpp"

namespace sluice {
namespace {

// Limits of the numbers of a probe, of sums over probes, and of sums of products. No run comes near
// them. A sum that is within its limit stays there, because what is added is less than 2^-53 of the
// limit, and rounding takes that away: fewer than 2^97 distinct events per batch (a float counts up
// to 2^24 of them, each for up to 2^63 keys), at most 2^151 events per probe, and the square of
// that.
constexpr double kMostOfProbe = 0x1p150, kMostOfSums = 0x1p210, kMostOfProducts = 0x1p360;
// By how much `errors` may be above `weight` in states from before add() limited it.
constexpr double kRounding = 1e-9;

bool lies_within(double number, double most) noexcept {
  return number >= 0 && number <= most;
}

bool is_count(double number, double most) noexcept {
  return lies_within(number, most) && std::trunc(number) == number;
}

}  // namespace

std::uint64_t Ghosts::due() const noexcept {
  constexpr std::uint64_t kParts = 16, kShortestPause = 64;
  if (since_ < std::clamp(records_ / kParts, kShortestPause, kLongestPause)) return 0;
  return std::max(kAtLeast, since_ / kEvery);
}

void Ghosts::ask(const AnyFilter& filter, std::uint64_t count) {
  std::array<Digest, 128> digests;
  std::array<Verdict, 128> verdicts;
  const Probe before = last_;
  const bool moved = since_ > 0 || !known_;
  if (moved) last_ = {};
  while (count > 0 && last_.found < kEnoughFound) {
    const auto part = static_cast<std::size_t>(std::min<std::uint64_t>(count, digests.size()));
    for (std::size_t i = 0; i < part; ++i) digests[i] = {random_.next(), random_.next()};
    const auto answers = std::span(verdicts).first(part);
    filter.may_contain(std::span(digests).first(part), answers);
    last_.asked += static_cast<double>(part);
    last_.found += static_cast<double>(std::ranges::count(answers, Verdict::duplicate));
    count -= part;
  }
  if (moved) close(before);
}

// Of the distinct events since the probe before, half are given to each of the two.
void Ghosts::close(Probe before) noexcept {
  last_.weight = known_ ? distinct_ / 2 : distinct_;
  before.weight += known_ ? distinct_ / 2 : 0;
  sums_.add(before);
  known_ = true;
  since_ = 0;
  distinct_ = 0;
}

// Without a ghost the filter was known to be empty.
void Ghosts::Sums::add(const Probe& probe) noexcept {
  weight += probe.weight;
  if (!(probe.asked > 0)) return;
  const double each = probe.weight / probe.asked;
  asked += probe.asked;
  found += probe.found;
  // Where all are found, rounding would make it more than the weight: more and more in a long run.
  errors = std::min(weight, errors + each * probe.found);
  // Estimated from the same ghosts, hence one less.
  variance += probe.weight * probe.weight * probe.share() * (1 - probe.share()) /
              std::max(1.0, probe.asked - 1);
  each2 += each * each * probe.found;
  per_ghost += each * probe.weight;
}

// A sum of hits that count differently: its interval is that of Fay and Feuer (1997) for weighted sums of
// Poisson counts, which is the exact one if all count the same. The next hit might have come where nothing
// was found, so for the upper end one more is added, with the mean weight of the ghosts. A probe that
// found nothing must not make the sum more certain.
Rate Ghosts::average() const noexcept {
  Sums all = sums_;
  Probe last = last_;
  last.weight += distinct_;
  all.add(last);
  Rate rate{.errors = all.found, .trials = all.asked};
  if (!(all.per_ghost > 0)) return rate;
  const double one_more = all.per_ghost / all.weight / all.weight;
  if (!(all.errors > 0)) {
    rate.errors = 0;
    rate.estimate = {.share = 0, .independent = 1 / one_more};
    return rate;
  }
  const double share = std::min(1.0, all.errors / all.weight);
  const double of_hits = all.each2 / all.weight / all.weight * (1 - share);
  // What probes differ in is no uncertainty, but it takes hits to know how they differ.
  constexpr double kEnoughHits = 20;
  const double part = std::min(1.0, kEnoughHits * all.each2 / (all.errors * all.errors));
  const double between = all.variance / all.weight / all.weight;
  const double variance = between + part * std::max(0.0, of_hits - between);
  rate.estimate = {.share = share, .ends = interval95(share, variance, one_more)};
  return rate;
}

void Ghosts::encode(Encoder& to) const {
  to.u64(random_.state());
  to.u8(known_);
  to.varint(since_);
  to.varint(records_);
  for (const double number :
       {distinct_, last_.asked, last_.found, last_.weight, sums_.asked, sums_.found, sums_.weight,
        sums_.errors, sums_.variance, sums_.each2, sums_.per_ghost})
    to.f64(number);
}

void Ghosts::decode(Decoder& from) {
  random_ = SplitMix64(from.u64());
  const std::uint8_t known = from.u8();
  known_ = known == 1;
  since_ = from.varint();
  records_ = from.varint();
  for (double* number :
       {&distinct_, &last_.asked, &last_.found, &last_.weight, &sums_.asked, &sums_.found,
        &sums_.weight, &sums_.errors, &sums_.variance, &sums_.each2, &sums_.per_ghost})
    *number = from.f64();
  if (known > 1 || !plausible())
    throw CorruptSnapshot("audit: no ghosts can have been found like this");
}

// Each of these conditions survives every operation, or what was read here could not be read again.
// Ghosts are whole: a weight divided by a small part of one would be infinite. Rounding is
// monotonic, so what is no more than something else stays so when both are added to.
bool Ghosts::plausible() const noexcept {
  return since_ <= records_ && since_ < kLongestPause && records_ <= kMostRecords &&
         lies_within(distinct_, kMostOfProbe) && is_count(last_.asked, kMostOfProbe) &&
         is_count(last_.found, last_.asked) && lies_within(last_.weight, kMostOfProbe) &&
         is_count(sums_.asked, kMostOfSums) && is_count(sums_.found, sums_.asked) &&
         lies_within(sums_.weight, kMostOfSums) &&
         lies_within(sums_.errors, sums_.weight * (1 + kRounding)) &&
         lies_within(sums_.variance, kMostOfProducts) &&
         lies_within(sums_.each2, kMostOfProducts) &&
         lies_within(sums_.per_ghost, sums_.weight > 0 ? kMostOfProducts : 0);
}

}  // namespace sluice
