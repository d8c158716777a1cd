#include "sluice/filters/sharded/sharded.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cassert>
#include <exception>
#include <utility>

#include "sluice/base/error.hpp"
#include "sluice/filters/catalogue.hpp"
#include "sluice/filters/sharded/shard_crew.hpp"

namespace sluice {
namespace {

// What shards threw on their threads.
class Errors {
 public:
  // Nothing more is done for a shard that threw.
  template <class Act>
  void guard(unsigned shard, const Act& act) noexcept {
    if (errors_[shard]) return;
    try {
      act();
    } catch (...) {
      errors_[shard] = std::current_exception();
    }
  }
  void rethrow() const {
    for (const std::exception_ptr& error : errors_)
      if (error) std::rethrow_exception(error);
  }

 private:
  std::array<std::exception_ptr, kMostShards> errors_;
};

// Calls ask(shard, digests, verdicts) for the records of each shard, on its thread, until the
// batch is done.
template <class Ask>
void ask_all(ShardCrew& crew, std::span<const Digest> digests, std::span<Verdict> verdicts,
             const Ask& ask) {
  assert(digests.size() == verdicts.size());
  Errors errors;
  while (!digests.empty()) {
    const std::size_t done = crew.step(
        digests, verdicts,
        [&](unsigned shard, std::span<const Digest> part, std::span<Verdict> part_verdicts) {
          errors.guard(shard, [&] { ask(shard, part, part_verdicts); });
        });
    errors.rethrow();
    digests = digests.subspan(done);
    verdicts = verdicts.subspan(done);
  }
}

}  // namespace

ShardedFilter::ShardedFilter(const Params& params, Vector<AnyFilter> shards)
    : count_(params.shards),
      keys_(params.keys),
      shards_(std::move(shards)),
      crew_(make_owned<ShardCrew>(memory(), count_, memory())) {}

ShardedFilter::ShardedFilter(ShardedFilter&&) noexcept = default;
ShardedFilter& ShardedFilter::operator=(ShardedFilter&&) noexcept = default;
ShardedFilter::~ShardedFilter() = default;

Vector<AnyFilter> ShardedFilter::make_shards(const Params& params, bool ages,
                                             MemoryResource& memory) {
  if (params.shards == 0 || params.shards > kMostShards)
    throw BadParameters(fmt::format("filter 'sharded' takes 1 to {} shards", kMostShards));
  const FilterInfo& info = filter_named(params.of);
  Vector<AnyFilter> shards(memory);
  shards.reserve(params.shards);
  for (unsigned i = 0; i < params.shards; ++i) shards.push_back(info.make({}, params.each, memory));
  if (shards.front().ages() != ages)
    throw BadParameters(fmt::format("filter '{}' {}: use the other of Sharded and ShardedWindow",
                                    params.of, ages ? "does not age" : "ages"));
  return shards;
}

AnyFilter& ShardedFilter::shard_for(const Digest& digest) noexcept {
  return shards_[shard_of(digest, count_)];
}

const AnyFilter& ShardedFilter::shard_for(const Digest& digest) const noexcept {
  return shards_[shard_of(digest, count_)];
}

Verdict ShardedFilter::observe(const Digest& digest) {
  return shard_for(digest).observe(digest);
}

bool ShardedFilter::may_contain(const Digest& digest) const noexcept {
  Verdict verdict;
  shard_for(digest).may_contain(std::span(&digest, 1), std::span(&verdict, 1));
  return verdict == Verdict::duplicate;
}

std::size_t ShardedFilter::observe(std::span<const Digest> digests, std::span<Verdict> verdicts) {
  assert(digests.size() == verdicts.size());
  if (!may_run_ahead()) return observe_singly(digests, verdicts);
  Errors errors;
  for (std::size_t judged = 0; judged < digests.size();) {
    std::array<Step, kMostShards> steps;
    const auto rest = digests.subspan(judged);
    const auto rest_verdicts = verdicts.subspan(judged);
    const std::size_t done = crew_->step(
        rest, rest_verdicts,
        [&](unsigned shard, std::span<const Digest> part, std::span<Verdict> part_verdicts) {
          Step& step = steps[shard];
          if (step.full) return;
          errors.guard(shard, [&] {
            const std::size_t count = shards_[shard].observe(part, part_verdicts);
            step.judged += count;
            step.full = count < part.size();
          });
        });
    errors.rethrow();
    if (std::ranges::any_of(steps, &Step::full))
      return judged + take_back(rest.first(done), rest_verdicts, steps);
    judged += done;
  }
  return digests.size();
}

// A host gives no threads and may be short of memory; and shards that cannot forget cannot undo
// writes.
bool ShardedFilter::may_run_ahead() const noexcept {
  return memory().mapping() != nullptr && (can_forget() || promises().fixed_memory);
}

// No record is judged before those that come before it, so that there is nothing to take back.
std::size_t ShardedFilter::observe_singly(std::span<const Digest> digests,
                                          std::span<Verdict> verdicts) {
  for (std::size_t i = 0; i < digests.size(); ++i)
    if (shard_for(digests[i]).observe(digests.subspan(i, 1), verdicts.subspan(i, 1)) == 0) return i;
  return digests.size();
}

// Undoes everything after the first record without room in its shard. Returns the index of that
// record.
std::size_t ShardedFilter::take_back(std::span<const Digest> digests,
                                     std::span<const Verdict> verdicts,
                                     std::span<Step> steps) noexcept {
  std::array<std::size_t, kMostShards> seen{};
  std::size_t first = digests.size();
  for (std::size_t i = 0; i < digests.size(); ++i) {
    const unsigned shard = shard_of(digests[i], count_);
    if (seen[shard]++ >= steps[shard].judged) {
      first = std::min(first, i);
    } else if (i > first && verdicts[i] == Verdict::distinct && can_forget()) {
      shards_[shard].forget(digests[i]);
      if (steps[shard].written > 0) --steps[shard].written;
      ++taken_back_;
    }
  }
  return first;
}

void ShardedFilter::may_contain(std::span<const Digest> digests,
                                std::span<Verdict> verdicts) const {
  ask_all(*crew_, digests, verdicts, [this](unsigned shard, auto part, auto part_verdicts) {
    shards_[shard].may_contain(part, part_verdicts);
  });
}

// By observing: which keys were new must be known to take them back.
std::size_t ShardedFilter::insert(std::span<const Digest> digests) {
  return insert_by_observing<8192>(*this, digests);
}

void ShardedFilter::clear() noexcept {
  for (AnyFilter& shard : shards_) shard.clear();
  taken_back_ = forgotten_ = forget_misses_ = 0;
}

bool ShardedFilter::forget(const Digest& digest) noexcept {
  return shard_for(digest).forget(digest);
}

FilterPromises ShardedFilter::promises() const noexcept {
  return shards_.front().promises();
}

ShardedFilter::Params ShardedFilter::params() const {
  return {.shards = count_,
          .of = std::string(name_of(shards_.front().kind())),
          .each = shards_.front().settings(),
          .keys = keys_};
}

std::uint64_t ShardedFilter::bytes() const noexcept {
  std::uint64_t bytes = taken_by(shards_) + taken_by(crew_) + crew_->bytes();
  for (const AnyFilter& shard : shards_) bytes += shard.bytes();
  return bytes;
}

// A new key falls to each shard with the same chance, so errors are means.
FilterStats ShardedFilter::stats() const {
  FilterStats all{.bytes = bytes()};
  for (const AnyFilter& shard : shards_) {
    const FilterStats stats = shard.stats();
    all.keys += stats.keys;
    all.target_fpr = stats.target_fpr;
    all.predicted_fpr += stats.predicted_fpr / count_;
    all.planned_fpr += stats.planned_fpr / count_;
    all.stash += stats.stash;
    all.listed += stats.listed;
    all.forgotten += stats.forgotten;
    all.forget_misses += stats.forget_misses;
    all.forget_kept += stats.forget_kept;
  }
  all.capacity = planned().capacity;
  all.forgotten += forgotten_ - taken_back_;
  all.forget_misses += forget_misses_;
  return all;
}

PlannedFor ShardedFilter::planned() const {
  PlannedFor all;
  for (const AnyFilter& shard : shards_) {
    const PlannedFor planned = shard.planned();
    all.capacity += planned.capacity;
    all.fpr += planned.fpr / count_;
  }
  // A part of the shards' own capacity is a margin for chance.
  if (all.capacity > 0 && keys_ > 0) all.capacity = keys_;
  return all;
}

void ShardedFilter::encode_header(Encoder& to) const {
  to.u32(count_);
  to.u16(static_cast<std::uint16_t>(shards_.front().kind()));
  to.u16(shards_.front().version());
  to.u64(keys_);
}

// Fields and tables of each shard: the fields of many would be more than a header may hold.
void ShardedFilter::encode_payload(Encoder& to) const {
  for (const AnyFilter& shard : shards_) {
    BytesEncoder fields;
    shard.encode_header(fields);
    CountingEncoder payload;
    shard.encode_payload(payload);
    to.u64(payload.count());
    to.u32(static_cast<std::uint32_t>(fields.written().size()));
    to.bytes(fields.written());
    shard.encode_payload(to);
  }
}

Sharded Sharded::make(const Params& params, MemoryResource& memory) {
  return Sharded(params, make_shards(params, false, memory));
}

void Sharded::merge(const Sharded& other) {
  // The first shard checks whether they fit, for all: they have the same parameters.
  if (count_ != other.count_ || shards_[0].kind() != other.shards_[0].kind())
    throw BadParameters("filters 'sharded' can be merged when they are made alike, but one has " +
                        params().settings().text() + " and the other " +
                        other.params().settings().text());
  if (promises().fixed_memory) {
    for (unsigned i = 0; i < count_; ++i) shards_[i].merge(other.shards_[i]);
    return;
  }
  Vector<AnyFilter> merged(memory());
  merged.reserve(count_);
  for (unsigned i = 0; i < count_; ++i) {
    merged.push_back(shards_[i].clone(memory()));
    merged.back().merge(other.shards_[i]);
  }
  const FilterStats counted = stats();
  shards_.swap(merged);
  forgotten_ = counted.forgotten;
  forget_misses_ = counted.forget_misses;
  taken_back_ = 0;
}

Sharded Sharded::decode(Decoder& header, Decoder& payload, MemoryResource& memory) {
  Decoded decoded = decode_shards(header, payload, false, memory);
  return Sharded(std::move(decoded.params), std::move(decoded.shards));
}

static_assert(ForgettingFilter<Sharded> && MergingFilter<Sharded>);

}  // namespace sluice
