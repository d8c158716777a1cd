// A judge of a stream by a tree of filters: the producer at one of its leaves.
//
// Times of records are read as a window of this process would read them, in whole milliseconds.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "sluice/cluster/tree.hpp"
#include "sluice/judge/stream_judge.hpp"

namespace sluice::cluster {

class TreeJudge final : public StreamJudge {
 public:
  struct Options {
    Hasher hasher;
    unsigned leaf = 0;
    // Of the window of the node that remembers longest: how far past the window, as a share of it.
    double slack = 0;
    // Called before each batch; what it throws ends the stream, before anything more is judged.
    std::function<void()> before = {};
  };

  TreeJudge(const Options& options, Tree tree);

  // All keys are judged, or it throws what `before` throws.
  std::size_t judge(const Judge::Batch& batch) override;
  const Hasher& hasher() const noexcept override { return options_.hasher; }
  bool asks_for_digests() const noexcept override { return true; }
  std::optional<Pace> pace() const override;

  const Tree& tree() const noexcept { return tree_; }

 private:
  Options options_;
  Tree tree_;
  std::vector<std::int64_t> times_ms_;  // of the present batch
};

}  // namespace sluice::cluster
