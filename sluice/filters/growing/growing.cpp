#include "sluice/filters/growing/growing.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <utility>

#include "sluice/base/error.hpp"
#include "sluice/model/growing.hpp"

namespace sluice {
namespace {

using kernels::GrowingShape;

constexpr GrowingShape kShapes[] = {kernels::kGrowing16, kernels::kGrowing32, kernels::kGrowing64};
// Buckets of a table by default: 4 KiB, at least half filled by the keys of a list.
constexpr std::uint64_t kStartBuckets = 64;
constexpr std::uint64_t kFewestBuckets = 4;
constexpr std::uint64_t kMostKeys = std::uint64_t{1} << 36;

constexpr ParameterInfo kKnown[] = {
    {"slot", "bits of a slot: what is kept of a key", "16, 32 or 64", "the fewest that hold fpr"},
    {"keys", "keys to make room for from the start", "0 to 2^36", "`keys`, or none"},
    {"fpr", "the error that it holds at any number of keys", "above 0, below 1", "`fpr`"},
};

const GrowingShape* shape_of(unsigned slot_bits) {
  const auto* found = std::ranges::find(kShapes, slot_bits, &GrowingShape::slot_bits);
  return found == std::end(kShapes) ? nullptr : found;
}

std::uint64_t first_buckets(const GrowingShape& shape, std::uint64_t expected_keys) {
  if (expected_keys == 0) return kStartBuckets;
  return std::max(kFewestBuckets, GrowingBuckets::buckets_for(shape, expected_keys));
}

std::uint64_t first_buckets(const Growing::Params& params) {
  return first_buckets(*shape_of(params.slot_bits), params.expected_keys);
}

bool starts_listed(const Growing::Params& params) {
  return params.expected_keys <= Growing::kMostListed;
}

Owned<GrowingBuckets> make_table(const Growing::Params& params, MemoryResource& memory) {
  return make_owned<GrowingBuckets>(memory, *shape_of(params.slot_bits), first_buckets(params),
                                    memory);
}

double bound(const GrowingShape& shape, std::uint64_t expected_keys) {
  return model::growing_fpr_bound(shape.slots(), shape.load_256ths / 256.0, shape.tag_bits,
                                  shape.hash_bits(),
                                  static_cast<double>(first_buckets(shape, expected_keys)),
                                  static_cast<double>(kernels::kGrowingMostBuckets));
}

const char* what_is_wrong(const Growing::Params& params) {
  if (shape_of(params.slot_bits) == nullptr)
    return "filter 'growing' takes slots of 16, 32 or 64 bits";
  if (params.expected_keys > kMostKeys) return "filter 'growing' takes at most 2^36 expected keys";
  if (!(params.target_fpr > 0 && params.target_fpr < 1))
    return "filter 'growing' takes a target error above 0 and below 1";
  return nullptr;
}

}  // namespace

std::span<const ParameterInfo> Growing::Params::known() {
  return kKnown;
}

Growing::Params Growing::Params::from(const Wish& wish, const Settings& settings) {
  const SettingsReader reader("growing", settings, kKnown);
  Params params;
  params.target_fpr = reader.probability("fpr").value_or(wish.fpr);
  params.expected_keys = reader.count("keys", 0, kMostKeys).value_or(wish.keys.value_or(0));
  params.expected_keys = std::min(params.expected_keys, kMostKeys);
  if (const auto slot = reader.count("slot", 16, 64)) {
    params.slot_bits = static_cast<unsigned>(*slot);
    return params;
  }
  for (const GrowingShape& shape : kShapes) {
    params.slot_bits = shape.slot_bits;
    if (bound(shape, params.expected_keys) <= params.target_fpr) return params;
  }
  throw BadParameters(
      fmt::format("filter 'growing' cannot hold an error of {}: its widest slots hold {:.1e}",
                  params.target_fpr, bound(kernels::kGrowing64, params.expected_keys)));
}

Settings Growing::Params::settings() const {
  Settings settings;
  settings.add("slot", std::uint64_t{slot_bits});
  settings.add("keys", expected_keys);
  settings.add("fpr", target_fpr);
  return settings;
}

// The error is that of its table, also where a list holds the keys: they may be more.
Forecast Growing::Params::forecast() const {
  if (const char* wrong = what_is_wrong(*this)) throw BadParameters(wrong);
  const GrowingShape* shape = shape_of(slot_bits);
  const std::uint64_t keys = expected_keys == 0 ? kStandardCapacity : expected_keys;
  std::uint64_t bytes = 0, paged_bytes = 0;
  if (keys <= kMostListed) {
    bytes = ShortList::bytes_for(static_cast<std::size_t>(keys));
  } else {
    kernels::GrowingTable then;
    then.set_buckets(std::max(first_buckets(*this), GrowingBuckets::buckets_for(*shape, keys)));
    bytes = paged_bytes = sizeof(GrowingBuckets);
    for (const kernels::GrowingHalf& half : then.halves) {
      const std::uint64_t wanted = half.buckets * kernels::kGrowingBucketBytes;
      bytes += GrowableMemory::given_for(wanted);
      paged_bytes += GrowableMemory::given_in_pages_for(wanted);
    }
  }
  // With room from the start nothing is split; else one bucket into two, each time as many keys
  // have come as a bucket holds.
  const double keys_per_split = shape->slots() * shape->load_256ths / 256.0;
  return {.keys = keys,
          .bytes = bytes,
          .tables = 2,
          .paged_bytes = paged_bytes,
          .fpr = bound(*shape, expected_keys),
          .lines = expected_keys == 0 ? 2 + 2 / keys_per_split : 2,
          .settings = settings()};
}

Growing Growing::make(const Params& params, MemoryResource& memory) {
  if (const char* wrong = what_is_wrong(params)) throw BadParameters(wrong);
  Growing filter(params, memory);
  if (!starts_listed(params)) filter.table_ = make_table(params, memory);
  return filter;
}

// A table with the listed keys, each with a trace of its own: all of them were let through, and
// taking one back must leave the others.
Owned<GrowingBuckets> Growing::table_of_list() const {
  Owned<GrowingBuckets> table = make_table(params_, memory());
  for (const Digest& digest : list_.digests()) table->write(digest);
  return table;
}

void Growing::take(Owned<GrowingBuckets> table) noexcept {
  table_ = std::move(table);
  list_.clear();
}

// Throws NoMemory; nothing has changed then.
Verdict Growing::observe_listed(const Digest& digest) {
  if (list_.find(digest)) return Verdict::duplicate;
  if (list_.size() == kMostListed) {
    // The list gives its memory back first: there may be none for both.
    list_.step_aside();
    try {
      take(table_of_list());
    } catch (...) {
      list_.step_back();
      throw;
    }
    return table_->observe(digest);
  }
  list_.grow();
  list_.insert(digest, 0);
  return Verdict::distinct;
}

std::size_t Growing::observe_listed(std::span<const Digest> digests, std::span<Verdict> verdicts) {
  assert(digests.size() == verdicts.size());
  std::size_t judged = 0;
  const bool lasted = while_memory_lasts([&] {
    for (; judged < digests.size() && listed(); ++judged)
      verdicts[judged] = observe_listed(digests[judged]);
  });
  if (!lasted || judged == digests.size()) return judged;
  return judged + table_->observe(digests.subspan(judged), verdicts.subspan(judged));
}

void Growing::may_contain(std::span<const Digest> digests,
                          std::span<Verdict> verdicts) const noexcept {
  if (table_) return table_->may_contain(digests, verdicts);
  std::ranges::transform(digests, verdicts.begin(), [this](const Digest& digest) {
    return list_.find(digest) ? Verdict::duplicate : Verdict::distinct;
  });
}

std::size_t Growing::insert(std::span<const Digest> digests) {
  return insert_by_observing<1024>(*this, digests);
}

void Growing::clear() noexcept {
  list_.clear();
  if (starts_listed(params_))
    table_.reset();
  else
    table_->reset(first_buckets(params_));
  forgotten_ = forget_misses_ = 0;
}

bool Growing::forget(const Digest& digest) noexcept {
  bool found;
  if (table_) {
    found = table_->forget(digest);
  } else {
    const auto at = list_.find(digest);
    found = at.has_value();
    if (at) list_.erase(*at);
    list_.shrink();
  }
  ++(found ? forgotten_ : forget_misses_);
  return found;
}

FilterStats Growing::stats() const {
  FilterStats stats{.keys = list_.size(),
                    .bytes = bytes(),
                    .target_fpr = params_.target_fpr,
                    .planned_fpr = bound(*shape_of(params_.slot_bits), params_.expected_keys),
                    .listed = list_.size(),
                    .forgotten = forgotten_,
                    .forget_misses = forget_misses_};
  if (table_) {
    stats.keys = table_->keys();
    stats.predicted_fpr = table_->predicted_fpr();
    stats.stash = table_->table().stray_count;
  }
  return stats;
}

void Growing::merge(const Growing& other) {
  if (other.params_.target_fpr != params_.target_fpr)
    throw BadParameters(
        "filters 'growing' of different fpr cannot be merged: make both with the same");
  if (other.params_.slot_bits != params_.slot_bits)
    throw BadParameters(
        fmt::format("filters 'growing' with slots of {} and {} bits cannot be merged: make them "
                    "with the same slot=",
                    params_.slot_bits, other.params_.slot_bits));
  if (&other == this) return;
  if (listed() && other.listed()) return merge_lists(other);
  if (other.listed()) return table_->merge(other.list_.digests());
  if (!listed()) return table_->merge(*other.table_);
  Owned<GrowingBuckets> table = table_of_list();
  table->merge(*other.table_);
  take(std::move(table));
}

// Makes room for all keys at once, so that nothing has changed if it is refused.
void Growing::merge_lists(const Growing& other) {
  const auto each_new = [&](const auto& write) {
    for (const Digest& digest : other.list_.digests())
      if (!list_.find(digest)) write(digest);
  };
  std::size_t keys = list_.size();
  each_new([&](const Digest&) { ++keys; });
  if (keys > kMostListed) {
    Owned<GrowingBuckets> table = table_of_list();
    each_new([&](const Digest& digest) { table->write(digest); });
    return take(std::move(table));
  }
  ShortList both(memory());
  const auto write = [&](const Digest& digest) {
    both.grow();
    both.insert(digest, 0);
  };
  for (const Digest& digest : list_.digests()) write(digest);
  each_new(write);
  list_ = std::move(both);
}

void Growing::encode_header(Encoder& to) const {
  to.u8(static_cast<std::uint8_t>(params_.slot_bits));
  to.varint(params_.expected_keys);
  to.f64(params_.target_fpr);
  to.u8(listed());
  if (listed())
    list_.encode(to, 0, 0);
  else
    table_->encode_header(to);
}

void Growing::encode_payload(Encoder& to) const {
  if (table_) table_->encode_payload(to);
}

Growing Growing::decode(Decoder& header, Decoder& payload, MemoryResource& memory) {
  Params params;
  params.slot_bits = header.u8();
  params.expected_keys = header.varint();
  params.target_fpr = header.f64();
  if (const char* wrong = what_is_wrong(params)) throw CorruptSnapshot(wrong);
  const std::uint8_t listed = header.u8();
  if (listed > 1 || (listed == 1 && !starts_listed(params)))
    throw CorruptSnapshot("filter 'growing' is neither a list nor a table");
  Growing filter(params, memory);
  if (listed == 1) {
    payload.expect_remaining(0, "the payload of a short list");
    filter.list_.decode(header, kMostListed, 0);
    if (std::ranges::any_of(filter.list_.stamps(), [](auto stamp) { return stamp != 0; }))
      throw CorruptSnapshot("the keys of filter 'growing' have no age");
  } else {
    filter.table_ = make_owned<GrowingBuckets>(
        memory, GrowingBuckets::decode(*shape_of(params.slot_bits), first_buckets(params), header,
                                       payload, memory));
  }
  return filter;
}

static_assert(Filter<Growing> && ForgettingFilter<Growing> && MergingFilter<Growing>);

}  // namespace sluice
