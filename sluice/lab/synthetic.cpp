#include "sluice/lab/synthetic.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "sluice/base/bits.hpp"
#include "sluice/base/error.hpp"

namespace sluice {
namespace {

constexpr std::array<std::string_view, 4> kShapes = {"uniform", "zipf", "power", "bursty"};

const SyntheticOptions& checked(const SyntheticOptions& options) {
  if (options.records < 1 || options.records > ZipfSampler::kRanksMost)
    throw BadParameters(
        fmt::format("`records` {} is out of range: give a count from 1 to 2^40", options.records));
  if (!(options.distinct > 0 && options.distinct <= 1))
    throw BadParameters(fmt::format(
        "`distinct` {} is out of range: give a share above 0 and at most 1", options.distinct));
  return options;
}

std::uint64_t distinct_of(const SyntheticOptions& options) {
  const double share = options.distinct * static_cast<double>(options.records);
  return std::clamp<std::uint64_t>(static_cast<std::uint64_t>(share + 0.5), 1, options.records);
}

}  // namespace

StreamShape parse_stream_shape(std::string_view flag, std::string_view text) {
  for (std::size_t i = 0; i < kShapes.size(); ++i)
    if (kShapes[i] == text) return static_cast<StreamShape>(i);
  throw BadParameters(fmt::format("{} '{}' is not uniform, zipf, power or bursty", flag, text));
}

std::string_view name_of(StreamShape shape) noexcept {
  return kShapes[static_cast<std::size_t>(shape)];
}

SyntheticStream::SyntheticStream(const SyntheticOptions& options)
    : shape_(checked(options).shape),
      records_left_(options.records),
      new_left_(distinct_of(options)),
      random_(options.seed),
      first_(random_.next()),
      ranks_(new_left_, 1.0) {}

std::size_t SyntheticStream::fill(std::span<Digest> out) {
  const auto count = static_cast<std::size_t>(std::min<std::uint64_t>(out.size(), records_left_));
  for (Digest& digest : out.first(count)) {
    const bool is_new = next_is_new();
    digest = digest_of(is_new ? seen_ : earlier());
    --records_left_;
    if (!is_new) continue;
    --new_left_;
    ++seen_;
  }
  return count;
}

// Drawn without replacement: in the end exactly as many are new as were asked for.
bool SyntheticStream::next_is_new() {
  if (seen_ == 0) return true;
  if (new_left_ == 0) return false;
  if (shape_ != StreamShape::bursty) return scale_to(random_.next(), records_left_) < new_left_;
  if (records_left_ == new_left_) return true;
  return burst_left_ == 0 && !burst_begins();
}

// A burst takes many repeats at once, so that it begins as much less often.
bool SyntheticStream::burst_begins() {
  const auto repeats = static_cast<double>(records_left_ - new_left_);
  const auto length = static_cast<double>(kLongestBurst + 1) / 2;
  return random_.next_unit() * length * static_cast<double>(new_left_) < repeats;
}

std::uint64_t SyntheticStream::earlier() {
  switch (shape_) {
    case StreamShape::uniform:
      return scale_to(random_.next(), seen_);
    case StreamShape::bursty:
      return replayed();
    case StreamShape::zipf:
    case StreamShape::power:
      break;
  }
  for (;;) {
    const std::uint64_t rank = ranks_.draw(random_);
    if (rank <= seen_) return shape_ == StreamShape::zipf ? rank - 1 : seen_ - rank;
  }
}

std::uint64_t SyntheticStream::replayed() {
  if (burst_left_ == 0) {
    burst_left_ = 1 + scale_to(random_.next(), kLongestBurst);
    const std::uint64_t reach = std::min(seen_, kBurstReach);
    burst_begin_ = burst_next_ = seen_ - 1 - scale_to(random_.next(), reach);
  }
  --burst_left_;
  if (burst_next_ == seen_) burst_next_ = burst_begin_;  // what there was has been replayed
  return burst_next_++;
}

// SplitMix64's step is a bijection of 64 bits: different keys have different digests.
Digest SyntheticStream::digest_of(std::uint64_t key) const noexcept {
  SplitMix64 words(first_ + key);
  const std::uint64_t lo = words.next();
  return {lo, words.next()};
}

}  // namespace sluice
