// Slices with a window of time: a key counts as seen if it was delivered less than a window ago. The
// common part of TimerSlices and AgedSlices, which hold the window in their cells.
//
// Time     comes from the producer, with each event. Now is the latest time that the producer has
//          read (EventClock), or the event's own if that is later. An event a window or more before
//          now is late: it is let through, not remembered, and counted. One that is late by less is
//          judged as of now and remembered at its own time. A time that is a window ahead of now is
//          judged and remembered at that time, and moves now only if a second event agrees. Other
//          producers' clocks may be ahead of this one's by `ahead`.
// Races    With claims, of several producers that race for a key one wins. If a claim had ended
//          before its key was remembered, that is counted (Traffic::expired).
// Faults   A cell that does not answer, or that is empty on a page that is doubted
//          (page_views.hpp), counts as the rule says. Each producer has doubts of its own: what
//          another one failed to write, this one does not know.
//
// Windows of a count are refused: no site sees the whole stream, and so none can count it.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "sluice/base/verdict.hpp"
#include "sluice/cluster/page_views.hpp"
#include "sluice/cluster/slice_map.hpp"
#include "sluice/cluster/slices.hpp"
#include "sluice/hash/digest.hpp"
#include "sluice/window/clock.hpp"
#include "sluice/window/spec.hpp"

namespace sluice::cluster {

class WindowSlices {
 public:
  // Event times are within 146 years of 1970, so that windows can be subtracted from them.
  static constexpr std::int64_t kFarthestMs = 4'611'686'018'427;

  struct Options {
    WindowSpec window;           // of time; rounded up to whole ms
    model::FaultRule rule = {};  // for cells that do not answer; by default they count as set
    bool claims = false;
    // How far other producers' clocks may be ahead of this one's. None: a window for timers, a
    // generation for AgedSlices.
    std::optional<std::chrono::milliseconds> ahead = {};
    // How long pages outlast their need: so long may a stream stand still and lose nothing. None:
    // half a window, and at least a second.
    std::optional<std::chrono::milliseconds> grace = {};
  };

  virtual ~WindowSlices() = default;

  // A batch is judged as if its keys came one after the other. `times_ms`: when each event
  // happened, in ms since 1970. All throw BadParameters, before anything is sent. may_contain does
  // not move the clock.
  void observe(std::span<const Digest> digests, std::span<const std::int64_t> times_ms,
               std::span<Verdict> verdicts);
  void may_contain(std::span<const Digest> digests, std::span<const std::int64_t> times_ms,
                   std::span<Verdict> verdicts);
  void insert(std::span<const Digest> digests, std::span<const std::int64_t> times_ms);

  const SliceMap& map() const noexcept { return map_; }
  std::int64_t window_ms() const noexcept { return window_ms_; }
  std::int64_t ahead_ms() const noexcept { return ahead_ms_; }
  // How far past the window a key may still be remembered.
  std::int64_t slack_ms() const noexcept { return shape_.slack_ms; }

  // As of Slices. A request is to one page of a site.
  Traffic traffic() const noexcept;
  // Lookups by site.
  std::span<const std::uint64_t> load() const noexcept { return load_; }
  // Events that were a window or more behind now.
  std::uint64_t late() const noexcept { return late_; }
  // Keys that were judged by the rule.
  std::uint64_t ruled() const noexcept { return ruled_; }
  // The share of a site's cells that are live, as new keys have met it lately: about the last
  // 50,000 cells. Of AgedSlices, in pages that are complete. NaN: none was met.
  double fill(std::uint32_t site) const noexcept;
  // The sites that are fuller than planned, by more than chance explains. More keys come than were
  // planned for, and more of them are lost.
  std::vector<std::uint32_t> overfull(double planned) const;

  // Whether a site's empty cells are believed for an event of the latest time so far.
  bool trusted(std::uint32_t site) const { return views_.trusted(site, latest_ms()); }
  // The site is complete again: it was filled from elsewhere, or its keys no longer matter.
  void trust(std::uint32_t site) { views_.trust(site); }

 protected:
  struct Event {
    Digest digest;
    std::int64_t at_ms = 0;   // when it happened
    std::int64_t now_ms = 0;  // as of when it is judged
    bool late = false;
    std::uint32_t claim = 0;  // index into claims_
  };

  // What the two windows differ in, besides the functions below.
  struct Shape {
    std::size_t keys = 1;         // of a batch
    std::int64_t pages = 1;       // of a site, for one event
    std::int64_t more_pages = 1;  // of a site, for the others of a batch
    std::int64_t slack_ms = 0;
    std::int64_t ahead_ms = 0;    // if the options do not say
    std::int64_t refresh_ms = 1;  // as of PageViews
    // The page that belongs to a time, and until when a page is needed.
    std::function<std::int64_t(std::uint32_t site, std::int64_t ms)> page_at;
    std::function<std::int64_t(std::uint32_t site, std::int64_t page)> needed_until;
  };
  // Throws BadParameters.
  WindowSlices(const SliceMap& map, const Options& options, const Shape& shape, unsigned cell_bits,
               std::vector<std::unique_ptr<Pages>> sites);
  static std::int64_t window_ms_of(const WindowSpec& window);
  static std::int64_t ahead_ms_of(const Options& options, std::int64_t otherwise);

  // For each batch, in this order: begin; ask, for each event that is to be judged, and take what
  // its cells say; judge and remember, event by event; write.
  virtual void begin() = 0;
  virtual void ask(std::size_t event) = 0;
  virtual void take(const PageViews::Part& part) = 0;
  // With what the events before it are to write.
  virtual Verdict judge(std::size_t event) = 0;
  // It is delivered.
  virtual void remember(std::size_t event) = 0;
  // It is a duplicate: it is written again where it was forgotten.
  virtual void heal(std::size_t event) = 0;
  virtual void write() = 0;

  const std::vector<Event>& events() const noexcept { return events_; }
  // Of the batch, in the caller's spans.
  std::size_t offset() const noexcept { return offset_; }
  void exchange(Verb verb, const PageViews::Take& take);
  // An event's contacts with the sites of its cells: to ask, or to set.
  void count_sites(std::span<const Place> places, bool asks);
  void count_ruled() noexcept { ++ruled_; }
  // A cell of a key that was judged distinct.
  void count_met(std::uint32_t site, bool live) noexcept;
  PageViews& views() noexcept { return views_; }

 private:
  enum class Claim : std::uint8_t { none, maybe, mine, held };
  struct Met {
    std::uint32_t cells = 0, live = 0;
  };

  std::int64_t latest_ms() const noexcept;
  void check_times(std::span<const Digest> digests, std::span<const std::int64_t> times_ms) const;
  std::size_t read(std::span<const Digest> digests, std::span<const std::int64_t> times_ms,
                   EventClock& clock);
  template <class Then>
  void in_batches(std::span<const Digest> digests, std::span<const std::int64_t> times_ms,
                  EventClock& clock, const Then& then);
  bool is_held(const Event& event) const;
  void look();
  void add_claims();
  void claim();
  void release();

  SliceMap map_;
  Options options_;
  Shape shape_;
  std::int64_t window_ms_, ahead_ms_;
  ClockLimits limits_;
  EventClock clock_;
  PageViews views_;
  Traffic traffic_;
  std::vector<std::uint64_t> load_;
  std::vector<Met> met_;
  std::uint64_t late_ = 0, ruled_ = 0;

  // Of the present batch.
  std::vector<Event> events_;
  std::size_t offset_ = 0;
  std::unordered_map<std::uint64_t, std::uint32_t> names_;  // of claims
  std::vector<PageViews::Cell> claim_cells_;                // in the order of their numbers
  std::vector<Claim> claims_;
};

}  // namespace sluice::cluster
