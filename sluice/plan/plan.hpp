// What a person wants → which filter, how large, erring how, and why.
//
//   const Planning planning = plan({.window = parse_window("window", "1M"), .fpr = 1e-6});
//   if (planning.chosen) AnyFilter filter = planning.choice().make();
//
// Whatever is left out of a request is open: without an error it is 10⁻⁶, or, where memory is
// given, the least that fits; memory alone asks for the most that can be remembered in it. Nothing
// is allocated. Every number of a plan is a promise of the filter that it makes: not more bytes, no
// larger errors, as long as no more keys come than were planned for. A plan for what a plan
// promises is that plan.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "sluice/base/error.hpp"
#include "sluice/filters/any_filter.hpp"
#include "sluice/window/window.hpp"

namespace sluice {

struct PlanRequest {
  std::optional<WindowSpec> window = {};
  Anchor anchor = Anchor::delivered;
  std::optional<double> rate = {};              // distinct keys a second, of a window of time
  std::optional<std::uint64_t> expect = {};     // distinct keys; of a window of time, in a window
  std::optional<double> fpr = {};               // 1e-300 to 0.999999; so are the shares below
  std::optional<double> fnr = {};               // allows filters that forget at random
  std::optional<double> slack = {}, npws = {};  // of a window
  std::optional<double> lines = {};             // cache lines that observe of a new key touches
  std::optional<std::uint64_t> memory = {};     // bytes, with what is beside the filter
  std::uint64_t beside = 0;                     // of `memory`: what goes to other things

  friend bool operator==(const PlanRequest&, const PlanRequest&) = default;
};

struct Plan {
  // What to make.
  std::string filter;  // name and layout: for make_filter, or the stages of a window
  std::optional<WindowSpec> window = {};
  Anchor anchor = Anchor::delivered;
  std::optional<std::uint64_t> keys = {};  // expected; of a window of time: in a window
  double target_fpr = 0;                   // the error that it is made for
  std::string table = {};  // settings of a table that is larger than this takes in the mean
  std::optional<unsigned> generations = {};  // of a window; the filter's own choice if none

  // What it will be.
  std::string settings = {};  // all parameters, but for the error that it was planned for
  std::uint64_t holds = 0;    // keys: of the set or window; of one that forgets, its mean distance
  std::uint64_t bytes = 0;    // of the filter
  double bits_per_key = 0;
  double fpr = 0, fnr = 0;  // fnr: of a repeat as far away as can be asked for
  double slack = 0, npws = 0;
  double lines = 0;
  std::optional<double> over_bound =
      {};  // bits a key over the lower bound's; none where there is none

  std::string why_not = {};  // empty if it is feasible
  bool feasible() const noexcept { return why_not.empty(); }

  std::string filter_text() const;       // for make_filter, without a window
  Wish wish() const;                     // for the same
  Window::Params window_params() const;  // with one
  AnyFilter make() const;                // throws NoMemory
};

// A request that can be met, since one thing of it was given up, or as few as will do.
struct NearRequest {
  std::string field;  // of the request: "memory"
  std::string value;  // "9.3MiB": as a person writes it
  PlanRequest request;
  std::string also = {};  // "`slack` 0.09": more fields, where one alone will not do
};

struct Planning {
  PlanRequest request;
  std::vector<Plan> candidates = {};  // first those that are feasible, the chosen one in front
  std::optional<std::size_t> chosen = {};
  std::string reason = {};                // of the choice, or why there is none: a sentence
  std::string assumed = {};               // what was not said and had to be assumed; may be empty
  std::vector<NearRequest> nearest = {};  // if nothing is feasible

  // Throws BadParameters, with the reason, when there is none.
  const Plan& choice() const {
    if (!chosen) throw BadParameters(reason);
    return candidates.at(*chosen);
  }
};

// `choice`: only the chosen one matters, and others need not be listed.
enum class PlanScope : std::uint8_t { all, choice };

// Throws BadParameters for requests that make no sense.
Planning plan(const PlanRequest& request, PlanScope scope = PlanScope::all);

// The same, remembered: the last kPlansKept requests of the process are answered without planning and
// without a copy. For hosts that plan on a thread that must not wait. Any thread may call it: the
// lock is held only to look up and to keep, never while planning.
inline constexpr std::size_t kPlansKept = 64;
std::shared_ptr<const Planning> planned(const PlanRequest& request,
                                        PlanScope scope = PlanScope::all);

// All that the chosen plan promises, as a request. There must be one.
PlanRequest promised(const Planning& planning);

// What the command takes beside its filter: buffers for records and the chunks in which state is
// saved; and with its code and libraries. The same on every run, or a state file would not be found
// to agree.
inline constexpr std::uint64_t kBufferBytes = std::uint64_t{2} << 20;
inline constexpr std::uint64_t kProcessBytes = std::uint64_t{8} << 20;
// Memory alone is what the whole process may take. Where it is known what to remember, memory is a
// limit for that, and the process has its buffers in it.
inline std::uint64_t beside_in_command(const PlanRequest& request) noexcept {
  return request.window || request.expect ? kBufferBytes : kProcessBytes;
}
// With memory alone: no less than so much for the filter, and no more in all.
inline constexpr std::uint64_t kLeastFilterBytes = std::uint64_t{1} << 20;
inline constexpr std::uint64_t kMostMemory = std::uint64_t{32} << 40;

// Where a window of deliveries loses more than this share of what is new, little is delivered, so
// little ages: it may stop for good.
inline constexpr double kMostDeliveredFpr = 0.1;

}  // namespace sluice
