// Figure 9: equal timers.
#include "repro/koloniari/timers.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <unordered_map>

#include "repro/koloniari/experiments.hpp"
#include "repro/koloniari/streams.hpp"
#include "sluice/model/timer.hpp"

namespace sluice::repro::koloniari {

// The next timer of the same slice that is not the key's yet: a timer that two hash functions share
// would agree with itself.
void TimerSlices::places_of(const Digest& key, Places& places) const {
  map_.places(key, places);
  if (!different_) return;
  const auto begin = places.begin();
  for (unsigned i = 1; i < map_.probes(); ++i)
    while (std::find(begin, begin + i, places[i]) != begin + i)
      places[i].position = (places[i].position + 1) % map_.site_bits();
}

TimerSlices::Sight TimerSlices::look(const Digest& key, std::uint32_t now) const {
  Places places;
  std::array<std::uint32_t, cluster::SliceMap::kMostProbes> times;
  places_of(key, places);
  for (unsigned i = 0; i < map_.probes(); ++i) {
    times[i] = times_[cell(places[i])];
    if (!live(times[i], now)) return {};
  }
  std::sort(times.begin(), times.begin() + map_.probes());
  unsigned most = 0, run = 0;
  for (unsigned i = 0; i < map_.probes(); ++i) {
    run = i > 0 && times[i] == times[i - 1] ? run + 1 : 1;
    most = std::max(most, run);
  }
  return {true, most};
}

void TimerSlices::deliver(const Digest& key, std::uint32_t now) {
  Places places;
  places_of(key, places);
  for (unsigned i = 0; i < map_.probes(); ++i) {
    const std::uint64_t at = cell(places[i]);
    live_ += !live(times_[at], now);
    times_[at] = now;
    written_.push_back({now, at});
  }
}

void TimerSlices::advance(std::uint32_t now) {
  for (; !written_.empty() && !live(written_.front().time, now); written_.pop_front())
    if (times_[written_.front().cell] == written_.front().time) {
      times_[written_.front().cell] = 0;
      --live_;
    }
}

namespace {

using cluster::SliceParams;
using cluster::Slicing;

constexpr std::uint64_t kDraws = 6;  // of hash functions

struct HashDigest {
  std::size_t operator()(const Digest& digest) const { return digest.lo; }
};

// When this filter last delivered each key: what a duplicate is.
class Truth {
 public:
  explicit Truth(std::uint32_t window) : window_(window) {}
  bool repeated(const Digest& key, std::uint32_t now) const {
    const auto found = last_.find(key);
    return found != last_.end() && now - found->second < window_;
  }
  void deliver(const Digest& key, std::uint32_t now) { last_[key] = now; }

 private:
  std::uint32_t window_;
  std::unordered_map<Digest, std::uint32_t, HashDigest> last_;
};

struct EqualRun {
  double false_positives = 0, true_negatives = 0, false_negatives = 0, true_positives = 0;
  // Of keys whose timers are all live, by how many are equal.
  std::vector<double> really_repeated, alike;

  double fpr() const { return false_positives / (false_positives + true_negatives); }
  double fnr() const { return false_negatives / (false_negatives + true_positives); }
};

// One event a time unit; a duplicate has all timers live and at least `equal` of them equal. Adds
// to what other draws of the hash functions gave.
void run_stream(const std::vector<Event>& events, const SliceParams& params, std::uint32_t window,
                unsigned equal, bool different, std::uint64_t draw, EqualRun& run) {
  TimerSlices timers(params, window, different);
  Truth truth(window);
  run.really_repeated.resize(params.probes + 1);
  run.alike.resize(params.probes + 1);
  std::uint32_t now = 0;
  for (const Event& event : events) {
    ++now;
    timers.advance(now);
    const Digest key = rehashed(event.key, draw);
    const TimerSlices::Sight sight = timers.look(key, now);
    const bool judged = sight.all_live && sight.equal >= equal;
    const bool repeated = truth.repeated(event.key, now);
    if (sight.all_live) {
      ++run.alike[sight.equal];
      run.really_repeated[sight.equal] += repeated;
    }
    if (!judged) {
      timers.deliver(key, now);
      truth.deliver(event.key, now);
    }
    if (now <= window) continue;  // until the window is full
    ++(repeated ? judged ? run.true_positives : run.false_negatives
       : judged ? run.false_positives
                : run.true_negatives);
  }
}

}  // namespace

double live_events(const std::vector<Event>& events, std::uint32_t window) {
  Truth truth(window);
  double delivered = 0;
  std::uint32_t now = 0;
  for (const Event& event : events)
    if (!truth.repeated(event.key, ++now)) {
      truth.deliver(event.key, now);
      ++delivered;
    }
  return delivered / static_cast<double>(events.size()) * window;
}

Result run_fig9(const Context& context) {
  const std::vector<Event> events = synthetic(context).events;
  const unsigned k = context.whole("k");
  const auto window = static_cast<std::uint32_t>(context.scaled(context.number("w"), 2));
  const double live = live_events(events, window);
  const std::uint64_t timers = bits_for(live, k, context.number("P"));
  Result result{context.rows(), {}};
  Panel share{"of keys with all timers live, by how many are equal",
              {"equal timers", false, 0.4, k + 0.6, {}, 1.0},
              {"true duplicates (share)", false, 0.0, 1.1},
              {}};
  Panel fpr{"false positives",
            {"equal timers that a duplicate needs", false, 0.8, k + 0.2, {}, 1.0},
            {"false positives (share of the distinct)", true, 1e-6, 0.1},
            {}};
  Panel fnr{"false negatives",
            {"equal timers that a duplicate needs", false, 0.8, k + 0.2, {}, 1.0},
            {"false negatives (share of the duplicates)", true},
            {}};
  double before[2] = {}, after[2] = {}, cost[2] = {};
  bool kept = true;
  double done = 0;
  for (const bool vertical : {false, true}) {
    const std::string name = vertical ? "vertical" : "horizontal";
    const SliceParams params{vertical ? Slicing::vertical : Slicing::horizontal,
                             timers,
                             k,
                             context.whole("slices"),
                             1,
                             1};
    Curve shares{name, Curve::Style::bars, {}, vertical};
    Curve positives{name, Curve::Style::line, {}, vertical}, negatives = positives;
    Curve model{name + ", model", Curve::Style::model, {}, vertical}, negative_model = model;
    negative_model.name += ", all ages alike";
    const model::TimerTable table{static_cast<double>(timers), k,
                                  vertical ? 1 : context.whole("slices"), false};
    for (unsigned equal = 1; equal <= k; ++equal) {
      EqualRun run;
      for (std::uint64_t draw = 0; draw < kDraws; ++draw)
        run_stream(events, params, window, equal, vertical && context.number("different") != 0,
                   context.seed() + draw, run);
      const double x = equal;
      positives.points.push_back({x, run.fpr()});
      negatives.points.push_back({x, run.fnr()});
      model.points.push_back({x, model::timer_equal_fpr(table, equal, live, window)});
      negative_model.points.push_back({x, model::timer_equal_fnr(table, equal, live, window)});
      if (equal == 1) {
        before[vertical] = run.fpr();
        result.rows.predicted("Fig. 9(c)", name + ", false positives without the test",
                              model.points.back().y, run.fpr(), {0.2, true},
                              "the model takes all timers for independent and every key for as "
                              "frequent");
        kept &= run.false_negatives == 0;
        for (unsigned i = 1; i <= k; ++i)
          if (run.alike[i] > 0)
            shares.points.push_back(
                {static_cast<double>(i), run.really_repeated[i] / run.alike[i]});
      }
      if (equal == (vertical ? 2u : 3u)) after[vertical] = run.fpr(), cost[vertical] = run.fnr();
      context.progress(++done / (2.0 * k));
    }
    share.curves.push_back(shares);
    fpr.curves.insert(fpr.curves.end(), {positives, model});
    fnr.curves.insert(fnr.curves.end(), {negatives, negative_model});
  }
  fpr.curves.push_back({"the paper, recomputed",
                        Curve::Style::points,
                        {{1, context.point("fig9.vertical.before")},
                         {2, context.point("fig9.vertical.fpr")},
                         {1, context.point("fig9.horizontal.before")},
                         {3, context.point("fig9.horizontal.fpr")}},
                        3u});
  fnr.curves.push_back(
      {"the paper, recomputed",
       Curve::Style::points,
       {{2, context.point("fig9.vertical.fnr")}, {3, context.point("fig9.horizontal.fnr")}},
       3u});
  for (const bool vertical : {true, false}) {
    const std::string id = vertical ? "fig9.vertical" : "fig9.horizontal";
    result.rows.value(id + ".before", before[vertical]);
    result.rows.value(id + ".fpr", after[vertical]);
    result.rows.value(id + ".fnr", cost[vertical]);
  }
  result.rows.claim(
      "claim.equal", after[0] < before[0] && after[1] < before[1],
      fmt::format("vertical {:.4f} to {:.4f} for {:.1f} % false negatives, horizontal "
                  "{:.4f} to {:.4f} for {:.1f} %",
                  before[1], after[1], 100 * cost[1], before[0], after[0], 100 * cost[0]));
  result.rows.claim(
      "claim.window", kept,
      "without the test of equal timers no key was delivered twice within the window");
  result.figure = {fmt::format("Equal timers: window {}, {} timers, k = {}", window, timers, k),
                   {share, fpr, fnr}};
  return result;
}

}  // namespace sluice::repro::koloniari
