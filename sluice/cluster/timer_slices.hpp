// Timers over many sites: a window in cells that hold the time of the last delivery. A key is a
// duplicate if all its timers are live; with `equal`, if so many of them show the same time, too.
//
// Source   Koloniari et al. 2011, §4: timers over slices, first-test-then-set, equal timers, late
//          events at their own age.
// Differs  A timer holds a time and is compared, where the paper's count down at every tick. Times
//          of 16 or 32 bits would wrap around: instead, a page of timers covers as much time as its
//          cells can tell apart, and the next time gets a new page. So no cell is ever older than a
//          wrap, nothing is swept, and the verdicts are those of absolute times (tested). Pages go
//          by themselves. Sites change theirs one after the other, so that few have two at a time.
// Cost     observe: two round trips of all sites in parallel (test, set), four with claims. k cells
//          per key to test and, if it is new, k to set; for a window and `ahead` after a change of
//          the page twice as many to test. Memory: 1.44 · log2(1/fpr) timers per key and window.
// Errors   `duplicate` may be wrong (model::sliced_errors). `distinct` never is within the
//          window and equal <= 1, as long as all sites answer; with equal = x as
//          model::timer_equal_fnr says. Times are rounded to a unit: a key may be held for up to two
//          units more than the window; with a unit of 1 ms the window is exact.
// Races    BITFIELD has no maximum. A timer is written only if it was seen to be earlier, and the
//          write answers what it overwrote; a later time is put back at once. So of two producers
//          that write one timer, the later time stays; until it is put back, for one round trip,
//          the timer shows a time that is too early by at most the difference of the two events'
//          times. If the producer dies in between, or its site does not answer, it stays so: some
//          of these keys may be forgotten early, by that difference. repaired() counts.
// Use it   for vertical and diced slices with a window, for streams whose times vary (late events,
//          history read faster than it happened), and to know how old keys are.
// Avoid    where memory counts: AgedSlices take a fifth to a tenth of the bits.
#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <span>
#include <unordered_map>
#include <vector>

#include "sluice/cluster/window_slices.hpp"

namespace sluice::cluster {

// How times are told by the cells of pages. Pure arithmetic; the same on every producer. A cell of
// page p and value v > 0 at a site means unit p · units + v − 1 − (the site's offset); 0 means never.
struct TimerUnits {
  std::int64_t unit_ms = 1;
  std::int64_t units = 1;  // of a page: all values of a cell but 0
  std::uint32_t sites = 1;

  // For timers of 16 bits a 256th of the window: a page lasts for 255 of them. For timers of 32
  // bits a ms, and pages of 49 days; for windows above 12 days, 2^-30 of them.
  static TimerUnits of(std::int64_t window_ms, unsigned timer_bits, std::int64_t unit_ms,
                       std::uint32_t sites);

  std::int64_t unit_of(std::int64_t ms) const noexcept { return floor_divide(ms, unit_ms); }
  std::int64_t offset(std::uint32_t site) const noexcept { return site * units / sites; }
  std::int64_t page_of(std::uint32_t site, std::int64_t unit) const noexcept {
    return floor_divide(unit + offset(site), units);
  }
  std::uint32_t value_of(std::uint32_t site, std::int64_t unit) const noexcept {
    return static_cast<std::uint32_t>(unit + offset(site) - page_of(site, unit) * units + 1);
  }
  std::int64_t unit_at(std::uint32_t site, std::int64_t page, std::uint32_t value) const noexcept {
    return page * units + value - 1 - offset(site);
  }
  static constexpr std::int64_t floor_divide(std::int64_t a, std::int64_t b) noexcept {
    return a / b - (a % b < 0);
  }
};

class TimerSlices final : public WindowSlices {
 public:
  struct Params {
    SliceParams slices;        // `bits` are timers
    unsigned timer_bits = 32;  // 16 or 32
    // What times are rounded to. 0: as TimerUnits::of says.
    std::int64_t unit_ms = 0;
    unsigned equal = 0;  // x: timers of the same time that a duplicate needs; 0: no such test
    // No key has the same timer twice, which would agree with itself: for the test of equal timers.
    bool different = false;
  };

  // What the timers of a key that was observed tell: as of before it was written.
  struct Sight {
    bool all_live = false;
    unsigned equal = 0;  // timers of the time that most of them have
  };

  // A producer's view: `sites` are its connections, as many and as large as the map of
  // params.slices says, with cells of timer_bits. Throws BadParameters.
  TimerSlices(const Params& params, const Options& options,
              std::vector<std::unique_ptr<Pages>> sites);

  const Params& params() const noexcept { return params_; }
  const TimerUnits& units() const noexcept { return units_; }
  // Timers that had overwritten a later time, and were put back.
  std::uint64_t repaired() const noexcept { return repaired_; }

  using WindowSlices::observe;
  // With what the timers of each key told.
  void observe(std::span<const Digest> digests, std::span<const std::int64_t> times_ms,
               std::span<Verdict> verdicts, std::span<Sight> sights);

 private:
  static constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::min();

  struct Probe {
    Place place;
    std::int64_t unit = kNever;  // the latest that its cells show, if it is not in the far future
    bool unknown = false;        // a cell did not answer
    bool doubted = false;        // a cell is empty on a page that is not believed
  };
  // A cell that this producer has written, of which a later time is to be put back.
  struct Repair {
    PageViews::Cell cell;
    std::uint32_t value;
  };
  // The units that are live as of an event.
  struct Range {
    std::int64_t first, last;
    bool has(std::int64_t unit) const noexcept { return first <= unit && unit <= last; }
  };

  static Shape shape_of(const Params& params, const Options& options, const SliceMap& map);

  void begin() override;
  void ask(std::size_t event) override;
  void take(const PageViews::Part& part) override;
  Verdict judge(std::size_t event) override;
  void remember(std::size_t event) override;
  void heal(std::size_t event) override;
  void write() override;

  void places_of(std::size_t event);
  Range live(const Event& event) const noexcept;
  std::span<Probe> probes_of(std::size_t event) noexcept {
    return std::span(probes_).subspan(event * params_.slices.probes, params_.slices.probes);
  }
  std::int64_t seen(const Probe& probe) const;
  void set(const Probe& probe, std::int64_t unit);
  void take_overwritten(const PageViews::Part& part);

  Params params_;
  TimerUnits units_;
  std::int64_t reach_, ahead_;  // units before and after now that are live
  model::FaultRule rule_;
  std::uint64_t repaired_ = 0;

  // Of the present batch.
  std::vector<Probe> probes_;  // k per event
  std::vector<Place> places_;  // of one event
  std::vector<std::int64_t> times_;
  std::span<Sight> sights_;
  std::unordered_map<std::uint64_t, std::int64_t> fresh_;  // timers that the batch writes: units
  std::vector<Repair> repairs_;
};

}  // namespace sluice::cluster
