// Figures 7 to 12.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "repro/dautrich/experiments.hpp"
#include "repro/dautrich/parameters.hpp"
#include "repro/dautrich/trials.hpp"
#include "sluice/base/error.hpp"

namespace sluice::repro::dautrich {
namespace {

// Below, a ratio says nothing.
constexpr std::uint64_t kFewErrors = 200;

double most_penalty(const Context& context) {
  const double most = context.number("penalty");
  if (!(most > 1 && most <= 1e6))
    throw BadParameters("--set penalty: give a number above 1, up to 1000000");
  return most;
}

// --- trials of one stream -----------------------------------------------------------------------

struct Measured {
  double bits;
  Best best;
  Outcome ours;  // with our count of keys, the same number of probes
};
struct Series {
  std::string id, name;
  std::uint64_t window;
  std::uint64_t asked = 0;  // queries
  double odds = 0;
  std::vector<Measured> all = {};
};

std::vector<double> sizes_of(const Context& context) {
  const double bits = context.number("bits");
  if (bits == 0) return {1, 2, 4, 8, 16, 32};
  if (!(bits > 0.1 && bits <= 1024))
    throw BadParameters("--set bits: give bits per item from 0.1 to 1024; 0 is the paper's");
  return {bits};
}

std::vector<Series> run_series(const Context& context, const Stream& stream,
                               const Windows& windows) {
  std::vector<Series> all = {
      {"even", "w = " + window_name(windows.even), windows.even},
      {"large", "w = " + window_name(windows.large), windows.large},
  };
  const std::vector<double> sizes = sizes_of(context);
  const double most = most_penalty(context);
  Probes probes{.from = 1,
                .most = static_cast<unsigned>(std::clamp<std::uint64_t>(
                    whole_from(context, "kmax", 1), 1, StampedWindow::kMostBits)),
                .all = context.number("all_k") != 0};
  double done = 0;
  for (Series& series : all) {
    const Truth truth = truth_of(stream, series.window);
    series.asked = stream.asked();
    series.odds = truth.odds();
    probes.from = 1;
    for (const double bits : sizes) {
      const Trial trial{stream, truth, series.window, bits, context.seed() + 1, most};
      Measured measured{bits, best_of(trial, probes), {}};
      measured.ours = run_trial(trial, measured.best.inferred_probes, false, stream.asked());
      // More bits, more probes.
      const unsigned fewest =
          std::min(measured.best.standard_probes, measured.best.inferred_probes);
      probes.from = std::max(1u, fewest - 1);
      series.all.push_back(std::move(measured));
      context.progress(++done / static_cast<double>(2 * sizes.size()));
    }
  }
  return all;
}

// Not a number where there are no errors at all.
double ratio_of(const Measured& measured) {
  return measured.best.inferred.inferred / measured.best.standard;
}

// What keeps a ratio from being the expected one.
std::string chance_of(const Measured& measured, const Series& series) {
  if (series.asked < 2 * series.window)
    return fmt::format(
        "{} queries at this scale, of a window of {}: a filter's error depends on how far it is in "
        "its block, and not all of one is seen",
        series.asked, series.window);
  const double errors = std::max<double>(1, static_cast<double>(measured.best.inferred.errors));
  return fmt::format(
      "chance: {} errors at this scale, so a standard error of {:.2g} of the ratio, and more where "
      "the same keys err again and again",
      measured.best.inferred.errors, ratio_of(measured) / std::sqrt(errors));
}

// --- what is drawn ------------------------------------------------------------------------------

// Sizes double from tick to tick.
double place_of(double bits) {
  return std::log2(bits);
}

// Values that the paper's set-up gives, where there are any.
Curve expected_of(const std::string& prefix, const std::string& suffix, const std::string& name,
                  unsigned colour) {
  Curve curve{name, Curve::Style::points, {}, colour};
  for (const PublishedValue& value : published().all())
    if (value.corrected && value.id.starts_with(prefix) && value.id.ends_with(suffix)) {
      const std::string size =
          value.id.substr(prefix.size(), value.id.size() - prefix.size() - suffix.size());
      // The window of 2^18 has some at 64, which are beyond the axis.
      if (size.find('.') == size.npos && std::stod(size) <= 32)
        curve.points.push_back({place_of(std::stod(size)), *value.corrected});
    }
  return curve;
}

Figure figure_of(const std::string& title, const std::string& figure,
                 const std::vector<Series>& all) {
  const double one = all[0].all.size() == 1 ? place_of(all[0].all[0].bits) : 0;
  const Axis bits{"bits per item of the window",
                  false,
                  std::min(0.0, one) - 0.3,
                  std::max(5.0, one) + 0.3,
                  {"1", "2", "4", "8", "16", "32", "64", "128"}};
  Panel ratios{"penalty of the inferential filter over the standard one's; below 1 it is less",
               bits,
               {"penalty ratio", false, 0.0},
               {}};
  Panel errors{"posterior error (eq. 28)", bits, {"mean |posterior - share|", false, 0.0}, {}};
  Panel priors{"penalty over that of deciding by the prior alone; above 1 no filter is better",
               bits,
               {"penalty ratio", true},
               {}};
  unsigned colour = 0;
  for (const Series& series : all) {
    Curve ratio{series.name, Curve::Style::line, {}, colour}, error = ratio, inferred = ratio;
    Curve ours{series.name + ", our count", Curve::Style::model, {}, colour}, ours_error = ours;
    Curve standard{series.name + ", standard", Curve::Style::model, {}, colour};
    for (const Measured& each : series.all) {
      const double prior = each.best.inferred.prior_only;
      const double x = place_of(each.bits);
      ratio.points.push_back({x, ratio_of(each)});
      ours.points.push_back({x, each.ours.inferred / each.best.standard});
      error.points.push_back({x, each.best.inferred.posterior_error});
      ours_error.points.push_back({x, each.ours.posterior_error});
      inferred.points.push_back({x, each.best.inferred.inferred / prior});
      standard.points.push_back({x, each.best.standard / prior});
    }
    inferred.name += ", inferential";
    const std::string id = figure + "." + series.id + ".";
    ratios.curves.insert(ratios.curves.end(), {ratio, ours});
    errors.curves.insert(errors.curves.end(), {error, ours_error});
    priors.curves.insert(priors.curves.end(), {inferred, standard});
    if (Curve paper = expected_of(id, "", series.name + ", recomputed", colour);
        !paper.points.empty())
      ratios.curves.push_back(std::move(paper));
    if (Curve paper = expected_of(id, ".error", series.name + ", recomputed", colour);
        !paper.points.empty())
      errors.curves.push_back(std::move(paper));
    ++colour;
  }
  return {title, {ratios, errors, priors}};
}

std::string ratio_text(double ratio) {
  return std::isfinite(ratio) ? fmt::format("{:.4f}", ratio) : "";
}

Table table_of(const std::vector<Series>& all) {
  Table table{{"window", "bits", "pos/neg", "k standard", "k inferential", "standard",
               "inferential", "inferential/standard", "standard/inferential", "prior only",
               "posterior error", "our count", "our count/standard", "its posterior error"},
              {}};
  for (const Series& series : all)
    for (const Measured& each : series.all) {
      const Outcome& best = each.best.inferred;
      table.lines.push_back(
          {fmt::format("{}", series.window), fmt::format("{:g}", each.bits),
           fmt::format("{:.4f}", series.odds), fmt::format("{}", each.best.standard_probes),
           fmt::format("{}", each.best.inferred_probes), fmt::format("{:.0f}", each.best.standard),
           fmt::format("{:.0f}", best.inferred), ratio_text(ratio_of(each)),
           ratio_text(1 / ratio_of(each)), fmt::format("{:.0f}", best.prior_only),
           fmt::format("{:.4f}", best.posterior_error), fmt::format("{:.0f}", each.ours.inferred),
           ratio_text(each.ours.inferred / each.best.standard),
           fmt::format("{:.4f}", each.ours.posterior_error)});
    }
  return table;
}

bool telling(const Measured& measured) {
  return measured.bits >= 2 && measured.best.inferred.errors >= kFewErrors;
}

void add_ratio_rows(Rows& rows, const std::string& figure, const std::vector<Series>& all) {
  for (const Series& series : all)
    for (const Measured& each : series.all)
      if (std::isfinite(ratio_of(each)))
        rows.value(fmt::format("{}.{}.{:g}", figure, series.id, each.bits), ratio_of(each),
                   chance_of(each, series));
}

void add_error_rows(Rows& rows, const std::string& figure, const std::vector<Series>& all) {
  for (const Series& series : all)
    for (const Measured& each : series.all)
      rows.value(fmt::format("{}.{}.{:g}.error", figure, series.id, each.bits),
                 each.best.inferred.posterior_error);
}

template <class F>
double greatest_of(const std::vector<Series>& all, const F& value) {
  double most = -1e300;
  for (const Series& series : all)
    for (const Measured& each : series.all) most = std::max(most, value(each));
  return most;
}

double greatest_posterior_error(const std::vector<Series>& all) {
  return greatest_of(all, [](const Measured& each) { return each.best.inferred.posterior_error; });
}

// §7: how many trials are within what the paper concludes.
void claim_ten(Rows& rows, const std::string& id, const std::vector<Series>& all) {
  unsigned within = 0, more = 0, less = 0, dearer = 0;
  for (const Series& series : all)
    for (const Measured& each : series.all) {
      const double ratio = ratio_of(each);
      if (!std::isfinite(ratio)) continue;
      ++(ratio < 0.3 ? more : ratio <= 0.9 ? within : ratio < 1 ? less : dearer);
    }
  rows.claim(id, within + more > less + dearer,
             fmt::format("{}, {}, {}, {}", within, more, less, dearer));
}

// Of other windows, sizes or streams there is nothing to compare with.
void show(Rows& rows, const std::vector<Series>& all) {
  for (const Series& series : all)
    for (const Measured& each : series.all) {
      const std::string of = fmt::format("{}, {:g} bits per item", series.name, each.bits);
      rows.measured("", "penalty, inferential over standard: " + of, ratio_of(each));
      rows.measured("", "posterior error: " + of, each.best.inferred.posterior_error);
    }
}

Result result_of(const Context& context, const std::string& title, const std::string& figure,
                 const std::vector<Series>& all) {
  Result result{context.rows(), figure_of(title, figure, all)};
  result.table = table_of(all);
  if (!result.rows.judged()) show(result.rows, all);
  return result;
}

// With known priors neither the filter alone nor the prior alone costs less.
void claim_optimal(Rows& rows, const std::string& id, const std::vector<Series>& all) {
  const double over_standard = greatest_of(
      all, [](const Measured& m) { return m.best.inferred.errors < kFewErrors ? 0 : ratio_of(m); });
  const double over_prior = greatest_of(
      all, [](const Measured& m) { return m.best.inferred.inferred / m.best.inferred.prior_only; });
  rows.claim(id, over_standard < 1 && over_prior < 1,
             fmt::format("{:.3f}, {:.3f}", over_standard, over_prior));
}

// What the paper says of the power law beside its figures, and what follows from known priors.
void claim_skewed(Rows& rows, const Windows& windows, const std::vector<Series>& all) {
  claim_ten(rows, "claim.ten.power", all);
  const double least = greatest_of(all, [](const Measured& m) {
    return m.best.inferred.errors < kFewErrors ? -1 : -ratio_of(m);
  });
  rows.claim(
      "claim.seventy", -least < 0.3,
      fmt::format("{:.0f} % (power law, w = {})", 100 * (1 + least), window_name(windows.even)));
  double small = 0, large = 1;
  std::string alone;
  bool worse = true;
  for (const Measured& m : all[0].all) {
    if (telling(m)) small = std::max(small, ratio_of(m));
    const double share = m.best.standard / m.best.inferred.prior_only;
    if (m.bits <= 8) alone += fmt::format("{}{:.2f}", alone.empty() ? "" : ", ", share);
    if (m.bits <= 4) worse &= share > 1;
  }
  for (const Measured& m : all[1].all)
    if (telling(m)) large = std::min(large, ratio_of(m));
  rows.claim("claim.skew", small < large, fmt::format("{:.2f}, {:.2f}", small, large));
  rows.claim("claim.paradox", worse, alone);
  claim_optimal(rows, "claim.optimal.power", all);
}

// §5.3.2: priors that are wrong at times.
void claim_bursts(Rows& rows, const std::vector<Series>& all) {
  claim_ten(rows, "claim.ten.ip", all);
  std::string dearer;
  unsigned less = 0, trials = 0;
  for (const Series& series : all)
    for (const Measured& each : series.all) {
      if (each.best.inferred.errors < kFewErrors && ratio_of(each) > 0.5) continue;
      ++trials;
      less += ratio_of(each) < 1;
      if (series.id == "large" && ratio_of(each) >= 1)
        dearer +=
            fmt::format("{}{:g} ({:.2f})", dearer.empty() ? "" : ", ", each.bits, ratio_of(each));
    }
  rows.claim("claim.bursts", !dearer.empty(), dearer.empty() ? "none" : dearer);
  rows.claim("claim.most", 2 * less > trials, fmt::format("{} of {}", less, trials));
  const double error = std::max(all[0].all[0].best.inferred.posterior_error,
                                all[1].all[0].best.inferred.posterior_error);
  rows.claim("claim.burstserror", error > 0.0322, fmt::format("{:.3f}", error));
}

}  // namespace

Result run_fig7(const Context& context) {
  const Windows windows = windows_of(context, "w1", "w2");
  const Stream stream = uniform_stream(whole_from(context, "U", 2),
                                       length_of(context, windows.greatest()), context.seed());
  const std::vector<Series> all = run_series(context, stream, windows);
  Result result = result_of(context, "Uniform stream", "fig7", all);
  if (!result.rows.judged()) return result;
  add_ratio_rows(result.rows, "fig7", all);
  double sum = 0, count = 0;
  for (const Series& series : all)
    for (const Measured& each : series.all)
      if (telling(each)) sum += ratio_of(each), ++count;
  if (count > 1) result.rows.value("fig7.mean", sum / count);
  add_error_rows(result.rows, "fig7", all);
  result.rows.value("fig7.error", greatest_posterior_error(all));
  claim_ten(result.rows, "claim.ten.uniform", all);
  claim_optimal(result.rows, "claim.optimal.uniform", all);
  return result;
}

Result run_fig9(const Context& context) {
  const Windows windows = windows_of(context, "w1", "w2");
  const Stream stream = power_stream(whole_from(context, "U", 2),
                                     length_of(context, windows.greatest()), context.seed());
  const std::vector<Series> all = run_series(context, stream, windows);
  Result result = result_of(context, "Power-law stream", "fig9", all);
  if (!result.rows.judged()) return result;
  add_ratio_rows(result.rows, "fig9", all);
  add_error_rows(result.rows, "fig9", all);
  result.rows.value("fig9.error", greatest_posterior_error(all));
  claim_skewed(result.rows, windows, all);
  return result;
}

Result run_fig11(const Context& context) {
  const Windows windows = windows_of(context, "a1", "a2");
  const Stream stream = packets(context, length_of(context, windows.greatest()));
  const std::vector<Series> all = run_series(context, stream, windows);
  Result result = result_of(
      context, context.input().empty() ? "Source addresses, generated" : "Source addresses",
      "fig11", all);
  if (result.rows.judged()) claim_bursts(result.rows, all);
  return result;
}

}  // namespace sluice::repro::dautrich
