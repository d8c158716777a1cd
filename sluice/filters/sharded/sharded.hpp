// Sharded filter: several filters of one kind, each for its share of the keys, judged on as many
// threads.
//
// Source   Horizontal shards as in Koloniari et al. 2011, §3, within one process.
// Cost     The cost of the shards, plus each thread's scan of all digests for those of its shards:
//          0.7 ns per digest, and twice that if another core has just written it. Batches of fewer
//          than 512 keys are judged on the caller's thread. Threads start with the first larger
//          batch, sleep when there is nothing to do, and end with the filter.
// Errors   Those of the shards: a key belongs to only one of them. Each is made for its share of
//          the keys plus six standard deviations (share_of), since chance divides them unequally.
// Use it   when one thread is too slow for a filter out of cache.
// Avoid    for tables that stay in cache, for small batches, and when processors have other work.
// Format   snapshot kind 9 of shards that do not age, 22 of those that do; version 1.
//
// Shards share nothing, so verdicts equal those of judging one by one, on any number of threads.
#pragma once

#include <string>

#include "sluice/filters/any_filter.hpp"
#include "sluice/filters/forecast.hpp"

namespace sluice {

class ShardCrew;

// The common part of the filters that age and those that do not.
class ShardedFilter {
 public:
  static constexpr std::uint16_t kVersion = 1;
  // promises() returns the promises of the shards.
  static constexpr FilterPromises kPromises{.no_false_negatives = false, .fixed_memory = false};

  struct Params {
    unsigned shards = 2;       // 1 to 64
    std::string of = "bloom";  // the shards' name in the catalogue
    Settings each = {};        // their settings, all of them
    std::uint64_t keys = 0;    // that all together are planned for; 0: any number

    static Params from(const Wish& wish, const Settings& settings);
    static std::span<const ParameterInfo> known();
    Settings settings() const;
    Forecast forecast() const;
    friend bool operator==(const Params&, const Params&) = default;
  };

  // Keys that a shard is made for, of `keys` in all: a shard gets more with a chance of 10⁻⁹.
  // `spans` is the number of parts into which a filter cuts its keys, each with its own limit:
  // smaller parts vary more.
  static std::uint64_t share_of(std::uint64_t keys, unsigned shards, unsigned spans = 1);

  Verdict observe(const Digest& digest);
  bool may_contain(const Digest& digest) const noexcept;
  void insert(const Digest& digest) { observe(digest); }
  // If a shard has no room for a record, what other shards wrote after that record is undone:
  // verdicts do not show it, but the shards' bytes may. In a host's memory, and if shards cannot
  // forget but may run out of memory (`dynamic`), records are judged in their order instead.
  std::size_t observe(std::span<const Digest> digests, std::span<Verdict> verdicts);
  // Several threads may ask at the same time, as with any filter; only one of them uses the
  // filter's threads.
  void may_contain(std::span<const Digest> digests, std::span<Verdict> verdicts) const;
  std::size_t insert(std::span<const Digest> digests);
  void clear() noexcept;

  bool can_forget() const noexcept { return shards_.front().can_forget(); }
  bool forget(const Digest& digest) noexcept;

  Params params() const;
  FilterPromises promises() const noexcept;
  FilterStats stats() const;
  PlannedFor planned() const;
  // A sum over at most 64 shards, each of which knows its own number.
  std::uint64_t bytes() const noexcept;
  MemoryResource& memory() const noexcept { return shards_.get_allocator().resource(); }
  const AnyFilter& shard(unsigned index) const { return shards_[index]; }

  void encode_header(Encoder& to) const;
  void encode_payload(Encoder& to) const;

  ShardedFilter(ShardedFilter&&) noexcept;
  ShardedFilter& operator=(ShardedFilter&&) noexcept;
  ~ShardedFilter();

 protected:
  ShardedFilter(const Params& params, Vector<AnyFilter> shards);
  static Vector<AnyFilter> make_shards(const Params& params, bool ages, MemoryResource& memory);
  struct Decoded {
    Params params;
    Vector<AnyFilter> shards;
  };
  static Decoded decode_shards(Decoder& header, Decoder& payload, bool ages,
                               MemoryResource& memory);
  AnyFilter& shard_for(const Digest& digest) noexcept;
  const AnyFilter& shard_for(const Digest& digest) const noexcept;
  // What a shard did in a step.
  struct Step {
    std::size_t judged = 0;
    std::uint64_t written = 0;  // counted where there is a budget
    bool full = false;
  };
  bool may_run_ahead() const noexcept;
  std::size_t observe_singly(std::span<const Digest> digests, std::span<Verdict> verdicts);
  std::size_t take_back(std::span<const Digest> digests, std::span<const Verdict> verdicts,
                        std::span<Step> steps) noexcept;

  // What the shards are, they tell themselves.
  unsigned count_;
  std::uint64_t keys_;
  Vector<AnyFilter> shards_;
  // Keys written and undone within one call; not reported.
  std::uint64_t taken_back_ = 0;
  // What shards that were replaced by copies had counted.
  std::uint64_t forgotten_ = 0, forget_misses_ = 0;
  // Behind a pointer: threads hold its address, and the filter must be movable.
  Owned<ShardCrew> crew_;
};

class Sharded : public ShardedFilter {
 public:
  static constexpr FilterKind kKind = FilterKind::sharded;

  // Throws BadParameters, also when the shards would age.
  static Sharded make(const Params& params, MemoryResource& memory = default_memory());
  bool can_merge() const noexcept { return shards_.front().can_merge(); }
  // Merges shard by shard; both must have the same number, with the same parameters. Shards that
  // may run out of memory are copied first.
  void merge(const Sharded& other);
  static Sharded decode(Decoder& header, Decoder& payload,
                        MemoryResource& memory = default_memory());

 private:
  using ShardedFilter::ShardedFilter;
};

// Of window filters. A generation ends in all shards at once.
class ShardedWindow : public ShardedFilter {
 public:
  static constexpr FilterKind kKind = FilterKind::sharded_window;

  // Throws BadParameters, also when the shards would not age.
  static ShardedWindow make(const Params& params, MemoryResource& memory = default_memory());

  unsigned generations() const noexcept { return shards_.front().generations(); }
  double slack() const noexcept { return shards_.front().slack(); }
  double npws() const noexcept { return shards_.front().npws(); }
  void rotate() noexcept;
  using ShardedFilter::may_contain;
  void may_contain(std::span<const Digest> digests, std::span<Verdict> verdicts,
                   unsigned later) const;
  // It is full when one shard is. Then no record after the first one without room is remembered, in
  // any shard.
  std::size_t admit(std::span<const Digest> digests, std::span<Verdict> verdicts,
                    std::uint64_t& budget, Anchor anchor) noexcept;
  std::optional<Verdict> admit_aged(const Digest& digest, unsigned age, Anchor anchor) noexcept;
  std::uint64_t live_keys() const noexcept;
  // The room of the fullest shard.
  std::uint64_t room() const noexcept;

  static ShardedWindow decode(Decoder& header, Decoder& payload,
                              MemoryResource& memory = default_memory());

 private:
  using ShardedFilter::ShardedFilter;
  std::size_t most_records(std::span<const Digest> digests, std::span<Verdict> verdicts,
                           std::uint64_t limit, Anchor anchor) const noexcept;
  std::size_t admit_singly(std::span<const Digest> digests, std::span<Verdict> verdicts,
                           std::uint64_t& budget, Anchor anchor) noexcept;
  std::size_t admit_step(std::span<const Digest> digests, std::span<Verdict> verdicts,
                         std::uint64_t& budget, Anchor anchor, bool& full) noexcept;
};

// The name `sharded`: which of the two.
std::span<const ParameterInfo> sharded_parameters();
AnyFilter make_sharded(const Wish& wish, const Settings& settings, MemoryResource& memory);
Forecast forecast_sharded(const Wish& wish, const Settings& settings);

}  // namespace sluice
