#include "sluice/cluster/patient_site.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "sluice/cluster/filter_slices.hpp"
#include "sluice/cluster/local_filter.hpp"
#include "sluice/filters/catalogue.hpp"
#include "tests/support/digests.hpp"

namespace sluice::cluster {
namespace {

using testing_support::digest_of;

std::vector<Digest> keys(std::uint64_t first, std::size_t count) {
  std::vector<Digest> digests;
  for (std::size_t i = 0; i < count; ++i) digests.push_back(digest_of(first + i));
  return digests;
}

// Three exact filters, and a producer that asks `again` as often as it says.
struct Patient {
  Patient() {
    for (int i = 0; i < 3; ++i)
      filters.push_back(std::make_shared<LocalFilter>(make_filter("exact", {})));
    std::vector<std::unique_ptr<FilterSite>> sites;
    for (auto& site : connect(filters))
      sites.push_back(std::make_unique<PatientSite>(std::move(site), patience));
    slices.emplace(FilterSlices::Options{.rule = model::FaultRule::distinct(1)}, std::move(sites));
  }
  std::size_t observe(const std::vector<Digest>& digests) {
    std::vector<Verdict> verdicts(digests.size());
    slices->observe(digests, {}, verdicts);
    return count_duplicates(verdicts);
  }
  std::size_t at(std::size_t site, const std::vector<Digest>& digests) const {
    return static_cast<std::size_t>(std::ranges::count_if(
        digests, [&](const Digest& digest) { return site_of(digest, 3) == site; }));
  }

  std::vector<std::shared_ptr<LocalFilter>> filters;
  Patience patience;
  std::optional<FilterSlices> slices;
};

TEST(PatientSite, WaitsUntilTheSiteAnswers) {
  Patient producer;
  unsigned asked = 0;
  producer.patience.again = [&](std::string_view) {
    if (++asked == 5) producer.filters[1]->come_back();
    return true;
  };
  const auto seen = keys(0, 300), fresh = keys(1000, 300);
  EXPECT_EQ(producer.observe(seen), 0u);
  EXPECT_EQ(asked, 0u);
  producer.filters[1]->fail();
  EXPECT_EQ(producer.observe(seen), 300u);
  EXPECT_EQ(asked, 5u);
  EXPECT_EQ(producer.observe(fresh), 0u);
  EXPECT_EQ(producer.slices->ruled(), 0u);
  EXPECT_EQ(producer.slices->traffic().unanswered, 0u);
  EXPECT_EQ(producer.patience.unsure, 0u);
  EXPECT_TRUE(producer.slices->trusted(1));
}

// The request was carried out, and its answer came too late: nothing is lost, and what comes twice
// in it is still a repeat.
TEST(PatientSite, AKeyIsNoDuplicateOfItself) {
  Patient producer;
  producer.patience.again = [&](std::string_view) {
    producer.filters[2]->be_late(false);
    return true;
  };
  auto fresh = keys(0, 300);
  const auto twice = keys(0, 300);
  fresh.insert(fresh.end(), twice.begin(), twice.end());
  producer.filters[2]->be_late(true);
  EXPECT_EQ(producer.observe(fresh), 300u);
  EXPECT_EQ(producer.patience.unsure, producer.at(2, twice));
  EXPECT_GT(producer.patience.unsure, 50u);
  // Known from now on.
  EXPECT_EQ(producer.observe(twice), 300u);
  EXPECT_TRUE(producer.slices->trusted(2));
  // Repeats that were asked for in a late request are let through: nobody can tell.
  producer.filters[2]->be_late(true);
  EXPECT_EQ(producer.observe(twice), 300u - producer.at(2, twice));
}

TEST(PatientSite, AskingTwiceIsHarmless) {
  Patient producer;
  producer.patience.again = [&](std::string_view) {
    producer.filters[0]->be_late(false);
    return true;
  };
  const auto seen = keys(0, 300);
  EXPECT_EQ(producer.observe(seen), 0u);
  producer.filters[0]->be_late(true);
  std::vector<Verdict> verdicts(300);
  producer.slices->may_contain(seen, {}, verdicts);
  EXPECT_EQ(count_duplicates(verdicts), 300u);
  EXPECT_EQ(producer.patience.unsure, 0u);
}

// Then the rule judges: here everything is let through.
TEST(PatientSite, WhoGivesUpHasNoVerdict) {
  Patient producer;
  unsigned asked = 0;
  producer.patience.again = [&](std::string_view) { return ++asked < 3; };
  const auto seen = keys(0, 300);
  EXPECT_EQ(producer.observe(seen), 0u);
  producer.filters[1]->fail();
  EXPECT_EQ(producer.observe(seen), 300u - producer.at(1, seen));
  EXPECT_EQ(asked, 3u);
  EXPECT_EQ(producer.slices->ruled(), producer.at(1, seen));
  EXPECT_EQ(producer.slices->traffic().unanswered, 1u);
}

// A site without memory for some keys: only those are asked for again.
class FullSite final : public FilterSite {
 public:
  explicit FullSite(std::vector<std::size_t>& requests) : requests_(requests) {}
  void send(const Request& request) override {
    requests_.push_back(request.digests.size());
    keys_.assign(request.digests.begin(), request.digests.end());
    times_.assign(request.times_ms.begin(), request.times_ms.end());
  }
  Reply receive(std::span<Answer> answers) override {
    for (std::size_t i = 0; i < keys_.size(); ++i) {
      // Each key has its own time, which stays with it.
      EXPECT_EQ(times_[i], static_cast<std::int64_t>(keys_[i].lo));
      answers[i] = keys_[i].lo % requests_.size() == 0 ? Answer::distinct : Answer::none;
    }
    return {Outcome::answered, 1};
  }

 private:
  std::vector<std::size_t>& requests_;
  std::vector<Digest> keys_;
  std::vector<std::int64_t> times_;
};

TEST(PatientSite, AsksAgainForKeysWithoutAnAnswer) {
  std::vector<std::size_t> requests = {0};
  Patience patience{.again = [](std::string_view) { return true; }};
  PatientSite site(std::make_unique<FullSite>(requests), patience);
  // The second request takes multiples of 2, the third of 3, the fourth those of 4.
  const std::vector<Digest> digests = {{2, 0}, {3, 0}, {4, 0}, {6, 0}, {9, 0}, {25, 0}};
  const std::vector<std::int64_t> times = {2, 3, 4, 6, 9, 25};
  std::vector<Answer> answers(6);
  EXPECT_TRUE(site.ask({.digests = digests, .times_ms = times}, answers).answered());
  EXPECT_EQ(answers, std::vector(6, Answer::distinct));
  EXPECT_EQ(requests, (std::vector<std::size_t>{0, 6, 3, 1, 1}));
}

}  // namespace
}  // namespace sluice::cluster
