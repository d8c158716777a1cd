// The threads of a sharded filter, and how a batch goes through them.
//
// Shards are divided into as many groups as there are threads. For each group, one thread goes
// through the whole batch, picks out the digests of its shards, judges about a thousand of them at
// a time, and marks the duplicates in its own plane of bits. Threads do not wait for each other
// until all planes are done; then the caller combines them into verdicts.
//
// A shard is judged by one thread at a time, its records in the order of the batch, so the verdicts
// are those of judging one by one. Nothing is allocated once the threads run.
#pragma once

#include <algorithm>
#include <mutex>
#include <optional>
#include <span>

#include "sluice/base/memory.hpp"
#include "sluice/base/worker_pool.hpp"
#include "sluice/kernels/shard_select.hpp"

namespace sluice {

inline constexpr unsigned kMostShards = 64;

using kernels::shard_of;

// Records of some shards, picked out of a batch until there are enough of them. It is on the stack
// of the thread that judges them.
class ShardPicks {
 public:
  // Enough for a filter to prefetch far ahead, and few enough to stay in cache.
  static constexpr std::size_t kMost = 1024;

  // For the shards `begin` to `end` − 1.
  ShardPicks(unsigned begin, unsigned end, unsigned shards) noexcept
      : begin_(begin),
        end_(end),
        shards_(shards),
        range_(kernels::shard_range(begin, end, shards)) {}

  // Picks again, from the first digest on; `marks` says which were picked. Returns how many were
  // looked at: all, or a multiple of 8.
  std::size_t pick(std::span<const Digest> digests, std::uint8_t* marks) noexcept;

  // Calls judge(shard, digests, verdicts) for each shard that has some.
  template <class Judge>
  void for_each_shard(const Judge& judge) noexcept {
    if (count_ == 0) return;
    if (end_ - begin_ == 1)
      return judge(begin_, std::span<const Digest>(digests(), count_),
                   std::span(verdicts_, count_));
    sort();
    std::size_t from = 0;
    for (unsigned shard = begin_; shard < end_; ++shard) {
      const std::size_t count = ends_[shard - begin_] - from;
      if (count > 0)
        judge(shard, std::span<const Digest>(sorted() + from, count),
              std::span(sorted_verdicts_ + from, count));
      from += count;
    }
    for (std::size_t i = 0; i < count_; ++i) verdicts_[places_[i]] = sorted_verdicts_[i];
  }

  const Verdict* verdicts() const noexcept { return verdicts_; }

 private:
  static constexpr std::size_t kAtATime = 128;
  static_assert(kAtATime % 8 == 0 && kMost % kAtATime == 0);

  // By shard, in order within each.
  void sort() noexcept;
  Digest* digests() noexcept { return reinterpret_cast<Digest*>(digest_bytes_); }
  Digest* sorted() noexcept { return reinterpret_cast<Digest*>(sorted_bytes_); }

  unsigned begin_, end_, shards_;
  kernels::ShardRange range_;
  std::size_t count_ = 0;
  std::uint16_t ends_[kMostShards];
  std::uint16_t places_[kMost];  // where a sorted one was
  Verdict verdicts_[kMost + kernels::kShardSlack];
  Verdict sorted_verdicts_[kMost];
  // Bytes, since arrays of digests would be zeroed.
  alignas(kCacheLineBytes) std::byte digest_bytes_[(kMost + kernels::kShardSlack) * sizeof(Digest)];
  alignas(kCacheLineBytes) std::byte sorted_bytes_[kMost * sizeof(Digest)];
};

class ShardCrew {
 public:
  // Records per step of the threads: enough to make the microsecond of synchronization negligible,
  // and to give the shards nearly equal parts.
  static constexpr std::size_t kTogether = 32768;
  // Fewer than this are judged on the caller's thread: that is faster than waking the others.
  static constexpr std::size_t kFewest = 512;
  // Records that the caller judges at once when alone: their marks are on the stack.
  static constexpr std::size_t kAlone = 1024;

  // At most one thread per processor: more would only wait for each other. Only the caller's thread
  // if the resource is a host's, which allows no threads.
  ShardCrew(unsigned shards, MemoryResource& memory) noexcept;
  ShardCrew(unsigned shards, unsigned threads, MemoryResource& memory) noexcept
      : shards_(shards), groups_(threads), resource_(memory) {}

  // The memory taken from the resource now: that of the threads, if they run.
  std::uint64_t bytes() const noexcept { return memory_.taken(); }
  // The most that bytes() will return.
  static std::uint64_t bytes_for(unsigned shards) noexcept { return shards * kPlaneBytes; }

  // Judges the first of the records, as many as fit, and returns how many. For each shard
  // judge(shard, digests, verdicts) is called with its records in order, some at a time, on one
  // thread. If `verdicts` is empty, none are returned. It uses only this thread when there are few
  // records, or when the threads are busy for another caller or cannot be started. `judge` must not
  // throw.
  template <class Judge>
  std::size_t step(std::span<const Digest> digests, std::span<Verdict> verdicts,
                   const Judge& judge) {
    const bool threads = digests.size() >= kFewest && enter();
    const std::size_t count = std::min(digests.size(), threads ? kTogether : kAlone);
    digests = digests.first(count);
    if (!verdicts.empty()) verdicts = verdicts.first(count);
    if (threads) {
      const std::lock_guard leave(busy_, std::adopt_lock);
      auto* const marks = memory_.as<std::uint8_t>();
      auto work = [&](unsigned group) {
        judge_group(group, digests, marks + group * kPlaneBytes, !verdicts.empty(), judge);
      };
      pool_->run(groups_, work);
      kernels::unite_verdicts(marks, groups_, kPlaneBytes, verdicts);
    } else {
      alone(digests, verdicts, judge);
    }
    return count;
  }

 private:
  static constexpr std::size_t kPlaneBytes = kTogether / 8;

  // Acquires the threads, and starts them if necessary. False: they are not available.
  bool enter() noexcept;
  void start() noexcept;

  template <class Judge>
  void judge_group(unsigned group, std::span<const Digest> digests, std::uint8_t* marks,
                   bool verdicts, const Judge& judge) const {
    ShardPicks picks(group * shards_ / groups_, (group + 1) * shards_ / groups_, shards_);
    while (!digests.empty()) {
      const std::size_t count = picks.pick(digests, marks);
      picks.for_each_shard(judge);
      const std::size_t bytes = (count + 7) / 8;
      if (verdicts) kernels::spread_verdicts(picks.verdicts(), {marks, bytes});
      digests = digests.subspan(count);
      marks += bytes;
    }
  }

  template <class Judge>
  void alone(std::span<const Digest> digests, std::span<Verdict> verdicts,
             const Judge& judge) const {
    constexpr std::size_t kBytes = kAlone / 8;
    std::uint8_t marks[kMostShards * kBytes];
    for (unsigned group = 0; group < groups_; ++group)
      judge_group(group, digests, marks + group * kBytes, !verdicts.empty(), judge);
    kernels::unite_verdicts(marks, groups_, kBytes, verdicts);
  }

  unsigned shards_;
  unsigned groups_;  // groups of shards: one per thread
  MemoryResource& resource_;
  std::mutex busy_;
  bool tried_ = false;
  Memory memory_;  // the planes
  std::optional<WorkerPool> pool_;
};

}  // namespace sluice
