#include "sluice/filters/blocked_bloom.hpp"

#include <algorithm>
#include <cassert>

#include "sluice/base/error.hpp"
#include "sluice/model/bloom.hpp"

namespace sluice {
namespace {

const char* what_is_wrong(const BlockedBloom::Params& params) {
  if (params.blocks == 0 || params.blocks > std::uint64_t{1} << 40)
    return "filter 'bloom' with layout=blocked takes a table of 64 bytes to 64 TiB, in whole "
           "blocks "
           "of 64 bytes";
  if (params.probes != 8 && params.probes != 16)
    return "filter 'bloom' with layout=blocked takes 8 or 16 probes";
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

BlockedBloom BlockedBloom::make(const Params& params) {
  if (const char* wrong = what_is_wrong(params)) throw BadParameters(wrong);
  return BlockedBloom(params);
}

BlockedBloom::BlockedBloom(const Params& params)
    : params_(params), memory_(params.blocks * kernels::kBlockBytes) {}

void BlockedBloom::observe(std::span<const Digest> digests, std::span<Verdict> verdicts) noexcept {
  assert(digests.size() == verdicts.size());
  keys_ += kernels::blocked_observe(table(), digests.data(), digests.size(), verdicts.data());
}

void BlockedBloom::may_contain(std::span<const Digest> digests,
                               std::span<Verdict> verdicts) const noexcept {
  assert(digests.size() == verdicts.size());
  kernels::blocked_may_contain(table(), digests.data(), digests.size(), verdicts.data());
}

void BlockedBloom::insert(std::span<const Digest> digests) noexcept {
  Verdict unread[256];
  while (!digests.empty()) {
    const std::size_t count = std::min(digests.size(), std::size(unread));
    observe(digests.first(count), std::span(unread, count));
    digests = digests.subspan(count);
  }
}

void BlockedBloom::clear() noexcept {
  memory_.clear();
  keys_ = 0;
}

FilterStats BlockedBloom::stats() const {
  return {.keys = keys_,
          .capacity = params_.capacity,
          .bytes = memory_.size(),
          .target_fpr = params_.target_fpr,
          .predicted_fpr = model::blocked_bloom_fpr(static_cast<double>(params_.blocks),
                                                    params_.probes, static_cast<double>(keys_))};
}

void BlockedBloom::encode_header(Encoder& to) const {
  to.u64(params_.blocks);
  to.u32(params_.probes);
  to.u64(params_.capacity);
  to.f64(params_.target_fpr);
  to.u64(keys_);
}

void BlockedBloom::encode_payload(Encoder& to) const {
  to.bytes(memory_.bytes());
}

BlockedBloom BlockedBloom::decode(Decoder& header, Decoder& payload) {
  Params params;
  params.blocks = header.u64();
  params.probes = header.u32();
  params.capacity = header.u64();
  params.target_fpr = header.f64();
  const std::uint64_t keys = header.u64();
  if (const char* wrong = what_is_wrong(params)) throw CorruptSnapshot(wrong);
  payload.expect_remaining(params.blocks * kernels::kBlockBytes, "the table of filter 'bloom'");
  BlockedBloom filter(params);
  payload.bytes(filter.memory_.bytes());
  if (keys > filter.memory_.count_ones())
    throw CorruptSnapshot("filter 'bloom' claims more keys than its table has bits set");
  filter.keys_ = keys;
  return filter;
}

static_assert(Filter<BlockedBloom>);

}  // namespace sluice
