#include "sluice/cluster/filter_slices.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "sluice/base/error.hpp"
#include "sluice/cluster/slice_map.hpp"

namespace sluice::cluster {
namespace {

constexpr std::int64_t kNanosecondsPerMs = 1'000'000;

void check_options(const FilterSlices::Options& options, std::size_t sites) {
  const auto refuse = [](const std::string& what) {
    throw BadParameters("filter slices: " + what);
  };
  if (sites == 0 || sites > SliceMap::kMostSites)
    refuse(fmt::format("{} sites; give 1 to {}", sites, SliceMap::kMostSites));
  if (options.window && !options.window->by_time() && sites > 1)
    refuse(fmt::format(
        "a window of a count over {} sites: each would count only its own part of the stream; give "
        "a window of time, or one site",
        sites));
  if (options.rule.least_live > 1)
    refuse("a key is at one site, so there is no hybrid `rule`; give duplicate or distinct");
  if (!(options.slack >= 0 && options.slack <= 1))
    refuse(fmt::format("a `slack` of {}; give a share of the window, 0 to 1", options.slack));
}

}  // namespace

FilterSlices::FilterSlices(const Options& options, std::vector<std::unique_ptr<FilterSite>> sites)
    : options_((check_options(options, sites.size()), options)),
      sites_(std::move(sites)),
      incarnations_(sites_.size()),
      believed_from_(sites_.size(), kAlways),
      load_(sites_.size()),
      parts_(sites_.size()) {
  if (options.window && options.window->by_time()) {
    limits_.emplace(options.window->size, options.window->size);
    // Rounded up: to end a doubt too late is on the safe side.
    const auto size_ms = static_cast<double>(options.window->size) / kNanosecondsPerMs;
    remembers_ms_ = static_cast<std::int64_t>(std::ceil(size_ms * (1 + options.slack)));
  }
  for (const auto& site : sites_) site->send({.verb = FilterVerb::may_contain});
  for (std::size_t i = 0; i < sites_.size(); ++i) {
    incarnations_[i] = sites_[i]->receive({}).incarnation;
    quote(i);
  }
}

void FilterSlices::check(std::span<const Digest> digests,
                         std::span<const std::int64_t> times_ms) const {
  if (!times_ms.empty()) check_length("times_ms", times_ms.size(), digests.size());
  if (!limits_) return;
  if (times_ms.empty() && !digests.empty())
    throw BadParameters("filter slices: a window of time needs the times of its keys");
  for (const std::int64_t time : times_ms)
    if (time < -kFarthestMs || time > kFarthestMs)
      throw BadParameters(
          fmt::format("filter slices: a time of {} is more than 146 years from 1970: give ms since "
                      "1970",
                      time));
}

// As a window's clock does: a time that is far ahead is not believed until a second event agrees,
// since one wrong clock must not put a site in doubt for years.
void FilterSlices::pass_time(std::span<const Digest> digests,
                             std::span<const std::int64_t> times_ms) {
  if (!limits_) return;
  for (std::size_t i = 0; i < digests.size(); ++i) {
    Nanoseconds time = times_ms[i] * kNanosecondsPerMs;
    clock_.read(digests[i], time, *limits_);
  }
}

std::int64_t FilterSlices::latest_ms() const noexcept {
  return clock_.started() ? clock_.now() / kNanosecondsPerMs : 0;
}

void FilterSlices::share_out(const FilterSite::Request& request) {
  const auto sites = static_cast<std::uint32_t>(sites_.size());
  for (std::size_t i = 0; i < request.digests.size(); ++i) {
    const std::uint32_t site = site_of(request.digests[i], sites);
    Part& part = parts_[site];
    if (part.digests.empty()) busy_.push_back(site);
    part.digests.push_back(request.digests[i]);
    part.whose.push_back(static_cast<std::uint32_t>(i));
    if (!limits_) continue;
    part.times_ms.push_back(request.times_ms[i]);
    if (!request.nows_ms.empty()) part.nows_ms.push_back(request.nows_ms[i]);
  }
}

// Begins a doubt, or goes on with it: what happened until now may be missing.
void FilterSlices::doubt(std::size_t site) {
  believed_from_[site] = limits_ ? latest_ms() + remembers_ms_ : kNever;
}

void FilterSlices::distrust(std::size_t site, std::int64_t lost_ms) {
  believed_from_[site] =
      limits_ ? std::clamp(lost_ms, -kFarthestMs, kFarthestMs) + remembers_ms_ : kNever;
}

void FilterSlices::quote(std::size_t site) {
  if (const std::string_view problem = sites_[site]->problem(); !problem.empty())
    problem_ = problem;
}

void FilterSlices::note(std::size_t site, const Reply& reply, FilterVerb verb) {
  quote(site);
  if (!reply.answered()) {
    ++traffic_.unanswered;
    // A late request may never be carried out.
    if (verb != FilterVerb::may_contain) doubt(site);
    return;
  }
  if (reply.incarnation != incarnations_[site]) {
    // One that was out of reach when this began is met for the first time.
    if (incarnations_[site] != 0) doubt(site);
    incarnations_[site] = reply.incarnation;
  }
  // Keys that it should remember.
  if (verb != FilterVerb::may_contain &&
      std::ranges::find(parts_[site].answers, Answer::none) != parts_[site].answers.end())
    doubt(site);
}

// What of a site's reply is believed.
void FilterSlices::take(std::size_t site, bool answered, FilterVerb verb, std::span<Answer> answers,
                        std::span<std::int64_t> since_ms) const {
  const Part& part = parts_[site];
  const auto since = since_ms.empty() ? std::span<const std::int64_t>() : sites_[site]->since_ms();
  for (std::size_t i = 0; i < part.whose.size(); ++i) {
    Answer& answer = answers[part.whose[i]];
    const std::int64_t time = limits_ ? part.times_ms[i] : 0;
    answer = answered ? part.answers[i] : Answer::none;
    if (answer == Answer::distinct && verb != FilterVerb::insert && time < believed_from_[site])
      answer = Answer::none;
    if (!since_ms.empty())
      since_ms[part.whose[i]] = i < since.size() ? since[i] : FilterSite::kUnknownSince;
  }
}

// Sends to all busy sites before it waits for any.
void FilterSlices::run_batch(const FilterSite::Request& request, std::span<Answer> answers,
                             std::span<std::int64_t> since_ms) {
  const bool asks = request.verb != FilterVerb::insert;
  traffic_.keys += request.digests.size();
  (asks ? traffic_.lookups : traffic_.sets) += request.digests.size();
  pass_time(request.digests, request.times_ms);
  share_out(request);
  for (const std::uint32_t site : busy_) {
    const Part& part = parts_[site];
    sites_[site]->send({.verb = request.verb,
                        .digests = part.digests,
                        .times_ms = part.times_ms,
                        .nows_ms = part.nows_ms,
                        .wants_since = !since_ms.empty()});
  }
  traffic_.requests += busy_.size();
  for (const std::uint32_t site : busy_) {
    Part& part = parts_[site];
    if (asks) load_[site] += part.digests.size();
    part.answers.assign(part.digests.size(), Answer::distinct);
    const Reply reply = sites_[site]->receive(part.answers);
    note(site, reply, request.verb);
    take(site, reply.answered(), request.verb, answers, since_ms);
    part.digests.clear();
    part.times_ms.clear();
    part.nows_ms.clear();
    part.whose.clear();
  }
  busy_.clear();
}

void FilterSlices::ask(const FilterSite::Request& request, std::span<Answer> answers,
                       std::span<std::int64_t> since_ms) {
  check(request.digests, request.times_ms);
  check_length("answers", answers.size(), request.digests.size());
  const auto part = [](auto all, std::size_t at, std::size_t count) {
    return all.empty() ? all : all.subspan(at, count);
  };
  for (std::size_t at = 0; at < request.digests.size(); at += kMostKeys) {
    const std::size_t count = std::min(kMostKeys, request.digests.size() - at);
    run_batch({.verb = request.verb,
               .digests = request.digests.subspan(at, count),
               .times_ms = part(request.times_ms, at, count),
               .nows_ms = part(request.nows_ms, at, count)},
              answers.subspan(at, count), part(since_ms, at, count));
  }
}

void FilterSlices::run(FilterVerb verb, std::span<const Digest> digests,
                       std::span<const std::int64_t> times_ms, std::span<Verdict> verdicts) {
  const Verdict by_rule = options_.rule.least_live == 0 ? Verdict::duplicate : Verdict::distinct;
  answers_.resize(digests.size());
  ask({.verb = verb, .digests = digests, .times_ms = times_ms}, answers_);
  for (std::size_t i = 0; i < verdicts.size(); ++i) {
    const bool said = answers_[i] == Answer::duplicate || answers_[i] == Answer::distinct;
    ruled_ += !said;
    verdicts[i] = !said                              ? by_rule
                  : answers_[i] == Answer::duplicate ? Verdict::duplicate
                                                     : Verdict::distinct;
  }
}

void FilterSlices::observe(std::span<const Digest> digests, std::span<const std::int64_t> times_ms,
                           std::span<Verdict> verdicts) {
  check_length("verdicts", verdicts.size(), digests.size());
  run(FilterVerb::observe, digests, times_ms, verdicts);
}

void FilterSlices::may_contain(std::span<const Digest> digests,
                               std::span<const std::int64_t> times_ms,
                               std::span<Verdict> verdicts) {
  check_length("verdicts", verdicts.size(), digests.size());
  run(FilterVerb::may_contain, digests, times_ms, verdicts);
}

void FilterSlices::insert(std::span<const Digest> digests, std::span<const std::int64_t> times_ms) {
  run(FilterVerb::insert, digests, times_ms, {});
}

}  // namespace sluice::cluster
