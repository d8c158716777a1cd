#include "repro/dautrich/streams.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <unordered_map>

#include "repro/input.hpp"
#include "sluice/base/bits.hpp"
#include "sluice/base/error.hpp"
#include "sluice/base/random.hpp"
#include "sluice/lab/zipf.hpp"

namespace sluice::repro::dautrich {
namespace {

void number_digests(Stream& stream, std::size_t keys, SplitMix64& random) {
  stream.digests.resize(keys);
  for (Digest& digest : stream.digests) digest = {random.next(), random.next()};
}

// How many are distinct among j items, a few of these counted at once.
std::vector<double> count_distinct(std::span<const std::uint32_t> items,
                                   std::span<const double> at) {
  std::vector<std::uint32_t> seen(items.begin(), items.end());
  std::vector<double> counts;
  for (const double j : at) {
    const auto end = seen.begin() + static_cast<std::ptrdiff_t>(j);
    std::vector<std::uint32_t> some(seen.begin(), end);
    std::ranges::sort(some);
    counts.push_back(static_cast<double>(std::unique(some.begin(), some.end()) - some.begin()));
  }
  return counts;
}

// §5.3.2: p_x by counting, D(j) by eight samples of up to 2^18 items.
void learn_from_itself(Stream& stream) {
  stream.chances.assign(stream.digests.size(), 0);
  for (const std::uint32_t item : stream.items) stream.chances[item] += 1;
  // One key all the time is no chance below 1.
  for (double& chance : stream.chances)
    chance = std::min(chance / static_cast<double>(stream.items.size()), 1 - 1e-9);

  constexpr std::size_t kSamples = 8;
  const std::size_t longest = std::min<std::size_t>(stream.items.size(), 1u << 18);
  std::vector<double> at;
  for (double j = 10; j <= 1e5 && j < static_cast<double>(longest); j *= 10) at.push_back(j);
  at.push_back(static_cast<double>(longest));
  std::vector<double> sums(at.size());
  for (std::size_t i = 0; i < kSamples; ++i) {
    const std::size_t from = (stream.items.size() - longest) * i / (kSamples - 1);
    const auto counts = count_distinct(std::span(stream.items).subspan(from, longest), at);
    for (std::size_t each = 0; each < at.size(); ++each) sums[each] += counts[each] / kSamples;
  }
  std::vector<model::DistinctKeys::Point> points;
  for (std::size_t i = 0; i < at.size(); ++i) points.push_back({at[i], sums[i]});
  stream.distinct = model::DistinctKeys::measured(points);
}

}  // namespace

Length length_of(const Context& context, std::uint64_t greatest_window) {
  if (context.whole("n") == 0) throw BadParameters("--set n: give 1 query or more");
  return {.warm = std::max(context.scaled(context.whole("warm")), greatest_window * 5 / 4),
          .asked = context.scaled(context.whole("n"), 1024)};
}

Stream uniform_stream(std::uint64_t keys, const Length& length, std::uint64_t seed) {
  SplitMix64 random(seed);
  Stream stream;
  stream.warm = length.warm;
  number_digests(stream, keys, random);
  stream.chances.assign(keys, 1 / static_cast<double>(keys));
  stream.distinct = model::DistinctKeys::uniform(static_cast<double>(keys));
  stream.items.resize(length.warm + length.asked);
  for (std::uint32_t& item : stream.items)
    item = static_cast<std::uint32_t>(scale_to(random.next(), keys));
  return stream;
}

Stream power_stream(std::uint64_t keys, const Length& length, std::uint64_t seed) {
  SplitMix64 random(seed);
  Stream stream;
  stream.warm = length.warm;
  number_digests(stream, keys, random);
  stream.distinct = model::DistinctKeys::power_law(keys);
  const double total = model::harmonic(static_cast<double>(keys));
  std::vector<double> until;
  for (std::uint64_t x = 1; x <= keys; ++x) {
    stream.chances.push_back(1 / (static_cast<double>(x) * total));
    until.push_back((until.empty() ? 0 : until.back()) + stream.chances.back());
  }
  stream.items.resize(length.warm + length.asked);
  for (std::uint32_t& item : stream.items) {
    const auto at = std::ranges::lower_bound(until, random.next_unit()) - until.begin();
    item = static_cast<std::uint32_t>(std::min<std::ptrdiff_t>(at, std::ssize(until) - 1));
  }
  return stream;
}

Stream packet_stream(const Senders& senders, const Length& length, std::uint64_t seed) {
  if (senders.active == 0 || !(senders.packets >= 1) || senders.addresses == 0 ||
      senders.addresses > (std::uint64_t{1} << 32) ||
      !(senders.skew >= 0 && senders.skew <= ZipfSampler::kSkewMost) ||
      !(senders.pace >= 0 && senders.pace <= ZipfSampler::kSkewMost))
    throw BadParameters(
        "--set: a stream of packets takes 1 or more active senders, 1 or more packets of each, 1 "
        "to 2^32 addresses, and a skew and a pace of 0 to 4");
  SplitMix64 random(seed);
  Stream stream;
  stream.warm = length.warm;
  const ZipfSampler ranks(senders.addresses, senders.skew), places(senders.active, senders.pace);
  std::unordered_map<std::uint64_t, std::uint32_t> numbers;
  const auto draw = [&] {
    const std::uint64_t address = ranks.draw(random);
    return numbers.try_emplace(address, static_cast<std::uint32_t>(numbers.size())).first->second;
  };
  std::vector<std::uint32_t> active(senders.active);
  for (std::uint32_t& sender : active) sender = draw();
  stream.items.resize(length.warm + length.asked);
  for (std::uint32_t& item : stream.items) {
    std::uint32_t& sender = active[places.draw(random) - 1];
    item = sender;
    if (random.next_unit() * senders.packets < 1) sender = draw();
  }
  number_digests(stream, numbers.size(), random);
  learn_from_itself(stream);
  return stream;
}

Stream stream_of_file(const std::string& path, const Length& length, std::uint64_t seed) {
  struct ByLow {
    std::size_t operator()(const Digest& digest) const { return digest.lo; }
  };
  Stream stream;
  std::unordered_map<Digest, std::uint32_t, ByLow> numbers;
  const std::uint64_t most = length.warm + length.asked;
  // Of a longer file the beginning: what the paper's experiment takes.
  read_events(path, seed, [&](std::span<const Event> events) {
    for (const Event& event : events) {
      if (stream.items.size() == most) return;
      const auto [at, fresh] =
          numbers.try_emplace(event.key, static_cast<std::uint32_t>(numbers.size()));
      if (fresh) stream.digests.push_back(event.key);
      stream.items.push_back(at->second);
    }
  });
  if (stream.items.size() < 16)
    throw BadParameters(fmt::format("--input '{}' has {} events: 16 are the fewest to learn from",
                                    path, stream.items.size()));
  stream.warm = std::min<std::uint64_t>(length.warm, stream.items.size() / 5);
  learn_from_itself(stream);
  return stream;
}

Truth truth_of(const Stream& stream, std::uint64_t window) {
  Truth truth;
  truth.in_window.reserve(stream.asked());
  for (const double chance : stream.chances)
    truth.chances.push_back(-std::expm1(static_cast<double>(window) * std::log1p(-chance)));
  std::vector<std::uint64_t> last(stream.digests.size());  // its number, from 1; 0: never
  for (std::uint64_t now = 1; now <= stream.items.size(); ++now) {
    std::uint64_t& before = last[stream.items[now - 1]];
    if (now > stream.warm) {
      const bool inside = before != 0 && now - before <= window;
      truth.in_window.push_back(inside);
      truth.positives += inside;
    }
    before = now;
  }
  return truth;
}

}  // namespace sluice::repro::dautrich
