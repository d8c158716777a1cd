#include "sluice/cluster/local_site.hpp"

#include <algorithm>
#include <bit>
#include <cassert>

namespace sluice::cluster {

Reply LocalMemory::carry_out(Verb verb, std::span<const std::uint64_t> positions,
                             std::span<std::uint8_t> answers, const void* producer) {
  const std::lock_guard lock(mutex_);
  if (!reachable_) return {Outcome::failed, 0};
  for (std::size_t i = 0; i < positions.size(); ++i) {
    const std::uint64_t at = positions[i];
    assert((verb == Verb::claim || verb == Verb::release || at < bits_) && "position off the site");
    switch (verb) {
      case Verb::test:
        answers[i] = test(at);
        break;
      case Verb::set:
        set(at);
        break;
      case Verb::test_and_set:
        answers[i] = test(at);
        set(at);
        break;
      case Verb::claim:
        answers[i] = !claims_.emplace(at, producer).second;
        break;
      case Verb::release:
        if (const auto held = claims_.find(at); held != claims_.end() && held->second == producer)
          claims_.erase(held);
        break;
    }
  }
  return {late_ ? Outcome::late : Outcome::answered, incarnation_};
}

void LocalMemory::fail() {
  const std::lock_guard lock(mutex_);
  reachable_ = false;
}

void LocalMemory::come_back() {
  const std::lock_guard lock(mutex_);
  reachable_ = true;
}

void LocalMemory::come_back_empty() {
  const std::lock_guard lock(mutex_);
  reachable_ = true;
  ++incarnation_;
  std::ranges::fill(words_, 0);
  claims_.clear();
}

void LocalMemory::be_late(bool late) {
  const std::lock_guard lock(mutex_);
  late_ = late;
}

void LocalMemory::drop_claims() {
  const std::lock_guard lock(mutex_);
  claims_.clear();
}

std::uint64_t LocalMemory::set_bits() const {
  const std::lock_guard lock(mutex_);
  std::uint64_t count = 0;
  for (const std::uint64_t word : words_) count += static_cast<unsigned>(std::popcount(word));
  return count;
}

void LocalSite::send(Verb verb, std::span<const std::uint64_t> positions) {
  answers_.resize(positions.size());
  reply_ = memory_->carry_out(verb, positions, answers_, this);
}

Reply LocalSite::receive(std::span<std::uint8_t> answers) {
  if (reply_.answered())
    std::copy_n(answers_.begin(), std::min(answers.size(), answers_.size()), answers.begin());
  return reply_;
}

std::vector<std::shared_ptr<LocalMemory>> local_memories(std::size_t count, std::uint64_t bits) {
  std::vector<std::shared_ptr<LocalMemory>> memories;
  for (std::size_t i = 0; i < count; ++i) memories.push_back(std::make_shared<LocalMemory>(bits));
  return memories;
}

std::vector<std::unique_ptr<Site>> connect(std::span<const std::shared_ptr<LocalMemory>> memories) {
  std::vector<std::unique_ptr<Site>> sites;
  for (const auto& memory : memories) sites.push_back(std::make_unique<LocalSite>(memory));
  return sites;
}

}  // namespace sluice::cluster
