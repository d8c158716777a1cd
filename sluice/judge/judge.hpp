// The judge: keys and times in, verdicts out. A hasher and a filter or window, with an audit,
// inference and claims if asked for.
//
//   Judge judge(Hasher(HashKind::xxh3, Secret::random()), make_filter("growing", {.fpr = 1e-6}));
//   judge.judge({.digests = digests, .verdicts = verdicts});
//
// Every front end judges here and differs only in where keys come from and verdicts go.
//
// Time     A time window runs by the events' own times if a batch brings them, otherwise by `now`,
//          the time when the batch arrives. Other filters ignore time. Nothing reads a clock.
// Cost     One virtual call per batch above the filter's own. Batches of 512 to 2048 keys hide the
//          latency of memory. Only the filter, the audit, inference and claims allocate memory.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "sluice/audit/audit.hpp"
#include "sluice/base/fates.hpp"
#include "sluice/filters/any_filter.hpp"
#include "sluice/hash/hasher.hpp"
#include "sluice/infer/inference.hpp"
#include "sluice/judge/claims.hpp"
#include "sluice/judge/error_meter.hpp"
#include "sluice/judge/first_arrivals.hpp"
#include "sluice/judge/slack_meter.hpp"
#include "sluice/snapshot/snapshot.hpp"
#include "sluice/window/window.hpp"

namespace sluice {

struct JudgeOptions {
  // Priors for keys that come without one.
  struct Priors {
    const PriorTable* table = nullptr;  // must outlive the judge
    bool learn = false;                 // learn them from the stream; then no others are used
  };

  // The judge itself sets `seed` and `fresh`.
  std::optional<Audit::Params> audit = {};
  // Verdicts of least cost. Only some filters can do this (Inference::refusal).
  std::optional<Priors> infer = {};
  // How many keys may be pending at once; 0: no claims. A loaded judge that has claims keeps them
  // whatever this says: if this is less than their number (or 0), their number is the limit.
  std::uint64_t claims = 0;
  // For a window whose `memory` is used up: keys that were confirmed make it forget its oldest ones early
  // (Window::forget_oldest). For those of judge() the caller does that.
  bool forget_early = false;
  // Whether meter() and slack() count. They take up to 192 KiB.
  bool meters = true;
};

class Judge {
 public:
  // Throws BadParameters and NoMemory; `filter` is then as it was.
  Judge(const Hasher& hasher, AnyFilter&& filter, const JudgeOptions& options = {});
  // Not movable: the audit and inference hold the address of the filter.
  Judge(const Judge&) = delete;
  Judge& operator=(const Judge&) = delete;

  // Keys that are judged together, in their order. Each span is as long as `digests`, or empty;
  // otherwise BadParameters is thrown. A batch without keys changes nothing, not even the time.
  struct Batch {
    std::span<const Digest> digests = {};
    std::span<Verdict> verdicts = {};
    // In: when each event happened; empty: all at `now`. Out: `late[i]`, whether the time of event
    // i is a window or more behind the latest. Such an event is neither judged nor remembered, and
    // its verdict is `distinct`.
    std::span<const Nanoseconds> times = {};
    std::span<bool> late = {};  // required if there are times
    // When the batch arrives; a time window needs this or `times`. The leases of claims also run by
    // it, with and without times; if it is left out, it is 0 for them.
    std::optional<Nanoseconds> now = {};
    // With inference. In: what is known about the keys; without costs the verdicts are the filter's
    // own. Out: the chance that each key was seen before.
    Inference::Known known = {};
    std::span<std::optional<double>> posteriors = {};

    // The first `count` keys.
    Batch first(std::size_t count) const;
    Batch subspan(std::size_t begin, std::size_t count) const;
  };

  // Judges and remembers. Returns how many keys were judged: all, unless there is no memory for the
  // filter to grow; then the rest are untouched. A key that somebody has claimed is `pending` and
  // is not remembered: the outcome of the claim decides. Throws BadParameters.
  [[nodiscard]] std::size_t judge(const Batch& batch);
  // Hashes `keys` first; `batch.digests` is ignored.
  [[nodiscard]] std::size_t judge(std::span<const std::string_view> keys, Batch batch);
  // Throws NoMemory and BadParameters.
  Verdict judge(std::string_view key, std::optional<Nanoseconds> now = {});

  // Recovery: remembers the keys that a journal says were delivered since the snapshot, even if
  // they are claimed, and ends their claims. `times` has one event time per digest, with which the
  // keys were judged or claimed. If it is empty, all were delivered at `now`, which time windows
  // then require. A key that is late by a window or more is not remembered, but its claim ends. A
  // key that the snapshot holds already may come again. Returns how many keys were replayed: all,
  // unless there is no memory for the filter to grow; then the rest are untouched. Throws
  // BadParameters.
  //
  // What must be in the journal, in the order of the calls:
  //   of judge()     each batch as it was judged, with its times, duplicates and late events
  //                  included: they may move the window's clock, and with an older clock later keys
  //                  would get other verdicts. Keys that were `pending` must be left out: they were
  //                  not remembered, and replay would remember them.
  //   of confirm()   each key that was `confirmed`, with the event time of its claim. Claims that
  //                  name event times change neither the filter nor its clock.
  //   of claim()     if the window's anchor is `refreshed`: each key that was a `duplicate`, with the event
  //                  time of its request. It is a repeat, and restarts the key's window.
  [[nodiscard]] std::size_t replay(std::span<const Digest> digests,
                                   std::span<const Nanoseconds> times,
                                   std::optional<Nanoseconds> now = {});

  // Takes keys back; verdicts[i] is `duplicate` if there was a trace of key i. Throws BadParameters
  // if the filter cannot forget.
  void forget(std::span<const Digest> digests, std::span<Verdict> verdicts);

  // Delivery: a key is pending until it is delivered, and then remembered (claims.hpp). It is
  // looked up at the event time of the request. It is remembered at the event time of the claim, or
  // of the confirmation if the claim has none. If a request has no event time, `now` counts; with a
  // time window, claim and confirm throw BadParameters if a request has neither. A claim that is answered
  // `duplicate` is a repeat: in a window whose anchor is `refreshed` it does what a repeat of judge() does, and in
  // others nothing. One that is answered `pending` changes nothing. If claims() is null, claim, confirm and release throw BadParameters.
  ClaimAnswer claim(const Claims::Request& request);
  ConfirmAnswer confirm(const Claims::Request& request);
  bool release(const Claims::Request& request);
  bool is_pending(const Digest& key, Nanoseconds now) const noexcept;
  // The event time that a pending key was claimed with, if any: confirm() remembers it at that
  // time.
  std::optional<Nanoseconds> event_time_of(const Digest& key) const noexcept;
  // Takes claims from now on, if it does not yet. Throws BadParameters and NoMemory.
  void need_claims(std::uint64_t most);
  // Of the calls that follow, until it is set again; null: none. It must outlive them.
  void set_fates(Fates* fates) noexcept {
    fates_ = fates;
    if (audit_) audit_->set_fates(fates);
  }
  // For idle moments: drops up to `most` expired claims, and hands delivered keys that are due to
  // the filter. Does nothing without claims.
  void tend(Nanoseconds now, std::size_t most = 64);

  // A judge as bytes: a snapshot of its filter, with its claims and its audit as sections. What
  // inference has learnt is not saved: it describes the recent past and is learnt again.
  //
  // The judge's own sections, for a caller that pulls a snapshot piece by piece
  // (snapshot/pull.hpp).
  Sections sections() const;
  static bool understands(std::string_view section) noexcept;
  // For a caller that reads a snapshot itself: the options of a judge that can resume these sections,
  // and resuming each that is understood. Throws CorruptSnapshot and BadParameters.
  static JudgeOptions options_for(const Sections& sections);
  void resume(const Section& section);
  // `more`: sections of the host, such as offsets. Returns the snapshot's identity. Throws
  // BadParameters, and any exception of `to`.
  std::uint64_t save(Encoder& to, const Labels& labels = {}, const Sections& more = {}) const;
  struct Loaded;
  // Restores a saved judge. Pending keys stay pending even if there are more than `options` allows
  // (JudgeOptions::claims); an audit continues if `options` asks for one. `knows`: which sections
  // of the host are understood. Throws CorruptSnapshot and BadParameters.
  static Loaded load(Decoder& from, const JudgeOptions& options = {},
                     MemoryResource& memory = default_memory(),
                     const Understands& knows = understands_nothing);

  // Whether the filter or anything else here reads the digests.
  bool asks_for_digests() const noexcept;

  const Hasher& hasher() const noexcept { return hasher_; }
  AnyFilter& filter() noexcept { return filter_; }
  const AnyFilter& filter() const noexcept { return filter_; }
  // The filter as a window; null if it is none.
  const Window* window() const noexcept { return window_; }
  // As Window::forget_oldest(); nothing without a window.
  std::optional<std::uint64_t> forget_oldest() {
    return window_ == nullptr ? std::nullopt : window_->forget_oldest();
  }
  // Null if the options did not ask for it; but claims also come with a snapshot that has some.
  Audit* audit() noexcept { return audit_ ? &*audit_ : nullptr; }
  const Audit* audit() const noexcept { return audit_ ? &*audit_ : nullptr; }
  const Inference* inference() const noexcept { return infer_.get(); }
  const Claims* claims() const noexcept { return claims_ ? &*claims_ : nullptr; }
  // How many events judge() has lost, by the filter's own prediction. Counts nothing without meters.
  const ErrorMeter& meter() const noexcept { return meter_; }
  // How many events judge() has held back past the window; null if the filter is no window,
  // and without meters.
  const SlackMeter* slack() const noexcept { return slack_ ? &*slack_ : nullptr; }
  // Bytes allocated by the filter, the audit, inference, claims and slack().
  std::uint64_t bytes() const noexcept;
  // Whether keys without a prior get one from a table.
  bool has_prior_table() const noexcept { return has_prior_table_; }

 private:
  class Memory;
  Claims& asked_claims();
  bool make_room();
  std::size_t judge_part(const Batch& batch);
  std::size_t judge_claimed(const Batch& batch);
  bool hand_over(const Digest& key);
  std::size_t judge_free(const Batch& batch);
  void check_timed(const char* field, bool has_times, std::optional<Nanoseconds> now) const;
  std::size_t replay_part(const Batch& batch, std::optional<Nanoseconds> now);
  std::size_t weigh(const Batch& batch, bool timed);

  Hasher hasher_;
  AnyFilter filter_;
  Window* window_;
  bool by_arrival_;  // a time window
  bool has_prior_table_;
  bool metered_;
  bool forgets_early_;
  ErrorMeter meter_;
  std::optional<SlackMeter> slack_;
  std::optional<FirstArrivals> firsts_;  // of a filter that forgets
  std::optional<Audit> audit_;
  std::unique_ptr<Inference> infer_;  // 11 KiB, and seldom used
  std::optional<Claims> claims_;
  Fates* fates_ = nullptr;
  std::vector<std::optional<double>> posteriors_;  // for batches without `posteriors`
};

struct Judge::Loaded {
  std::unique_ptr<Judge> judge;
  Labels labels;
  Sections sections;  // the host's
  std::uint64_t identity = 0;
};

}  // namespace sluice
