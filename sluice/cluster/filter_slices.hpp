// Filter slices: many filters or windows, one per site, that together judge one stream. A key
// belongs to one of them, chosen by its digest.
//
// Source   Koloniari et al. 2011, §3: horizontal slicing, and what a failed site counts for.
// Differs  A slice is any filter or window of ours, not a part of a Bloom filter. A site that lost
//          its contents, or missed a key that it should remember, is *doubted*: its `duplicate` is
//          believed, its `distinct` counts as no answer.
// Cost     One round trip of all sites in parallel, for observe as well. A batch shares it. Memory
//          here: some 30 bytes per key of a batch.
// Errors   Those of one slice, for its share of the keys. For keys of sites that do not answer or
//          are doubted, as the rule says: `duplicate` loses all of these that are new (φ of all new
//          keys if φ of the sites are gone: model::sliced_errors), `distinct` lets all of them
//          through that are repeats.
// Use it   for windows of time on many machines, or for more keys than one machine can judge.
// Avoid    windows of a count: each slice would count only its own part of the stream.
//
// Doubt    ends for events that happened a window and its slack after the moment when the slice
//          was lost: nothing from before matters to them. For filters that never forget, and
//          windows of a count, it ends with trust(). Each producer has doubts of its own: what
//          another one failed to insert, this one does not know.
#pragma once

#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "sluice/base/verdict.hpp"
#include "sluice/cluster/filter_site.hpp"
#include "sluice/cluster/slices.hpp"
#include "sluice/window/clock.hpp"
#include "sluice/window/spec.hpp"

namespace sluice::cluster {

class FilterSlices {
 public:
  // Event times are within 146 years of 1970, so that windows can be subtracted from them.
  static constexpr std::int64_t kFarthestMs = 4'611'686'018'427;
  // Keys that share requests.
  static constexpr std::size_t kMostKeys = 4096;

  struct Options {
    // The window of all slices; none: they never forget.
    std::optional<WindowSpec> window = {};
    // How far past the window a slice may remember a key, as a share of it: Window::slack(). The
    // default is above that of `cohort`.
    double slack = 0.05;
    // For a key whose site does not answer: duplicate() or distinct(1).
    model::FaultRule rule = {};
  };

  // A producer's view: `sites` are its connections, in the same order for all producers. Asks each
  // site whether it is there. Throws BadParameters.
  FilterSlices(const Options& options, std::vector<std::unique_ptr<FilterSite>> sites);

  const Options& options() const noexcept { return options_; }
  std::size_t sites() const noexcept { return sites_.size(); }

  // A batch is judged as if its keys came one after the other. `times_ms`: when each event
  // happened, in ms since 1970; required if the window is one of time, and otherwise ignored, and
  // may be empty. Throws BadParameters, before anything is sent.
  void observe(std::span<const Digest> digests, std::span<const std::int64_t> times_ms,
               std::span<Verdict> verdicts);
  void may_contain(std::span<const Digest> digests, std::span<const std::int64_t> times_ms,
                   std::span<Verdict> verdicts);
  void insert(std::span<const Digest> digests, std::span<const std::int64_t> times_ms);

  // What the sites say, without the rule: `none` or `refused` for a key that the rule would judge, and
  // after an insert for one that is not remembered. `nows_ms` and `since_ms`, which may be empty: see
  // FilterSite. since_ms[i] is kUnknownSince where the site does not know.
  void ask(const FilterSite::Request& request, std::span<Answer> answers,
           std::span<std::int64_t> since_ms = {});

  // Messages and requests as of Slices. A message of observe counts as a lookup.
  const Traffic& traffic() const noexcept { return traffic_; }
  // Lookups by site.
  std::span<const std::uint64_t> load() const noexcept { return load_; }
  // Keys that were judged by the rule.
  std::uint64_t ruled() const noexcept { return ruled_; }

  // Why a site did not answer last, or not for every key: for people.
  const std::string& problem() const noexcept { return problem_; }

  // Whether a site's `distinct` is believed for an event of the latest time so far.
  bool trusted(std::size_t site) const { return latest_ms() >= believed_from_[site]; }
  // A site is known to have lost its contents at this time, in ms since 1970, before this began.
  void distrust(std::size_t site, std::int64_t lost_ms);
  // The site is complete again: it was filled from elsewhere, or its keys no longer matter.
  void trust(std::size_t site) { believed_from_[site] = kAlways; }

 private:
  static constexpr std::int64_t kAlways = std::numeric_limits<std::int64_t>::min();
  static constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::max();

  // A request to one site, in the making.
  struct Part {
    std::vector<Digest> digests;
    std::vector<std::int64_t> times_ms, nows_ms;
    std::vector<std::uint32_t> whose;  // indices into the batch
    std::vector<Answer> answers;
  };

  void check(std::span<const Digest> digests, std::span<const std::int64_t> times_ms) const;
  void pass_time(std::span<const Digest> digests, std::span<const std::int64_t> times_ms);
  std::int64_t latest_ms() const noexcept;
  void run(FilterVerb verb, std::span<const Digest> digests, std::span<const std::int64_t> times_ms,
           std::span<Verdict> verdicts);
  void run_batch(const FilterSite::Request& request, std::span<Answer> answers,
                 std::span<std::int64_t> since_ms);
  void share_out(const FilterSite::Request& request);
  void note(std::size_t site, const Reply& reply, FilterVerb verb);
  void take(std::size_t site, bool answered, FilterVerb verb, std::span<Answer> answers,
            std::span<std::int64_t> since_ms) const;
  void doubt(std::size_t site);
  void quote(std::size_t site);

  Options options_;
  // Of windows of time.
  std::optional<ClockLimits> limits_;
  EventClock clock_;
  std::int64_t remembers_ms_ = 0;
  std::vector<std::unique_ptr<FilterSite>> sites_;
  std::vector<std::uint64_t> incarnations_;
  // The earliest event time for which a site's `distinct` is believed.
  std::vector<std::int64_t> believed_from_;
  std::vector<std::uint64_t> load_;
  Traffic traffic_;
  std::uint64_t ruled_ = 0;
  std::string problem_;

  // Of the present batch.
  std::vector<Part> parts_;  // one per site
  std::vector<std::uint32_t> busy_;
  std::vector<Answer> answers_;
};

}  // namespace sluice::cluster
