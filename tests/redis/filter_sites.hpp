// What the tests of filter slices on real servers share.
#pragma once

#include <algorithm>
#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "connectors/redis/filter_site.hpp"
#include "tests/redis/sites.hpp"
#include "tests/support/filter_slices.hpp"

namespace sluice::redis::testing_support {

using cluster::FilterSlices;

// Event times are of the past: a server takes none that are a window ahead of its clock.
constexpr std::int64_t kStart = 1'700'000'000'000;
constexpr std::int64_t kWindowMs = 60'000;
constexpr std::int64_t kForgottenMs = 63'000;  // with the slack of a 24th, and a bit
constexpr WindowSpec kMinute = {WindowSpec::Kind::time, kWindowMs * 1'000'000};
const std::vector<std::string> kExactMinute = {"WINDOW", "60s", "FILTER", "exact-window"};

inline FilterSlices::Options minute(model::FaultRule rule = {}) {
  return {.window = kMinute, .slack = 0.05, .rule = rule};
}

struct FilterProducer {
  FilterProducer(const Address& address, std::uint32_t sites, const FilterSlices::Options& options,
                 const std::vector<std::string>& reserve = kExactMinute)
      : client(std::make_shared<Client>(address, patient())),
        slices(options, module_sites(client, sites, reserve)) {}

  // The server of a site, as the client knows it.
  Endpoint server(std::uint32_t site) const {
    const auto sites = static_cast<std::uint32_t>(slices.sites());
    return *client->map().at(slot_of(tag_of(client->address().name, site, sites)));
  }
  // Whether the key is at a site on the same server as site 0, as the map says.
  bool beside_the_first(const Digest& digest) const {
    return server(cluster::site_of(digest, static_cast<std::uint32_t>(slices.sites()))) ==
           server(0);
  }
  std::size_t count_beside_the_first(std::span<const Digest> digests) const {
    return static_cast<std::size_t>(std::ranges::count_if(
        digests, [&](const Digest& digest) { return beside_the_first(digest); }));
  }

  std::shared_ptr<Client> client;
  FilterSlices slices;
};

// How many are duplicates; all at one time.
inline std::size_t asked(FilterProducer& producer, std::span<const Digest> digests,
                         std::int64_t at_ms) {
  std::vector<Verdict> verdicts(digests.size());
  producer.slices.may_contain(digests, std::vector(digests.size(), at_ms), verdicts);
  return count_duplicates(verdicts);
}
inline std::size_t observed(FilterProducer& producer, std::span<const Digest> digests,
                            std::int64_t at_ms) {
  std::vector<Verdict> verdicts(digests.size());
  producer.slices.observe(digests, std::vector(digests.size(), at_ms), verdicts);
  return count_duplicates(verdicts);
}

// Asks until all sites answer again.
inline void wait_until_answered(FilterProducer& producer) {
  const auto limit = std::chrono::steady_clock::now() + std::chrono::minutes(2);
  std::uint64_t before;
  do {
    ASSERT_LT(std::chrono::steady_clock::now(), limit) << producer.client->problem();
    before = producer.slices.traffic().unanswered;
    asked(producer, keys(0, 100), kStart);
  } while (producer.slices.traffic().unanswered != before);
}

}  // namespace sluice::redis::testing_support
