// What stands in for the paper's data: the web log of a department, a flow log of Yahoo, and
// synthetic streams, generated with the statistics that §7 states. A user's own file (--input)
// stands in for each of them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "repro/experiment.hpp"
#include "repro/input.hpp"
#include "sluice/cluster/local_site.hpp"
#include "sluice/cluster/slices.hpp"

namespace sluice::repro::koloniari {

struct DataSet {
  std::string name;
  std::vector<Event> events;
};

// Keys by Zipf's law with exponent 1 over a universe from which 100,000 draws give as many distinct
// ones as stated; sources by the same law, apart from the keys.
DataSet web_log(const Context& context);    // 16,850 distinct: see the notes in paper.cpp
DataSet yahoo(const Context& context);      // 2049
DataSet synthetic(const Context& context);  // 5700

// In the order of their first arrival.
struct CountedKey {
  Digest key;
  std::uint64_t count;
};
std::vector<CountedKey> count_keys(const std::vector<Event>& events);

// The keys under another hash function.
Digest rehashed(const Digest& key, std::uint64_t draw);

// m at which n keys err as often as P with k probes: eq. 2 solved for m.
std::uint64_t bits_for(double keys, unsigned probes, double fpr);

// On in-process sites of its own.
cluster::Slices local_slices(
    const cluster::Slices::Options& options,
    std::vector<std::shared_ptr<cluster::LocalMemory>>* memories = nullptr);

}  // namespace sluice::repro::koloniari
