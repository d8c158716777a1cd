#include "sluice/filters/sharded/shard_crew.hpp"

#include <thread>

namespace sluice {

std::size_t ShardPicks::pick(std::span<const Digest> digests, std::uint8_t* marks) noexcept {
  count_ = 0;
  std::size_t done = 0;
  while (done < digests.size() && count_ + kAtATime <= kMost) {
    const std::size_t now = std::min(kAtATime, digests.size() - done);
    count_ += kernels::select_shards(digests.subspan(done, now), range_, this->digests() + count_,
                                     marks + done / 8);
    done += now;
  }
  return done;
}

void ShardPicks::sort() noexcept {
  const Digest* const from = digests();
  Digest* const to = sorted();
  std::uint8_t shard_of_pick[kMost];
  std::uint16_t counts[kMostShards] = {};
  for (std::size_t i = 0; i < count_; ++i) {
    const unsigned shard = shard_of(from[i], shards_) - begin_;
    shard_of_pick[i] = static_cast<std::uint8_t>(shard);
    ++counts[shard];
  }
  std::uint16_t next = 0;
  for (unsigned shard = 0; shard < end_ - begin_; ++shard) {
    ends_[shard] = next;
    next = static_cast<std::uint16_t>(next + counts[shard]);
  }
  for (std::size_t i = 0; i < count_; ++i) {
    const std::size_t at = ends_[shard_of_pick[i]]++;
    to[at] = from[i];
    places_[at] = static_cast<std::uint16_t>(i);
  }
}

ShardCrew::ShardCrew(unsigned shards, MemoryResource& memory) noexcept
    : ShardCrew(shards,
                memory.mapping() == nullptr
                    ? 1
                    : std::clamp(std::thread::hardware_concurrency(), 1u, shards),
                memory) {}

bool ShardCrew::enter() noexcept {
  if (groups_ < 2 || !busy_.try_lock()) return false;
  if (!tried_) {
    tried_ = true;
    start();
  }
  if (pool_) return true;
  busy_.unlock();
  return false;
}

void ShardCrew::start() noexcept {
  try {
    memory_ = Memory(groups_ * kPlaneBytes, resource_);
    pool_.emplace(groups_);
  } catch (const std::exception&) {
    // Without them the caller does it all: slower, and the same verdicts.
    memory_ = Memory();
  }
}

}  // namespace sluice
