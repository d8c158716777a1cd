#include "sluice/cluster/page_views.hpp"

#include <algorithm>
#include <bit>
#include <cassert>

namespace sluice::cluster {

PageViews::PageViews(std::vector<std::unique_ptr<Pages>> sites, std::size_t most_pages, Times times)
    : mask_(std::bit_ceil(most_pages) - 1), times_(std::move(times)) {
  for (auto& pages : sites) {
    sites_.push_back({std::move(pages), {}});
    sites_.back().views.resize(mask_ + 1);
  }
}

PageViews::View& PageViews::view(std::uint32_t site, std::int64_t page) {
  Place& place = sites_[site];
  View& view = place.views[static_cast<std::uint64_t>(page) & mask_];
  if (view.site && view.part.page == page) return view;
  assert(view.part.positions.empty() && "more pages at a time than were said");
  view = {};
  view.site = place.pages->open(page);
  view.part.site = site;
  view.part.page = page;
  return view;
}

void PageViews::add(const Cell& cell, std::size_t whose, std::uint32_t value) {
  View& to = view(cell.site, cell.page);
  if (to.part.positions.empty()) busy_.push_back(&to);
  to.part.positions.push_back(cell.position);
  to.part.values.push_back(value);
  to.part.whose.push_back(static_cast<std::uint32_t>(whose));
}

// For how long the page is to stay from now, if its server is to be told.
std::chrono::milliseconds PageViews::keep(View& view, std::int64_t now_ms) const {
  if (view.kept_at != kAlways && now_ms >= view.kept_at &&
      now_ms - view.kept_at < times_.refresh_ms)
    return std::chrono::milliseconds{0};
  view.kept_at = now_ms;
  const std::int64_t left = times_.needed_until(view.part.site, view.part.page) - now_ms;
  return std::chrono::milliseconds{std::max<std::int64_t>(left, 0) + times_.grace_ms};
}

void PageViews::note(View& view, const Reply& reply, Verb verb, std::int64_t latest_ms) {
  bool lost = false;
  if (!reply.answered()) {
    ++unanswered_;
    // Whether the server was told is not known either.
    view.kept_at = kAlways;
    // A late request may never be carried out.
    lost = verb == Verb::set || verb == Verb::test_and_set;
  } else if (reply.incarnation != view.incarnation) {
    // One that was out of reach so far is met for the first time.
    lost = view.incarnation != 0;
    view.incarnation = reply.incarnation;
  }
  if (lost)
    view.part.believed_from = std::max(view.part.believed_from, latest_ms + times_.remembers_ms);
  view.part.outcome = reply.outcome;
}

void PageViews::exchange(Verb verb, std::int64_t now_ms, std::int64_t latest_ms, const Take& take) {
  for (View* view : busy_) {
    const bool writes = verb == Verb::set || verb == Verb::test_and_set;
    const std::span<const std::uint32_t> values = view->part.values;
    view->site->send(
        {verb, view->part.positions, writes ? values : values.first(0), keep(*view, now_ms)});
  }
  requests_ += busy_.size();
  for (View* view : busy_) {
    Part& part = view->part;
    part.answers.assign(part.positions.size(), 0);
    note(*view, view->site->receive(part.answers), verb, latest_ms);
    take(part);
    part.positions.clear();
    part.values.clear();
    part.whose.clear();
  }
  busy_.clear();
}

bool PageViews::trusted(std::uint32_t site, std::int64_t at_ms) const {
  return std::ranges::all_of(sites_[site].views, [&](const View& view) {
    return !view.site || at_ms >= view.part.believed_from;
  });
}

void PageViews::trust(std::uint32_t site) {
  for (View& view : sites_[site].views) view.part.believed_from = kAlways;
}

}  // namespace sluice::cluster
