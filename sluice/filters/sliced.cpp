#include "sluice/filters/sliced.hpp"

#include <fmt/format.h>

#include <array>
#include <cassert>
#include <exception>
#include <utility>

#include "sluice/base/error.hpp"
#include "sluice/filters/catalogue.hpp"
#include "sluice/filters/slice_crew.hpp"

namespace sluice {
namespace {

// What slices threw on their threads.
class Errors {
 public:
  // Nothing more is done for a slice that threw.
  template <class Act>
  void guard(unsigned slice, const Act& act) noexcept {
    if (errors_[slice]) return;
    try {
      act();
    } catch (...) {
      errors_[slice] = std::current_exception();
    }
  }
  void rethrow() const {
    for (const std::exception_ptr& error : errors_)
      if (error) std::rethrow_exception(error);
  }

 private:
  std::array<std::exception_ptr, kMostSlices> errors_;
};

// Calls judge(slice, digests, verdicts) for the records of each slice, on its thread, until the
// batch is done.
template <class Judge>
void judge_all(SliceCrew& crew, std::span<const Digest> digests, std::span<Verdict> verdicts,
               const Judge& judge) {
  assert(verdicts.empty() || digests.size() == verdicts.size());
  Errors errors;
  while (!digests.empty()) {
    const std::size_t done = crew.step(
        digests, verdicts,
        [&](unsigned slice, std::span<const Digest> part, std::span<Verdict> part_verdicts) {
          errors.guard(slice, [&] { judge(slice, part, part_verdicts); });
        });
    errors.rethrow();
    digests = digests.subspan(done);
    if (!verdicts.empty()) verdicts = verdicts.subspan(done);
  }
}

}  // namespace

SlicedFilter::SlicedFilter(Params params, std::vector<AnyFilter> slices)
    : params_(std::move(params)),
      slices_(std::move(slices)),
      crew_(std::make_unique<SliceCrew>(params_.slices)) {}

SlicedFilter::SlicedFilter(SlicedFilter&&) noexcept = default;
SlicedFilter& SlicedFilter::operator=(SlicedFilter&&) noexcept = default;
SlicedFilter::~SlicedFilter() = default;

std::vector<AnyFilter> SlicedFilter::make_slices(const Params& params, bool ages) {
  if (params.slices == 0 || params.slices > kMostSlices)
    throw BadParameters(fmt::format("filter 'sliced' takes 1 to {} slices", kMostSlices));
  const FilterInfo& info = filter_named(params.of);
  std::vector<AnyFilter> slices;
  for (unsigned i = 0; i < params.slices; ++i) slices.push_back(info.make({}, params.each));
  if (slices.front().ages() != ages)
    throw BadParameters(fmt::format("filter '{}' {}: use the other of Sliced and SlicedWindow",
                                    params.of, ages ? "does not age" : "ages"));
  return slices;
}

AnyFilter& SlicedFilter::slice_for(const Digest& digest) noexcept {
  return slices_[slice_of(digest, params_.slices)];
}

Verdict SlicedFilter::observe(const Digest& digest) {
  Verdict verdict;
  slice_for(digest).observe(std::span(&digest, 1), std::span(&verdict, 1));
  return verdict;
}

bool SlicedFilter::may_contain(const Digest& digest) const noexcept {
  Verdict verdict;
  const AnyFilter& slice = slices_[slice_of(digest, params_.slices)];
  slice.may_contain(std::span(&digest, 1), std::span(&verdict, 1));
  return verdict == Verdict::duplicate;
}

void SlicedFilter::observe(std::span<const Digest> digests, std::span<Verdict> verdicts) {
  judge_all(*crew_, digests, verdicts, [this](unsigned slice, auto part, auto part_verdicts) {
    slices_[slice].observe(part, part_verdicts);
  });
}

void SlicedFilter::may_contain(std::span<const Digest> digests, std::span<Verdict> verdicts) const {
  judge_all(*crew_, digests, verdicts, [this](unsigned slice, auto part, auto part_verdicts) {
    slices_[slice].may_contain(part, part_verdicts);
  });
}

void SlicedFilter::insert(std::span<const Digest> digests) {
  judge_all(*crew_, digests, {},
            [this](unsigned slice, auto part, auto) { slices_[slice].insert(part); });
}

void SlicedFilter::clear() noexcept {
  for (AnyFilter& slice : slices_) slice.clear();
  taken_back_ = 0;
}

bool SlicedFilter::forget(const Digest& digest) noexcept {
  return slice_for(digest).forget(digest);
}

FilterPromises SlicedFilter::promises() const noexcept {
  return slices_.front().promises();
}

// A new key falls to each slice with the same chance, so errors are means.
FilterStats SlicedFilter::stats() const {
  FilterStats all{.bytes = SliceCrew::bytes_for(params_.slices)};
  for (const AnyFilter& slice : slices_) {
    const FilterStats stats = slice.stats();
    all.keys += stats.keys;
    all.capacity += stats.capacity;
    all.bytes += stats.bytes;
    all.target_fpr = stats.target_fpr;
    all.predicted_fpr += stats.predicted_fpr / params_.slices;
    all.planned_fpr += stats.planned_fpr / params_.slices;
    all.stash += stats.stash;
    all.forgotten += stats.forgotten;
    all.forget_misses += stats.forget_misses;
    all.forget_kept += stats.forget_kept;
  }
  // Of the slices' own capacity a part is there for chance.
  if (all.capacity > 0 && params_.keys > 0) all.capacity = params_.keys;
  all.forgotten -= taken_back_;
  return all;
}

void SlicedFilter::encode_header(Encoder& to) const {
  to.u32(params_.slices);
  to.u16(static_cast<std::uint16_t>(slices_.front().kind()));
  to.u16(slices_.front().version());
  to.u64(params_.keys);
}

// Fields and tables of each slice: the fields of many would be more than a header may hold.
void SlicedFilter::encode_payload(Encoder& to) const {
  for (const AnyFilter& slice : slices_) {
    BytesEncoder fields;
    slice.encode_header(fields);
    CountingEncoder payload;
    slice.encode_payload(payload);
    to.u64(payload.count());
    to.u32(static_cast<std::uint32_t>(fields.written().size()));
    to.bytes(fields.written());
    slice.encode_payload(to);
  }
}

Sliced Sliced::make(const Params& params) {
  return Sliced(params, make_slices(params, false));
}

void Sliced::merge(const Sliced& other) {
  // Whether slices fit is theirs to say, the first of them for all: they are made alike.
  if (params_.slices != other.params_.slices || params_.of != other.params_.of)
    throw BadParameters("filters 'sliced' can be merged when they are made alike, but one has " +
                        params_.settings().text() + " and the other " +
                        other.params_.settings().text());
  for (unsigned i = 0; i < params_.slices; ++i) slices_[i].merge(other.slices_[i]);
}

Sliced Sliced::decode(Decoder& header, Decoder& payload) {
  Decoded decoded = decode_slices(header, payload, false);
  return Sliced(std::move(decoded.params), std::move(decoded.slices));
}

static_assert(ForgettingFilter<Sliced> && MergingFilter<Sliced>);

}  // namespace sluice
