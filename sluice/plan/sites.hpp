// One filter over many sites, before there is any: how many sites it takes, how large each is, and
// what it costs when some of them do not answer.
//
// Source   Koloniari et al. 2011, §3: S_f and the errors of a fault rule (model/sliced.hpp).
// Slices   Horizontal: a whole filter or window at each site, for its share of the keys. Vertical
//          and diced: one classical Bloom filter whose bits are spread over the sites, without a
//          window.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sluice/model/sliced.hpp"
#include "sluice/plan/plan.hpp"

namespace sluice {

// What unreachable bits of a key count for. Horizontal slices know the first and the last.
struct RuleWish {
  enum class Kind : std::uint8_t { duplicate, hybrid, distinct } kind = Kind::duplicate;
  unsigned least_live = 0;  // hybrid's x

  model::FaultRule rule(unsigned probes) const;
  std::string text() const;  // "hybrid=3"
  friend bool operator==(const RuleWish&, const RuleWish&) = default;
};

struct SitesRequest {
  model::Slicing slicing = model::Slicing::horizontal;
  // Give the number of sites, or how many of them may fail while these errors are kept.
  std::optional<std::uint64_t> sites = {};
  std::optional<std::uint64_t> tolerate = {};
  std::optional<double> fpr = {}, fnr = {};  // with `tolerate`

  std::uint64_t failed = 1;           // with `sites`: what the errors are told for
  std::uint64_t inner = 1;            // diced: parts of each slice; a divisor of the sites
  std::optional<RuleWish> rule = {};  // none: duplicate, or distinct if only `fnr` is given
  // The filter: window, keys, and its error while all sites answer. `memory` is that of one site.
  PlanRequest filter = {};
};

// A request that can be met: one field, or as few as necessary, is relaxed.
struct NearSites {
  std::string field;      // of the request: "sites"
  std::string value;      // "38"
  std::string also = {};  // more of them: "`fnr` 0.01"
};

struct SitesPlan {
  SitesRequest request;
  std::string why_not = {};  // empty if it is feasible; it names the nearest requests that are
  std::vector<NearSites> nearest = {};
  bool feasible() const noexcept { return why_not.empty(); }

  std::uint64_t sites = 0, failed = 0;
  double needed = 0;  // with `tolerate`: S_f, not rounded, for the errors alone
  double fpr = 0;     // while all sites answer
  unsigned probes = 0;
  double density = 0;  // share of set bits, of a Bloom filter over the sites
  // What is at a site, if the keys are known.
  std::optional<Plan> slice = {};          // horizontal
  std::optional<std::uint64_t> bits = {};  // of a site: vertical and diced
  std::uint64_t site_bytes = 0;
  double messages = 1;  // sites that have bits of a key

  struct RuleErrors {
    RuleWish rule;
    double fpr = 0, fnr = 0;
    bool chosen = false;
  };
  std::vector<RuleErrors> rules = {};

  // For the models: without bits and keys.
  model::SlicedFilter cut() const;
};

// Throws BadParameters for requests that make no sense.
SitesPlan plan_sites(const SitesRequest& request);

inline constexpr std::uint64_t kMostPlannedSites = std::uint64_t{1} << 16;
// A larger key cannot be moved between servers: it travels as one string, of at most 512 MiB.
inline constexpr std::uint64_t kMostSiteBytes = std::uint64_t{511} << 20;

}  // namespace sluice
