// Slices whose cells hold the time of the last delivery, as §4 and §5 have them: absolute times, no
// blocks. A simulation of the paper; the product's are filters/timer.hpp and window/growth.hpp.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <vector>

#include "repro/input.hpp"
#include "sluice/cluster/slice_map.hpp"

namespace sluice::repro::koloniari {

class TimerSlices {
 public:
  // A delivery at time t counts at t + 1 to t + window - 1; times begin at 1.
  // `different`: no key has the same timer twice. A slice needs at least as many timers as a key.
  TimerSlices(const cluster::SliceParams& params, std::uint32_t window, bool different = false)
      : map_(params),
        window_(window),
        different_(different && map_.site_bits() >= map_.probes()),
        times_(map_.sites() * map_.site_bits()) {}

  struct Sight {
    bool all_live = false;
    unsigned equal = 0;  // timers of the time that most of them have
  };
  Sight look(const Digest& key, std::uint32_t now) const;
  void deliver(const Digest& key, std::uint32_t now);

  // Forgets expired timers: times do not go back.
  void advance(std::uint32_t now);
  std::uint64_t live() const { return live_; }
  double density() const { return static_cast<double>(live_) / static_cast<double>(times_.size()); }

 private:
  using Places = std::array<cluster::Place, cluster::SliceMap::kMostProbes>;
  void places_of(const Digest& key, Places& places) const;

  bool live(std::uint32_t time, std::uint32_t now) const {
    return time != 0 && now - time < window_;
  }
  std::uint64_t cell(const cluster::Place& place) const {
    return place.site * map_.site_bits() + place.position;
  }

  cluster::SliceMap map_;
  std::uint32_t window_;
  bool different_;
  std::vector<std::uint32_t> times_;
  struct Written {
    std::uint32_t time;
    std::uint64_t cell;
  };
  std::deque<Written> written_;
  std::uint64_t live_ = 0;
};

// Events that a window holds, on average, when none is lost; one comes every time unit.
double live_events(const std::vector<Event>& events, std::uint32_t window);

}  // namespace sluice::repro::koloniari
