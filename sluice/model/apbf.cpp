#include "sluice/model/apbf.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace sluice::model {
namespace {

// Outcomes of the query from one state on: chances, and accesses weighted by them.
struct Outcome {
  double yes = 0, yes_accesses = 0, no = 0, no_accesses = 0;
};

// The paper's query: at segment `at` a run of matches begins, of which `previous` are known from
// before the jump. It ends with the first miss, after `hits` matches, and goes on k segments before
// that miss, knowing those `hits`; or it is long enough. So the runs that begin at one segment
// differ only in how many hits they have room for, and one pass over these gives all of them.
class Queries {
 public:
  Queries(std::size_t segments, unsigned k) : k_(k), from_((segments - k + 1) * k) {}

  Outcome ask(std::span<const double> matches) {
    const std::size_t last = matches.size() - k_;
    for (std::size_t at = 0; at <= last; ++at) {
      Outcome all;
      double matched = 1;
      for (unsigned hits = 0; hits < k_; ++hits) {
        add_miss(all, at + hits, hits, matched * (1 - matches[at + hits]));
        matched *= matches[at + hits];
        Outcome& run = from_[at * k_ + k_ - 1 - hits];
        run = all;
        run.yes += matched;
        run.yes_accesses += matched * (hits + 1);
      }
    }
    return from_[last * k_];
  }

 private:
  void add_miss(Outcome& all, std::size_t missed, unsigned hits, double chance) const {
    const Outcome next = missed >= k_ ? from_[(missed - k_) * k_ + hits] : Outcome{.no = 1};
    all.yes += chance * next.yes;
    all.yes_accesses += chance * (next.yes_accesses + next.yes * (hits + 1));
    all.no += chance * next.no;
    all.no_accesses += chance * (next.no_accesses + next.no * (hits + 1));
  }

  unsigned k_;
  std::vector<Outcome> from_;  // by segment and `previous`
};

}  // namespace

std::vector<double> segment_matches(unsigned k, unsigned l, Fills fills, unsigned parts,
                                    double phase) {
  std::vector<double> matches(k + l);
  const double step = std::exp2(-1.0 / k);
  double zeros = std::exp2(-phase / k);
  for (unsigned i = 0; i < k + l; ++i, zeros *= step) {
    const double fill = i >= k ? 0.5 : fills == Fills::linear ? (i + phase) / k / 2 : 1 - zeros;
    matches[i] = parts == 1 ? fill : std::pow(fill, parts);
  }
  return matches;
}

std::vector<double> runs_of_matches(std::span<const double> matches, unsigned k) {
  std::vector<double> found(matches.size());
  double all = 1;  // the last k, or as many as there are, match
  for (std::size_t i = 0; i < matches.size(); ++i) {
    all *= matches[i];
    if (i >= k) all /= matches[i - k];
    // What is not a number any more, or has few digits left.
    if (!(all > 1e-250)) {
      all = 1;
      for (std::size_t j = i + 1 >= k ? i + 1 - k : 0; j <= i; ++j) all *= matches[j];
    }
    if (i + 1 < k) continue;
    if (i + 1 == k) {
      found[i] = all;
      continue;
    }
    // The first run ends here: a miss before it, and none up to that miss.
    const double none = i > k ? 1 - found[i - k - 1] : 1;
    found[i] = found[i - 1] + none * (1 - matches[i - k]) * all;
  }
  return found;
}

double run_of_matches(std::span<const double> matches, unsigned k) {
  return matches.empty() ? 0 : runs_of_matches(matches, k).back();
}

double apbf_fpr(unsigned k, unsigned l, Fills fills, unsigned parts) {
  return run_of_matches(segment_matches(k, l, fills, parts), k);
}

std::vector<double> apbf_fprs(unsigned k, unsigned most_l, unsigned parts) {
  std::vector<double> found = runs_of_matches(segment_matches(k, most_l, Fills::exact, parts), k);
  found.erase(found.begin(), found.begin() + (k - 1));
  return found;
}

double apbf_mean_fpr(unsigned k, unsigned l, Fills fills, unsigned parts) {
  // Smooth in the phase: Simpson's rule is exact far beyond what is printed.
  constexpr int kSteps = 32;
  double sum = 0;
  for (int step = 0; step <= kSteps; ++step) {
    const double weight = step == 0 || step == kSteps ? 1 : step % 2 == 1 ? 4 : 2;
    const double phase = static_cast<double>(step) / kSteps;
    sum += weight * run_of_matches(segment_matches(k, l, fills, parts, phase), k);
  }
  return sum / (3 * kSteps);
}

unsigned apbf_generations(unsigned k, double fpr, Fills fills) {
  if (apbf_fpr(k, 1, fills) > fpr) return 0;
  unsigned low = 1, high = kMostGenerations;  // the error rises with l
  while (low < high) {
    const unsigned middle = low + (high - low + 1) / 2;
    if (apbf_fpr(k, middle, fills) <= fpr)
      low = middle;
    else
      high = middle - 1;
  }
  return low;
}

unsigned half_full_parts(double fpr) {
  return static_cast<unsigned>(std::max(1.0, std::ceil(-std::log2(fpr))));
}

double half_full_negative_accesses(unsigned k) {
  // Σ i·2^−i up to k, of those that miss: (2 − (k+2)/2^k) / (1 − 2^−k).
  return (2 - std::ldexp(k + 2.0, -static_cast<int>(k))) /
         (1 - std::ldexp(1.0, -static_cast<int>(k)));
}

QueryAccesses query_accesses(std::span<const double> matches, unsigned k) {
  const unsigned l = static_cast<unsigned>(matches.size()) - k;
  Queries queries(matches.size(), k);
  const Outcome absent = queries.ask(matches);
  double window = 0;
  for (unsigned age = 0; age < l; ++age) {
    std::vector<double> held(matches.begin(), matches.end());
    std::fill_n(held.begin() + age, k, 1.0);
    window += queries.ask(held).yes_accesses;
  }
  return {window / std::max(l, 1u), absent.yes_accesses / absent.yes,
          absent.no_accesses / absent.no};
}

// As Queries, of the two outcomes that matter. Runs that are hardly ever so long are left out, as
// what is printed has three digits.
double negative_accesses(std::span<const double> matches, unsigned k) {
  constexpr double kHardlyEver = 1e-7;
  unsigned longest = 1;
  for (double run = std::ranges::max(matches); longest < k && run > kHardlyEver; ++longest)
    run *= std::ranges::max(matches);
  struct Negative {
    double no = 0, accesses = 0;
  };
  const std::size_t last = matches.size() - k;
  std::vector<Negative> from((last + 1) * longest);  // by segment and what is known of the run
  for (std::size_t at = 0; at <= last; ++at) {
    Negative all;
    double matched = 1;
    for (unsigned hits = 0; hits < longest; ++hits) {
      const std::size_t missed = at + hits;
      const double chance = matched * (1 - matches[missed]);
      const Negative next = missed >= k ? from[(missed - k) * longest + hits] : Negative{.no = 1};
      all.no += chance * next.no;
      all.accesses += chance * (next.accesses + next.no * (hits + 1));
      matched *= matches[missed];
      if (k - 1 - hits < longest) from[at * longest + k - 1 - hits] = all;
    }
    for (unsigned known = 0; known < longest && known + longest < k; ++known)
      from[at * longest + known] = all;
  }
  return from[last * longest].accesses / from[last * longest].no;
}

double apbf_slack(unsigned k, unsigned l) {
  return static_cast<double>(k) / std::max(l, 1u);
}

double apbf_npws(unsigned k, unsigned l, double full) {
  return (1 - std::pow(full, k)) / (1 - full) / std::max(l, 1u);
}

// A key that is m generations past the window and one has lost its m oldest segments. It is found if the m
// segments before those that are left match instead, from segment l on.
double apbf_npws(std::span<const double> matches, unsigned k) {
  const std::size_t l = matches.size() - k;
  double generations = 0, found = 1;
  for (std::size_t m = 0; m < k; ++m) {
    generations += found;
    found *= matches[l + m];
  }
  return generations / static_cast<double>(std::max<std::size_t>(l, 1));
}

double apbf_bits(unsigned k, unsigned l, unsigned parts) {
  return static_cast<double>(parts) * (k + l) * k / (std::max(l, 1u) * std::numbers::ln2);
}

double apbf_efficiency(unsigned k, unsigned l, double fpr) {
  return -std::log2(fpr) / k * l / (k + l);
}

}  // namespace sluice::model
