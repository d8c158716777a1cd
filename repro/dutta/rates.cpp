// Figures 2 to 5: how both errors go on along a stream.
#include <fmt/format.h>

#include <algorithm>

#include "repro/dutta/experiments.hpp"
#include "repro/dutta/trace.hpp"

namespace sluice::repro::dutta {
namespace {

constexpr double kKilobyte = 8192;  // bits
constexpr double kMegabyte = 1024 * kKilobyte;

struct Size {
  double bits;
  const char* name;
  const char* id;
};
constexpr Size kSmall[] = {{2 * kKilobyte, "2 KB", "2k"}, {4 * kKilobyte, "4 KB", "4k"}};
constexpr Size kLarge[] = {{128 * kMegabyte, "128 MB", "128m"},
                           {512 * kMegabyte, "512 MB", "512m"}};

// Four curves: both filters in both sizes, on one stream.
std::vector<Trace> traces_of(const Context& context, const StreamPlan& plan,
                             std::span<const Size> sizes) {
  std::vector<Subject> subjects;
  for (const Size& size : sizes)
    for (Subject& subject : both(context, size.bits, size.name))
      subjects.push_back(std::move(subject));
  const std::uint64_t step = std::max<std::uint64_t>(plan.records / 3000, 1);
  return follow(context, {.plan = plan, .step = step}, std::move(subjects));
}

// The paper's values as points at the end of the stream, mended where they must be.
Panel panel_of(const Context& context, const std::vector<Trace>& traces,
               std::span<const Size> sizes, const std::string& figure, bool fnr) {
  Panel panel{fnr ? "false negatives so far" : "false positives so far",
              {"records (millions)", false, 0.0, traces.front().moments.back().records / 1e6},
              {fnr ? "repeats let through (%)" : "distinct held back (%)", false, 0.0},
              {}};
  for (const Trace& trace : traces)
    panel.curves.push_back(
        {trace.name, Curve::Style::line, fnr ? trace.fnr() : trace.fpr(), trace.colour});
  std::size_t i = 0;
  for (const Size& size : sizes)
    for (const char* filter : {"stable", "reservoir"}) {
      const PublishedValue& value =
          context.published(fmt::format("{}.{}.{}", figure, size.id, filter));
      const Trace& trace = traces[i++];
      if (value.kind == PublishedValue::Kind::none) continue;
      panel.curves.push_back(
          {trace.name + ", paper",
           Curve::Style::points,
           {{trace.moments.back().records / 1e6, value.corrected.value_or(value.printed)}},
           trace.colour});
    }
  return panel;
}

Result result_of(const Context& context, const std::vector<Trace>& traces,
                 std::span<const Size> sizes, const std::string& figure, bool fnr,
                 const std::string& title) {
  Result result{context.rows(), {}};
  std::size_t i = 0;
  for (const Size& size : sizes)
    for (const char* filter : {"stable", "reservoir"}) {
      const Errors& total = traces[i++].total();
      const std::string id = fmt::format("{}.{}.{}", figure, size.id, filter);
      if (context.published(id).kind != PublishedValue::Kind::none)
        result.rows.value(id, fnr ? total.fnr() : total.fpr(),
                          why_of(context, id, size.bits, fnr ? total.missed : total.lost));
    }
  result.figure = {title, {panel_of(context, traces, sizes, figure, fnr)}};
  return result;
}

// Stable and reservoir of 2 KB while the latter writes every record: as many as one of its filters
// has bits. So few that many streams are run.
std::pair<Errors, Errors> early(const Context& context) {
  StreamPlan plan = clicks_plan(context);
  plan.records = reservoir_params(context, kSmall[0].bits).size();
  Errors stable, reservoir;
  for (int number = 0; number < (plan.input.empty() ? 100 : 1); ++number) {
    plan.seed = context.seed() + static_cast<std::uint64_t>(number);
    std::vector<Subject> subjects = both(context, kSmall[0].bits, kSmall[0].name);
    each_batch(plan, plan.records, [&](const Batch& batch) {
      for (Subject& subject : subjects)
        if (subject.errors().records() < plan.records) subject.take(batch);
    });
    stable += subjects[0].errors();
    reservoir += subjects[1].errors();
  }
  return {stable, reservoir};
}

}  // namespace

Result run_fig2(const Context& context) {
  const std::vector<Trace> traces = traces_of(context, clicks_plan(context), kSmall);
  Result result =
      result_of(context, traces, kSmall, "fig2", false, "False positives on a stream of clicks");
  const auto [stable, reservoir] = early(context);
  result.rows.claim("fig2.early", reservoir.fpr() < stable.fpr(),
                    fmt::format("{:.2f} % against {:.2f} %", reservoir.fpr(), stable.fpr()));
  return result;
}

Result run_fig3(const Context& context) {
  const std::vector<Trace> traces = traces_of(context, uniform_plan(context), kLarge);
  return result_of(context, traces, kLarge, "fig3", false,
                   "False positives on a uniform stream, 10 % distinct");
}

Result run_fig4(const Context& context) {
  const std::vector<Trace> traces = traces_of(context, clicks_plan(context), kSmall);
  Result result =
      result_of(context, traces, kSmall, "fig4", true, "False negatives on a stream of clicks");
  const Errors reservoir = early(context).second;
  result.rows.claim("fig4.early", reservoir.missed == 0,
                    fmt::format("{:.1f} % of {} repeats", reservoir.fnr(), reservoir.duplicates));
  return result;
}

Result run_fig5(const Context& context) {
  const std::vector<Trace> traces = traces_of(context, uniform_plan(context), kLarge);
  Result result = result_of(context, traces, kLarge, "fig5", true,
                            "False negatives on a uniform stream, 10 % distinct");
  result.rows.value("fig5.128m.ratio", traces[0].total().fnr() / traces[1].total().fnr());
  result.rows.value("fig5.512m.ratio", traces[2].total().fnr() / traces[3].total().fnr());
  return result;
}

}  // namespace sluice::repro::dutta
