// Filter sites within this process: for one machine with many threads, for simulations of many
// machines, and for tests, which make them fail.
#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "sluice/base/verdict.hpp"
#include "sluice/cluster/filter_site.hpp"
#include "sluice/filters/any_filter.hpp"
#include "sluice/window/clock.hpp"
#include "sluice/window/spec.hpp"

namespace sluice::cluster {

// The filter that producers share. Any thread may use it. A request is carried out whole: no other
// comes in between. Keys for which the filter has no memory are answered with Answer::none.
class LocalFilter {
 public:
  // Any filter or window. The judge's additions (audit, claims, inference) have no part in this.
  explicit LocalFilter(AnyFilter filter);

  // `since_ms` takes what FilterSite::since_ms() says, if the request wants it; nothing is written
  // there unless the filter knows.
  Reply carry_out(const FilterSite::Request& request, std::span<Answer> answers,
                  std::span<std::int64_t> since_ms = {});
  // What it is: nothing for a filter that never forgets.
  std::optional<WindowSpec> window() const;
  bool refreshed() const;
  bool knows_since() const;

  // Makes it unreachable from now on, with or without losing its contents.
  void fail();
  void come_back();
  void come_back_empty();
  // Makes it carry out requests, but too late for the caller to get the answer.
  void be_late(bool late);

  std::uint64_t keys() const;

 private:
  std::size_t write(const FilterSite::Request& request);
  void ask(const FilterSite::Request& request);
  void be_told(std::int64_t now_ms);
  bool is_far_ahead(std::int64_t now_ms) const;
  std::int64_t since(const Digest& digest, Nanoseconds now) const;

  mutable std::mutex mutex_;
  AnyFilter filter_;
  std::uint64_t incarnation_ = 1;
  bool reachable_ = true;
  bool late_ = false;
  // Of the present request.
  std::vector<Nanoseconds> times_;
  std::vector<Verdict> verdicts_;
  std::unique_ptr<bool[]> late_events_;
  std::size_t room_ = 0;  // of late_events_
};

class LocalFilterSite final : public FilterSite {
 public:
  explicit LocalFilterSite(std::shared_ptr<LocalFilter> filter) : filter_(std::move(filter)) {}

  void send(const Request& request) override;
  Reply receive(std::span<Answer> answers) override;
  std::span<const std::int64_t> since_ms() const noexcept override { return since_ms_; }

 private:
  std::shared_ptr<LocalFilter> filter_;
  Reply reply_;
  std::vector<Answer> answers_;
  std::vector<std::int64_t> since_ms_;
};

// A producer's connections to them.
std::vector<std::unique_ptr<FilterSite>> connect(
    std::span<const std::shared_ptr<LocalFilter>> filters);

}  // namespace sluice::cluster
