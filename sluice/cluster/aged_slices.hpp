// An age-partitioned Bloom filter over many sites: a window in plain bits, in pages that go by
// themselves.
//
// Source   Shtul, Baquero & Almeida 2020, §5: generations, and k matches in a row; Koloniari et al.
//          2011, §3: slices, and what a failed site counts for.
// Differs  A segment is a page of bits at each site, with the number of the generation that began
//          it. It takes keys for k generations, and is asked for l more. Then it expires: where the
//          paper empties a segment to use it again, the next generation has new pages. A generation
//          is a span of event time, not of keys; so a late event writes the pages of its own
//          generation. Pages of producers whose clocks are `ahead` are asked, too.
// Cost     observe: two round trips of all sites in parallel (test, set), four with claims.
//          k + l + 1 bits per key to test, and as many commands: a page is a key of the server's
//          own; k bits to set if it is new. Memory: k(k+l)/(l · ln 2) bits per key and window, and
//          as much again for `grace` as it is a part of the window.
// Errors   `duplicate` may be wrong (model::apbf_fpr with exact fills). `distinct` never is within
//          the window, as long as all sites answer and no other producer is further ahead. Keys fade
//          out over k generations after the window.
// Use it   for vertical and diced slices with a window, where memory counts.
// Avoid    for history that is read faster than it happened: pages go by the servers' time, and so
//          many more are kept at once. TimerSlices have no such limit.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <unordered_set>
#include <vector>

#include "sluice/cluster/window_slices.hpp"

namespace sluice::cluster {

class AgedSlices final : public WindowSlices {
 public:
  struct Params {
    // `bits` are those of one generation's pages, at all sites; `probes` is k + l.
    SliceParams slices;
    unsigned k = 0;  // generations that write a page: matches in a row that a duplicate needs
    unsigned l = 0;  // generations of the window
  };

  // A producer's view: `sites` are its connections, as many and as large as the map of
  // params.slices says. Throws BadParameters.
  AgedSlices(const Params& params, const Options& options,
             std::vector<std::unique_ptr<Pages>> sites);

  const Params& params() const noexcept { return params_; }
  std::int64_t generation_ms() const noexcept { return generation_ms_; }
  std::int64_t generation_at(std::int64_t ms) const noexcept;

 private:
  enum class State : std::uint8_t {
    unasked,
    unset,
    set,
    unknown,  // no answer
    doubted,  // not set, says a page that is not believed
  };
  struct CellHash {
    std::size_t operator()(const PageViews::Cell& cell) const noexcept;
  };
  // Generations in a row that match, k of them.
  struct Run {
    bool found = false;
    std::int64_t youngest = 0;
    unsigned live = 0;  // of its bits, those that were read
  };

  static Shape shape_of(const Params& params, const Options& options);

  void begin() override;
  void ask(std::size_t event) override;
  void take(const PageViews::Part& part) override;
  Verdict judge(std::size_t event) override;
  void remember(std::size_t event) override;
  void heal(std::size_t event) override;
  void write() override;

  std::int64_t youngest(std::size_t event) const noexcept;
  PageViews::Cell cell_of(std::size_t event, std::int64_t generation) const noexcept;
  State state_of(std::size_t event, std::int64_t generation) const;
  Run run_of(std::size_t event) const;
  void set(std::size_t event, std::int64_t generation);

  Params params_;
  std::int64_t generation_ms_;
  unsigned ahead_;  // generations
  model::FaultRule rule_;

  // Of the present batch.
  std::vector<Place> places_;  // k + l per event: of the generations modulo k + l
  std::vector<State> states_;  // k + l + ahead per event, the youngest generation's first
  std::unordered_set<PageViews::Cell, CellHash> fresh_;  // bits that the batch sets
};

}  // namespace sluice::cluster
