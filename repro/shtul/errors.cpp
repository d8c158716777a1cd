// Figures 6 to 8: errors while a filter fills, and with duplicates in the stream.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>

#include "repro/shtul/cells.hpp"
#include "repro/shtul/experiments.hpp"
#include "repro/shtul/fresh_keys.hpp"
#include "repro/shtul/rows_of_tables.hpp"
#include "sluice/base/error.hpp"
#include "sluice/lab/zipf.hpp"
#include "sluice/model/apbf.hpp"
#include "sluice/model/distinct_keys.hpp"

namespace sluice::repro::shtul {
namespace {

std::string name_of(const Cut& cut) {
  return fmt::format("({},{})", cut.k, cut.l);
}

std::uint64_t window_of(const Context& context) {
  const unsigned window = context.whole("w");
  if (window < 100 || window > 10'000'000)
    throw BadParameters("--set w: give a window from 100 to 10000000");
  return window;
}

// --- figure 6 -----------------------------------------------------------------------------------

struct Filling {
  Curve ours, model;
  double worst = 0;        // mean just before shifts, once the filter is as full as it gets
  double expected = 0;     // the same, by the model and what the filters hold
  std::uint64_t lost = 0;  // keys of the window that are not reported
};

// A few filters side by side, as one of a thousand keys has luck of its own.
class FillingRun {
 public:
  FillingRun(const ApbfParams& params, std::uint64_t seed) : params_(params) {
    SplitMix64 seeds(seed);
    for (unsigned i = 0; i < kFilters; ++i) streams_.emplace_back(params, seeds.next());
  }

  void write(std::uint64_t count, bool shift) {
    for (auto& stream : streams_) {
      if (shift) stream.filter().rotate();
      const std::vector<Digest> keys = stream.fresh(count);
      stream.write(keys);
      if (&stream != &streams_.front()) continue;
      recent_.insert(recent_.end(), keys.begin(), keys.end());
      const std::uint64_t window = params_.l * params_.generation_keys();
      if (recent_.size() > 2 * window)
        recent_.erase(recent_.begin(), recent_.end() - static_cast<std::ptrdiff_t>(window));
    }
  }
  double error(std::uint64_t probes) {
    std::uint64_t found = 0;
    const std::uint64_t each = std::max<std::uint64_t>(1, probes / kFilters);
    for (auto& stream : streams_) found += stream.false_positives(each);
    return static_cast<double>(found) / static_cast<double>(each * kFilters);
  }
  double predicted() const { return streams_.front().filter().stats().predicted_fpr; }
  std::uint64_t lost() {
    const std::uint64_t window = params_.l * params_.generation_keys();
    const std::span<const Digest> held =
        std::span<const Digest>(recent_).last(std::min<std::uint64_t>(window, recent_.size()));
    return held.size() - streams_.front().reported(held);
  }

 private:
  static constexpr unsigned kFilters = 8;
  ApbfParams params_;
  std::vector<FreshKeys<ApbfParams>> streams_;
  std::vector<Digest> recent_;  // of the first filter
};

Filling fill(const Cut& cut, std::uint64_t window, std::uint64_t insertions, std::uint64_t probes,
             std::uint64_t seed, const std::function<void(double)>& progress) {
  const ApbfParams params = apbf_of(cut.k, cut.l, window);
  const std::uint64_t g = params.generation_keys();
  FillingRun run(params, seed);
  Filling filling{{name_of(cut), Curve::Style::line, {}},
                  {name_of(cut) + " model", Curve::Style::model, {}}};
  // About a hundred samples; a small error costs many probes each, so half of them.
  const std::uint64_t generations = std::max<std::uint64_t>(1, insertions / g);
  const std::uint64_t parts = std::clamp<std::uint64_t>(100 / generations, 1, 8);
  const std::uint64_t every = std::max<std::uint64_t>(1, generations / 50);
  std::uint64_t samples = 0;
  for (std::uint64_t generation = 0; generation < generations; ++generation) {
    for (std::uint64_t part = 0; part < parts; ++part) {
      const std::uint64_t from = g * part / parts, to = g * (part + 1) / parts;
      run.write(to - from, generation > 0 && part == 0);
      if (generation % every != 0) continue;
      const double x = static_cast<double>(generation * g + to);
      const double error = run.error(probes);
      filling.ours.points.push_back({x, error});
      filling.model.points.push_back({x, run.predicted()});
      if (part + 1 == parts && generation >= cut.k + cut.l) {
        filling.worst += error, ++samples;
        filling.expected += filling.model.points.back().y;
      }
    }
    filling.lost += run.lost();
    progress(static_cast<double>(generation + 1) / static_cast<double>(generations));
  }
  filling.worst /= static_cast<double>(std::max<std::uint64_t>(1, samples));
  filling.expected /= static_cast<double>(std::max<std::uint64_t>(1, samples));
  return filling;
}

// --- figures 7 and 8 ----------------------------------------------------------------------------

// Keys whose share of duplicates in a window is given.
struct Duplicates {
  bool zipf = false;
  std::uint64_t keys = 0;  // of the universe; 0: every key is fresh

  double distinct(double arrivals) const {
    if (keys == 0) return arrivals;
    return zipf ? model::power_law_distinct(keys, arrivals)
                : model::uniform_distinct(static_cast<double>(keys), arrivals);
  }
};

// The universe that gives a window that share of duplicates.
Duplicates universe_of(bool zipf, double share, double window) {
  Duplicates result{zipf, 0};
  if (share <= 0) return result;
  double low = 1, high = 0x1.0p40;
  while (high / low > 1.0005) {
    const double middle = std::sqrt(low * high);
    result.keys = static_cast<std::uint64_t>(middle);
    ((1 - result.distinct(window) / window) > share ? low : high) = middle;
  }
  result.keys = std::max<std::uint64_t>(1, static_cast<std::uint64_t>(std::lround(high)));
  return result;
}

// The error just before a shift, where slice i holds what is distinct of min(i + 1, k) generations.
double duplicated_fpr(const ApbfParams& params, const Duplicates& duplicates) {
  const auto g = static_cast<double>(params.generation_keys());
  std::vector<double> matches;
  for (unsigned i = 0; i < params.k + params.l; ++i)
    matches.push_back(-std::expm1(duplicates.distinct(std::min(i + 1, params.k) * g) *
                                  std::log1p(-1 / static_cast<double>(params.part_bits))));
  return model::run_of_matches(matches, params.k);
}

class DuplicatedKeys {
 public:
  DuplicatedKeys(const Duplicates& duplicates, std::uint64_t seed)
      : duplicates_(duplicates),
        random_(seed),
        salt_(random_.next()),
        ranks_(std::max<std::uint64_t>(1, duplicates.keys), 1.0) {}

  void fill(std::span<Digest> digests) {
    for (Digest& digest : digests) {
      if (duplicates_.keys == 0) {
        digest = {random_.next(), random_.next()};
        continue;
      }
      const std::uint64_t key =
          duplicates_.zipf ? ranks_.draw(random_) : scale_to(random_.next(), duplicates_.keys);
      SplitMix64 mix(salt_ + key);
      digest.lo = mix.next();
      digest.hi = mix.next();
    }
  }

 private:
  Duplicates duplicates_;
  SplitMix64 random_;
  std::uint64_t salt_;
  ZipfSampler ranks_;
};

// Measured over a few filters and a few shifts of each.
double measure(const ApbfParams& params, const Duplicates& duplicates, double probes,
               std::uint64_t seed) {
  constexpr unsigned kFilters = 6, kShifts = 4;
  SplitMix64 seeds(seed);
  std::uint64_t found = 0, asked = 0;
  for (unsigned i = 0; i < kFilters; ++i) {
    FreshKeys<ApbfParams> stream(params, seeds.next());
    DuplicatedKeys source(duplicates, seeds.next());
    std::vector<Digest> keys(stream.a_generation());
    const unsigned settled = params.k + params.l, step = std::max(2u, params.k);
    for (unsigned generation = 0; generation < settled + step * kShifts; ++generation) {
      if (generation > 0) stream.filter().rotate();
      source.fill(keys);
      stream.write(keys);
      if (generation < settled || (generation - settled) % step != 0) continue;
      const auto each = static_cast<std::uint64_t>(probes / (kFilters * kShifts));
      found += stream.false_positives(each);
      asked += each;
    }
  }
  return static_cast<double>(found) / static_cast<double>(asked);
}

struct Decay {
  Curve ours, model;
  std::vector<double> shares;  // of the error without duplicates, by the model
};

constexpr double kStep = 0.1;
constexpr unsigned kSteps = 9;  // 0 to 80 %

Decay decay_of(const Context& context, const Cut& cut, unsigned colour) {
  const ApbfParams params = apbf_of(cut.k, cut.l, window_of(context));
  const double window = static_cast<double>(params.l * params.generation_keys());
  Decay decay{{name_of(cut), Curve::Style::line, {}, colour},
              {name_of(cut) + " model", Curve::Style::model, {}, colour},
              {}};
  for (unsigned i = 0; i < kSteps; ++i) {
    const Duplicates duplicates = universe_of(false, i * kStep, window);
    const double model = duplicated_fpr(params, duplicates);
    decay.shares.push_back(model / duplicated_fpr(params, {}));
    decay.model.points.push_back({100 * i * kStep, model});
    const double probes = std::clamp(4000 / model, 4e4, 4e6) * context.scale();
    if (probes * model < 25) continue;  // too few would be found to tell
    decay.ours.points.push_back(
        {100 * i * kStep,
         measure(params, duplicates, probes, context.seed() + 100 * cut.k + 10 * cut.l + i)});
  }
  return decay;
}

// Each measured point beside its model.
void predict(Rows& rows, const char* where, const Cut& cut, const Decay& decay) {
  for (const Point& point : decay.ours.points) {
    const auto at = static_cast<std::size_t>(std::lround(point.x / (100 * kStep)));
    if (at != 3 && at != 5) continue;
    rows.predicted(where, fmt::format("{}: error with {:g} % duplicates", name_of(cut), point.x),
                   decay.model.points[at].y, point.y, {0.2},
                   "a filter of a thousand keys has luck of its own, more the smaller the error");
  }
}

// With the printed errors where there are no duplicates.
template <class Cuts>
Figure decay_figure(const std::string& title, std::vector<Curve> curves, const Cuts& cuts,
                    bool log) {
  Curve paper{"Table 2, printed", Curve::Style::points, {}, 5};
  for (const Cut& cut : cuts)
    paper.points.push_back({0, printed(fmt::format("table2.{}-{}.fp", cut.k, cut.l))});
  curves.push_back(std::move(paper));
  return {title,
          {{"uniform duplicates, just before a shift",
            {"duplicates in a window (% of the arrivals)", false, -1.0},
            {"false positives (share of the distinct)", log, log ? 1e-10 : 0},
            std::move(curves)}}};
}

}  // namespace

Result run_fig6(const Context& context) {
  const std::uint64_t window = window_of(context);
  const unsigned insertions = context.whole("n");
  if (insertions < 100) throw BadParameters("--set n: give 100 keys or more");
  Result result{context.rows(), {}};
  Panel panel{fmt::format("filters for {} keys", window),
              {"distinct keys inserted", false, 0.0, 1.03 * insertions},
              {"false positives (share of the distinct)", true, 1e-6, 0.3},
              {}};
  Curve paper{"Table 2, printed", Curve::Style::points, {}, 5};
  std::uint64_t lost = 0;
  unsigned colour = 0;
  for (const Cut& cut : kLowest) {
    const double aimed = std::pow(10.0, colour + 1.0);
    const std::uint64_t probes = context.scaled(aimed * 1e4, 1000);
    // Half of the work is in the last of them, and a tenth of that in the one before.
    const double done = colour == 0 ? 0 : 0.1 * colour;
    Filling filling =
        fill(cut, window, insertions, probes, context.seed() + colour, [&](double share) {
          context.progress(done + share * (colour + 1 == kLowest.size() ? 1 - done : 0.1));
        });
    lost += filling.lost;
    const std::string id = fmt::format("fig6.{}-{}", cut.k, cut.l);
    result.rows.value(id, filling.worst);
    result.rows.predicted(
        "Fig. 6", fmt::format("{}: the same, against what the filters predict", name_of(cut)),
        filling.expected, filling.worst, {0.1}, "too few keys were asked for at this scale");
    paper.points.push_back({static_cast<double>(insertions), printed(id)});
    filling.ours.colour = filling.model.colour = colour++;
    panel.curves.push_back(std::move(filling.ours));
    panel.curves.push_back(std::move(filling.model));
  }
  result.rows.claim("claim.nofalsenegatives", lost == 0, fmt::format("{}", lost));
  panel.curves.push_back(std::move(paper));
  result.figure = {"Error while a filter fills, and after, beside what the filters predict",
                   {panel}};
  return result;
}

Result run_fig7(const Context& context) {
  Result result{context.rows(), {}};
  std::vector<Curve> curves;
  bool exponential = true;
  std::string numbers;
  for (unsigned i = 0; i < kLowest.size(); ++i) {
    const Decay decay = decay_of(context, kLowest[i], i);
    predict(result.rows, "Fig. 7", kLowest[i], decay);
    curves.push_back(decay.ours);
    curves.push_back(decay.model);
    // At least a straight line on the figure: the second 30 % take what the first did, or more.
    const double first = std::log(decay.shares[3]);
    const double second = std::log(decay.shares[6] / decay.shares[3]);
    exponential &= second / first > 0.9;
    numbers += fmt::format("{}{}: 1, {:.2g}, {:.2g}", numbers.empty() ? "" : "; ",
                           name_of(kLowest[i]), decay.shares[3], decay.shares[6]);
    context.progress((i + 1.0) / kLowest.size());
  }
  result.rows.claim("claim.duplicates", exponential, numbers);
  result.figure =
      decay_figure("Error with duplicates in the stream", std::move(curves), kLowest, true);
  return result;
}

Result run_fig8(const Context& context) {
  Result result{context.rows(), {}};
  std::vector<Curve> curves;
  bool lower = true, zipf_lower = true;
  std::string left, ratios;
  double before = 0;
  for (unsigned i = 0; i < kTenth.size(); ++i) {
    const Cut& cut = kTenth[i];
    const Decay decay = decay_of(context, cut, i);
    predict(result.rows, "Fig. 8", cut, decay);
    curves.push_back(decay.ours);
    curves.push_back(decay.model);
    lower &= decay.shares[5] > before;
    before = decay.shares[5];
    left += fmt::format("{}{:.3f}", left.empty() ? "" : ", ", before);

    const ApbfParams params = apbf_of(cut.k, cut.l, window_of(context));
    const double window = static_cast<double>(params.l * params.generation_keys());
    const Duplicates zipf = universe_of(true, 0.5, window);
    const double model = duplicated_fpr(params, zipf);
    const double share =
        measure(params, zipf, std::max(4e5 * context.scale(), 1e4), context.seed() + 7777 + cut.k);
    result.rows.predicted("§5.6.2",
                          fmt::format("{}: error with 50 % duplicates, Zipf", name_of(cut)), model,
                          share, {0.2},
                          "a filter of a thousand keys has luck of its own, more the smaller the "
                          "error");
    const double ratio = model / duplicated_fpr(params, universe_of(false, 0.5, window));
    zipf_lower &= ratio < 1;
    ratios += fmt::format("{}{:.2f}", ratios.empty() ? "" : ", ", ratio);
    context.progress((i + 1.0) / kTenth.size());
  }
  result.rows.claim("claim.sharing", lower, left);
  result.rows.claim("claim.zipf", zipf_lower, ratios);
  result.figure = decay_figure("Error with duplicates in the stream, filters for an error of .1",
                               std::move(curves), kTenth, false);
  return result;
}

}  // namespace sluice::repro::shtul
