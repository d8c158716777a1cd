#include "sluice/base/fates.hpp"

#include <limits>

#include "sluice/base/error.hpp"

namespace sluice {

bool Fates::may_take() noexcept {
  if (told_)
    while (used_ < size_ && stretches_[used_].count != 0 &&
           stretches_[used_].first + stretches_[used_].count <= decisions_)
      ++used_;
  // A primary's last stretch has no end: nothing more can be written down.
  const std::size_t at = told_ ? used_ : kMostStretches - 1;
  last_refused_ = at < size_ && stretches_[at].holds(decisions_);
  if (last_refused_) ++decisions_;
  return !last_refused_;
}

std::uint64_t Fates::forgets_in_vain() const noexcept {
  for (const Stretch& each : refused())
    if (each.first == decisions_ - 1) return each.forgets;
  return 0;
}

void Fates::took(bool done, std::uint64_t forgets) {
  if (!done && told_) throw NoMemory("there is no memory for what the primary remembers");
  last_refused_ = !done;
  if (!done) write(forgets);
  ++decisions_;
}

void Fates::could_take(bool done) noexcept {
  last_refused_ = !done;
  if (!done && !told_) write(0);
  spared_ += done ? 0 : 1;
  ++decisions_;
}

void Fates::write(std::uint64_t forgets) noexcept {
  if (size_ > 0 && forgets == 0) {
    Stretch& last = stretches_[size_ - 1];
    if (last.first + last.count == decisions_) {
      ++last.count;
      return;
    }
  }
  const bool is_last = size_ == kMostStretches - 1;
  stretches_[size_++] = {.first = decisions_, .count = is_last ? 0u : 1u, .forgets = forgets};
}

void Fates::encode(Encoder& to) const {
  to.varint(size_);
  for (const Stretch& each : refused())
    for (const std::uint64_t number : {each.first, each.count, each.forgets}) to.varint(number);
}

Fates Fates::decode(Decoder& from) {
  Fates fates;
  fates.told_ = true;
  const std::uint64_t size = from.varint();
  bool plausible = size <= kMostStretches;
  std::uint64_t end = 0;
  for (std::uint64_t i = 0; plausible && i < size; ++i) {
    Stretch& each = fates.stretches_[fates.size_++];
    for (std::uint64_t* number : {&each.first, &each.count, &each.forgets}) *number = from.varint();
    plausible = each.first >= end && (each.count != 0 || i + 1 == size) &&
                each.count <= std::numeric_limits<std::uint64_t>::max() - each.first;
    end = each.first + each.count;
  }
  if (!plausible) throw CorruptSnapshot("an effect has no such fates");
  return fates;
}

}  // namespace sluice
