// One Bloom filter over many sites.
//
// Source   Koloniari et al. 2011, §3: slicings, first-test-then-set and test-and-set, pipelining,
//          what a failed site counts for; §6, concurrency.
// Differs  The hybrid rule needs at least x readable bits, all of them set: the paper's "at least x
//          set" holds nearly everything back. The answer "not set" of a site that came back empty,
//          or missed a set, is no longer believed: its set bits count, the others count as
//          unreachable until trust() says that it is complete again. Keys judged duplicates are set
//          there again. Claims let one of several racing producers win.
// Cost     observe: two round trips of all sites in parallel (test, set), one with test_and_set;
//          pipelined: up to k, and fewer messages. A batch shares them.
// Errors   `duplicate` may be wrong (model::sliced_fpr); with failed sites both verdicts
//          (model::sliced_errors, model::diced_errors).
#pragma once

#include <memory>
#include <span>
#include <unordered_set>
#include <vector>

#include "sluice/base/verdict.hpp"
#include "sluice/cluster/site.hpp"
#include "sluice/cluster/slice_map.hpp"
#include "sluice/hash/digest.hpp"
#include "sluice/model/sliced.hpp"

namespace sluice::cluster {

// Traffic. A message is one key's contact with one site; keys of a batch share requests.
struct Traffic {
  std::uint64_t keys = 0;      // observed or asked for
  std::uint64_t lookups = 0;   // messages that tested
  std::uint64_t sets = 0;      // messages that set
  std::uint64_t claims = 0;    // messages that claimed
  std::uint64_t requests = 0;  // sent to sites
  std::uint64_t unanswered = 0;
  std::uint64_t unclaimed = 0;  // keys judged without a claim, since its site did not answer
  // Claims that had ended before their key was remembered everywhere: another producer may have won
  // the same key. Give claims a longer lease.
  std::uint64_t expired = 0;
};

class Slices {
 public:
  struct Options {
    SliceParams slices;
    model::FaultRule rule = {};  // for unreachable bits; by default they count as set
    // Sites are asked in turn, until one has a bit that is not set.
    bool pipelined = false;
    // Bits are set as they are asked for: atomic where all of a key's bits are at one site.
    bool test_and_set = false;
    // A key is claimed at one of its sites before it is judged, and a producer that finds it
    // claimed judges it a duplicate. So of several producers that race for a key one wins, even if
    // its bits are on many sites.
    bool claims = false;
  };

  // A producer's view: `sites` are its connections, as many and as large as the map of
  // options.slices says. Throws BadParameters.
  Slices(const Options& options, std::vector<std::unique_ptr<Site>> sites);

  const SliceMap& map() const noexcept { return map_; }
  const Options& options() const noexcept { return options_; }

  // As a filter does. A batch is judged as if its keys came one after the other.
  Verdict observe(const Digest& digest);
  void observe(std::span<const Digest> digests, std::span<Verdict> verdicts);
  bool may_contain(const Digest& digest);
  void may_contain(std::span<const Digest> digests, std::span<Verdict> verdicts);
  void insert(const Digest& digest);
  void insert(std::span<const Digest> digests);

  const Traffic& traffic() const noexcept { return traffic_; }
  // Lookups by site.
  std::span<const std::uint64_t> load() const noexcept { return load_; }
  // Whether a site's "not set" is believed; it is not after it came back empty or missed a set.
  bool trusted(unsigned site) const { return !behind_[site]; }
  // The site is complete again: a window has passed, or it was filled from elsewhere.
  void trust(unsigned site) { behind_[site] = false; }

 private:
  enum class State : std::uint8_t {
    unasked,
    unset,
    set,
    unknown,  // no answer
    doubted,  // not set, says a site that is not trusted
  };
  // A request to one site, in the making.
  struct Part {
    std::vector<std::uint64_t> positions;
    std::vector<std::uint32_t> whose;  // indices into states_, or of keys
    std::vector<std::uint32_t> answers;
  };
  struct Requests {
    std::vector<Part> of;  // one per site
    std::vector<std::uint32_t> busy;
    void add(std::uint32_t site, std::uint64_t position, std::size_t whose);
  };

  // Keys that share requests: few enough that a request to one site is atomic.
  static constexpr std::size_t kMostKeys = 512;

  void begin(std::span<const Digest> digests);
  template <class Take>
  void exchange(Requests& requests, Verb verb, const Take& take);
  void ask(Verb verb);
  void send_sets();
  void note(std::uint32_t site, const Reply& reply, Verb verb);
  void lookup(std::size_t keys, Verb verb);
  void pipelined_lookup(std::size_t keys);
  bool next_site(std::size_t key);
  Verdict judge(std::size_t key);
  Verdict judge_in_turn(std::size_t key);
  void add_sets(std::size_t key, Verdict verdict);
  void add_ask(std::size_t probe) {
    asks_.add(places_[probe].site, places_[probe].position, probe);
  }
  void claim(std::span<const Digest> digests);
  void release(std::span<const Digest> digests);
  void observe_batch(std::span<const Digest> digests, std::span<Verdict> verdicts);
  std::uint64_t count_sites(std::size_t key, bool as_load);

  Options options_;
  SliceMap map_;
  std::size_t batch_;
  std::vector<std::unique_ptr<Site>> sites_;
  std::vector<std::uint64_t> incarnations_;
  std::vector<bool> behind_;
  std::vector<std::uint64_t> load_;
  Traffic traffic_;

  // Of the present batch.
  std::vector<Place> places_;  // k per key, as states_
  std::vector<State> states_;
  Requests asks_, sets_;
  std::vector<std::uint8_t> held_;  // keys that another holds the claim of
  enum Claimed : std::uint8_t { kNot, kMaybe, kMine };
  std::vector<Claimed> mine_;                // whether the key's claim is to be released
  std::unordered_set<std::uint64_t> fresh_;  // places that keys of this batch set
};

}  // namespace sluice::cluster
