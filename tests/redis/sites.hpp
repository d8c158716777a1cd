// What the tests of sites on real servers share. test_sites.py starts the servers and the tests,
// and does to the servers what tests ask for.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include "connectors/redis/cell_site.hpp"
#include "sluice/cluster/local_site.hpp"
#include "sluice/cluster/slices.hpp"
#include "tests/support/digests.hpp"

namespace sluice::redis::testing_support {

using cluster::LocalMemory;
using cluster::Site;
using cluster::SliceMap;
using cluster::SliceParams;
using cluster::Slices;
using cluster::Slicing;
using sluice::testing_support::digest_of;

// Asks test_sites.py to do something, and returns its answer when it is done.
inline std::string outside(const std::string& what) {
  std::cout << "\n@ " << what << std::endl;
  std::string answer;
  if (!std::getline(std::cin, answer)) ADD_FAILURE() << "nobody answers: " << what;
  return answer;
}

// The servers' address, with a name that no other test has.
inline Address servers() {
  static int number = 0;
  const char* url = std::getenv("SLUICE_SITES");
  if (url == nullptr) throw std::runtime_error("run by test_sites.py, which sets SLUICE_SITES");
  const auto* test = testing::UnitTest::GetInstance()->current_test_info();
  return parse_address(std::string(url) + "/" + test->name() + "-" + std::to_string(++number));
}

// Long enough for a busy machine: nothing is to be late in a test that is not about lateness.
inline Settings patient() {
  return {.timeout = std::chrono::seconds(60)};
}

struct Producer {
  Producer(const Address& address, const Slices::Options& options,
           const Settings& settings = patient())
      : client(std::make_shared<Client>(address, settings)),
        slices(options, cell_sites(client, SliceMap(options.slices))) {}

  std::shared_ptr<Client> client;
  Slices slices;
};

// The same within this process.
struct LocalProducer {
  explicit LocalProducer(const Slices::Options& options)
      : memories(cluster::local_memories(SliceMap(options.slices).sites(),
                                         SliceMap(options.slices).site_bits())),
        slices(options, cluster::connect(memories)) {}

  std::vector<std::shared_ptr<LocalMemory>> memories;
  Slices slices;
};

inline std::vector<Digest> keys(std::uint64_t first, std::size_t count) {
  std::vector<Digest> digests;
  for (std::size_t i = 0; i < count; ++i) digests.push_back(digest_of(first + i));
  return digests;
}

inline std::vector<Verdict> observe(Slices& slices, std::span<const Digest> digests,
                                    std::size_t batch = 512) {
  std::vector<Verdict> verdicts(digests.size());
  for (std::size_t at = 0; at < digests.size(); at += batch) {
    const std::size_t count = std::min(batch, digests.size() - at);
    slices.observe(digests.subspan(at, count), std::span(verdicts).subspan(at, count));
  }
  return verdicts;
}

inline double duplicate_share(Slices& slices, std::span<const Digest> digests) {
  std::vector<Verdict> verdicts(digests.size());
  slices.may_contain(digests, verdicts);
  return static_cast<double>(std::ranges::count(verdicts, Verdict::duplicate)) /
         static_cast<double>(digests.size());
}

// The server of a site, as the client knows it.
inline Endpoint server_of(const Producer& producer, std::uint32_t site, std::uint32_t sites) {
  const std::string tag = tag_of(producer.client->address().name, site, sites);
  return *producer.client->map().at(slot_of(tag));
}

}  // namespace sluice::redis::testing_support
