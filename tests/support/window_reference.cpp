#include "tests/support/window_reference.hpp"

namespace sluice::testing_support {

void WindowReference::rotate() {
  ++now_;
  written_.emplace_back();
  if (static_cast<std::int64_t>(written_.size()) <= generations_ + 1) return;
  const std::int64_t leaving = now_ - generations_ - 1;
  for (const Key& key : written_.front()) {
    const auto found = last_.find(key);
    if (found != last_.end() && found->second == leaving) last_.erase(found);
  }
  written_.pop_front();
}

void WindowReference::write(const Digest& key, std::int64_t age) {
  // Generations before the first one are made up when a key of theirs comes late.
  while (static_cast<std::int64_t>(written_.size()) <= age) written_.emplace_front();
  const std::int64_t generation = now_ - age;
  const auto [at, is_new] = last_.try_emplace({key.lo, key.hi}, generation);
  if (!is_new && at->second >= generation) return;
  at->second = generation;
  written_[written_.size() - 1 - static_cast<std::size_t>(age)].push_back({key.lo, key.hi});
}

std::optional<std::int64_t> WindowReference::age_of(const Digest& key) const {
  const auto found = last_.find({key.lo, key.hi});
  if (found == last_.end()) return std::nullopt;
  return now_ - found->second;
}

}  // namespace sluice::testing_support
