#include "repro/koloniari/streams.hpp"

#include <cmath>
#include <unordered_map>

#include "sluice/base/random.hpp"
#include "sluice/lab/zipf.hpp"
#include "sluice/model/distinct_keys.hpp"

namespace sluice::repro::koloniari {
namespace {

constexpr double kRecords = 100'000;
constexpr std::uint64_t kSources = 4096;

// The universe from which `records` draws by Zipf's law give that many distinct keys.
std::uint64_t universe_for(std::uint64_t records, double distinct) {
  std::uint64_t low = static_cast<std::uint64_t>(distinct), high = low * 64 + 64;
  while (low < high) {
    const std::uint64_t middle = low + (high - low) / 2;
    if (model::power_law_distinct(middle, static_cast<double>(records)) < distinct)
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}

DataSet generated(const Context& context, std::string name, double distinct) {
  if (!context.input().empty()) return {"own input", all_events(context.input(), context.seed())};
  const std::uint64_t records = context.scaled(kRecords, 100);
  const ZipfSampler keys(universe_for(records, std::max(1.0, distinct * context.scale())), 1);
  const ZipfSampler sources(kSources, 1);
  SplitMix64 random(context.seed());
  const std::uint64_t names = random.next();
  DataSet data{std::move(name), std::vector<Event>(records)};
  for (Event& event : data.events) {
    SplitMix64 key(names ^ keys.draw(random) * 0x9E3779B97F4A7C15ULL);
    event.key = {key.next(), key.next()};
    event.source = SplitMix64(names + sources.draw(random)).next();
  }
  return data;
}

struct HashDigest {
  std::size_t operator()(const Digest& digest) const { return digest.lo; }
};

}  // namespace

DataSet web_log(const Context& context) {
  return generated(context, "web log", 16'850);
}

DataSet yahoo(const Context& context) {
  return generated(context, "Yahoo flows", 2'049);
}

DataSet synthetic(const Context& context) {
  return generated(context, "synthetic, Zipf", 5'700);
}

std::vector<CountedKey> count_keys(const std::vector<Event>& events) {
  std::vector<CountedKey> keys;
  std::unordered_map<Digest, std::size_t, HashDigest> index;
  for (const Event& event : events) {
    const auto [found, fresh] = index.emplace(event.key, keys.size());
    if (fresh) keys.push_back({event.key, 0});
    ++keys[found->second].count;
  }
  return keys;
}

Digest rehashed(const Digest& key, std::uint64_t draw) {
  SplitMix64 mix(key.lo ^ SplitMix64(key.hi + draw).next());
  return {mix.next(), mix.next()};
}

std::uint64_t bits_for(double keys, unsigned probes, double fpr) {
  const double density = std::pow(fpr, 1.0 / probes);
  return static_cast<std::uint64_t>(std::ceil(-keys * probes / std::log1p(-density)));
}

cluster::Slices local_slices(const cluster::Slices::Options& options,
                             std::vector<std::shared_ptr<cluster::LocalMemory>>* memories) {
  const cluster::SliceMap map(options.slices);
  const auto own = cluster::local_memories(map.sites(), map.site_bits());
  if (memories != nullptr) *memories = own;
  return cluster::Slices(options, cluster::connect(own));
}

}  // namespace sluice::repro::koloniari
