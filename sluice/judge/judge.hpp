// The judge: keys and times in, verdicts out. A hasher, a filter or window, and what goes with
// them: an audit, inference, and claims.
//
//   Judge judge(Hasher(HashKind::xxh3, Secret::random()), make_filter("growing", {.fpr = 1e-6}));
//   judge.judge({.digests = digests, .verdicts = verdicts});
//
// Every front end judges here and differs only in where keys come from and verdicts go.
//
// Time     A time window runs by the events' own times where a batch brings them, and otherwise by
//          `now`, when the batch arrives. Other filters look at no time. Nothing reads a clock.
// Cost     One virtual call per batch above the filter's own. Batches of 512 to 2048 keys hide the
//          latency of memory. Nothing is allocated but what the filter, the audit and inference
//          need.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "sluice/audit/audit.hpp"
#include "sluice/filters/any_filter.hpp"
#include "sluice/hash/hasher.hpp"
#include "sluice/infer/inference.hpp"
#include "sluice/judge/claims.hpp"
#include "sluice/judge/error_meter.hpp"
#include "sluice/snapshot/snapshot.hpp"
#include "sluice/window/window.hpp"

namespace sluice {

struct JudgeOptions {
  // Where priors come from that do not come with the keys.
  struct Priors {
    const PriorTable* table = nullptr;  // must outlive the judge
    bool learn = false;                 // from the stream; no others are used then
  };

  // The seed of its ghosts and whether the filter is fresh are the judge's to say.
  std::optional<Audit::Params> audit = {};
  // Verdicts of least cost. Only for a filter that shows how sure it is (Inference::refusal).
  std::optional<Priors> infer = {};
  // How many keys may be pending at once; 0: none can be claimed.
  std::uint64_t claims = 0;
};

class Judge {
 public:
  // Throws BadParameters.
  Judge(const Hasher& hasher, AnyFilter filter, const JudgeOptions& options = {});
  // The audit and inference know where the filter is.
  Judge(const Judge&) = delete;
  Judge& operator=(const Judge&) = delete;

  // Keys that are judged together, in their order. Spans are as long as `digests`, or empty; others
  // are refused with BadParameters.
  struct Batch {
    std::span<const Digest> digests = {};
    std::span<Verdict> verdicts = {};
    // When each event happened; empty: all of them `now`. Out goes what came too late: a window or
    // more after its time. That is neither asked nor remembered, and its verdict is `distinct`.
    std::span<const Nanoseconds> times = {};
    std::span<bool> late = {};  // with times, never empty
    Nanoseconds now = 0;        // with claims, the clock of leases also where there are times
    // With inference: what is known of the keys, and out goes the chance that each was seen before.
    // Without costs the verdicts are the filter's own.
    Inference::Known known = {};
    std::span<std::optional<double>> posteriors = {};

    // The first `count` of them.
    Batch first(std::size_t count) const;
    Batch subspan(std::size_t begin, std::size_t count) const;
  };

  // Judges and remembers. Returns how many keys were judged: all, unless memory for the filter's
  // growth ends; those behind are untouched. A key that somebody has claimed is `pending`, and nothing
  // of it is remembered: it waits for what comes of the claim. Throws BadParameters.
  [[nodiscard]] std::size_t judge(const Batch& batch);
  // Hashes `keys` first; `batch.digests` is not looked at.
  [[nodiscard]] std::size_t judge(std::span<const std::string_view> keys, Batch batch);
  // Throws NoMemory.
  Verdict judge(std::string_view key, Nanoseconds now = 0);

  // Takes keys back: `duplicate` where there was a trace of one. Throws BadParameters where the
  // filter cannot.
  void forget(std::span<const Digest> digests, std::span<Verdict> verdicts);

  // Delivery: a key is pending until it is delivered, and then remembered (claims.hpp). Where a
  // request names an event time, the key is asked for and remembered at that time. Without
  // JudgeOptions::claims they throw BadParameters.
  ClaimAnswer claim(const Claims::Request& request);
  ConfirmAnswer confirm(const Claims::Request& request);
  bool release(const Claims::Request& request);
  bool is_pending(const Digest& key, Nanoseconds now) const noexcept;

  // A judge as bytes: a snapshot of its filter, with its claims and its audit as sections of the same
  // record. (What inference learnt is of late, and is learnt anew.)
  //
  // Its own sections: for whoever pulls a snapshot piece by piece (snapshot/pull.hpp).
  Sections sections() const;
  static bool understands(std::string_view section) noexcept;
  // `more`: sections of the host, such as offsets. Returns the snapshot's identity. Throws
  // BadParameters, and whatever `to` throws.
  std::uint64_t save(Encoder& to, const Labels& labels = {}, const Sections& more = {}) const;
  struct Loaded;
  // Goes on as the one that was saved. Keys that are pending are so still, also where `options` has
  // no room for them; an audit goes on where `options` asks for one. `knows`: the host's sections.
  // Throws CorruptSnapshot and BadParameters.
  static Loaded load(Decoder& from, const JudgeOptions& options = {},
                     MemoryResource& memory = default_memory(),
                     const Understands& knows = understands_nothing);

  // False: the filter looks at no key, and nobody else does.
  bool asks_for_digests() const noexcept;

  const Hasher& hasher() const noexcept { return hasher_; }
  AnyFilter& filter() noexcept { return filter_; }
  const AnyFilter& filter() const noexcept { return filter_; }
  // The window that the filter is, or null.
  const Window* window() const noexcept { return window_; }
  // Null where it was not asked for.
  Audit* audit() noexcept { return audit_ ? &*audit_ : nullptr; }
  const Audit* audit() const noexcept { return audit_ ? &*audit_ : nullptr; }
  const Inference* inference() const noexcept { return infer_ ? &*infer_ : nullptr; }
  const Claims* claims() const noexcept { return claims_ ? &*claims_ : nullptr; }
  // What judge() has lost, by the filter's own prediction.
  const ErrorMeter& meter() const noexcept { return meter_; }
  // Allocated: by the filter, the audit, inference and claims.
  std::uint64_t bytes() const noexcept;
  // Whether a table of priors speaks for keys without their own.
  bool has_prior_table() const noexcept { return has_prior_table_; }

 private:
  class Memory;
  Claims& asked_claims();
  std::size_t judge_part(const Batch& batch);
  std::size_t judge_claimed(const Batch& batch);
  std::size_t judge_free(const Batch& batch);
  void resume(const Section& section);
  std::size_t weigh(const Batch& batch, bool timed);

  Hasher hasher_;
  AnyFilter filter_;
  Window* window_;
  bool by_arrival_;  // a time window
  bool has_prior_table_;
  ErrorMeter meter_;
  std::optional<Audit> audit_;
  std::optional<Inference> infer_;
  std::optional<Claims> claims_;
  std::vector<std::optional<double>> posteriors_;  // of a batch that asks for none
};

struct Judge::Loaded {
  std::unique_ptr<Judge> judge;
  Labels labels;
  Sections sections;  // the host's
  std::uint64_t identity = 0;
};

}  // namespace sluice
