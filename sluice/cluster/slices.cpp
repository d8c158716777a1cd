#include "sluice/cluster/slices.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>

#include "sluice/base/error.hpp"

namespace sluice::cluster {
namespace {

constexpr unsigned kPositionBits = 48;

std::uint64_t packed(const Place& place) {
  return std::uint64_t{place.site} << kPositionBits | place.position;
}

// The name of a key in a claim: two racing keys with the same name hold each other back, with a
// chance of 1 in 2^64.
std::uint64_t claim_name(const Digest& digest) {
  return digest.lo;
}

}  // namespace

Slices::Slices(const Options& options, std::vector<std::unique_ptr<Site>> sites)
    : options_(options),
      map_(options.slices),
      batch_(std::min<std::size_t>(kMostKeys, Site::kAtomicPositions / map_.probes())),
      sites_(std::move(sites)),
      behind_(sites_.size()),
      load_(sites_.size()),
      asks_{std::vector<Part>(sites_.size()), {}},
      sets_{std::vector<Part>(sites_.size()), {}} {
  if (sites_.size() != map_.sites())
    throw BadParameters(
        fmt::format("slices: {} sites where the slicing has {}", sites_.size(), map_.sites()));
  for (const auto& site : sites_)
    if (site->cell_bits() != 1 || site->cells() < map_.site_bits())
      throw BadParameters(
          fmt::format("slices: a site of {} cells of {} bits where the slicing needs {} bits",
                      site->cells(), site->cell_bits(), map_.site_bits()));
  if (map_.site_bits() >> kPositionBits != 0)
    throw BadParameters("slices: more than 2^48 bits per site; cut the filter into more");
  if (options.rule.least_live > map_.probes())
    throw BadParameters(fmt::format("slices: at least {} live bits of {}; give fewer",
                                    options.rule.least_live, map_.probes()));
  if (options.pipelined && options.test_and_set)
    throw BadParameters(
        "slices: pipelining stops at the first bit that is not set, test-and-set goes to all of "
        "them; choose one");
  // An empty request: only checks whether the site is still the same.
  for (const auto& site : sites_) incarnations_.push_back(site->ask({}, {}).incarnation);
}

void Slices::begin(std::span<const Digest> digests) {
  const std::size_t k = map_.probes();
  places_.resize(digests.size() * k);
  states_.assign(digests.size() * k, State::unasked);
  for (std::size_t i = 0; i < digests.size(); ++i)
    map_.places(digests[i], std::span(places_).subspan(i * k, k));
  traffic_.keys += digests.size();
  held_.assign(digests.size(), 0);
  fresh_.clear();
}

void Slices::Requests::add(std::uint32_t site, std::uint64_t position, std::size_t whose) {
  Part& request = of[site];
  if (request.positions.empty()) busy.push_back(site);
  request.positions.push_back(position);
  request.whose.push_back(static_cast<std::uint32_t>(whose));
}

// Sends to all sites before it waits for any. Calls `take` for each reply.
template <class Take>
void Slices::exchange(Requests& requests, Verb verb, const Take& take) {
  for (const std::uint32_t at : requests.busy) sites_[at]->send({verb, requests.of[at].positions});
  traffic_.requests += requests.busy.size();
  for (const std::uint32_t at : requests.busy) {
    Part& request = requests.of[at];
    request.answers.assign(request.positions.size(), 0);
    const Reply reply = sites_[at]->receive(request.answers);
    note(at, reply, verb);
    take(at, reply, request);
    request.positions.clear();
    request.whose.clear();
  }
  requests.busy.clear();
}

void Slices::ask(Verb verb) {
  exchange(asks_, verb, [&](std::uint32_t at, const Reply& reply, const Part& request) {
    for (std::size_t i = 0; i < request.whose.size(); ++i)
      states_[request.whose[i]] = !reply.answered()         ? State::unknown
                                  : request.answers[i] != 0 ? State::set
                                  : behind_[at]             ? State::doubted
                                                            : State::unset;
  });
}

void Slices::send_sets() {
  exchange(sets_, Verb::set, [](std::uint32_t, const Reply&, const Part&) {});
}

void Slices::note(std::uint32_t site, const Reply& reply, Verb verb) {
  if (!reply.answered()) {
    ++traffic_.unanswered;
    // A late request may never be carried out.
    if (verb == Verb::set || verb == Verb::test_and_set) behind_[site] = true;
  } else if (reply.incarnation != incarnations_[site]) {
    // One that was out of reach when this began is met for the first time.
    behind_[site] = behind_[site] || incarnations_[site] != 0;
    incarnations_[site] = reply.incarnation;
  }
}

// How many different sites the key's bits are on.
std::uint64_t Slices::count_sites(std::size_t key, bool as_load) {
  const std::size_t k = map_.probes();
  const std::span places = std::span(places_).subspan(key * k, k);
  std::uint64_t count = 0;
  for (std::size_t i = 0; i < k; ++i) {
    const auto before = places.first(i);
    if (std::ranges::find(before, places[i].site, &Place::site) != before.end()) continue;
    ++count;
    if (as_load) ++load_[places[i].site];
  }
  return count;
}

void Slices::lookup(std::size_t keys, Verb verb) {
  if (options_.pipelined) return pipelined_lookup(keys);
  const std::size_t k = map_.probes();
  for (std::size_t key = 0; key < keys; ++key) {
    if (held_[key] != 0) continue;
    traffic_.lookups += count_sites(key, true);
    for (std::size_t i = key * k; i < (key + 1) * k; ++i) add_ask(i);
  }
  ask(verb);
}

// The next site that the key has not asked, with all its bits there. False: there is none, or a bit
// is known not to be set.
bool Slices::next_site(std::size_t key) {
  const std::size_t k = map_.probes();
  const auto first = states_.begin() + static_cast<std::ptrdiff_t>(key * k);
  const auto last = first + static_cast<std::ptrdiff_t>(k);
  if (std::find(first, last, State::unset) != last) return false;
  const auto unasked = std::find(first, last, State::unasked);
  if (unasked == last) return false;
  const std::uint32_t site = places_[static_cast<std::size_t>(unasked - states_.begin())].site;
  ++traffic_.lookups;
  ++load_[site];
  for (std::size_t i = key * k; i < (key + 1) * k; ++i)
    if (places_[i].site == site) add_ask(i);
  return true;
}

void Slices::pipelined_lookup(std::size_t keys) {
  for (bool more = true; more;) {
    more = false;
    for (std::size_t key = 0; key < keys; ++key)
      if (held_[key] == 0) more |= next_site(key);
    ask(Verb::test);
  }
}

Verdict Slices::judge(std::size_t key) {
  const std::size_t k = map_.probes();
  unsigned live = 0;
  for (std::size_t i = key * k; i < (key + 1) * k; ++i) {
    if (states_[i] == State::unset) return Verdict::distinct;
    live += states_[i] == State::set;
  }
  return live >= options_.rule.least_live ? Verdict::duplicate : Verdict::distinct;
}

// With what earlier keys of the batch set.
Verdict Slices::judge_in_turn(std::size_t key) {
  const std::size_t k = map_.probes();
  do {
    if (fresh_.empty()) break;
    for (std::size_t i = key * k; i < (key + 1) * k; ++i)
      if ((states_[i] == State::unset || states_[i] == State::doubted) &&
          fresh_.contains(packed(places_[i])))
        states_[i] = State::set;
    // Pipelined, the rest of the sites may not have been asked.
    if (!options_.pipelined || !next_site(key)) break;
    ask(Verb::test);
  } while (true);
  return judge(key);
}

void Slices::add_sets(std::size_t key, Verdict verdict) {
  const std::size_t k = map_.probes();
  bool any = false;
  for (std::size_t i = key * k; i < (key + 1) * k; ++i) {
    // A duplicate is set again at sites that have forgotten it.
    if (verdict == Verdict::duplicate && states_[i] != State::doubted) continue;
    any = true;
    sets_.add(places_[i].site, places_[i].position, i);
    fresh_.insert(packed(places_[i]));
  }
  if (any) traffic_.sets += verdict == Verdict::duplicate ? 1 : count_sites(key, false);
}

void Slices::claim(std::span<const Digest> digests) {
  mine_.assign(digests.size(), kNot);
  for (std::size_t i = 0; i < digests.size(); ++i)
    asks_.add(places_[i * map_.probes()].site, claim_name(digests[i]), i);
  traffic_.claims += digests.size();
  exchange(asks_, Verb::claim, [&](std::uint32_t, const Reply& reply, const Part& request) {
    for (std::size_t i = 0; i < request.whose.size(); ++i) {
      const std::uint32_t key = request.whose[i];
      held_[key] = reply.answered() && request.answers[i] != 0;
      mine_[key] = !reply.answered() ? reply.outcome == Outcome::late ? kMaybe : kNot
                   : held_[key] != 0 ? kNot
                                     : kMine;
      traffic_.unclaimed += !reply.answered();
    }
  });
}

void Slices::release(std::span<const Digest> digests) {
  for (std::size_t i = 0; i < digests.size(); ++i)
    if (mine_[i] != kNot) asks_.add(places_[i * map_.probes()].site, claim_name(digests[i]), i);
  exchange(asks_, Verb::release, [&](std::uint32_t, const Reply& reply, const Part& request) {
    for (std::size_t i = 0; i < request.whose.size(); ++i)
      traffic_.expired +=
          reply.answered() && request.answers[i] == 0 && mine_[request.whose[i]] == kMine;
  });
}

void Slices::observe_batch(std::span<const Digest> digests, std::span<Verdict> verdicts) {
  begin(digests);
  if (options_.claims) claim(digests);
  lookup(digests.size(), options_.test_and_set ? Verb::test_and_set : Verb::test);
  for (std::size_t key = 0; key < digests.size(); ++key) {
    if (held_[key] != 0) {
      verdicts[key] = Verdict::duplicate;
    } else if (options_.test_and_set) {
      verdicts[key] = judge(key);
    } else {
      verdicts[key] = judge_in_turn(key);
      add_sets(key, verdicts[key]);
    }
  }
  send_sets();
  if (options_.claims) release(digests);
}

void Slices::observe(std::span<const Digest> digests, std::span<Verdict> verdicts) {
  assert(digests.size() == verdicts.size());
  for (std::size_t at = 0; at < digests.size(); at += batch_) {
    const std::size_t count = std::min(batch_, digests.size() - at);
    observe_batch(digests.subspan(at, count), verdicts.subspan(at, count));
  }
}

void Slices::may_contain(std::span<const Digest> digests, std::span<Verdict> verdicts) {
  assert(digests.size() == verdicts.size());
  for (std::size_t at = 0; at < digests.size(); at += batch_) {
    const std::size_t count = std::min(batch_, digests.size() - at);
    begin(digests.subspan(at, count));
    lookup(count, Verb::test);
    for (std::size_t key = 0; key < count; ++key) verdicts[at + key] = judge(key);
  }
}

void Slices::insert(std::span<const Digest> digests) {
  for (std::size_t at = 0; at < digests.size(); at += batch_) {
    const std::size_t count = std::min(batch_, digests.size() - at);
    begin(digests.subspan(at, count));
    for (std::size_t key = 0; key < count; ++key) add_sets(key, Verdict::distinct);
    send_sets();
  }
}

Verdict Slices::observe(const Digest& digest) {
  Verdict verdict;
  observe_batch({&digest, 1}, {&verdict, 1});
  return verdict;
}

bool Slices::may_contain(const Digest& digest) {
  Verdict verdict;
  may_contain({&digest, 1}, {&verdict, 1});
  return verdict == Verdict::duplicate;
}

void Slices::insert(const Digest& digest) {
  insert({&digest, 1});
}

}  // namespace sluice::cluster
