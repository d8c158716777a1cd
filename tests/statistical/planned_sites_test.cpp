// Sites planned by plan_sites, made in this process, with as many of them failed as the plan
// tolerates: the errors are those of the plan, and within the limits that were asked for.
//
// Each case makes its filter kDraws times, fills it with the planned keys, fails sites drawn at
// random, and asks for every key that it holds and for as many new ones. The standard error is taken
// between the draws: it holds the chance of which sites failed. All seeds are fixed.
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <numeric>
#include <ostream>
#include <vector>

#include "sluice/base/random.hpp"
#include "sluice/cluster/filter_slices.hpp"
#include "sluice/cluster/local_filter.hpp"
#include "sluice/cluster/local_site.hpp"
#include "sluice/cluster/slices.hpp"
#include "sluice/plan/sites.hpp"
#include "tests/support/counts.hpp"
#include "tests/support/mean.hpp"

namespace sluice {
namespace {

using cluster::FilterSlices;
using cluster::LocalFilter;
using cluster::LocalMemory;
using cluster::Slices;
using model::Slicing;

constexpr double kTolerance = 4;  // standard errors
constexpr std::uint64_t kKeys = 20'000;
constexpr std::int64_t kNow = 1'700'000'000'000;

struct Case {
  const char* name;
  SitesRequest request;
  friend std::ostream& operator<<(std::ostream& out, const Case& c) { return out << c.name; }
};

std::vector<std::size_t> drawn(std::size_t sites, std::uint64_t failed, SplitMix64& random) {
  std::vector<std::size_t> order(sites);
  std::iota(order.begin(), order.end(), 0);
  for (std::size_t i = 0; i < failed; ++i)
    std::swap(order[i], order[i + random.next() % (order.size() - i)]);
  order.resize(failed);
  return order;
}

// A planned filter over sites of this process.
class Planned {
 public:
  Planned(const SitesPlan& plan, const RuleWish& rule) : plan_(plan) {
    const model::FaultRule fault_rule = rule.rule(plan.probes);
    if (plan.slice) {
      for (std::uint64_t i = 0; i < plan.sites; ++i)
        filters_.push_back(std::make_shared<LocalFilter>(plan.slice->make()));
      filter_slices_ = std::make_unique<FilterSlices>(
          FilterSlices::Options{.window = plan.slice->window, .rule = fault_rule},
          cluster::connect(filters_));
    } else {
      memories_ = cluster::local_memories(plan.sites, *plan.bits);
      slices_ = std::make_unique<Slices>(
          Slices::Options{.slices = {plan.request.slicing, *plan.bits * plan.sites, plan.probes,
                                     static_cast<unsigned>(plan.sites), 1, 1},
                          .rule = fault_rule},
          cluster::connect(memories_));
    }
  }

  void insert(const std::vector<Digest>& keys) {
    if (slices_)
      slices_->insert(keys);
    else
      filter_slices_->insert(keys, times(keys.size()));
  }
  void fail(std::size_t site) {
    if (slices_)
      memories_[site]->fail();
    else
      filters_[site]->fail();
  }
  double share(const std::vector<Digest>& keys, Verdict verdict) {
    std::vector<Verdict> verdicts(keys.size());
    if (slices_)
      slices_->may_contain(keys, verdicts);
    else
      filter_slices_->may_contain(keys, times(keys.size()), verdicts);
    return static_cast<double>(std::ranges::count(verdicts, verdict)) /
           static_cast<double>(keys.size());
  }

 private:
  std::vector<std::int64_t> times(std::size_t count) const {
    return std::vector<std::int64_t>(plan_.slice->window ? count : 0, kNow);
  }

  const SitesPlan& plan_;
  std::vector<std::shared_ptr<LocalFilter>> filters_;
  std::vector<std::shared_ptr<LocalMemory>> memories_;
  std::unique_ptr<FilterSlices> filter_slices_;
  std::unique_ptr<Slices> slices_;
};

class PlannedSitesError : public testing::TestWithParam<Case> {};

TEST_P(PlannedSitesError, IsThePlans) {
  const SitesRequest& request = GetParam().request;
  const SitesPlan plan = plan_sites(request);
  ASSERT_TRUE(plan.feasible()) << plan.why_not;
  const auto chosen = std::ranges::find(plan.rules, true, &SitesPlan::RuleErrors::chosen);
  ASSERT_NE(chosen, plan.rules.end());
  std::vector<double> lost, passed;
  const auto draws = testing_support::count_of<std::size_t>(12, 100);
  for (std::size_t draw = 0; draw < draws; ++draw) {
    SplitMix64 random(500 + draw);
    Planned filter(plan, chosen->rule);
    std::vector<Digest> held(kKeys), others(kKeys);
    for (Digest& digest : held) digest = {random.next(), random.next()};
    for (Digest& digest : others) digest = {random.next(), random.next()};
    filter.insert(held);
    for (const std::size_t site : drawn(plan.sites, plan.failed, random)) filter.fail(site);
    lost.push_back(filter.share(others, Verdict::duplicate));
    passed.push_back(filter.share(held, Verdict::distinct));
  }
  const testing_support::Measured fpr = testing_support::mean_of(lost);
  const testing_support::Measured fnr = testing_support::mean_of(passed);
  // Three events in all draws: what a mean without a single error may be off by.
  const double floor = 3.0 / static_cast<double>(kKeys * draws);
  const double fpr_room = kTolerance * fpr.standard_error + floor;
  const double fnr_room = kTolerance * fnr.standard_error + floor;
  EXPECT_NEAR(fpr.mean, chosen->fpr, fpr_room);
  EXPECT_NEAR(fnr.mean, chosen->fnr, fnr_room);
  if (request.fpr) {
    EXPECT_LE(fpr.mean, *request.fpr + fpr_room);
  }
  if (request.fnr) {
    EXPECT_LE(fnr.mean, *request.fnr + fnr_room);
  }
}

constexpr WindowSpec kMinute = {WindowSpec::Kind::time, 60'000'000'000};
constexpr RuleWish kDistinct = {RuleWish::Kind::distinct};
const PlanRequest kSet = {.expect = kKeys};
const PlanRequest kWindow = {.window = kMinute, .expect = kKeys};

INSTANTIATE_TEST_SUITE_P(
    Sites, PlannedSitesError,
    testing::Values(
        Case{"horizontal", {.tolerate = 2, .fpr = 0.05, .filter = kSet}},
        Case{"horizontal, distinct", {.tolerate = 3, .fnr = 0.1, .filter = kSet}},
        Case{"a window of time", {.tolerate = 2, .fpr = 0.05, .filter = kWindow}},
        Case{"a window of time, distinct", {.tolerate = 1, .fnr = 0.02, .filter = kWindow}},
        Case{"vertical",
             {.slicing = Slicing::vertical, .tolerate = 3, .fpr = 0.02, .filter = kSet}},
        Case{"vertical, distinct",
             {.slicing = Slicing::vertical, .tolerate = 1, .fnr = 0.1, .filter = kSet}},
        Case{"vertical, hybrid",
             {.slicing = Slicing::vertical,
              .tolerate = 3,
              .fpr = 0.02,
              .fnr = 0.02,
              .rule = RuleWish{RuleWish::Kind::hybrid, 10},
              .filter = kSet}},
        Case{"40 sites, 8 failed, horizontal", {.sites = 40, .failed = 8, .filter = kSet}},
        Case{"40 sites, 8 failed, horizontal, distinct",
             {.sites = 40, .failed = 8, .rule = kDistinct, .filter = kSet}},
        Case{"40 sites, 8 failed, vertical",
             {.slicing = Slicing::vertical, .sites = 40, .failed = 8, .filter = kSet}}));

}  // namespace
}  // namespace sluice
