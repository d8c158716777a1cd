// A judge of a stream whose filter is shared: it stands on other sites, and other producers judge by
// it, too. It reads the times of records as a window of this process would, so that the same stream
// gets the same verdicts; what is remembered is asked of the sites.
//
// Time     Late records are found here: the sites would know them later, each by its own keys. A
//          time that is not believed (clock.hpp) goes to the sites as the latest one. The clock is
//          this producer's: it does not know what times others have brought.
// Differs  from Window: if the very first time of a stream was wrong, and only a later batch shows
//          it, the site of that record has that time all the same.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "sluice/judge/stream_judge.hpp"
#include "sluice/window/clock.hpp"

namespace sluice::cluster {

class SharedJudge final : public StreamJudge {
 public:
  struct Options {
    Hasher hasher;
    std::optional<WindowSpec> window = {};
    double slack = 0;
    // Nanoseconds, as of Window::Params.
    std::optional<std::uint64_t> max_ahead = {};
  };
  // Judges and remembers, as FilterSlices::observe: times in ms since 1970, none if the window is
  // not one of time.
  using Observe = std::function<void(std::span<const Digest>, std::span<const std::int64_t>,
                                     std::span<Verdict>)>;

  SharedJudge(const Options& options, Observe observe);

  // All keys are judged, or it throws what Observe throws.
  std::size_t judge(const Judge::Batch& batch) override;
  const Hasher& hasher() const noexcept override { return options_.hasher; }
  bool asks_for_digests() const noexcept override { return true; }
  std::optional<Pace> pace() const override;

  // Times that were not believed.
  std::uint64_t disbelieved() const noexcept { return clock_.disbelieved(); }
  // The latest time so far.
  Nanoseconds latest() const noexcept { return clock_.now(); }

 private:
  static constexpr std::size_t kNobody = ~std::size_t{0};

  void read_times(const Judge::Batch& batch);
  void add(const Digest& digest, Nanoseconds time, std::size_t whose);

  Options options_;
  Observe observe_;
  std::optional<ClockLimits> limits_;  // of a window of time
  EventClock clock_;
  // Of the present batch: what is sent.
  std::vector<Digest> digests_;
  std::vector<std::int64_t> times_ms_;
  std::vector<std::size_t> whose_;
  std::vector<Verdict> verdicts_;
};

}  // namespace sluice::cluster
