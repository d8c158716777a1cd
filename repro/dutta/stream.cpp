#include "repro/dutta/stream.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "repro/input.hpp"
#include "sluice/base/error.hpp"
#include "sluice/base/random.hpp"
#include "sluice/filters/catalogue.hpp"
#include "sluice/lab/zipf.hpp"

namespace sluice::repro::dutta {
namespace {

constexpr std::size_t kBatch = 1024;

Digest digest_of(std::uint64_t key, std::uint64_t seed) {
  SplitMix64 random(key * 0xD1342543DE82EF95ULL + seed);
  const std::uint64_t lo = random.next();
  return {lo, random.next()};
}

// Collects records to batches.
class Collector {
 public:
  Collector(std::uint64_t step, const std::function<void(const Batch&)>& take)
      : step_(std::max<std::uint64_t>(step, 1)), left_(step_), take_(take) {}

  void add(const Digest& digest, bool seen) {
    digests_[count_] = digest;
    seen_[count_++] = seen;
    if (--left_ == 0 || count_ == kBatch) flush();
  }
  void flush() {
    if (count_ > 0) take_({{digests_, count_}, {seen_, count_}});
    count_ = 0;
    if (left_ == 0) left_ = step_;
  }

 private:
  std::uint64_t step_, left_;
  const std::function<void(const Batch&)>& take_;
  Digest digests_[kBatch];
  std::uint8_t seen_[kBatch];
  std::size_t count_ = 0;
};

template <class Key>
void draw(const StreamPlan& plan, std::uint64_t universe, Collector& to, Key key_of) {
  SplitMix64 random(plan.seed);
  const std::uint64_t secret = random.next();
  std::vector<bool> seen(universe);
  for (std::uint64_t i = 0; i < plan.records; ++i) {
    const std::uint64_t key = key_of(random);
    to.add(digest_of(key, secret), seen[key]);
    seen[key] = true;
  }
}

void uniform(const StreamPlan& plan, Collector& to) {
  const std::uint64_t universe = universe_of(static_cast<double>(plan.records), plan.distinct);
  draw(plan, universe, to, [&](SplitMix64& random) { return scale_to(random.next(), universe); });
}

void clicks(const StreamPlan& plan, Collector& to) {
  if (plan.keys == 0 || plan.keys > ZipfSampler::kRanksMost)
    throw BadParameters(fmt::format("--set keys={}: give 1 to 2^40", plan.keys));
  if (!(plan.skew >= 0 && plan.skew <= ZipfSampler::kSkewMost))
    throw BadParameters(fmt::format("--set skew={}: give 0 to 4", plan.skew));
  const ZipfSampler ranks(plan.keys, plan.skew);
  draw(plan, plan.keys, to, [&](SplitMix64& random) { return ranks.draw(random) - 1; });
}

void from_file(const StreamPlan& plan, Collector& to) {
  AnyFilter truth = make_filter("exact", {});
  Verdict seen = Verdict::distinct;
  read_events(plan.input, plan.seed, [&](std::span<const Event> events) {
    for (const Event& event : events) {
      truth.observe({&event.key, 1}, {&seen, 1});
      to.add(event.key, seen == Verdict::duplicate);
    }
  });
}

double percent(std::uint64_t part, std::uint64_t whole) {
  return whole == 0 ? 0 : 100 * static_cast<double>(part) / static_cast<double>(whole);
}

// Whole words.
std::uint64_t table_bits(const Context& context, double bits, std::uint64_t words_least) {
  constexpr double kMost = 6.4e10;  // 8 GB
  if (!(bits >= 1 && bits * context.scale() <= kMost))
    throw BadParameters(fmt::format("a table of {:g} bits at scale {:g}: give 1 to {:g} in all",
                                    bits, context.scale(), kMost));
  return std::max((context.scaled(bits) + 32) / 64, words_least) * 64;
}

}  // namespace

std::uint64_t universe_of(double records, double share) {
  if (!(share > 0 && share < 1))
    throw BadParameters(
        fmt::format("a share of {} distinct records: give one above 0 and below 1", share));
  double low = 1, high = 1e18;
  for (int step = 0; step < 200; ++step) {
    const double middle = std::sqrt(low * high);
    (middle * -std::expm1(-records / middle) < share * records ? low : high) = middle;
  }
  if (high > 6.4e10)
    throw BadParameters(fmt::format(
        "{:g} records of which a share of {} is distinct need a universe of {:.1e} keys, and its "
        "truth a bit for each: give fewer records or a lower share",
        records, share, high));
  return static_cast<std::uint64_t>(high);
}

void each_batch(const StreamPlan& plan, std::uint64_t step,
                const std::function<void(const Batch&)>& take) {
  Collector collector(step, take);
  if (!plan.input.empty())
    from_file(plan, collector);
  else if (plan.kind == StreamPlan::Kind::uniform)
    uniform(plan, collector);
  else
    clicks(plan, collector);
  collector.flush();
}

double Errors::fpr() const {
  return percent(lost, distinct);
}
double Errors::fnr() const {
  return percent(missed, duplicates);
}

Errors Errors::operator-(const Errors& earlier) const {
  return {distinct - earlier.distinct, duplicates - earlier.duplicates, lost - earlier.lost,
          missed - earlier.missed};
}

Errors& Errors::operator+=(const Errors& other) {
  distinct += other.distinct, duplicates += other.duplicates;
  lost += other.lost, missed += other.missed;
  return *this;
}

void Subject::take(const Batch& batch) {
  verdicts_.resize(batch.digests.size());
  filter_.observe(batch.digests, verdicts_);
  for (std::size_t i = 0; i < verdicts_.size(); ++i) {
    const bool passed = verdicts_[i] == Verdict::distinct;
    const bool seen = batch.seen[i] != 0;
    errors_.duplicates += seen;
    errors_.distinct += !seen;
    errors_.missed += seen && passed;
    errors_.lost += !seen && !passed;
  }
}

double Subject::ones() const {
  const auto* stable = filter_.as<Stable>();
  return cells() * (stable != nullptr ? stable->fill() : filter_.as<Reservoir>()->fill());
}

double Subject::cells() const {
  if (const auto* stable = filter_.as<Stable>())
    return static_cast<double>(stable->params().cells());
  const Reservoir::Params& params = filter_.as<Reservoir>()->params();
  return static_cast<double>(params.size() * params.filters);
}

std::vector<Parameter> filter_parameters(unsigned reservoir_filters, const char* meaning) {
  return {
      {"k", static_cast<double>(reservoir_filters), meaning, reservoir_filters == 0 ? 0.0 : 1, 64},
      {"p", 0.03, "threshold p* of the reservoir", 1e-6, 0.999},
      {"K", 2, "probes of stable", 1, 64},
      {"P", 4, "cells that stable reduces a record", 1, 1e6},
      {"Max", 1, "what stable sets a cell to", 1, 255}};
}

std::uint64_t count_of(const Context& context, const char* parameter, std::uint64_t least) {
  const double value = context.number(parameter);
  if (!(value >= 1 && value <= 1e13))
    throw BadParameters(fmt::format("--set {}={:g}: give 1 to 1e13", parameter, value));
  return context.scaled(value, least);
}

Stable::Params stable_params(const Context& context, double bits) {
  return {.bits = table_bits(context, bits, 1),
          .probes = context.whole("K"),
          .decrements = context.whole("P"),
          .max = context.whole("Max"),
          .draws = Stable::Draws::independent,
          .target_fpr = 0.1,
          .seed = context.seed() + 1};
}

Reservoir::Params reservoir_params(const Context& context, double bits, unsigned filters) {
  if (filters == 0) filters = context.whole("k");
  if (filters == 0) throw BadParameters("--set k=0: give 1 filter or more");
  return {.bits = table_bits(context, bits, filters),
          .filters = filters,
          .variant = Reservoir::Variant::paper,
          .threshold = context.number("p"),
          .target_fpr = 0.1,
          .seed = context.seed() + 2};
}

std::string why_of(const Context& context, std::string_view id, double bits, std::uint64_t errors) {
  std::string why = context.published(id).why;
  const auto add = [&](const std::string& more) { why += (why.empty() ? "" : "; ") + more; };
  if (context.scaled(bits) < 2048)
    add(fmt::format("at this scale the table has {} bits, in whole words", context.scaled(bits)));
  if (errors < 1000) add(fmt::format("at this scale {} errors were counted", errors));
  return why;
}

}  // namespace sluice::repro::dutta
