// What the tests of windows over cell slices on real servers share.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "tests/redis/sites.hpp"
#include "tests/support/window_slices.hpp"

namespace sluice::redis::testing_support {

using cluster::WindowSlices;
using sluice::testing_support::delivered;
using sluice::testing_support::held;
using sluice::testing_support::kWindows;
using sluice::testing_support::LocalWindow;
using sluice::testing_support::timed_keys;
using sluice::testing_support::TimedKeys;
using sluice::testing_support::window_of;
using sluice::testing_support::WindowCase;

// Event times are no server's: windows do not go by servers' clocks.
constexpr std::int64_t kThen = 1'700'000'000'000;
constexpr std::int64_t kMinuteMs = 60'000;

struct WindowProducer {
  WindowProducer(const Address& address, const WindowCase& kind, const SliceParams& params,
                 const WindowSlices::Options& options, const Settings& settings = patient(),
                 std::chrono::milliseconds lease = std::chrono::seconds(10))
      : client(std::make_shared<Client>(address, settings)),
        slices(kind.make(params, options,
                         cell_pages(client, SliceMap(params), kind.cell_bits(), lease))) {}

  Endpoint server(std::uint32_t site) const {
    const std::uint32_t sites = slices->map().sites();
    return *client->map().at(slot_of(tag_of(client->address().name, site, sites)));
  }
  // Sites on the same server as the first, as the map says.
  std::vector<std::uint32_t> beside_the_first() const {
    std::vector<std::uint32_t> found;
    for (std::uint32_t site = 0; site < slices->map().sites(); ++site)
      if (server(site) == server(0)) found.push_back(site);
    return found;
  }
  // Of its pages at a site: their numbers, or the time that one has.
  std::string page_key(std::uint32_t site, const WindowCase& kind, std::int64_t page) const {
    return "{" + tag_of(client->address().name, site, slices->map().sites()) +
           "}:page:1:" + std::to_string(kind.cell_bits()) + ":" + std::to_string(page);
  }
  Reply ask(const std::string& key, std::initializer_list<std::string_view> words) const {
    Commands commands;
    commands.add(words);
    std::vector<Reply> replies;
    EXPECT_EQ(client->receive(client->send(slot_of(key), std::move(commands)), replies),
              Outcome::answered)
        << client->problem();
    return replies[0];
  }

  std::shared_ptr<Client> client;
  std::unique_ptr<WindowSlices> slices;
};

inline WindowSlices::Options minute(model::FaultRule rule = {}, bool claims = false) {
  return {.window = window_of(kMinuteMs), .rule = rule, .claims = claims};
}

// Asks until all sites answer again.
inline void wait_until_answered(WindowProducer& producer, std::int64_t now) {
  const auto limit = std::chrono::steady_clock::now() + std::chrono::minutes(2);
  std::uint64_t before;
  do {
    ASSERT_LT(std::chrono::steady_clock::now(), limit) << producer.client->problem();
    before = producer.slices->traffic().unanswered;
    held(*producer.slices, keys(0, 100), now);
  } while (producer.slices->traffic().unanswered != before);
}

}  // namespace sluice::redis::testing_support
