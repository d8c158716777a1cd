#include "sluice/judge/judge.hpp"

#include <algorithm>
#include <array>
#include <cassert>
#include <cstring>
#include <utility>

#include "sluice/base/random.hpp"

namespace sluice {
namespace {

constexpr std::size_t kHashTogether = 512;

// Ghosts differ from filter to filter as digests do, and a run with a known secret can be repeated.
Audit::Params audit_of(Audit::Params params, const Hasher& hasher, const AnyFilter& filter) {
  std::memcpy(&params.seed, hasher.secret().bytes().data(), sizeof params.seed);
  params.seed = SplitMix64(params.seed).next();
  params.fresh = filter.stats().keys == 0;
  return params;
}

template <class T>
std::span<T> part(std::span<T> all, std::size_t begin, std::size_t count) {
  return all.empty() ? all : all.subspan(begin, count);
}

// What is known of one key is known of all.
template <class T>
std::span<T> part_of_known(std::span<T> all, std::size_t begin, std::size_t count) {
  return all.size() <= 1 ? all : all.subspan(begin, count);
}

}  // namespace

Judge::Batch Judge::Batch::subspan(std::size_t begin, std::size_t count) const {
  return {.digests = part(digests, begin, count),
          .verdicts = part(verdicts, begin, count),
          .times = part(times, begin, count),
          .late = part(late, begin, count),
          .now = now,
          .known = {.priors = part_of_known(known.priors, begin, count),
                    .costs = part_of_known(known.costs, begin, count)},
          .posteriors = part(posteriors, begin, count)};
}

Judge::Batch Judge::Batch::first(std::size_t count) const {
  return subspan(0, count);
}

Judge::Judge(const Hasher& hasher, AnyFilter filter, const JudgeOptions& options)
    : hasher_(hasher),
      filter_(std::move(filter)),
      window_(filter_.window()),
      by_arrival_(window_ != nullptr && window_->params().spec.by_time()),
      has_prior_table_(options.infer && options.infer->table != nullptr) {
  if (options.audit) audit_.emplace(audit_of(*options.audit, hasher_, filter_), filter_);
  if (options.infer) infer_.emplace(filter_, options.infer->table, options.infer->learn);
}

std::size_t Judge::judge(const Batch& batch) {
  const bool timed = window_ != nullptr && !batch.times.empty();
  // Our own clock is right, whatever it says, and nothing that arrives is late.
  if (by_arrival_ && !timed) window_->arrive(batch.now);
  if (!timed) std::ranges::fill(batch.late, false);
  const std::size_t judged =
      infer_  ? weigh(batch, timed)
      : timed ? window_->judge(batch.digests, batch.times, batch.verdicts, batch.late)
              : filter_.observe(batch.digests, batch.verdicts);
  if (audit_) {
    const Batch told = judged == batch.digests.size() ? batch : batch.first(judged);
    audit_->observe(told.digests, told.verdicts, told.times,
                    told.times.empty() ? std::span<bool>() : told.late);
  }
  return judged;
}

std::size_t Judge::weigh(const Batch& batch, bool timed) {
  if (batch.digests.empty()) return 0;
  Inference::Known known = batch.known;
  if (known.costs.empty()) known.costs = std::span(&Inference::kFilterAlone, 1);
  std::span<std::optional<double>> posteriors = batch.posteriors;
  if (posteriors.empty()) {
    posteriors_.resize(std::max(posteriors_.size(), batch.digests.size()));
    posteriors = std::span(posteriors_).first(batch.digests.size());
  }
  return timed ? infer_->judge(batch.digests, batch.times, known, batch.verdicts, batch.late,
                               posteriors)
               : infer_->observe(batch.digests, known, batch.verdicts, posteriors);
}

std::size_t Judge::judge(std::span<const std::string_view> keys, Batch batch) {
  std::array<Digest, kHashTogether> digests;
  batch.digests = {};
  for (std::size_t begin = 0; begin < keys.size();) {
    const std::size_t count = std::min(kHashTogether, keys.size() - begin);
    hasher_.digest(keys.subspan(begin, count), std::span(digests).first(count));
    Batch some = batch.subspan(begin, count);
    some.digests = std::span(digests).first(count);
    const std::size_t judged = judge(some);
    begin += judged;
    if (judged < count) return begin;
  }
  return keys.size();
}

Verdict Judge::judge(std::string_view key, Nanoseconds now) {
  const Digest digest = hasher_.digest(key);
  Verdict verdict{};
  if (judge({.digests = {&digest, 1}, .verdicts = {&verdict, 1}, .now = now}) == 0)
    throw NoMemory("there is no memory for more keys");
  return verdict;
}

void Judge::forget(std::span<const Digest> digests, std::span<Verdict> verdicts) {
  assert(filter_.can_forget());
  std::ranges::transform(digests, verdicts.begin(), [this](const Digest& digest) {
    const bool found = filter_.forget(digest);
    if (audit_) audit_->forget(digest, found);
    return found ? Verdict::duplicate : Verdict::distinct;
  });
}

bool Judge::asks_for_digests() const noexcept {
  return audit_.has_value() || filter_.kind() != FilterKind::none;
}

}  // namespace sluice
