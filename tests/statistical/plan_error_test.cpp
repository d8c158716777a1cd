// Planned and measured: random requests are planned, what was planned is made and filled, and its
// errors and its memory are compared with the promise: errors at most 1.1 times what was planned
// and four standard errors, memory at most what was planned.
//
// Each run draws a new seed and prints it; SLUICE_PLAN_SEED=N repeats a run.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <iostream>
#include <random>
#include <vector>

#include "sluice/base/random.hpp"
#include "sluice/plan/plan.hpp"
#include "tests/support/counts.hpp"
#include "tests/support/plan_requests.hpp"

namespace sluice {
namespace {

using testing_support::full_counts;
using testing_support::last;
using testing_support::seconds;
using testing_support::text_of;

std::uint64_t seed_of_run() {
  const char* given = std::getenv("SLUICE_PLAN_SEED");
  const std::uint64_t seed =
      given != nullptr ? std::strtoull(given, nullptr, 10) : std::random_device()();
  std::cout << "SLUICE_PLAN_SEED=" << seed << "\n";
  testing::Test::RecordProperty("seed", std::to_string(seed));
  return seed;
}

constexpr std::size_t kBatch = 1000;

class Stream {
 public:
  explicit Stream(std::uint64_t seed) : random_(seed) {}
  Digest next() { return {random_.next(), random_.next()}; }

 private:
  SplitMix64 random_;
};

// Errors of at least 10⁻⁵, up to `most_keys` keys, small ones more often.
PlanRequest measurable_request(SplitMix64& random, double most_keys) {
  PlanRequest request;
  const auto keys = static_cast<std::uint64_t>(
      std::pow(10, 1 + (std::log10(most_keys) - 1) * random.next_unit()));
  const double kind = random.next_unit();
  if (kind < 0.45) {
    request.window = last(keys);
    if (random.next_unit() < 0.3) request.anchor = Anchor::refreshed;
    if (random.next_unit() < 0.2) request.slack = std::pow(10, -1.7 * random.next_unit());
  } else if (kind < 0.6) {
    request.window = seconds(60);
    request.rate = static_cast<double>(keys) / 60;
  } else {
    request.expect = keys;
  }
  request.fpr = std::pow(10, -0.7 - 4.2 * random.next_unit());
  if (random.next_unit() < 0.15) request.lines = 1 + 12 * random.next_unit();
  if (random.next_unit() < 0.1) request.fnr = 0.1 + 0.8 * random.next_unit();
  if (random.next_unit() < 0.2)
    request.memory = static_cast<std::uint64_t>(static_cast<double>(keys) * 8) + 4096;
  return request;
}

// As full as planned. A window is filled beyond its first end, to where it is fullest: just before
// a generation ends.
void fill(AnyFilter& filter, const Plan& plan, std::uint64_t keys, Stream& stream) {
  std::vector<Digest> digests(kBatch);
  std::vector<Verdict> verdicts(kBatch);
  Window* window = filter.window();
  const auto write = [&](std::uint64_t count) {
    for (std::uint64_t done = 0; done < count; done += kBatch) {
      const std::size_t now =
          static_cast<std::size_t>(std::min<std::uint64_t>(kBatch, count - done));
      for (std::size_t i = 0; i < now; ++i) digests[i] = stream.next();
      filter.observe(std::span(digests).first(now), std::span(verdicts).first(now));
    }
  };
  if (plan.fnr > 0) return write(4 * plan.holds);
  if (window == nullptr) return write(keys);
  const std::uint64_t generations = std::max(1u, window->generations());
  if (!window->params().spec.by_time()) {
    const std::uint64_t size = (keys + generations - 1) / generations;
    return write(size * (2 * generations + 2) - 1);
  }
  // Evenly over two windows of time.
  const std::uint64_t tick = window->params().spec.size / generations;
  const std::uint64_t each = keys / generations;
  for (std::uint64_t i = 0; i < 2 * generations + 2; ++i) {
    window->arrive(static_cast<Nanoseconds>((i + 1000) * tick + 1));
    write(each);
  }
}

struct Measured {
  std::uint64_t asked = 0, wrong = 0;
  double rate() const { return static_cast<double>(wrong) / static_cast<double>(asked); }
};

Measured false_positives(const AnyFilter& filter, std::uint64_t probes, Stream& stream) {
  std::vector<Digest> digests(kBatch);
  std::vector<Verdict> verdicts(kBatch);
  Measured measured;
  while (measured.asked < probes) {
    for (Digest& digest : digests) digest = stream.next();
    filter.may_contain(digests, verdicts);
    measured.wrong += static_cast<std::uint64_t>(std::ranges::count(verdicts, Verdict::duplicate));
    measured.asked += kBatch;
  }
  return measured;
}

// Repeats after as many others as were asked for; none may be let through where none is promised.
Measured false_negatives(AnyFilter& filter, std::uint64_t distance, Stream& stream) {
  const std::size_t marked = std::min<std::size_t>(4000, std::max<std::size_t>(1, distance / 20));
  std::vector<Digest> keys(marked), others(kBatch);
  std::vector<Verdict> verdicts(std::max(marked, kBatch));
  for (Digest& key : keys) key = stream.next();
  filter.observe(keys, std::span(verdicts).first(marked));
  // What was taken for a duplicate was lost, and is not remembered.
  std::vector<Digest> written;
  for (std::size_t i = 0; i < marked; ++i)
    if (verdicts[i] == Verdict::distinct) written.push_back(keys[i]);
  std::uint64_t left = distance - std::min<std::uint64_t>(distance, marked);
  while (left > 0) {
    const std::size_t now = static_cast<std::size_t>(std::min<std::uint64_t>(kBatch, left));
    for (std::size_t i = 0; i < now; ++i) others[i] = stream.next();
    filter.observe(std::span(others).first(now), std::span(verdicts).first(now));
    left -= now;
  }
  const std::span answers = std::span(verdicts).first(written.size());
  filter.may_contain(written, answers);
  return {std::max<std::uint64_t>(1, written.size()),
          static_cast<std::uint64_t>(std::ranges::count(answers, Verdict::distinct))};
}

void expect_at_most(const char* what, const Measured& measured, double planned) {
  const double most = 1.1 * planned;
  const double error =
      std::sqrt(most * (1 - std::min(most, 1.0)) / static_cast<double>(measured.asked));
  EXPECT_LE(measured.rate(), most + 4 * error) << what << ", planned " << planned;
}

// What a set was filled with first.
void expect_all_held(const AnyFilter& filter, std::uint64_t keys, std::uint64_t seed) {
  Stream again(seed);
  std::vector<Digest> digests(static_cast<std::size_t>(std::min<std::uint64_t>(keys, 10'000)));
  std::vector<Verdict> verdicts(digests.size());
  for (Digest& digest : digests) digest = again.next();
  filter.may_contain(digests, verdicts);
  EXPECT_EQ(std::ranges::count(verdicts, Verdict::distinct), 0);
}

void measure(const Plan& plan, std::uint64_t keys, std::uint64_t seed, std::uint64_t most_probes) {
  SCOPED_TRACE(plan.filter + "," + plan.settings + " planned for " + std::to_string(plan.fpr));
  AnyFilter filter = plan.make();
  Stream stream(seed);
  fill(filter, plan, keys, stream);
  EXPECT_LE(filter.stats().bytes, plan.bytes);
  // Enough to see some hundred errors, where there are as many.
  const auto probes = static_cast<std::uint64_t>(
      std::clamp(400 / std::max(plan.fpr, 1e-9), 1e5, static_cast<double>(most_probes)));
  expect_at_most("false positives", false_positives(filter, probes, stream), plan.fpr);
  const bool by_time = plan.window && plan.window->by_time();
  if (!plan.window && plan.fnr == 0)
    expect_all_held(filter, keys, seed);
  else if (!by_time && keys > 1)
    expect_at_most("false negatives", false_negatives(filter, keys - 1, stream), plan.fnr);
  EXPECT_LE(filter.stats().bytes, plan.bytes);
}

TEST(PlanError, IsAtMostWhatWasPlanned) {
  const std::uint64_t seed = seed_of_run();
  SplitMix64 random(seed);
  const int requests = full_counts() ? 100 : 12;
  int planned = 0;
  for (int i = 0; planned < requests; ++i) {
    ASSERT_LT(i, 10 * requests) << "hardly any request can be met";
    // One in twenty-five up to ten million keys.
    const double most_keys = !full_counts() ? 2e4 : planned % 25 == 24 ? 1e7 : 3e5;
    const PlanRequest request = measurable_request(random, most_keys);
    SCOPED_TRACE(text_of(request));
    const Planning planning = plan(request);
    if (!planning.chosen) continue;
    ++planned;
    const auto feasible =
        static_cast<std::size_t>(std::ranges::count_if(planning.candidates, &Plan::feasible));
    const std::uint64_t keys = request.window && request.window->by_time()
                                   ? static_cast<std::uint64_t>(*request.rate * 60)
                               : request.window ? request.window->size
                                                : *request.expect;
    const std::uint64_t most_probes = full_counts() ? 20'000'000 : 500'000;
    measure(planning.choice(), keys, random.next(), most_probes);
    // And another one that would do.
    if (feasible > 1)
      measure(planning.candidates[1 + random.next() % (feasible - 1)], keys, random.next(),
              most_probes / 4);
  }
}

}  // namespace
}  // namespace sluice
