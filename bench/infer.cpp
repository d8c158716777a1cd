// What a verdict of least cost takes, in cache, beyond the plain observe of the same filter over
// the same stream: with one prior for all keys, with priors from a table, and with learnt ones; in
// batches, and key by key.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <vector>

#include "measure.hpp"
#include "options.hpp"
#include "sluice/base/random.hpp"
#include "sluice/infer/inferred.hpp"
#include "sluice/infer/priors.hpp"

namespace sluice::bench {
namespace {

constexpr std::uint64_t kWindow = 20'000;
// Of a uniform stream: every second arrival is a duplicate. Others: one in ten, and nearly all.
constexpr std::uint64_t kKeys = 40'000;
constexpr std::uint64_t kManyKeys = 200'000;
constexpr std::uint64_t kFewKeys = 15'000;
constexpr double kBar = 3;  // times the plain observe, beyond it; of batches, in all

Digest digest_of(std::uint64_t number) {
  SplitMix64 random(number);
  return {random.next(), random.next()};
}

// Draws a lap of keys, judges them, and times the judging alone.
template <class Judge>
double lap_ns(std::uint64_t laps, std::uint64_t keys, SplitMix64& random, const Judge& judge) {
  std::vector<Digest> digests(kLap);
  LapClock clock;
  for (std::uint64_t lap = 0; lap < laps; ++lap) {
    for (Digest& digest : digests) digest = digest_of(random.next() % keys);
    clock.start();
    judge(digests);
    clock.stop();
  }
  return clock.median_ns(kLap);
}

// The filter by itself, with its pace.
template <class F>
class Plain {
 public:
  explicit Plain(F filter) : filter_(std::move(filter)), verdicts_(kLap), left_(block()) {}
  void operator()(std::span<const Digest> digests) {
    for (std::size_t done = 0; done < digests.size();) {
      if constexpr (WindowFilter<F>) {
        done += filter_.admit(digests.subspan(done), verdicts_, left_, Anchor::delivered);
        if (left_ == 0) filter_.rotate(), left_ = block();
      } else {
        filter_.observe(digests, verdicts_);
        done = digests.size();
      }
    }
  }

 private:
  std::uint64_t block() const {
    if constexpr (WindowFilter<F>)
      return (kWindow + filter_.generations() - 1) / filter_.generations();
    return 0;
  }
  F filter_;
  std::vector<Verdict> verdicts_;
  std::uint64_t left_;
};

// Of all filters: times the plain observe, in all or beyond it.
struct Worst {
  double batched = 0, alone = 0, learning = 0;
};

// Batched ones are compared with the filter's batches, the others with its observe key by key.
void compare(const Options& options, Report& report, const std::string& name, Worst& worst,
             const std::vector<std::function<double()>>& subjects) {
  const std::vector<Samples> samples = take_turns(options.rounds(), subjects);
  const Samples &batched = samples[0], &alone = samples[1];
  std::vector<std::string> cells{name, fmt::format("{:.1f} ns", median(batched)),
                                 fmt::format("{:.1f} ns", median(alone))};
  for (std::size_t i = 2; i < samples.size(); ++i)
    cells.push_back(fmt::format("{:.2f}", ratio(samples[i], i < 4 ? batched : alone)));
  report.row(cells);
  worst.batched = std::max(worst.batched, ratio(samples[2], batched));
  worst.alone = std::max(worst.alone, ratio(samples[4], alone) - 1);
  worst.learning = std::max(worst.learning, ratio(samples[5], alone) - 1);
}

PriorTable table_of_priors(std::uint64_t keys) {
  PriorTable table(Prior::Kind::arrival);
  SplitMix64 random(9);
  for (std::uint64_t key = 0; key < keys; ++key)
    table.add(digest_of(key), (0.5 + random.next_unit()) / static_cast<double>(keys));
  return table;
}

template <class F>
void measure(const Options& options, Report& report, Worst& worst, const std::string& name,
             std::uint64_t keys, const F& make) {
  const std::uint64_t laps = options.quick ? 50 : 200;
  const std::vector<Prior> prior{Prior::arrival(1.0 / static_cast<double>(keys))};
  const std::vector<Costs> costs{{10, 1}};
  const PriorTable table = table_of_priors(keys);
  using Filter = decltype(make());
  const typename InferredWindow<Filter>::Params params{.window = kWindow};
  Plain plain(make()), single(make());
  InferredWindow<Filter> one(make(), params), tabled(make(), params), each(make(), params),
      learning(make(), params);
  LearntPriors learnt({.window = kWindow});
  std::vector<Judgement> judgements(kLap);
  std::array<SplitMix64, 6> randoms{SplitMix64(1), SplitMix64(1), SplitMix64(1),
                                    SplitMix64(1), SplitMix64(1), SplitMix64(1)};
  const auto subject = [&](std::size_t i, auto judge) -> std::function<double()> {
    return [&randoms, i, laps, keys, judge] { return lap_ns(laps, keys, randoms[i], judge); };
  };
  using Digests = std::span<const Digest>;
  compare(options, report, name, worst,
          {subject(0, [&](Digests digests) { plain(digests); }),
           subject(1,
                   [&](Digests digests) {
                     for (const Digest& digest : digests) single(std::span(&digest, 1));
                   }),
           subject(2, [&](Digests digests) { one.observe(digests, prior, costs, judgements); }),
           subject(3, [&](Digests digests) { tabled.observe(digests, table, costs, judgements); }),
           subject(4,
                   [&](Digests digests) {
                     for (const Digest& digest : digests) each.observe(digest, prior[0], costs[0]);
                   }),
           subject(5, [&](Digests digests) {
             for (const Digest& digest : digests) learning.observe(digest, learnt, costs[0]);
           })});
}

}  // namespace

void run_infer(const Options& options, Report& report) {
  Worst worst;
  report.table("Inference: a verdict of least cost in cache, in units of the plain observe",
               {"filter", "plain, batched", "plain, key by key", "one prior, batched",
                "table, batched", "one prior", "learnt"});
  measure(options, report, worst, "timing, 3 probes", kKeys, [] {
    return Timing::make(Timing::Params::from({.keys = kWindow},
                                             Settings::parse("fpr=0.1,probes=3,generations=20")));
  });
  measure(options, report, worst, "timing, 6 probes", kKeys, [] {
    return Timing::make(Timing::Params::from({.keys = kWindow},
                                             Settings::parse("fpr=0.02,probes=6,generations=20")));
  });
  for (const char* slot : {"16", "24"}) {
    const auto make = [slot] {
      return Cohort::make(
          Cohort::Params::from({.keys = kWindow}, Settings::parse(fmt::format("slot={}", slot))));
    };
    const auto name = [slot](const char* share) {
      return fmt::format("cohort, {}-bit slots{}", slot, share);
    };
    measure(options, report, worst, name(""), kKeys, make);
    measure(options, report, worst, name(", few duplicates"), kManyKeys, make);
    measure(options, report, worst, name(", many duplicates"), kFewKeys, make);
  }
  report.at_most("infer, the slowest filter: batched / plain observe", worst.batched, kBar);
  report.at_most("infer, the slowest filter: key by key, extra time / plain observe", worst.alone,
                 kBar);
  report.at_most("infer, the slowest filter: learning, extra time / plain observe", worst.learning,
                 kBar);
}

}  // namespace sluice::bench
