#include "sluice/plan/nearest.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "sluice/base/quantity.hpp"
#include "sluice/filters/share_range.hpp"

namespace sluice::planning {
namespace {

template <class See>
void for_each_family(const PlanRequest& request, See see) {
  const auto look = [&](std::span<const Family> families) {
    for (const Family& family : families) see(family);
  };
  look(request.window   ? families_for(Role::window)
       : request.expect ? families_for(Role::set)
                        : families_for(Role::growing_set));
  if (request.fnr) look(families_for(Role::forgetting));
}

// As a user would write it.
std::string count_text(std::uint64_t count) {
  if (count >= 1'000'000'000'000'000) {
    std::string text = fmt::format("{:g}", static_cast<double>(count));
    std::erase(text, '+');
    return text;
  }
  for (const auto& [unit, name] :
       {std::pair(std::uint64_t{1'000'000'000}, "G"), std::pair(std::uint64_t{1'000'000}, "M"),
        std::pair(std::uint64_t{1000}, "k")})
    if (count >= unit)
      return fmt::format("{:g}{}", static_cast<double>(count) / static_cast<double>(unit), name);
  return fmt::format("{}", count);
}

std::string duration_text(std::uint64_t nanoseconds) {
  constexpr std::uint64_t kSecond = 1'000'000'000;
  if (nanoseconds % kSecond == 0) return fmt::format("{}s", nanoseconds / kSecond);
  if (nanoseconds % 1'000'000 == 0) return fmt::format("{}ms", nanoseconds / 1'000'000);
  return fmt::format("{}ns", nanoseconds);
}

constexpr double kMostShare = 0.99;

void join(std::string& text, std::string_view part, std::string_view between) {
  if (!text.empty()) text += between;
  text += part;
}

std::string window_text(const WindowSpec& window) {
  if (window.kind == WindowSpec::Kind::count) return count_text(window.size);
  if (window.kind == WindowSpec::Kind::time) return duration_text(window.size);
  return window.size == std::uint64_t{3'600'000'000'000} ? "hour" : "day";
}

class Search {
 public:
  Search(const PlanRequest& request, WindowForecasts& windows)
      : request_(request), windows_(windows) {}

  std::vector<NearRequest> run() {
    more_memory();
    larger_fpr();
    fewer_keys();
    larger_share("slack", &PlanRequest::slack, kMostShare);
    larger_share("npws", &PlanRequest::npws, kMostShare);
    larger_share("fnr", &PlanRequest::fnr, kMostShare);
    more_lines();
    if (found_.empty()) several();
    return std::move(found_);
  }

 private:
  bool can_be_had(const PlanRequest& request, const Family& family) {
    return Sizing(request, windows_).rough(family).feasible();
  }

  template <class See>
  void for_each_feasible(const PlanRequest& request, See see) {
    for_each_family(request, [&](const Family& family) {
      if (const Plan plan = Sizing(request, windows_).rough(family); plan.feasible()) see(plan);
    });
  }

  bool can_be_had(const PlanRequest& request) {
    bool found = false;
    for_each_family(request,
                    [&](const Family& family) { found = found || can_be_had(request, family); });
    return found;
  }

  void add(const char* field, std::string value, PlanRequest request) {
    if (can_be_had(request)) found_.push_back({field, std::move(value), std::move(request), {}});
  }

  // With any memory, but still with a limit where that decides which filters come into question.
  PlanRequest with_any_memory() const {
    PlanRequest open = request_;
    open.memory = request_.window ? std::optional(kMostMemory) : std::nullopt;
    if (!open.fpr) open.fpr = most_fpr(request_);
    return open;
  }

  void more_memory() {
    if (!request_.memory) return;
    PlanRequest open = with_any_memory();
    std::uint64_t bytes = std::numeric_limits<std::uint64_t>::max();
    for_each_feasible(open, [&](const Plan& plan) { bytes = std::min(bytes, plan.bytes); });
    if (bytes > kMostMemory - std::min(request_.beside, kMostMemory)) return;
    const std::string text = size_of_at_least(bytes + request_.beside);
    open = request_;
    open.memory = parse_size("`memory`", text);
    if (*open.memory <= kMostMemory) add("memory", text, open);
  }

  // The first index above `asked` that can be had, up to `most`. Of most filters all that is asked
  // is whether they do better than the best so far.
  template <class At>
  std::optional<int> least(int asked, int most, At at) {
    std::optional<int> best;
    for_each_family(at(most), [&](const Family& family) {
      const int high = best ? *best - 1 : most;
      if (asked >= high || !can_be_had(at(high), family)) return;
      best = high - greatest(0, high - asked,
                             [&](int back) { return can_be_had(at(high - back), family); });
    });
    return best;
  }

  // One that was open can be more if it is asked for.
  void larger_fpr() {
    PlanRequest said = request_;
    if (error_is_open(request_)) said.fpr = kMostUnasked;
    if (said.fpr) larger_share("fpr", &PlanRequest::fpr, *said.fpr, most_fpr(said));
  }

  void larger_share(const char* field, std::optional<double> PlanRequest::*member, double most) {
    if (request_.*member) larger_share(field, member, *(request_.*member), most);
  }

  void larger_share(const char* field, std::optional<double> PlanRequest::*member, double than,
                    double most) {
    const auto at = [&](int index) {
      PlanRequest open = request_;
      open.*member = share_at(index);
      return open;
    };
    const int asked = index_of_share(than);
    if (const auto found = least(asked, index_of_share(most), at))
      add(field, fmt::format("{:g}", share_at(*found)), at(*found));
  }

  void fewer_keys() {
    const bool by_time = request_.window && request_.window->by_time();
    if (by_time && request_.expect) return fewer_expected();
    if (by_time && request_.rate && request_.window->kind == WindowSpec::Kind::time)
      return shorter_window(1'000'000, [](std::uint64_t size) { return duration_text(size); });
    if (request_.window && !by_time) return shorter_window(1, count_text);
    if (!request_.window && request_.expect) fewer_expected();
  }

  template <class At>
  std::optional<int> most_count(std::uint64_t below, At at) {
    int high = 1;
    while (high < kCountIndices && count_at(high) < below) ++high;
    std::optional<int> best;
    for_each_family(at(1), [&](const Family& family) {
      int low = best ? *best + 1 : 1;
      // A small window may be too coarse for the slack that is asked for, where a larger one is not.
      while (!best && low < high && !can_be_had(at(low), family)) low += kIndicesPerDecade;
      if (low >= high || !can_be_had(at(low), family)) return;
      best = greatest(low, high - 1, [&](int index) { return can_be_had(at(index), family); });
    });
    return best;
  }

  template <class Text>
  void shorter_window(std::uint64_t unit, Text text) {
    const auto at = [&](int index) {
      PlanRequest open = request_;
      open.window->size = count_at(index) * unit;
      return open;
    };
    if (const auto found = most_count((request_.window->size + unit - 1) / unit, at))
      add("window", text(at(*found).window->size), at(*found));
  }

  void fewer_expected() {
    const auto at = [&](int index) {
      PlanRequest open = request_;
      open.expect = count_at(index);
      return open;
    };
    if (const auto found = most_count(*request_.expect, at))
      add("expect", count_text(*at(*found).expect), at(*found));
  }

  void more_lines() {
    if (!request_.lines) return;
    constexpr double kAnyLines = 1e300;  // not none: then they would not be counted
    PlanRequest open = request_;
    open.lines = kAnyLines;
    double lines = kAnyLines;
    for_each_feasible(open, [&](const Plan& plan) { lines = std::min(lines, plan.lines); });
    open.lines = lines;
    if (lines < kAnyLines) add("lines", fmt::format("{:g}", lines), open);
  }

  // All limits but the error give way, as far as what takes the fewest bytes needs.
  void several() {
    PlanRequest open = with_any_memory();
    for (auto member : {&PlanRequest::slack, &PlanRequest::npws, &PlanRequest::lines})
      (open.*member).reset();
    std::optional<Plan> least;
    for_each_feasible(open, [&](const Plan& plan) {
      if (!least || plan.bytes < least->bytes) least = plan;
    });
    if (!least) return;
    open = request_;
    std::string also;
    const auto give_way = [&](const char* field, std::optional<double> PlanRequest::*member,
                              double needed) {
      if (!(request_.*member) || *(request_.*member) >= needed) return;
      if (member != &PlanRequest::lines && !can_be_asked(needed)) {
        (open.*member).reset();
        join(also, fmt::format("without `{}`", field), " ");
        return;
      }
      open.*member = needed;
      join(also, fmt::format("`{}` {:g}", field, needed), " ");
    };
    give_way("slack", &PlanRequest::slack, ceil3(least->slack));
    give_way("npws", &PlanRequest::npws, ceil3(least->npws));
    give_way("lines", &PlanRequest::lines, least->lines);
    if (!request_.memory) return;
    const std::string text = size_of_at_least(least->bytes + request_.beside);
    open.memory = std::max(*request_.memory, parse_size("`memory`", text));
    if (*open.memory <= kMostMemory && can_be_had(open))
      found_.push_back({"memory", text, open, also});
  }

  const PlanRequest& request_;
  WindowForecasts& windows_;
  std::vector<NearRequest> found_;
};

std::string in_fields(const PlanRequest& request) {
  std::string text;
  if (request.window) join(text, "`window` " + window_text(*request.window), " ");
  if (request.rate) join(text, fmt::format("`rate` {:g}/s", *request.rate), " ");
  if (request.expect) join(text, "`expect` " + count_text(*request.expect), " ");
  for (const auto& [value, flag] :
       {std::pair(request.fpr, "`fpr`"), std::pair(request.fnr, "`fnr`"),
        std::pair(request.slack, "`slack`"), std::pair(request.npws, "`npws`"),
        std::pair(request.lines, "`lines`")})
    if (value) join(text, fmt::format("{} {:g}", flag, *value), " ");
  if (request.memory) join(text, "`memory` " + exact_size(*request.memory), " ");
  return text;
}

}  // namespace

std::string size_of_at_least(std::uint64_t bytes) {
  static constexpr const char* kUnits[] = {"", "KiB", "MiB", "GiB", "TiB"};
  std::size_t unit = 0;
  double value = static_cast<double>(bytes);
  while (value >= 1024 && unit + 1 < std::size(kUnits)) value /= 1024, ++unit;
  if (unit == 0) return fmt::format("{}", bytes);
  // Hundredths come out whole in bytes only by luck: quarters always do.
  return fmt::format("{}{}", std::ceil(value * 4) / 4, kUnits[unit]);
}

std::vector<NearRequest> nearest_to(const PlanRequest& request, WindowForecasts& windows) {
  return Search(request, windows).run();
}

std::string taken_beside(const PlanRequest& request) {
  if (!request.memory || request.beside == 0) return {};
  return fmt::format(" (the process itself takes {})", format_size(request.beside));
}

std::string why_none(const PlanRequest& request, const std::vector<NearRequest>& nearest) {
  std::string text =
      fmt::format("no filter can do {}{}", in_fields(request), taken_beside(request));
  if (error_is_open(request) &&
      std::ranges::find(nearest, "fpr", &NearRequest::field) != nearest.end())
    text += fmt::format(
        ": more than {:g} % of what is new would be lost, which has to be asked for with `fpr`",
        100 * kMostUnasked);
  std::string others;
  for (const NearRequest& near : nearest)
    join(
        others,
        fmt::format("`{}` {}{}{}", near.field, near.value, near.also.empty() ? "" : " ", near.also),
        ", or ");
  if (others.empty()) return text + ", and changing one of these does not help";
  return fmt::format("{}; the nearest requests that can be met: {}", text, others);
}

}  // namespace sluice::planning
