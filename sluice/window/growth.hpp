// Growth on bursts: a window filter that is as full as its plan allows gets a successor, sized for
// the present rate, which takes the new keys. All these filters (*stages*) are asked. A stage whose
// generations have all left the window is freed, and a successor that turns out too large is
// followed by a smaller one.
//
// Source   Koloniari et al. 2011, §5, for any window filter; by density or by cardinality.
// Memory   A stage is made just before a key is written to it; if there is no memory for it, that
//          key is not judged. So a stream that is resumed when there is memory leaves the same
//          bytes as one that always had enough. With a limit (Plan::memory) a stage is made as
//          large as fits. If that is too small to be useful, there is no room until older stages
//          have left the window. A filter that grows by itself (`exact-window`) gets new keys as
//          long as its next table would fit.
// Differs  The paper's stages share hash functions and size, and its error bound breaks in a burst
//          (a five-fold burst against .05 gives .14 to .16). Here the error is a budget: a new
//          stage gets at most half of what the live stages leave of it, so their sum stays below
//          the target. If no filter has so small an error, the stage gets the smallest possible,
//          stats() reports it, and the stream goes on.
#pragma once

#include <functional>
#include <limits>
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
  // Makes a stage for a number of keys per window and a maximum error.
  using Make = std::function<AnyFilter(std::uint64_t keys, double fpr, MemoryResource& memory)>;

  struct Plan {
    std::uint64_t keys = 0;  // of the first stage; a quiet stream returns to this size
    double fpr = 0;          // of all stages together
    // True: successors are expected, and the first stage takes half of the error budget; false: it
    // takes all of it.
    bool may_grow = true;
    By by = By::density;
    std::uint64_t memory = 0;  // limit of bytes(); 0: that of the resource

    double first_fpr() const noexcept { return may_grow ? fpr / 2 : fpr; }
  };

  // Has no stage until start() or decode().
  Growth(std::shared_ptr<const Make> make, const Plan& plan,
         MemoryResource& memory = default_memory());
  Growth(Make make, const Plan& plan, MemoryResource& memory = default_memory())
      : Growth(std::make_shared<const Make>(std::move(make)), plan, memory) {}
  // Throws NoMemory, also if no stage is small enough for the limit.
  void start();
  // Forgets everything. Unlike start() it cannot fail: if there is no memory for a small stage, the
  // newest is cleared and kept until the next key, which tries again.
  void start_again() noexcept;
  // Call it when more generations have passed than a window has: nothing is left. Filters are rotated,
  // which touches no table, as clearing would; those of very many generations are cleared.
  void expire();
  // The same, but resets the counts too: as new.
  void clear() noexcept;

  // As in window_contract.hpp, but never full: less than all with budget left means that there is
  // no memory for a successor.
  std::size_t admit(std::span<const Digest> digests, std::span<Verdict> verdicts,
                    std::uint64_t& budget, Anchor anchor);
  // Returns nothing when there is no memory for a successor.
  std::optional<Verdict> admit_aged(const Digest& digest, unsigned age, Anchor anchor);
  // As it will answer `later` generations from now.
  void may_contain(std::span<const Digest> digests, std::span<Verdict> verdicts,
                   unsigned later = 0) const;
  void rotate();
  // Forgets the keys of the oldest generation before their time, for a caller whose limit is
  // reached: a rotation that says nothing about the rate.
  void forget_oldest();
  // How many keys that has cost so far.
  std::uint64_t forgotten_early() const noexcept { return forgotten_early_; }
  // Whether the last key that was refused found the limit reached: forget_oldest() makes room. Otherwise
  // the resource had no memory.
  bool used_up() const noexcept { return used_up_; }
  // As admit() without a budget. But after forget_oldest(), and until the next rotation, it stops after
  // as many new keys as a generation has room for: then forget_oldest() is due again.
  [[nodiscard]] std::size_t admit_paced(std::span<const Digest> digests,
                                        std::span<Verdict> verdicts, Anchor anchor);
  // If anchors restart or clocks are corrected, a key may have traces in several stages: forget is
  // called on all. Only if every stage can forget.
  bool can_forget() const noexcept;
  bool forget(const Digest& digest) noexcept;
  unsigned generations() const { return stages_.back().filter.generations(); }
  std::uint64_t live_keys() const;
  // The most keys that a successor is made for, and the error that it is asked for: this one, or if no
  // filter has it, kWorseBy times that, and so on.
  std::uint64_t most_keys_of_next() const;
  double fpr_of_next() const { return share_left(); }
  // The same of a plan whose first stage is all there is, and full.
  static std::uint64_t most_keys_after(std::uint64_t live) noexcept;
  static double share_after(const Plan& plan, double first_fpr) noexcept;
  static constexpr double kWorseBy = 2;
  static constexpr const char* kUsedUp =
      "`memory` is used up: there is room again when keys have left the window";
  // The greatest error that a stage was planned for.
  double worst_planned_fpr() const;
  // Memory beside the first stage, while there is no other stage.
  static constexpr std::uint64_t own_bytes() noexcept { return sizeof(Growth) + sizeof(Stage); }
  // For all stages together.
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
  // Oldest first. changes() differs if stages were made or freed in between.
  const AnyFilter& stage(std::size_t i) const { return stages_[i].filter; }
  std::uint32_t changes() const noexcept { return changes_; }

  void encode_header(Encoder& to) const;
  void encode_payload(Encoder& to) const;
  // Used instead of start(). `generations`: of all its stages. Throws CorruptSnapshot.
  void decode(Decoder& header, Decoder& payload, unsigned generations);

 private:
  struct Stage {
    AnyFilter filter;
    std::uint64_t written = 0;  // since it was made
  };

  // A new start may be late by up to this many generations without a difference.
  static constexpr std::uint32_t kMostOwed = 1u << 16;

  double share_left() const;
  void age_stages();
  void settle();
  void keep_newest() noexcept;
  void count_older() noexcept { older_bytes_ = sum_of_older(); }
  std::uint64_t sum_of_older() const noexcept;
  // Shards start their threads on the first call, which takes memory.
  std::uint64_t older_bytes() const noexcept {
    return newest().kind() == FilterKind::sharded_window ? sum_of_older() : older_bytes_;
  }
  void add_stage(std::uint64_t keys);
  [[noreturn]] void refuse();
  AnyFilter first_stage();
  AnyFilter best_stage(std::uint64_t keys) const;
  std::uint64_t memory_of_successors() const noexcept;
  std::size_t keys_within_limit(std::span<const Digest> digests) const noexcept;
  bool fits(const AnyFilter& stage) const noexcept;
  std::uint64_t keys_that_fit() const;
  void adopt(AnyFilter filter);
  std::uint64_t next_keys() const;
  std::uint64_t smaller_keys(std::uint64_t at_this_rate) const;
  void ask(std::span<const Stage> stages, std::span<const Digest> digests,
           std::span<Verdict> verdicts, unsigned later = 0) const;
  std::size_t admit_with_older(std::span<const Digest> digests, std::span<Verdict> verdicts,
                               std::uint64_t& budget, Anchor anchor);
  static constexpr std::size_t kTogether = 512;  // keys looked up before any is written
  std::size_t admit_part(std::span<const Digest> digests, std::span<Verdict> verdicts,
                         std::uint64_t& budget, Anchor anchor);
  std::uint64_t room(const Stage& stage) const;

  std::shared_ptr<const Make> make_;  // shared by windows with the same parameters
  Plan plan_;
  // Small: there are many windows.
  std::uint32_t growths_ = 0;
  std::uint32_t changes_ = 0;  // stages made and freed
  static constexpr std::uint32_t kAnyNumber = std::numeric_limits<std::uint32_t>::max();
  std::uint32_t writable_ = kAnyNumber;  // keys until forget_oldest() is due
  bool used_up_ = false;
  std::uint64_t forgotten_early_ = 0;
  std::uint32_t forgotten_ = 0, forget_misses_ = 0;
  std::uint64_t generation_keys_ = 0;  // written in the present generation, by all
  // If not 0: before the next key is written, make a smaller successor for this many keys.
  std::uint64_t successor_keys_ = 0;
  // Or a new start that there was no memory for, this many generations ago. Nothing is live.
  std::optional<std::uint32_t> afresh_ = {};
  Vector<Stage> stages_;           // oldest first; the last takes the keys
  std::uint64_t older_bytes_ = 0;  // of all but the last; only a rotation can change it
};

}  // namespace sluice
