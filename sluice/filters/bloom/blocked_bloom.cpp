#include "sluice/filters/bloom/blocked_bloom.hpp"

#include <algorithm>
#include <bit>
#include <cassert>

#include "sluice/base/error.hpp"
#include "sluice/filters/bloom/bloom_family.hpp"
#include "sluice/model/bloom.hpp"
#include "sluice/model/offered.hpp"

namespace sluice {
namespace {

const char* what_is_wrong(const BlockedBloom::Params& params) {
  if (params.blocks == 0 || params.blocks > std::uint64_t{1} << 40)
    return "filter 'bloom' with layout=blocked takes a table of 64 bytes to 64 TiB, in whole "
           "blocks "
           "of 64 bytes";
  if (params.probes != 8 && params.probes != 16)
    return "filter 'bloom' with layout=blocked takes 8 or 16 probes";
  if (params.capacity == 0 || params.capacity > kMostBloomKeys)
    return "filter 'bloom' is planned for 1 to 2^44 keys";
  if (!(params.target_fpr > 0 && params.target_fpr < 1))
    return "filter 'bloom' takes a target error above 0 and below 1";
  return nullptr;
}

}  // namespace

Settings BlockedBloom::Params::settings() const {
  Settings settings;
  settings.add("layout", "blocked");
  settings.add("bytes", blocks * kernels::kBlockBytes);
  settings.add("probes", std::uint64_t{probes});
  settings.add("keys", capacity);
  settings.add("fpr", target_fpr);
  return settings;
}

Forecast BlockedBloom::Params::forecast() const {
  if (const char* wrong = what_is_wrong(*this)) throw BadParameters(wrong);
  return {.keys = capacity,
          .bytes = blocks * kernels::kBlockBytes,
          .fpr = model::blocked_bloom_fpr(static_cast<double>(blocks), probes,
                                          static_cast<double>(capacity)),
          .fpr_spread = model::blocked_bloom_spread(static_cast<double>(blocks), probes,
                                                    static_cast<double>(capacity)),
          .lines = 1,
          .settings = settings()};
}

BlockedBloom BlockedBloom::make(const Params& params, MemoryResource& memory) {
  if (const char* wrong = what_is_wrong(params)) throw BadParameters(wrong);
  return BlockedBloom(params, memory);
}

BlockedBloom::BlockedBloom(const Params& params, MemoryResource& memory)
    : params_(params), memory_(params.blocks * kernels::kBlockBytes, memory) {}

std::size_t BlockedBloom::observe(std::span<const Digest> digests,
                                  std::span<Verdict> verdicts) noexcept {
  assert(digests.size() == verdicts.size());
  keys_ += kernels::blocked_observe(table(), digests.data(), digests.size(), verdicts.data());
  return digests.size();
}

void BlockedBloom::may_contain(std::span<const Digest> digests,
                               std::span<Verdict> verdicts) const noexcept {
  assert(digests.size() == verdicts.size());
  kernels::blocked_may_contain(table(), digests.data(), digests.size(), verdicts.data());
}

std::size_t BlockedBloom::insert(std::span<const Digest> digests) noexcept {
  return insert_by_observing<256>(*this, digests);
}

void BlockedBloom::clear() noexcept {
  memory_.clear();
  keys_ = 0;
}

void BlockedBloom::merge(const BlockedBloom& other) {
  if (params_ != other.params_)
    throw BadParameters("filters 'bloom' can be merged when they are made alike, but one has " +
                        params_.settings().text() + " and the other " +
                        other.params_.settings().text());
  for (std::uint64_t block = 0; block < params_.blocks; ++block) {
    const auto* theirs = reinterpret_cast<const std::uint64_t*>(other.memory_.to_read(block));
    auto* words = reinterpret_cast<std::uint64_t*>(memory_.to_write(block));
    for (std::size_t i = 0; i < kernels::kBlockWords; ++i) words[i] |= theirs[i];
  }
  const std::uint64_t ones = memory_.count_ones();
  const auto blocks = static_cast<double>(params_.blocks);
  const double offered =
      model::blocked_bloom_keys_of_ones(blocks, params_.probes, static_cast<double>(ones));
  keys_ = model::merged_keys(keys_, other.keys_, ones, model::taken_keys(offered, [&](double keys) {
                               return model::blocked_bloom_fpr(blocks, params_.probes, keys);
                             }));
}

// As in bloom.cpp: beyond the plan the table tells more than the number of keys. The chance that a
// key finds all its bits in a block is the product of its lanes' shares of ones.
double BlockedBloom::sampled_fpr() const {
  constexpr std::uint64_t kSample = 1 << 12;
  const std::uint64_t step = std::max<std::uint64_t>(1, params_.blocks / kSample);
  const unsigned lanes_a_word = params_.probes / kernels::kBlockWords;
  const unsigned lane_bits = 64 / lanes_a_word;
  const std::uint64_t lane_mask =
      lane_bits == 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << lane_bits) - 1;
  double sum = 0;
  std::uint64_t seen = 0;
  for (std::uint64_t block = 0; block < params_.blocks; block += step, ++seen) {
    double all = 1;
    for (unsigned lane = 0; lane < params_.probes; ++lane) {
      const std::uint64_t word =
          reinterpret_cast<const std::uint64_t*>(memory_.to_read(block))[lane / lanes_a_word];
      const std::uint64_t bits = word >> (lane % lanes_a_word * lane_bits) & lane_mask;
      all *= static_cast<double>(std::popcount(bits)) / lane_bits;
    }
    sum += all;
  }
  return sum / static_cast<double>(seen);
}

FilterStats BlockedBloom::stats() const {
  const auto model = [&](double keys) {
    return model::blocked_bloom_fpr_of_few(static_cast<double>(params_.blocks), params_.probes,
                                           keys);
  };
  const auto taken = static_cast<double>(keys_), most = static_cast<double>(params_.capacity);
  return {.keys = keys_,
          .capacity = params_.capacity,
          .bytes = bytes(),
          .target_fpr = params_.target_fpr,
          .predicted_fpr = keys_ > params_.capacity
                               ? std::max(model(taken), sampled_fpr())
                               : model(std::min(model::offered_keys(taken, model), most))};
}

void BlockedBloom::encode_header(Encoder& to) const {
  const BloomFields fields{params_.blocks, params_.probes, params_.capacity, params_.target_fpr,
                           keys_};
  fields.encode(to);
}

void BlockedBloom::encode_payload(Encoder& to) const {
  memory_.encode(to);
}

BlockedBloom BlockedBloom::decode(Decoder& header, Decoder& payload, MemoryResource& memory) {
  const BloomFields fields = BloomFields::decode(header);
  const Params params{fields.size, fields.probes, fields.capacity, fields.target_fpr};
  if (const char* wrong = what_is_wrong(params)) throw CorruptSnapshot(wrong);
  payload.expect_remaining(params.blocks * kernels::kBlockBytes, "the table of filter 'bloom'");
  BlockedBloom filter(params, memory);
  filter.memory_.decode(payload);
  if (fields.keys > filter.memory_.count_ones())
    throw CorruptSnapshot("filter 'bloom' claims more keys than its table has bits set");
  filter.keys_ = fields.keys;
  return filter;
}

static_assert(MergingFilter<BlockedBloom>);

}  // namespace sluice
