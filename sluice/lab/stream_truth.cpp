#include "sluice/lab/stream_truth.hpp"

#include <algorithm>
#include <cmath>

namespace sluice {
namespace {

constexpr std::size_t kFirstSlots = 1024;
constexpr std::uint64_t kLongest = std::uint64_t{1} << 62;

std::int64_t floor_divide(std::int64_t a, std::int64_t b) {
  return a / b - (a % b < 0);
}

}  // namespace

WindowRule::WindowRule(std::optional<WindowSpec> spec) noexcept : spec_(spec) {
  if (spec) size_ = static_cast<std::int64_t>(std::min(spec->size, kLongest));
}

bool WindowRule::inside(std::int64_t last, std::int64_t now) const noexcept {
  if (last == kNever) return false;
  if (!spec_) return true;
  switch (spec_->kind) {
    case WindowSpec::Kind::count:
      return now - last <= size_;
    case WindowSpec::Kind::time:
      return now - last < size_;
    case WindowSpec::Kind::landmark:
      break;
  }
  return !over(last, now);
}

bool WindowRule::perhaps(std::int64_t last, std::int64_t now, double slack) const noexcept {
  if (inside(last, now)) return true;
  if (last == kNever || !spec_ || spec_->kind == WindowSpec::Kind::landmark) return false;
  return static_cast<double>(now - last) <= std::ceil(static_cast<double>(size_) * (1 + slack));
}

bool WindowRule::over(std::int64_t time, std::int64_t now) const noexcept {
  if (!spec_ || spec_->kind != WindowSpec::Kind::landmark) return false;
  return floor_divide(time, size_) < floor_divide(now, size_);
}

StreamTruth::StreamTruth(std::optional<WindowSpec> window) : rule_(window), slots_(kFirstSlots) {}

// Digests are uniform already: their low bits are the place.
std::size_t StreamTruth::place(const Digest& digest) const noexcept {
  std::size_t at = digest.lo & (slots_.size() - 1);
  while (slots_[at].last != WindowRule::kNever && slots_[at].digest != digest)
    at = (at + 1) & (slots_.size() - 1);
  return at;
}

void StreamTruth::grow() {
  std::vector<Slot> old(slots_.size() * 2);
  old.swap(slots_);
  for (const Slot& slot : old)
    if (slot.last != WindowRule::kNever) slots_[place(slot.digest)] = slot;
}

std::int64_t StreamTruth::last_of(const Digest& digest) const noexcept {
  return slots_[place(digest)].last;
}

void StreamTruth::deliver(const Digest& digest, std::int64_t time) {
  if (keys_ * 2 >= slots_.size()) grow();
  Slot& slot = slots_[place(digest)];
  keys_ += slot.last == WindowRule::kNever;
  slot = {digest, std::max(slot.last, time)};
  ++deliveries_;
}

bool StreamTruth::observe(const Digest& digest, std::int64_t time, std::int64_t now) {
  if (rule_.inside(last_of(digest), now)) return false;
  deliver(digest, time);
  return true;
}

void StreamTruth::forget() noexcept {
  std::ranges::fill(slots_, Slot());
  keys_ = 0;
}

}  // namespace sluice
