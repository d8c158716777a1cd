#include "sluice/audit/ghosts.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include "sluice/base/error.hpp"

namespace sluice {

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
  errors += each * probe.found;
  // Estimated from the same ghosts, hence one less.
  variance += probe.weight * probe.weight * probe.share() * (1 - probe.share()) /
              std::max(1.0, probe.asked - 1);
  each2 += each * each * probe.found;
  per_ghost += each * probe.weight;
}

Rate Ghosts::average() const noexcept {
  Sums all = sums_;
  Probe last = last_;
  last.weight += distinct_;
  all.add(last);
  Rate rate{.errors = all.found, .trials = all.asked};
  if (!(all.per_ghost > 0)) return rate;
  const double share = std::min(1.0, all.errors / all.weight);
  if (!(all.errors > 0)) {
    rate.errors = 0;
    rate.estimate = {.share = 0, .independent = all.weight * all.weight / all.per_ghost};
  } else {
    // Probes of a few ghosts each that found all or none tell nothing about the variance.
    const double least = all.weight * all.weight / all.per_ghost;
    const double clustered = share * (1 - share) * all.weight * all.weight / all.variance;
    rate.estimate = {.share = share,
                     .independent = all.variance > 0 ? clustered : least,
                     .quantile = student95(all.errors * all.errors / all.each2 - 1)};
  }
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
  bool numbers = true;
  for (double* number :
       {&distinct_, &last_.asked, &last_.found, &last_.weight, &sums_.asked, &sums_.found,
        &sums_.weight, &sums_.errors, &sums_.variance, &sums_.each2, &sums_.per_ghost}) {
    *number = from.f64();
    numbers = numbers && *number >= 0 && std::isfinite(*number);
  }
  if (!numbers || known > 1 || since_ > records_ || last_.found > last_.asked ||
      sums_.found > sums_.asked || sums_.errors > sums_.weight * (1 + 1e-9))
    throw CorruptSnapshot("audit: no ghosts can have been found like this");
}

}  // namespace sluice
