// Figures 10 and 11: growth on bursts, by density and by cardinality.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <memory>

#include "repro/koloniari/experiments.hpp"
#include "repro/koloniari/streams.hpp"
#include "repro/koloniari/timers.hpp"
#include "sluice/base/random.hpp"
#include "sluice/filters/catalogue.hpp"
#include "sluice/model/sliced.hpp"
#include "sluice/window/growth.hpp"

namespace sluice::repro::koloniari {
namespace {

using cluster::SliceParams;
using cluster::Slicing;

constexpr std::size_t kWindows = 3, kBursts = 2;
constexpr std::size_t kSamples = 300;  // over the stream
constexpr std::size_t kProbes = 1000;  // keys never seen, at each

struct Plan {
  std::uint64_t timers;  // of each filter
  unsigned probes;
  std::uint32_t window;
  double set;   // share of live timers at which a filter is full
  double keys;  // the same in keys
};

// The paper's: filters of one size, the newest takes what is delivered, all are asked.
class PaperGrowth {
 public:
  PaperGrowth(const Plan& plan, bool by_density) : plan_(plan), by_density_(by_density) { add(); }

  bool holds(const Digest& key, std::uint32_t now) const {
    return std::ranges::any_of(
        stages_, [&](const auto& stage) { return stage->timers.look(key, now).all_live; });
  }
  void deliver(const Digest& key, std::uint32_t now) {
    Stage& newest = *stages_.back();
    newest.timers.deliver(key, now);
    ++newest.keys;
    if (by_density_ ? newest.timers.density() > plan_.set : newest.keys > plan_.keys) add();
  }
  void advance(std::uint32_t now) {
    for (const auto& stage : stages_) stage->timers.advance(now);
    // What is empty goes, except the one that is written to.
    const auto last = std::prev(stages_.end());
    stages_.erase(std::remove_if(stages_.begin(), last,
                                 [](const auto& stage) { return stage->timers.live() == 0; }),
                  last);
  }
  std::size_t filters() const { return stages_.size(); }

 private:
  struct Stage {
    TimerSlices timers;
    double keys = 0;
  };
  void add() {
    const SliceParams params{Slicing::vertical, plan_.timers, plan_.probes, 1, 1, 1};
    stages_.push_back(std::make_unique<Stage>(Stage{TimerSlices(params, plan_.window)}));
  }

  Plan plan_;
  bool by_density_;
  std::vector<std::unique_ptr<Stage>> stages_;
};

// Ours: the error is a budget that the live filters share.
class OurGrowth {
 public:
  OurGrowth(const Plan& plan, double fpr, bool by_density, std::uint64_t keys)
      : growth_(
            [plan](std::uint64_t stage_keys, double stage_fpr, MemoryResource& memory) {
              return make_filter(
                  fmt::format("timer,generations={},timer=16,layout=plain", plan.window),
                  Wish{.keys = stage_keys, .fpr = stage_fpr}, memory);
            },
            {.keys = keys,
             .fpr = fpr,
             .by = by_density ? Growth::By::density : Growth::By::cardinality}) {
    growth_.start();
  }
  bool holds(const Digest& key) const {
    Verdict verdict;
    growth_.may_contain({&key, 1}, {&verdict, 1});
    return verdict == Verdict::duplicate;
  }
  void observe(const Digest& key) {
    Verdict verdict;
    std::uint64_t budget = 1;
    growth_.admit({&key, 1}, {&verdict, 1}, budget, Anchor::delivered);
  }
  void advance() { growth_.rotate(); }
  std::size_t filters() const { return growth_.stage_count(); }

 private:
  Growth growth_;
};

struct Run {
  Curve filters, errors, ours;
  std::size_t quiet_least = ~std::size_t{0}, quiet_most = 0, burst_most = 0;  // filters
  std::size_t changes = 0;  // of the number of filters, outside the burst
  double burst_fpr = 0, our_burst_fpr = 0;
};

// One event a time unit, and `burst` of them in the second third of the time.
Run run_burst(const Context& context, const std::vector<Event>& events, std::uint32_t window,
              unsigned burst, bool by_density) {
  const unsigned k = context.whole("k");
  const double target = context.number("P");
  // Distinct events of a window at the first rate: counted over the stream's beginning.
  const std::size_t first = std::min<std::size_t>(events.size(), 20 * window);
  std::vector<Event> part(events.begin(), events.begin() + static_cast<std::ptrdiff_t>(first));
  const double live = live_events(part, window);
  const double keys = context.number("headroom") * live;
  const Plan plan{bits_for(keys, k, target), k, window, std::pow(target, 1.0 / k), keys};
  PaperGrowth paper(plan, by_density);
  OurGrowth ours(plan, target, by_density, static_cast<std::uint64_t>(std::ceil(keys)));
  const std::size_t time = events.size() * 3 / (2 + burst);
  const std::size_t step = std::max<std::size_t>(1, time / kSamples);
  SplitMix64 random(context.seed() + window * 10 + burst);
  Run run;
  std::size_t next = 0, bursting = 0, before = 1;
  for (std::size_t now = 1; now <= time; ++now) {
    const bool in_burst = now > time / 3 && now <= 2 * time / 3;
    paper.advance(static_cast<std::uint32_t>(now));
    ours.advance();
    for (unsigned i = 0; i < (in_burst ? burst : 1) && next < events.size(); ++i) {
      const Digest& key = events[next++].key;
      if (!paper.holds(key, static_cast<std::uint32_t>(now)))
        paper.deliver(key, static_cast<std::uint32_t>(now));
      ours.observe(key);
    }
    const std::size_t filters = paper.filters();
    if (!in_burst) run.changes += filters != before;
    before = filters;
    if (now > 2 * window && now < time / 3) {
      run.quiet_least = std::min(run.quiet_least, filters);
      run.quiet_most = std::max(run.quiet_most, filters);
    }
    if (in_burst) run.burst_most = std::max(run.burst_most, filters);
    if (now % step != 0) continue;
    double lost = 0, lost_by_ours = 0;
    for (std::size_t i = 0; i < kProbes; ++i) {
      const Digest fresh{random.next(), random.next()};
      lost += paper.holds(fresh, static_cast<std::uint32_t>(now));
      lost_by_ours += ours.holds(fresh);
    }
    const double x = 100.0 * static_cast<double>(now) / static_cast<double>(time);
    run.filters.points.push_back({x, static_cast<double>(filters)});
    run.errors.points.push_back({x, lost / kProbes});
    run.ours.points.push_back({x, lost_by_ours / kProbes});
    // Once a whole window is of the burst.
    if (in_burst && now > time / 3 + window) {
      run.burst_fpr += lost / kProbes, run.our_burst_fpr += lost_by_ours / kProbes;
      ++bursting;
    }
  }
  if (bursting > 0) {
    run.burst_fpr /= static_cast<double>(bursting);
    run.our_burst_fpr /= static_cast<double>(bursting);
  }
  return run;
}

struct Sweep {
  std::vector<Panel> filters, errors;
  Run runs[2][kWindows][kBursts];  // by density first
};

// A burst is one of new events; `new` 0 takes the web log, where repeats do not add to the filters.
std::vector<Event> stream_of(const Context& context) {
  std::vector<Event> events = web_log(context).events;
  if (context.number("new") != 0 && context.input().empty()) {
    SplitMix64 random(context.seed());
    for (Event& event : events) event.key = {random.next(), random.next()};
  }
  return events;
}

std::array<unsigned, kWindows> windows_of(const Context& context) {
  return {context.whole("w1"), context.whole("w2"), context.whole("w3")};
}

Sweep sweep(const Context& context) {
  const std::array windows = windows_of(context);
  const std::array bursts = {context.whole("b1"), context.whole("b2")};
  const std::vector<Event> events = stream_of(context);
  Sweep result;
  double done = 0;
  for (const bool by_density : {true, false})
    for (std::size_t w = 0; w < kWindows; ++w) {
      const auto window = static_cast<std::uint32_t>(context.scaled(windows[w], 10));
      const std::string title =
          fmt::format("by {}, window {}", by_density ? "density" : "cardinality", window);
      const Axis x{"time (% of the stream's)", false, 0.0, 100.0};
      Panel filters{title, x, {"filters", false, 0.0, {}, {}, 1.0}, {}};
      Panel errors{title, x, {"false positives (share of the distinct)", false, 0.0}, {}};
      for (std::size_t b = 0; b < kBursts; ++b) {
        Run run = run_burst(context, events, window, bursts[b], by_density);
        run.filters.name = run.errors.name = fmt::format("burst {}x", bursts[b]);
        run.ours.name = fmt::format("burst {}x, budget shared", bursts[b]);
        run.ours.style = Curve::Style::model;
        run.filters.style = Curve::Style::steps;
        run.filters.colour = run.errors.colour = run.ours.colour = static_cast<unsigned>(b);
        filters.curves.push_back(run.filters);
        errors.curves.push_back(run.errors);
        errors.curves.push_back(run.ours);
        result.runs[!by_density][w][b] = std::move(run);
        context.progress(++done / (2.0 * kWindows * kBursts));
      }
      const double target = context.number("P");
      errors.curves.push_back({"target", Curve::Style::model, {{0, target}, {100, target}}, 7u});
      result.filters.push_back(filters);
      result.errors.push_back(errors);
    }
  return result;
}

}  // namespace

Result run_fig10(const Context& context) {
  Sweep found = sweep(context);
  Result result{context.rows(),
                {"Filters that live, through a burst in the second third", found.filters, 2}};
  const std::array windows = windows_of(context);
  const auto& density = found.runs[0];
  const auto& cardinality = found.runs[1];
  bool one = true, two = true, more = true, fluctuates = true;
  std::string numbers, changes;
  for (std::size_t w = 0; w < kWindows; ++w) {
    const Run &by_density = density[w][1], &by_cardinality = cardinality[w][1];
    one &= by_density.quiet_most == 1;
    two &= by_cardinality.quiet_least == 1 && by_cardinality.quiet_most == 2;
    more &= by_density.burst_most > 1 && by_cardinality.burst_most > 1;
    fluctuates &= by_cardinality.changes > by_density.changes;
    const char* comma = w == 0 ? "" : "; ";
    numbers += fmt::format("{}window {}: {} and {}", comma, windows[w], by_density.burst_most,
                           by_cardinality.burst_most);
    changes += fmt::format("{}window {}: {} and {}", comma, windows[w], by_cardinality.changes,
                           by_density.changes);
  }
  const Run &wide = density[2][1], &narrow = cardinality[2][1];
  result.rows.claim(
      "fig10.quiet.density", one,
      fmt::format("{} to {} filters, window {}", wide.quiet_least, wide.quiet_most, windows[2]));
  result.rows.claim("fig10.quiet.cardinality", two,
                    fmt::format("{} to {} filters, window {}", narrow.quiet_least,
                                narrow.quiet_most, windows[2]));
  result.rows.claim(
      "fig10.fluctuates", fluctuates,
      fmt::format("changes of the number outside a burst of {}: {}", context.whole("b2"), changes));
  result.rows.claim("claim.bursts", more,
                    fmt::format("most filters by density and cardinality, burst of {}: {}",
                                context.whole("b2"), numbers));
  // Windows side by side: density in the left column.
  std::vector<Panel> ordered;
  for (std::size_t w = 0; w < kWindows; ++w)
    ordered.insert(ordered.end(), {found.filters[w], found.filters[w + kWindows]});
  result.figure.panels = ordered;
  return result;
}

namespace {

// Means of `each` neighbouring points: single samples of 200 hide the curve.
void smooth(Curve& curve, std::size_t each) {
  std::vector<Point> means;
  for (std::size_t begin = 0; begin + each <= curve.points.size(); begin += each) {
    Point mean{0, 0};
    for (std::size_t i = begin; i < begin + each; ++i) {
      mean.x += curve.points[i].x / static_cast<double>(each);
      mean.y += curve.points[i].y / static_cast<double>(each);
    }
    means.push_back(mean);
  }
  curve.points = std::move(means);
}

// The same scale in all panels.
void align(std::vector<Panel>& panels) {
  double most = 0;
  for (Panel& panel : panels)
    for (Curve& curve : panel.curves) {
      if (curve.points.size() > 100) smooth(curve, curve.points.size() / 50);
      for (const Point& point : curve.points) most = std::max(most, point.y);
    }
  for (Panel& panel : panels) panel.y.from = 0, panel.y.to = 1.05 * most;
}

}  // namespace

Result run_fig11(const Context& context) {
  Sweep found = sweep(context);
  Result result{context.rows(), {"False positives through a burst in the second third", {}, 2}};
  for (std::size_t w = 0; w < kWindows; ++w)
    result.figure.panels.insert(result.figure.panels.end(),
                                {found.errors[w], found.errors[w + kWindows]});
  align(result.figure.panels);
  double worst = 0, ours = 0;
  for (const auto& by : found.runs)
    for (const auto& window : by) {
      worst = std::max(worst, window[1].burst_fpr);
      ours = std::max(ours, window[1].our_burst_fpr);
    }
  result.rows.value("fig11.burst.density", found.runs[0][2][1].burst_fpr);
  result.rows.value("fig11.burst.cardinality", found.runs[1][2][1].burst_fpr);
  result.rows.claim("claim.bound", worst <= context.number("P"),
                    fmt::format("up to {:.3f} in a burst of {} times the events, against {}", worst,
                                context.whole("b2"), context.number("P")));
  result.rows.claim("fig11.ours", ours <= context.number("P"),
                    fmt::format("at most {:.3f}, on average over the burst", ours));
  return result;
}

}  // namespace sluice::repro::koloniari
