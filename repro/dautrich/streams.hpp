// Streams of items to query and insert, with what is known of each beforehand.
#pragma once

#include <cstdint>
#include <vector>

#include "repro/experiment.hpp"
#include "sluice/hash/digest.hpp"
#include "sluice/model/distinct_keys.hpp"

namespace sluice::repro::dautrich {

struct Stream {
  std::vector<std::uint32_t> items;  // numbers of keys, in the order of arrival
  std::vector<Digest> digests;       // of keys, by number
  std::vector<double> chances;       // p_x: that the next arrival is this key
  model::DistinctKeys distinct;      // D(j)
  std::uint64_t warm = 0;            // items at the beginning that are inserted only

  std::uint64_t asked() const { return items.size() - warm; }
};

// Items of all three: what fills the filter, and what is asked then. The universe and the windows
// stay as they are at every scale, as they are what the experiment is about; a window must be full
// when the first is asked.
struct Length {
  std::uint64_t warm, asked;
};
Length length_of(const Context& context, std::uint64_t greatest_window);

// All keys alike (§5.2).
Stream uniform_stream(std::uint64_t keys, const Length& length, std::uint64_t seed);
// p_x = 1/(x H), x from 1 to `keys` (§5.3.1).
Stream power_stream(std::uint64_t keys, const Length& length, std::uint64_t seed);

// Replaces the addresses of packets: a fixed number of senders is active at a time, some faster
// than others by a Zipf law, and each has a given number of packets on average before another takes
// its place, who is drawn by a Zipf law, too. So a sender's chance is not the same all the time,
// which is what the paper says of its trace.
struct Senders {
  unsigned active = 0;
  double pace = 0;  // skew of the first law
  double packets = 0;
  std::uint64_t addresses = 0;
  double skew = 0;  // of the second
};
Stream packet_stream(const Senders& senders, const Length& length, std::uint64_t seed);
// The same of a file of the user's own. p_x is how often a key is there, and D(j) is sampled, as
// the paper does with its trace.
Stream stream_of_file(const std::string& path, const Length& length, std::uint64_t seed);

// Whether each item asked for was among the last `window`, and how many were.
struct Truth {
  std::vector<bool> in_window;
  std::vector<double> chances;  // of each key to be in the window, by the prior alone
  std::uint64_t positives = 0;
  double odds() const {
    return static_cast<double>(positives) / static_cast<double>(in_window.size() - positives);
  }
};
Truth truth_of(const Stream& stream, std::uint64_t window);

}  // namespace sluice::repro::dautrich
