// The pages of a filter's slices, as one producer sees them: requests to many pages at a time, which
// page has lost its contents, and for how long each is to stay.
//
// Doubt    A page that came back empty (another incarnation: evicted, flushed, expired too early),
//          or that missed a write, is not believed when it says that a cell is empty, for events up
//          to a time: when all that it may have lost is out of the window.
// Time     Pages go by themselves. How long one is needed is known in event time; whoever uses it
//          tells its server anew, from time to time, how much of that is left and some grace. So a
//          stream that stands still, or is read later than it happened, loses pages only if it lags
//          by more than the grace.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <span>
#include <vector>

#include "sluice/cluster/site.hpp"

namespace sluice::cluster {

class PageViews {
 public:
  struct Cell {
    std::uint32_t site = 0;
    std::int64_t page = 0;
    std::uint64_t position = 0;  // or, of a claim, a name
    friend bool operator==(const Cell&, const Cell&) = default;
  };

  struct Times {
    // Until when the page of a site is needed, in event time.
    std::function<std::int64_t(std::uint32_t site, std::int64_t page)> needed_until;
    std::int64_t grace_ms = 0;
    std::int64_t refresh_ms = 0;    // after which servers are told again
    std::int64_t remembers_ms = 0;  // how long a key matters after it was written
  };

  // A request to one page, and what came of it.
  struct Part {
    std::uint32_t site = 0;
    std::int64_t page = 0;
    std::vector<std::uint64_t> positions = {};
    std::vector<std::uint32_t> values = {};
    std::vector<std::uint32_t> whose = {};  // as add() was told
    std::vector<std::uint32_t> answers = {};
    Outcome outcome = Outcome::failed;
    bool answered() const noexcept { return outcome == Outcome::answered; }
    // The earliest event time for which its empty cells are believed.
    std::int64_t believed_from = kAlways;
  };
  using Take = std::function<void(const Part&)>;

  // At most `most_pages` pages that follow each other are used between two exchanges.
  PageViews(std::vector<std::unique_ptr<Pages>> sites, std::size_t most_pages, Times times);

  std::size_t sites() const noexcept { return sites_.size(); }
  const Pages& pages(std::uint32_t site) const noexcept { return *sites_[site].pages; }

  // A cell of the next request to its page.
  void add(const Cell& cell, std::size_t whose, std::uint32_t value = 1);
  // Sends all requests before it waits for any, and calls `take` for each, which must not add().
  // `now_ms`: the event time that pages are kept from; `latest_ms`: the one that doubts begin at.
  void exchange(Verb verb, std::int64_t now_ms, std::int64_t latest_ms, const Take& take);

  bool trusted(std::uint32_t site, std::int64_t at_ms) const;
  void trust(std::uint32_t site);

  // So far.
  std::uint64_t requests() const noexcept { return requests_; }
  std::uint64_t unanswered() const noexcept { return unanswered_; }

 private:
  static constexpr std::int64_t kAlways = std::numeric_limits<std::int64_t>::min();

  struct View {
    std::unique_ptr<Site> site;  // none: not used yet
    std::uint64_t incarnation = 0;
    std::int64_t kept_at = kAlways;  // event time of the last word about its time
    Part part;
  };
  // Of one site: page n is at n modulo their number, until another page takes its place.
  struct Place {
    std::unique_ptr<Pages> pages;
    std::vector<View> views;
  };

  View& view(std::uint32_t site, std::int64_t page);
  std::chrono::milliseconds keep(View& view, std::int64_t now_ms) const;
  void note(View& view, const Reply& reply, Verb verb, std::int64_t latest_ms);

  std::vector<Place> sites_;
  std::uint64_t mask_;
  Times times_;
  std::vector<View*> busy_;
  std::uint64_t requests_ = 0, unanswered_ = 0;
};

}  // namespace sluice::cluster
