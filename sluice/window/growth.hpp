// Growth on bursts: a window filter that is as full as its plan allows gets a successor, sized to
// the present rate, that takes the keys from then on. All are asked. One whose generations have all
// left the window is freed, and a successor that turned out too large is followed by a smaller one.
//
// Source   Koloniari et al. 2011, §5, for any window filter; by density or by cardinality.
// Memory   Stages are made for a key that is about to be written, and where they cannot be had, that key
//          is not judged. So a stream that comes again when there is memory leaves the same bytes as
//          one that always had it.
//          With a limit (Plan::memory) a stage is made as large as fits. Where that is too small to
//          be worth it, there is no memory until older stages have left the window.
// Differs  The paper's stages share hash functions and size, and its error bound breaks in a burst
//          (a five-fold burst against .05 gives .14 to .16). Here the error is a budget: a new
//          stage may err at most at half of what the live ones leave of it, so their sum stays
//          below the target. Where no filter is as good as that, the stage is as good as it can be
//          and stats() say so: no stream stops for it.
#pragma once

#include <functional>
#include <memory>
#include <optional>

#include "sluice/filters/any_filter.hpp"

namespace sluice {

class Growth {
 public:
  enum class By : std::uint8_t {
    density = 1,      // as many keys are live as were planned for: room comes back as they age
    cardinality = 2,  // as many keys were written: a stage never gets its room back
  };
  // Makes a stage for so many keys a window, erring at most so often.
  using Make = std::function<AnyFilter(std::uint64_t keys, double fpr, MemoryResource& memory)>;

  struct Plan {
    std::uint64_t keys = 0;  // the first stage's, and what a quiet stream comes back to
    double fpr = 0;          // of all stages together
    // Whether successors are to be expected: the first stage then takes half of the error budget,
    // and all of it otherwise.
    bool may_grow = true;
    By by = By::density;
    std::uint64_t memory = 0;  // bytes of all stages together; 0: what the resource has

    double first_fpr() const noexcept { return may_grow ? fpr / 2 : fpr; }
  };

  // Has no stage until start() or decode().
  Growth(std::shared_ptr<const Make> make, const Plan& plan,
         MemoryResource& memory = default_memory());
  Growth(Make make, const Plan& plan, MemoryResource& memory = default_memory())
      : Growth(std::make_shared<const Make>(std::move(make)), plan, memory) {}
  void start();
  // Forgets everything. Unlike start() it cannot fail: where a small stage cannot be had, the
  // newest is cleared and kept, until the next key asks for the small one again.
  void start_again() noexcept;
  // After more generations than a window has: nothing is left. Filters are rotated, which touches
  // no table, where clearing one would; but those of very many generations are cleared.
  void expire();
  // The same, as new: what was counted is forgotten too.
  void clear() noexcept;

  // As in window_contract.hpp, but never full: less than all with budget left means that there is
  // no memory for a successor.
  std::size_t admit(std::span<const Digest> digests, std::span<Verdict> verdicts,
                    std::uint64_t& budget, Anchor anchor);
  // Nothing is returned when there is no memory for a successor.
  std::optional<Verdict> admit_aged(const Digest& digest, unsigned age, Anchor anchor);
  // As it will be so many generations later.
  void may_contain(std::span<const Digest> digests, std::span<Verdict> verdicts,
                   unsigned later = 0) const;
  void rotate();
  // Where anchors restart or clocks are corrected, a key may have a trace in several stages: all
  // are told. Only where every stage can.
  bool can_forget() const noexcept;
  bool forget(const Digest& digest) noexcept;
  unsigned generations() const { return stages_.back().filter.generations(); }
  std::uint64_t live_keys() const;
  // No successor is made for more.
  std::uint64_t most_keys_of_next() const;
  // What it takes beside its first stage, as long as there is no other.
  static constexpr std::uint64_t own_bytes() noexcept { return sizeof(Growth) + sizeof(Stage); }
  // Of all stages together.
  FilterStats stats() const;
  std::uint64_t bytes() const noexcept {
    return taken_by(stages_) + older_bytes() + newest().bytes();
  }
  MemoryResource& memory() const noexcept { return stages_.get_allocator().resource(); }
  double slack() const { return newest().slack(); }
  double npws() const { return newest().npws(); }
  std::uint64_t growths() const noexcept { return growths_; }
  std::size_t stage_count() const noexcept { return stages_.size(); }
  const AnyFilter& newest() const { return stages_.back().filter; }
  // Oldest first. changes() tells whether they are still those of before.
  const AnyFilter& stage(std::size_t i) const { return stages_[i].filter; }
  std::uint64_t changes() const noexcept { return changes_; }

  void encode_header(Encoder& to) const;
  void encode_payload(Encoder& to) const;
  // Instead of start(). Throws CorruptSnapshot.
  void decode(Decoder& header, Decoder& payload);

 private:
  struct Stage {
    AnyFilter filter;
    std::uint64_t written = 0;  // since it was made
  };

  // Generations that a new start may be late by and still be the same.
  static constexpr std::uint32_t kMostOwed = 1u << 16;

  double share_left() const;
  void settle();
  void keep_newest() noexcept;
  void count_older() noexcept { older_bytes_ = sum_of_older(); }
  std::uint64_t sum_of_older() const noexcept;
  // Shards start their threads when they are asked, which takes memory.
  std::uint64_t older_bytes() const noexcept {
    return newest().kind() == FilterKind::sharded_window ? sum_of_older() : older_bytes_;
  }
  void add_stage(std::uint64_t keys);
  AnyFilter best_stage(std::uint64_t keys) const;
  bool fits(const AnyFilter& stage) const noexcept;
  std::uint64_t keys_that_fit() const;
  void adopt(AnyFilter filter);
  std::uint64_t next_keys() const;
  std::uint64_t smaller_keys(std::uint64_t at_this_rate) const;
  void ask(std::span<const Stage> stages, std::span<const Digest> digests,
           std::span<Verdict> verdicts, unsigned later = 0) const;
  std::size_t admit_with_older(std::span<const Digest> digests, std::span<Verdict> verdicts,
                               std::uint64_t& budget, Anchor anchor);
  static constexpr std::size_t kTogether = 512;  // keys asked for before any is written
  std::size_t admit_part(std::span<const Digest> digests, std::span<Verdict> verdicts,
                         std::uint64_t& budget, Anchor anchor);
  std::uint64_t room(const Stage& stage) const;

  std::shared_ptr<const Make> make_;  // windows that are made alike share it
  Plan plan_;
  std::uint64_t growths_ = 0;
  std::uint64_t changes_ = 0;  // stages made and freed
  std::uint64_t forgotten_ = 0, forget_misses_ = 0;
  std::uint64_t generation_keys_ = 0;  // written in the present generation, by all
  // Before the next key is written: a smaller successor for so many keys, if not 0.
  std::uint64_t successor_keys_ = 0;
  // Or a new start, so many generations ago, that there was no memory for. Nothing is live.
  std::optional<std::uint32_t> afresh_ = {};
  Vector<Stage> stages_;           // oldest first; the last takes the keys
  std::uint64_t older_bytes_ = 0;  // of all but the last, which only a rotation can change
};

}  // namespace sluice
