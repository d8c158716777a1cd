#include "sluice/plan/sites.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <string>

#include "sluice/base/error.hpp"
#include "sluice/model/bloom.hpp"

namespace sluice {
namespace {

using model::Slicing;
using Kind = RuleWish::Kind;

constexpr WindowSpec kTenMinutes = {WindowSpec::Kind::time, 600'000'000'000};

std::string refusal(const SitesRequest& request) {
  try {
    plan_sites(request);
  } catch (const BadParameters& error) {
    return error.what();
  }
  return "";
}

const SitesPlan::RuleErrors& of_rule(const SitesPlan& plan, Kind kind) {
  for (const auto& each : plan.rules)
    if (each.rule.kind == kind) return each;
  ADD_FAILURE() << "no such rule";
  return plan.rules.at(0);
}

// f(1 − p)/(P − p) and f(1 − ρ)/(P^{1/k} − ρ), rounded up.
TEST(PlanSites, NumberOfSlicesIsTheGuides) {
  for (const std::uint64_t f : {1u, 2u, 7u})
    for (const double limit : {0.02, 0.15}) {
      const auto sites = static_cast<double>(f);
      const double p = 1e-3;
      const SitesPlan horizontal = plan_sites({.tolerate = f, .fpr = limit, .filter = {.fpr = p}});
      EXPECT_EQ(horizontal.sites, std::ceil(sites * (1 - p) / (limit - p)));
      const SitesPlan vertical = plan_sites(
          {.slicing = Slicing::vertical, .tolerate = f, .fpr = limit, .filter = {.fpr = p}});
      const double k = vertical.probes, density = std::pow(p, 1 / k);
      EXPECT_EQ(k, 10);
      EXPECT_EQ(vertical.sites, std::max<double>(static_cast<double>(f) + 1,
                                                 std::ceil(sites * (1 - density) /
                                                           (std::pow(limit, 1 / k) - density))));
      for (const SitesPlan* plan : {&horizontal, &vertical}) {
        EXPECT_LE(of_rule(*plan, Kind::duplicate).fpr, limit);
        EXPECT_TRUE(of_rule(*plan, Kind::duplicate).chosen);
        EXPECT_EQ(of_rule(*plan, Kind::duplicate).fnr, 0);
      }
    }
}

TEST(PlanSites, FalseNegativesAreTheSymmetricCase) {
  const SitesPlan horizontal = plan_sites({.tolerate = 2, .fnr = 0.03});
  EXPECT_EQ(horizontal.sites, std::ceil(2 / 0.03));
  EXPECT_TRUE(of_rule(horizontal, Kind::distinct).chosen);
  EXPECT_LE(of_rule(horizontal, Kind::distinct).fnr, 0.03);
  // 1 − (1 − φ)^k
  const SitesPlan vertical = plan_sites({.slicing = Slicing::vertical, .tolerate = 2, .fnr = 0.03});
  EXPECT_EQ(vertical.probes, 20u);
  EXPECT_EQ(vertical.sites, std::ceil(2 / (1 - std::pow(0.97, 1 / 20.0))));
  // With the hybrid rule both errors count.
  const RuleWish hybrid{Kind::hybrid, 12};
  const SitesPlan both = plan_sites({.slicing = Slicing::vertical,
                                     .tolerate = 2,
                                     .fpr = 1e-3,
                                     .fnr = 1e-3,
                                     .rule = hybrid,
                                     .filter = {.fpr = 1e-6}});
  EXPECT_LT(both.sites, vertical.sites);
  EXPECT_LE(of_rule(both, Kind::hybrid).fpr, 1e-3);
  EXPECT_LE(of_rule(both, Kind::hybrid).fnr, 1e-3);
}

TEST(PlanSites, TellsWhatEveryRuleCosts) {
  const SitesPlan plan = plan_sites({.sites = 40, .failed = 8, .filter = {.fpr = 1e-3}});
  EXPECT_DOUBLE_EQ(of_rule(plan, Kind::duplicate).fpr, 0.2 + 0.8e-3);
  EXPECT_DOUBLE_EQ(of_rule(plan, Kind::distinct).fpr, 0.8e-3);
  EXPECT_DOUBLE_EQ(of_rule(plan, Kind::distinct).fnr, 0.2);
  EXPECT_EQ(plan.rules.size(), 2u);
  EXPECT_EQ(plan.messages, 1);
  // A Bloom filter of 8 probes: the guide's knee is at 3 or 4 of 8.
  const SitesPlan vertical = plan_sites(
      {.slicing = Slicing::vertical, .sites = 40, .failed = 8, .filter = {.fpr = 1.0 / 256}});
  EXPECT_EQ(vertical.probes, 8u);
  EXPECT_NEAR(vertical.density, 0.5, 1e-12);
  EXPECT_NEAR(vertical.messages, 7.33, 0.01);
  EXPECT_EQ(of_rule(vertical, Kind::hybrid).rule.least_live, 4u);
  EXPECT_NEAR(of_rule(vertical, Kind::hybrid).fnr, 0.0104, 1e-4);
  EXPECT_NEAR(of_rule(vertical, Kind::distinct).fnr, 1 - std::pow(0.8, 8), 1e-12);
  // Diced: by the rows, as in the model.
  const SitesPlan diced = plan_sites({.slicing = Slicing::horizontal_vertical,
                                      .sites = 40,
                                      .failed = 8,
                                      .inner = 8,
                                      .filter = {.fpr = 1.0 / 256}});
  EXPECT_GT(of_rule(diced, Kind::duplicate).fpr, of_rule(vertical, Kind::duplicate).fpr);
}

TEST(PlanSites, SizesWhatIsAtASite) {
  const SitesPlan window =
      plan_sites({.sites = 50, .filter = {.window = kTenMinutes, .rate = 10'000}});
  ASSERT_TRUE(window.slice);
  EXPECT_EQ(window.slice->filter, "cohort");
  EXPECT_EQ(window.slice->window, kTenMinutes);
  // 6 M keys in all, and room for chance.
  EXPECT_GE(*window.slice->keys, 120'000u);
  EXPECT_LE(*window.slice->keys, 122'000u);
  EXPECT_EQ(window.site_bytes, window.slice->bytes);
  const SitesPlan set = plan_sites({.sites = 50, .filter = {.expect = 6'000'000}});
  EXPECT_EQ(set.slice->filter, "bloom");
  EXPECT_GE(*set.slice->keys, 121'800u);
  EXPECT_LE(*set.slice->keys, 122'000u);
  const SitesPlan vertical =
      plan_sites({.slicing = Slicing::vertical, .sites = 50, .filter = {.expect = 6'000'000}});
  EXPECT_EQ(*vertical.bits, std::ceil(model::bloom_bits(20, 6e6, 1e-6) / 50));
  EXPECT_FALSE(plan_sites({.sites = 50}).slice);
}

TEST(PlanSites, KeysThatCannotBeMovedAreCut) {
  const SitesRequest request{.sites = 8, .filter = {.window = kTenMinutes, .rate = 10e6}};
  const SitesPlan plan = plan_sites(request);
  EXPECT_FALSE(plan.feasible());
  ASSERT_EQ(plan.nearest.size(), 1u);
  EXPECT_EQ(plan.nearest[0].field, "sites");
  SitesRequest enough = request;
  enough.sites = std::stoull(plan.nearest[0].value);
  EXPECT_TRUE(plan_sites(enough).feasible());
  EXPECT_LE(plan_sites(enough).site_bytes, kMostSiteBytes);
  // A few per cent fewer are not enough.
  enough.sites = *enough.sites * 95 / 100;
  EXPECT_FALSE(plan_sites(enough).feasible());
  // The errors alone would be kept by ten.
  const SitesPlan tolerant =
      plan_sites({.tolerate = 1, .fpr = 0.1, .filter = {.window = kTenMinutes, .rate = 10e6}});
  EXPECT_LT(tolerant.needed, 11);
  EXPECT_EQ(std::to_string(tolerant.sites), plan.nearest[0].value);
  const SitesPlan small = plan_sites({.slicing = Slicing::vertical,
                                      .tolerate = 1,
                                      .fpr = 0.1,
                                      .filter = {.expect = 10'000'000, .memory = 1 << 20}});
  EXPECT_LE(small.site_bytes, 1u << 20);
  EXPECT_GT(small.site_bytes, (1u << 20) * 9 / 10);
}

TEST(PlanSites, TheNearestRequestsCanBeMet) {
  const SitesRequest request{.tolerate = 3, .fpr = 1e-5};
  const SitesPlan plan = plan_sites(request);
  EXPECT_FALSE(plan.feasible());
  ASSERT_EQ(plan.nearest.size(), 2u) << plan.why_not;
  EXPECT_EQ(plan.nearest[0].field, "fpr");
  SitesRequest other = request;
  other.fpr = std::stod(plan.nearest[0].value);
  EXPECT_TRUE(plan_sites(other).feasible()) << plan_sites(other).why_not;
  EXPECT_EQ(plan.nearest[1].field, "slicing");
  other = request;
  other.slicing = Slicing::vertical;
  EXPECT_TRUE(plan_sites(other).feasible());
  EXPECT_EQ(plan.nearest[1].also, "(`sites` " + std::to_string(plan_sites(other).sites) + ")");
  const SitesPlan many = plan_sites({.tolerate = 3000, .fpr = 0.03});
  ASSERT_EQ(many.nearest.size(), 3u);
  EXPECT_EQ(many.nearest[1].field, "tolerate");
  other = {.tolerate = std::stoull(many.nearest[1].value), .fpr = 0.03};
  EXPECT_TRUE(plan_sites(other).feasible());
  ++*other.tolerate;
  EXPECT_FALSE(plan_sites(other).feasible());
}

TEST(PlanSites, NonsenseIsRefused) {
  const auto names = [](const SitesRequest& request, std::string_view part) {
    const std::string sentence = refusal(request);
    EXPECT_NE(sentence.find(part), std::string::npos) << sentence;
  };
  const double nan = std::nan("");
  names({}, "give `sites`, or how many failures to `tolerate`");
  names({.sites = 3, .tolerate = 1, .fpr = 0.1}, "give `sites`, or");
  names({.sites = 0}, "`sites` 0");
  names({.sites = 65'537}, "`sites` 65537");
  names({.sites = 3, .failed = 4}, "`failed` 4 is more than the 3 sites");
  names({.sites = 3, .fnr = 0.1}, "`fnr` needs `tolerate`");
  names({.tolerate = 1}, "`tolerate` finds");
  names({.tolerate = 0, .fpr = 0.1}, "`tolerate` 0");
  names({.tolerate = ~0ull, .fpr = 0.1}, "`tolerate` 1844");
  names({.tolerate = 1, .fpr = nan}, "`fpr` must lie");
  names({.tolerate = 1, .fnr = 1.0}, "`fnr` must lie");
  names({.tolerate = 1, .fpr = 1e-3, .filter = {.fpr = 1e-3}}, "`alive_fpr` 0.001");
  names({.tolerate = 1, .fpr = 0.1, .filter = {.fpr = 0.0}}, "`alive_fpr` must lie");
  names({.slicing = Slicing::vertical_horizontal, .tolerate = 1, .fpr = 0.1}, "diced");
  names({.sites = 6, .inner = 2}, "`inner` needs a diced");
  names({.slicing = Slicing::vertical_horizontal, .sites = 6, .inner = 4}, "does not divide");
  names({.slicing = Slicing::vertical_horizontal, .sites = 6, .inner = 0}, "does not divide");
  names({.sites = 6, .rule = RuleWish{Kind::hybrid, 1}}, "no hybrid");
  names({.slicing = Slicing::vertical, .sites = 6, .rule = RuleWish{Kind::hybrid, 21}}, "1 to 20");
  names({.slicing = Slicing::vertical, .sites = 6, .rule = RuleWish{Kind::hybrid, 0}}, "1 to 20");
  names({.sites = 6, .filter = {.window = WindowSpec{WindowSpec::Kind::count, 1000}}},
        "its own part of the stream");
  names({.slicing = Slicing::vertical, .sites = 6, .filter = {.window = kTenMinutes}},
        "horizontal slices");
  names({.slicing = Slicing::vertical, .sites = 6, .filter = {.rate = 5}}, "`expect`");
  names({.sites = 6, .filter = {.memory = kMostSiteBytes + 1}}, "cannot be moved");
  names({.sites = 6, .filter = {.rate = 5}}, "`rate` needs a window");
  names({.sites = 6, .filter = {.expect = 0}}, "`expect` 0");
  // One site counts the whole stream.
  EXPECT_EQ(refusal({.sites = 1, .filter = {.window = WindowSpec{WindowSpec::Kind::count, 1000}}}),
            "");
}

TEST(PlanSites, ExtremesAreFinite) {
  for (const Slicing slicing : {Slicing::horizontal, Slicing::vertical})
    for (const double fpr : {1e-300, 1e-12, 0.999999})
      for (const std::uint64_t expect :
           {std::uint64_t{1}, std::uint64_t{1} << 40, ~std::uint64_t{0}}) {
        const SitesPlan plan = plan_sites({.slicing = slicing,
                                           .sites = 65'536,
                                           .failed = 65'536,
                                           .filter = {.expect = expect, .fpr = fpr}});
        for (const auto& each : plan.rules)
          EXPECT_TRUE(each.fpr >= 0 && each.fpr <= 1 && each.fnr >= 0 && each.fnr <= 1)
              << fpr << " " << expect << " " << each.rule.text();
      }
}

}  // namespace
}  // namespace sluice
