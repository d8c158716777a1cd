#include "sluice/filters/growing/growing_buckets.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cassert>
#include <cstring>
#include <limits>
#include <utility>

#include "sluice/base/error.hpp"
#include "sluice/model/growing.hpp"

namespace sluice {
namespace {

using kernels::GrowingShape;
using kernels::GrowingTable;
using kernels::GrowingTrace;

// Splits made for one key that found no room and no place in the stash, before giving up. Not seen
// except with tables made to that end.
constexpr unsigned kMostForcedSplits = 4096;
constexpr unsigned kMostStrayLag = 4;

// Of the traces that match `key`, the one with the most known bits.
std::optional<GrowingPlace> find(const GrowingTable& table, const GrowingTrace& key) noexcept {
  std::optional<GrowingPlace> found;
  const auto consider = [&](const GrowingPlace& next) {
    if (!found || next.bits > found->bits) found = next;
  };
  for (const GrowingTrace& side : {key, kernels::other_side(key)}) {
    const auto bucket = kernels::growing_bucket(table, side);
    if (!bucket) continue;
    for (unsigned slot = 0; slot < table.shape.slots(); ++slot) {
      if (kernels::growing_get(table, *bucket, slot) == 0) continue;
      const GrowingTrace held = kernels::growing_trace(table, *bucket, slot);
      if (kernels::covers(held, key))
        consider({.bucket = *bucket, .slot = slot, .bits = held.bits});
    }
  }
  for (std::size_t i = 0; i < table.stray_count; ++i)
    if (kernels::covers(table.strays[i], key)) consider({.stray = i, .bits = table.strays[i].bits});
  return found;
}

// A trace that `key` covers: of the same key, by all that is known of both.
std::optional<GrowingPlace> find_finer(const GrowingTable& table,
                                       const GrowingTrace& key) noexcept {
  for (const GrowingTrace& side : {key, kernels::other_side(key)}) {
    const std::uint64_t bucket = *kernels::growing_bucket(table, side);
    for (unsigned slot = 0; slot < table.shape.slots(); ++slot)
      if (kernels::growing_get(table, bucket, slot) != 0 &&
          kernels::covers(key, kernels::growing_trace(table, bucket, slot)))
        return GrowingPlace{.bucket = bucket, .slot = slot};
  }
  for (std::size_t i = 0; i < table.stray_count; ++i)
    if (kernels::covers(key, table.strays[i])) return GrowingPlace{.stray = i};
  return std::nullopt;
}

}  // namespace

std::uint64_t GrowingBuckets::buckets_for(const GrowingShape& shape, std::uint64_t entries) {
  std::uint64_t buckets = entries * 256 / (shape.slots() * shape.load_256ths);
  while (shape.limit(buckets) < entries) ++buckets;
  return buckets;
}

GrowingBuckets::GrowingBuckets(const GrowingShape& shape, std::uint64_t buckets,
                               MemoryResource& memory, ToBeWritten)
    : memory_{GrowableMemory(memory), GrowableMemory(memory)} {
  table_.shape = shape;
  allocate(buckets);
  table_.set_buckets(buckets);
}

GrowingBuckets::GrowingBuckets(const GrowingShape& shape, std::uint64_t buckets,
                               MemoryResource& memory)
    : GrowingBuckets(shape, buckets, memory, ToBeWritten()) {
  // Pages are cleared as they are reached. Buckets that are added later are written completely by
  // the split that adds them.
  for (std::size_t i = 0; i < 2; ++i)
    if (memory_[i].pages())
      memory_[i].zero(table_.halves[i].buckets * kernels::kGrowingBucketBytes);
}

GrowingBuckets::GrowingBuckets(GrowingBuckets&& other) noexcept
    : memory_{GrowableMemory(other.memory()), GrowableMemory(other.memory())} {
  *this = std::move(other);
}

GrowingBuckets& GrowingBuckets::operator=(GrowingBuckets&& other) noexcept {
  std::swap(table_, other.table_);
  std::swap(memory_, other.memory_);
  std::swap(keys_, other.keys_);
  return *this;
}

// Memory for that many buckets in all, divided between the halves.
void GrowingBuckets::allocate(std::uint64_t buckets) {
  if (buckets > kernels::kGrowingMostBuckets)
    throw NoMemory("filter 'growing' takes a table of at most 512 GiB");
  GrowingTable then;
  then.set_buckets(buckets);
  // A half may have moved before the other, or it itself, was refused more.
  try {
    for (std::size_t i = 0; i < 2; ++i)
      memory_[i].grow(then.halves[i].buckets * kernels::kGrowingBucketBytes);
  } catch (...) {
    adopt_memory();
    throw;
  }
  adopt_memory();
}

void GrowingBuckets::adopt_memory() noexcept {
  for (std::size_t i = 0; i < 2; ++i) {
    table_.halves[i].lines = memory_[i].data();
    table_.halves[i].pages = memory_[i].pages();
    table_.halves[i].allocated = memory_[i].size() / kernels::kGrowingBucketBytes;
  }
}

// What stopped a key: no memory for the next split, or no room though the table is no fuller than
// it should be.
void GrowingBuckets::make_way(unsigned attempt) {
  if (attempt == kMostForcedSplits)
    throw BadParameters(
        "filter 'growing' finds no room for a key: its table was made up, or its hash is broken");
  if (!table_.can_split()) return allocate(table_.buckets + 1);
  kernels::growing_split(table_);
}

Verdict GrowingBuckets::observe(const Digest& digest) {
  Verdict verdict;
  std::size_t judged = 0;
  observe(std::span(&digest, 1), std::span(&verdict, 1), judged);
  return verdict;
}

std::size_t GrowingBuckets::observe(std::span<const Digest> digests, std::span<Verdict> verdicts) {
  std::size_t judged = 0;
  while_memory_lasts([&] { observe(digests, verdicts, judged); });
  return judged;
}

// Throws when there is no memory for more. `judged` tells how far it came.
void GrowingBuckets::observe(std::span<const Digest> digests, std::span<Verdict> verdicts,
                             std::size_t& judged) {
  assert(digests.size() == verdicts.size());
  unsigned attempt = 0;
  while (judged < digests.size()) {
    const std::size_t count = kernels::growing_observe(
        table_, digests.data() + judged, digests.size() - judged, verdicts.data() + judged);
    keys_ += count - count_duplicates(verdicts.subspan(judged, count));
    judged += count;
    attempt = count == 0 ? attempt + 1 : 0;
    if (judged < digests.size()) make_way(attempt);
  }
}

bool GrowingBuckets::may_contain(const Digest& digest) const noexcept {
  Verdict verdict;
  kernels::growing_may_contain(table_, &digest, 1, &verdict);
  return verdict == Verdict::duplicate;
}

void GrowingBuckets::may_contain(std::span<const Digest> digests,
                                 std::span<Verdict> verdicts) const noexcept {
  assert(digests.size() == verdicts.size());
  kernels::growing_may_contain(table_, digests.data(), digests.size(), verdicts.data());
}

// What growth brought goes too.
void GrowingBuckets::reset(std::uint64_t buckets) noexcept {
  GrowingTable fresh;
  fresh.shape = table_.shape;
  fresh.set_buckets(buckets);
  for (std::size_t i = 0; i < 2; ++i)
    memory_[i].reset(fresh.halves[i].buckets * kernels::kGrowingBucketBytes);
  table_ = fresh;
  adopt_memory();
  keys_ = 0;
}

void GrowingBuckets::erase(const GrowingPlace& place) noexcept {
  if (place.stray == kernels::kGrowingMostStrays)
    return kernels::growing_erase(table_, place.bucket, place.slot);
  --table_.by_bits[table_.strays[place.stray].bits];
  --table_.entries;
  std::shift_left(table_.strays.begin() + static_cast<std::ptrdiff_t>(place.stray),
                  table_.strays.begin() + static_cast<std::ptrdiff_t>(table_.stray_count), 1);
  --table_.stray_count;
}

bool GrowingBuckets::forget(const Digest& digest) noexcept {
  const auto found = find(table_, kernels::trace_of(table_.shape, digest));
  if (!found) return false;
  erase(*found);
  if (keys_ > 0) --keys_;
  return true;
}

double GrowingBuckets::predicted_fpr() const {
  return model::growing_fpr(table_.shape.tag_bits, table_.by_bits);
}

void GrowingBuckets::write(const Digest& digest) {
  for (unsigned attempt = 1; table_.entries >= table_.limit; ++attempt) make_way(attempt);
  const GrowingTrace trace = kernels::trace_of(table_.shape, digest);
  for (unsigned attempt = 1; !kernels::growing_place(table_, trace); ++attempt) make_way(attempt);
  ++keys_;
}

// Adds a trace that no other covers, and returns whether its key is new. If a trace with more bits
// is held that may be of the same key, the one with fewer bits replaces it: it represents both, if
// they are two keys. Known bits that end before the table's addresses do may belong to several
// buckets: all get a copy.
bool GrowingBuckets::add(const GrowingTrace& trace) {
  if (find(table_, trace)) return false;
  for (unsigned attempt = 1; table_.entries >= table_.limit; ++attempt) make_way(attempt);
  if (!kernels::growing_bucket(table_, trace) ||
      !kernels::growing_bucket(table_, kernels::other_side(trace))) {
    const bool low = add({trace.tag, trace.hash, trace.bits + 1});
    const bool high = add({trace.tag, trace.hash | std::uint64_t{1} << trace.bits, trace.bits + 1});
    return low && high;
  }
  const auto finer = find_finer(table_, trace);
  if (finer) erase(*finer);
  for (unsigned attempt = 1; !kernels::growing_place(table_, trace); ++attempt) make_way(attempt);
  return !finer;
}

void GrowingBuckets::add_all_of(const GrowingBuckets& other) {
  const GrowingTable& from = other.table_;
  std::uint64_t added = 0;
  const auto take = [&](const GrowingTrace& trace) { added += add(trace); };
  // Halves in turn, and each from the bucket on that we split next: what comes is then spread where
  // there is, or soon will be, room for it.
  const std::uint64_t starts[] = {table_.halves[0].split, table_.halves[1].split};
  const std::uint64_t most = std::max(from.halves[0].buckets, from.halves[1].buckets);
  for (std::uint64_t i = 0; i < 2 * most; ++i) {
    const std::size_t side = i % 2;
    const std::uint64_t buckets = from.halves[side].buckets;
    if (i / 2 >= buckets) continue;
    const std::uint64_t bucket =
        (starts[side] + i / 2) % buckets << 1 | static_cast<std::uint64_t>(side);
    for (unsigned slot = 0; slot < from.shape.slots(); ++slot)
      if (kernels::growing_get(from, bucket, slot) != 0)
        take(kernels::growing_trace(from, bucket, slot));
  }
  for (std::size_t i = 0; i < from.stray_count; ++i) take(from.strays[i]);
  keys_ += std::min(added, other.keys_);
}

// The table with more buckets is the base: its slots have more bits than the other table could
// hold. It is copied, since memory may run out on the way.
void GrowingBuckets::merge(const GrowingBuckets& other) {
  const bool ours = table_.buckets >= other.table_.buckets;
  const GrowingBuckets& large = ours ? *this : other;
  const GrowingBuckets& small = ours ? other : *this;
  GrowingBuckets base(table_.shape, large.table_.buckets, memory(), ToBeWritten());
  base.allocate(large.table_.buckets);  // and more as it is needed: both may hold the same keys
  base.table_ = large.table_;
  base.adopt_memory();
  for (std::size_t i = 0; i < 2; ++i) {
    const kernels::GrowingHalf& from = large.table_.halves[i];
    for (std::uint64_t bucket = 0; bucket < from.buckets; ++bucket)
      std::memcpy(base.table_.halves[i].at(bucket), from.to_read(bucket),
                  kernels::kGrowingBucketBytes);
  }
  base.keys_ = large.keys_;
  base.add_all_of(small);
  *this = std::move(base);
}

// Few: not worth a copy. There is memory for all of them before the first is written, and for more
// splits than keys without room ever force.
void GrowingBuckets::merge(std::span<const Digest> digests) {
  constexpr std::uint64_t kSpare = 64;
  const std::uint64_t buckets =
      std::max(table_.buckets, buckets_for(table_.shape, table_.entries + digests.size()));
  allocate(std::min(buckets + kSpare, kernels::kGrowingMostBuckets));
  for (const Digest& digest : digests) observe(digest);
}

void GrowingBuckets::encode_header(Encoder& to) const {
  to.u64(table_.buckets);
  to.u64(keys_);
  to.u32(static_cast<std::uint32_t>(table_.stray_count));
  for (std::size_t i = 0; i < table_.stray_count; ++i) {
    to.u64(table_.strays[i].tag);
    to.u64(table_.strays[i].hash);
    to.u32(table_.strays[i].bits);
  }
}

namespace {

// Calls part(lines, bytes) for the buckets of a half from `from` on, as many at once as lie together
// and are cleared, or are not. Those that are not are zeros, and must not be written.
template <class Part>
void for_lines(const kernels::GrowingHalf& half, std::uint64_t from, std::uint64_t until,
               Part part) {
  constexpr std::uint64_t kPage = GrownPage::kLines, kGranule = GrownPage::kGranuleLines;
  if (!half.pages && from < until)
    return part(half.at(from), (until - from) * kernels::kGrowingBucketBytes);
  for (std::uint64_t next; from < until; from = next) {
    const std::uint64_t page = from / kPage * kPage;
    const bool whole = half.pages[from / kPage].cleared == GrownPage::kAllCleared;
    const std::uint64_t most = whole ? kPage : ((from - page) / kGranule + 1) * kGranule;
    next = std::min(until, page + std::min(most, kPage));
    part(half.pages.to_read(from), (next - from) * kernels::kGrowingBucketBytes);
  }
}

}  // namespace

// In the order in which buckets are added, so that a later snapshot has an earlier one's buckets
// where that has them, and a delta between the two is small.
template <class Part>
void GrowingBuckets::in_order_of_growth(Part part) const {
  const auto from_to = [&](std::uint64_t begin, std::uint64_t end) {
    for (const kernels::GrowingHalf& half : table_.halves)
      for_lines(half, begin, std::min(end, half.buckets), part);
  };
  from_to(0, 1);
  for (std::uint64_t begin = 1; begin < table_.halves[0].buckets; begin *= 2)
    from_to(begin, 2 * begin);
}

void GrowingBuckets::encode_payload(Encoder& to) const {
  in_order_of_growth([&](const std::byte* lines, std::size_t bytes) { to.bytes({lines, bytes}); });
}

GrowingBuckets GrowingBuckets::decode(const GrowingShape& shape, std::uint64_t fewest,
                                      Decoder& header, Decoder& payload, MemoryResource& memory) {
  const auto refuse = [](bool wrong) {
    if (wrong) throw CorruptSnapshot("no filter 'growing' has these fields");
  };
  const std::uint64_t buckets = header.u64(), keys = header.u64();
  refuse(buckets < fewest || buckets > kernels::kGrowingMostBuckets);
  payload.expect_remaining(buckets * kernels::kGrowingBucketBytes, "the table of filter 'growing'");
  GrowingBuckets read(shape, buckets, memory, ToBeWritten());
  GrowingTable& table = read.table_;
  const std::uint32_t strays = header.u32();
  refuse(strays > kernels::kGrowingMostStrays);
  for (; table.stray_count < strays; ++table.stray_count) {
    const GrowingTrace stray{header.u64(), header.u64(), header.u32()};
    // Strays leave as the table grows, long before it outgrows what is known of them.
    refuse(stray.tag >> table.shape.tag_bits != 0 || stray.bits > 64 ||
           stray.bits + kMostStrayLag < table.halves[1].level ||
           (stray.bits < 64 && stray.hash >> stray.bits != 0));
    table.strays[table.stray_count] = stray;
  }
  read.in_order_of_growth([&](std::byte* lines, std::size_t bytes) {
    payload.bytes({lines, bytes});
  });
  refuse(!read.take_count() || table.entries > table.limit || keys > table.entries);
  read.keys_ = keys;
  return read;
}

namespace {

// Slots by their length: the bits up to their delimiter, 0 of a free one. Four counts side by side:
// nearly all slots have the same length, and an addition must not wait for the last.
using LengthCounts = std::array<std::array<std::uint64_t, 34>, 4>;

// A slot as at most 33 bits, of which so many are below the hash's. Of a tag of 32 bits one bit is
// left, which tells whether it is zero.
constexpr std::uint64_t short_form(std::uint16_t slot) {
  return slot;
}
constexpr std::uint64_t short_form(std::uint32_t slot) {
  return slot;
}
constexpr std::uint64_t short_form(std::uint64_t slot) {
  return slot >> 32 << 1 | static_cast<std::uint64_t>(static_cast<std::uint32_t>(slot) != 0);
}
constexpr unsigned short_tag(const GrowingShape& shape) {
  static_assert(kernels::kGrowing64.tag_bits == 32);
  return shape.slot_bits == 64 ? 1 : shape.tag_bits;
}

// The length is the exponent of twice the slot and one, as a floating-point number, which holds it
// exactly. Unlike std::bit_width this has no branch where processors may lack the instruction, and
// whether a slot is free cannot be predicted.
unsigned length_of(std::uint64_t slot) noexcept {
  static_assert(std::numeric_limits<double>::is_iec559 && sizeof(double) == sizeof(std::uint64_t));
  const auto value = static_cast<double>(static_cast<std::int64_t>(slot << 1 | 1));
  return static_cast<unsigned>(std::bit_cast<std::uint64_t>(value) >> 52) - 1023;
}

template <class Slot>
void count_lengths(const std::byte* lines, std::size_t bytes, LengthCounts& counts) noexcept {
  static_assert(kernels::kGrowingBucketBytes % (4 * sizeof(Slot)) == 0);
  for (std::size_t at = 0; at < bytes; at += 4 * sizeof(Slot)) {
    std::array<Slot, 4> slots;
    std::memcpy(slots.data(), lines + at, sizeof(slots));
    for (std::size_t i = 0; i < 4; ++i) ++counts[i][length_of(short_form(slots[i]))];
  }
}

}  // namespace

// Counts what a table that was read holds. False: a slot without a delimiter, which is no slot, or
// a full table of slots without a hash bit, of which a split makes as many as it makes room for.
bool GrowingBuckets::take_count() noexcept {
  const unsigned tag_bits = short_tag(table_.shape);
  const auto count = table_.shape.slot_bits == 16   ? count_lengths<std::uint16_t>
                     : table_.shape.slot_bits == 32 ? count_lengths<std::uint32_t>
                                                    : count_lengths<std::uint64_t>;
  std::uint64_t spent = 0;
  for (std::size_t i = 0; i < table_.stray_count; ++i) ++table_.by_bits[table_.strays[i].bits];
  for (const kernels::GrowingHalf& half : table_.halves) {
    std::array<LengthCounts, 2> counts{};  // of buckets that have not been split, and that have
    const auto take = [&](std::uint64_t from, std::uint64_t until, bool is_split) {
      for_lines(half, from, until, [&](const std::byte* lines, std::size_t bytes) {
        count(lines, bytes, counts[is_split]);
      });
    };
    // The first have been, and their siblings are the last.
    take(0, half.split, true);
    take(half.split, half.low_mask + 1, false);
    take(half.low_mask + 1, half.buckets, true);
    for (unsigned is_split = 0; is_split < 2; ++is_split)
      for (const auto& by_length : counts[is_split])
        for (unsigned length = 1; length < by_length.size(); ++length) {
          const std::uint64_t slots = by_length[length];
          if (slots == 0) continue;
          if (length <= tag_bits) return false;
          const unsigned hash_bits = length - 1 - tag_bits;
          spent += hash_bits == 0 ? slots : 0;
          table_.by_bits[half.level + is_split + hash_bits] += slots;
        }
  }
  for (const std::uint64_t count_of_bits : table_.by_bits) table_.entries += count_of_bits;
  return spent <= table_.limit - table_.limit / 16;
}

}  // namespace sluice
