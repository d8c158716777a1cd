// Who judges a stream: a filter of this process (Judge), or one that many producers share
// (cluster/shared_judge.hpp). The pipeline asks only this.
#pragma once

#include <optional>

#include "sluice/judge/judge.hpp"

namespace sluice {

class StreamJudge {
 public:
  // Of a window: by what records are late, and what the years of times without one are guessed by.
  struct Pace {
    WindowSpec spec;
    double slack = 0;
    ClockLimits limits;
    EventClock clock;
  };

  virtual ~StreamJudge() = default;

  // As Judge::judge(). A filter that is shared takes no costs and gives no posteriors.
  [[nodiscard]] virtual std::size_t judge(const Judge::Batch& batch) = 0;
  // It must not change.
  virtual const Hasher& hasher() const noexcept = 0;
  // Whether anything here reads the digests.
  virtual bool asks_for_digests() const noexcept = 0;
  // None without a window.
  virtual std::optional<Pace> pace() const = 0;
  // For what only a filter of this process can do: forget, infer, say why it is full. Null if it is
  // none.
  virtual Judge* own() noexcept { return nullptr; }
};

// Not a base of Judge: a server holds millions of those.
class OwnJudge final : public StreamJudge {
 public:
  // `judge` must outlive this.
  explicit OwnJudge(Judge& judge) noexcept : judge_(judge) {}

  std::size_t judge(const Judge::Batch& batch) override { return judge_.judge(batch); }
  const Hasher& hasher() const noexcept override { return judge_.hasher(); }
  bool asks_for_digests() const noexcept override { return judge_.asks_for_digests(); }
  std::optional<Pace> pace() const override {
    const Window* const window = judge_.window();
    if (window == nullptr) return std::nullopt;
    return Pace{window->params().spec, window->slack(), window->limits(), window->clock()};
  }
  Judge* own() noexcept override { return &judge_; }

 private:
  Judge& judge_;
};

}  // namespace sluice
