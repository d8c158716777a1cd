// From what a user wants to a filter: which one, how large, with which errors, and why.
//
//   const Planning planning = plan({.window = parse_window("window", "1M"), .fpr = 1e-6});
//   if (planning.chosen) AnyFilter filter = planning.choice().make();
//
// Leave out what you do not know. The error is 10⁻⁶ by default. If memory is given, the default is
// the smallest error that fits; for a time window, no smaller than 10⁻⁶. An error of more than
// kMostUnasked must be asked for. If only memory is given, the plan is the filter that remembers
// the most keys in it. Planning allocates no filter. The numbers of a plan are promises about the
// filter that it makes: no more bytes and no larger errors, as long as no more keys come than
// planned. Planning is idempotent: feed a plan's numbers back and you get the same plan.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sluice/base/error.hpp"
#include "sluice/filters/any_filter.hpp"
#include "sluice/window/window.hpp"

namespace sluice {

struct PlanRequest {
  std::optional<WindowSpec> window = {};
  Anchor anchor = Anchor::delivered;
  std::optional<double> rate = {};              // distinct keys per second; for a time window
  std::optional<std::uint64_t> expect = {};     // distinct keys; for a time window: per window
  std::optional<double> fpr = {};               // 1e-300 to 0.999999, as the shares below
  std::optional<double> fnr = {};               // allows filters that forget at random
  std::optional<double> slack = {}, npws = {};  // for a window
  std::optional<double> lines = {};             // cache lines that observe of a new key touches
  std::optional<std::uint64_t> memory = {};     // bytes, for the filter and `beside`
  std::uint64_t beside = 0;                     // the part of `memory` for other things
  BlockCosts costs = {};                        // of the resource that the filter will be made in

  friend bool operator==(const PlanRequest&, const PlanRequest&) = default;
};

struct Plan {
  // What to make.
  std::string filter;  // name and layout: for make_filter, or the stages of a window
  std::optional<WindowSpec> window = {};
  Anchor anchor = Anchor::delivered;
  std::optional<std::uint64_t> keys = {};  // expected; for a time window: per window
  double target_fpr = 0;                   // the error that it is made for
  double asked_fpr = 0;                    // the `fpr` with which plan_named makes the same plan
  std::string table = {};  // settings of the table, if it must be larger than target_fpr makes it
  std::optional<unsigned> generations = {};  // for a window; none: the filter's choice

  // What it will be.
  std::string settings = {};  // all parameters except the error that it was planned for
  std::uint64_t holds = 0;    // keys of the set or window; the mean distance, if it forgets
  std::uint64_t bytes = 0;    // of the filter, in a resource with the costs of the request
  double bits_per_key = 0;
  double fpr = 0, fnr = 0;  // fnr: of a repeat at the largest distance that can be asked for
  double slack = 0, npws = 0;
  double lines = 0;
  std::optional<double> over_bound =
      {};  // bits per key above the theoretical minimum; none if no minimum is known

  std::string why_not = {};  // empty if it is feasible
  bool feasible() const noexcept { return why_not.empty(); }

  std::string filter_text() const;       // for make_filter, without a window
  Wish wish() const;                     // for make_filter, too
  Window::Params window_params() const;  // with a window
  AnyFilter make() const;                // throws NoMemory
};

// A request that can be met: one field is relaxed, or as few as necessary.
struct NearRequest {
  std::string field;  // of the request: "memory"
  std::string value;  // "9.3MiB": as a person writes it
  PlanRequest request;
  std::string also = {};  // "`slack` 0.09": more fields, if relaxing one is not enough
};

struct Planning {
  PlanRequest request;
  std::vector<Plan> candidates = {};  // the chosen one first, then the other feasible ones
  std::optional<std::size_t> chosen = {};
  std::string reason = {};                // why it was chosen, or why there is none: a sentence
  std::string assumed = {};               // assumptions about what was not given; may be empty
  std::vector<NearRequest> nearest = {};  // if nothing is feasible

  // Throws BadParameters, with the reason, when there is none.
  const Plan& choice() const {
    if (!chosen) throw BadParameters(reason);
    return candidates.at(*chosen);
  }
};

// `choice`: only the chosen plan is needed; the others need not be listed.
enum class PlanScope : std::uint8_t { all, choice };

// Throws BadParameters for requests that make no sense.
Planning plan(const PlanRequest& request, PlanScope scope = PlanScope::all);

// The same with a cache: the last kPlansKept requests of the process are answered without planning
// or copying. For hosts that plan on a thread that must not wait long. Any thread may call it: the
// lock is held only to look up and to store, never while planning.
inline constexpr std::size_t kPlansKept = 64;
std::shared_ptr<const Planning> planned(const PlanRequest& request,
                                        PlanScope scope = PlanScope::all);

// The plan of a filter given by name, such as "bloom,layout=classic", sized as if the planner had
// chosen it. If `bytes` or `keys` is among its parameters, it is used as it is. An `fpr` among them
// counts as that of the request. There is no choice, so `memory` must not be given, and the plan
// may be infeasible. Throws BadParameters.
Plan plan_named(std::string_view filter, const PlanRequest& request);

// All that the chosen plan promises, as a request. There must be a chosen plan.
PlanRequest promised(const Planning& planning);

// What the command takes beside its filter: code, libraries, the buffers of two threads and of
// three outputs, and the chunks in which state is saved. Measured: 8.3 to 12.4 MiB
// (tests/integration/budget.bats). It is constant, because a state file works only with the same
// plan.
inline constexpr std::uint64_t kProcessBytes = std::uint64_t{13} << 20;
// If only memory is given: the least for the filter, and the most in total.
inline constexpr std::uint64_t kLeastFilterBytes = std::uint64_t{1} << 20;
inline constexpr std::uint64_t kMostMemory = std::uint64_t{32} << 40;

// A user who says nothing about the error does not expect to lose more than one new key in a
// hundred.
inline constexpr double kMostUnasked = 0.01;

// If a window of deliveries loses more than this share of new keys, few keys are delivered, so the
// window hardly ages and may stop forever.
inline constexpr double kMostDeliveredFpr = 0.1;

}  // namespace sluice
