// One filter, sized for a request: what the planner chooses from.
#pragma once

#include <span>

#include "sluice/filters/catalogue_row.hpp"
#include "sluice/plan/plan.hpp"

namespace sluice::planning {

// What a filter is tried for, in the catalogue's order.
using Family = PlanFamily;
std::span<const Family> families_for(Role role);

// Rounds to three digits, so that the printed number is the exact one; ceil6 to six.
double floor3(double value);
double ceil3(double value);
double ceil6(double value);
// All of them, by index: shares from 10⁻¹² to 1, and counts.
inline constexpr int kShareIndices = 12 * 900;
inline constexpr int kIndicesPerDecade = 900;
inline constexpr int kCountIndices = 11 * kIndicesPerDecade;  // up to some 10^13
double share_at(int index);
int index_of_share(double share);  // the first that is no less
std::uint64_t count_at(int index);

// The greatest index in [low, high] for which `good` holds, if it holds for all below it; `low` is
// assumed good.
template <class Good>
int greatest(int low, int high, Good good) {
  while (low < high) {
    const int middle = low + (high - low + 1) / 2;
    if (good(middle))
      low = middle;
    else
      high = middle - 1;
  }
  return low;
}

inline constexpr double kStandardFpr = 1e-6;

// Throws BadParameters for requests that make no sense.
void check(const PlanRequest& request);
// Whether only memory is given.
bool memory_alone(const PlanRequest& request);
// Whether the error is what fits into the memory.
bool error_is_open(const PlanRequest& request);
// Distinct keys to hold: those of the window, or those expected.
std::optional<std::uint64_t> keys_of(const PlanRequest& request);
// For a window with a rate, or with as many keys expected, with room for random variation in each of `parts`
// parts.
std::uint64_t keys_of_rate(const PlanRequest& request, unsigned parts);

// No window of deliveries is planned for an error above kMostDeliveredFpr, even if more is allowed; no
// search goes above one half; and an error that is open is at most kMostUnasked.
double most_fpr(const PlanRequest& request);
// The least error to look for if it is open. A window of time grows, so what memory the standard error
// leaves is worth more as room for keys.
double least_fpr(const PlanRequest& request);

// Forecasts of windows, brief ones, that a planning asked for: its searches come back to the same
// again and again. Each has one place, in which a later one takes over.
class WindowForecasts {
 public:
  struct Answer {
    Forecast made;
    std::string why_not;  // empty if it can be made
  };
  // Of the window, keys, error and generations of a plan; until the next call.
  const Answer& of(const Family& family, const Plan& plan);

 private:
  struct Question {
    const char* family = nullptr;
    std::uint64_t size = 0, keys = 0, generations = 0;
    double fpr = 0;
    friend bool operator==(const Question&, const Question&) = default;
  };
  struct Place {
    Question question;
    Answer answer;
  };
  std::vector<Place> places_;
};

class Sizing {
 public:
  Sizing(const PlanRequest& request, WindowForecasts& windows)
      : request_(request), windows_(windows) {}

  // Sized for the request, feasible or not; with memory alone, for as many keys as fit.
  Plan best(const Family& family);
  // Numbers only, and with the largest error where the error is open: feasible if `best` is.
  Plan rough(const Family& family);
  // If the error is open: whether the smallest that fits is below `fpr`.
  bool beats(const Family& family, double fpr);

 private:
  // Searches try hundreds, and need neither settings nor reasons.
  enum class Words : std::uint8_t { no, yes };

  double asked_fpr() const;
  Plan least_error(const Family& family, std::optional<std::uint64_t> keys);
  Plan most_keys(const Family& family);
  Plan settled(const Family& family, std::optional<std::uint64_t> keys, double fpr);
  Plan sized(const Family& family, std::optional<std::uint64_t> keys, double fpr, Words words);
  Plan sized_window(const Family& family, std::optional<std::uint64_t> keys, double fpr,
                    Words words);
  Plan sized_forgetting(const Family& family, std::optional<std::uint64_t> keys, double fpr,
                        Words words);
  void judge(Plan& plan, const Family& family, double asked, const Forecast& made,
             Words words) const;
  std::string what_is_amiss(const Plan& plan, double asked, const Forecast& made,
                            Words words) const;

  const PlanRequest& request_;
  WindowForecasts& windows_;
};

}  // namespace sluice::planning
