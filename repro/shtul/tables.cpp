// Tables 1 to 4: the formulas, cell by cell, and the errors as measured.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>
#include <optional>

#include "repro/shtul/cells.hpp"
#include "repro/shtul/experiments.hpp"
#include "repro/shtul/fresh_keys.hpp"
#include "repro/shtul/rows_of_tables.hpp"
#include "sluice/base/error.hpp"
#include "sluice/model/apbf.hpp"

namespace sluice::repro::shtul {
namespace {

using model::BlockShape;
using model::Fills;

// Keys of a window that errors are measured with: enough that the luck of a filter is small.
constexpr double kKeys = 40'000;

// The window holds what slices of whole cache lines do; the model knows no size.
MeasuredError measured(const Context& context, const ApbfParams& params, double expected) {
  return measure_error(params, expected, 4000 * context.scale(), 2e7 * context.scale(),
                       context.seed() + 1000 * params.k + params.l);
}
MeasuredError measured(const Context& context, const ApbbfParams& params, double expected) {
  return measure_error(
      params, expected, 4000 * context.scale(), 2e7 * context.scale(),
      context.seed() + 1000 * params.k + params.l + 100'000 * params.block * params.bits);
}

void add_table2_cells(Cells& cells, const Cut& cut) {
  const std::string name = fmt::format("{}-{}.", cut.k, cut.l);
  const auto fills = model::segment_matches(cut.k, cut.l, Fills::linear);
  const model::QueryAccesses asked = model::query_accesses(fills, cut.k);
  cells.add(name + "fp", model::apbf_fpr(cut.k, cut.l, Fills::linear));
  cells.add(name + "efficiency",
            model::apbf_efficiency(cut.k, cut.l, model::apbf_fpr(cut.k, cut.l, Fills::linear)));
  cells.add(name + "window", asked.window);
  cells.add(name + "positive", asked.positive);
  cells.add(name + "negative", asked.negative);
  cells.add(name + "npws", model::apbf_npws(cut.k, cut.l));
}

// Errors of a table's rows: as printed, by the model, as measured.
class ErrorPanels {
 public:
  // What follows goes into a panel of its own.
  void begin(const std::string& title, const std::string& x, bool log) {
    panels_.push_back({title,
                       {x, false, -0.5, -0.5},
                       {"false positives (share of the distinct)", log},
                       {{"measured", Curve::Style::bars, {}, 0},
                        {"model", Curve::Style::marks, {}, 4},
                        {"printed", Curve::Style::points, {}, 1}}});
    if (!log) panels_.back().y.from = 0;
  }
  void add(const std::string& name, double measured, double model, double printed) {
    Panel& panel = panels_.back();
    const auto x = static_cast<double>(panel.x.classes.size());
    panel.x.classes.push_back(name);
    panel.x.to = x + 0.5;
    const double values[] = {measured, model, printed};
    for (std::size_t i = 0; i < 3; ++i)
      if (values[i] > 0) panel.curves[i].points.push_back({x, values[i]});
  }
  Figure figure(const std::string& title, unsigned columns) const {
    return {title, panels_, columns};
  }

 private:
  std::vector<Panel> panels_;
};

// The paper's rows, or the one row of the user's own.
std::vector<Cut> cuts_of(const Context& context) {
  const unsigned k = context.whole("k"), l = context.whole("l");
  if (k == 0 && l == 0) return {kTable2.begin(), kTable2.end()};
  if (k == 0 || k > 64 || l == 0 || l > 192)
    throw BadParameters("--set: give both a k from 1 to 64 and an l from 1 to 192");
  return {{k, l}};
}

Table own_cut(const Cut& cut) {
  Table table{{"quantity", "linear fills", "exact fills"}, {}};
  const auto line = [&](const char* what, double linear, double exact) {
    table.lines.push_back({what, fmt::format("{:.6g}", linear), fmt::format("{:.6g}", exact)});
  };
  const double linear = model::apbf_fpr(cut.k, cut.l, Fills::linear);
  const double exact = model::apbf_fpr(cut.k, cut.l);
  const auto asked = [&](Fills fills) {
    return model::query_accesses(model::segment_matches(cut.k, cut.l, fills), cut.k);
  };
  line("error", linear, exact);
  line("efficiency", model::apbf_efficiency(cut.k, cut.l, linear),
       model::apbf_efficiency(cut.k, cut.l, exact));
  line("slices asked, key of the window", asked(Fills::linear).window, asked(Fills::exact).window);
  line("slices asked, false positive", asked(Fills::linear).positive, asked(Fills::exact).positive);
  line("slices asked, not found", asked(Fills::linear).negative, asked(Fills::exact).negative);
  line("peak weighted slack, of the window", model::apbf_npws(cut.k, cut.l),
       model::apbf_npws(cut.k, cut.l));
  line("bits per key", model::apbf_bits(cut.k, cut.l), model::apbf_bits(cut.k, cut.l));
  return table;
}

// A table of the user's own, on the page as well: its last column.
void show(Rows& rows, const char* where, const Table& table) {
  for (const auto& line : table.lines)
    rows.measured(where, fmt::format("{} ({})", line.front(), table.columns.back()),
                  std::stod(line.back()));
}

// §5.5: what a query costs, against a Bloom filter of the same k.
void claim_time(Rows& rows) {
  std::string numbers;
  bool close = true;
  for (const Cut& cut : kLowest) {
    const auto asked =
        model::query_accesses(model::segment_matches(cut.k, cut.l, Fills::linear), cut.k);
    const double negative = model::half_full_negative_accesses(cut.k);
    close &= asked.window < 1.25 * cut.k && asked.negative < 1.25 * negative;
    numbers += fmt::format("{}({},{}): found {:.2f} of {}, not found {:.2f} of {:.2f}",
                           numbers.empty() ? "" : "; ", cut.k, cut.l, asked.window, cut.k,
                           asked.negative, negative);
  }
  rows.claim("claim.time", close, numbers);
}

// Positions h1 + i·h2 mod m are those of another key whenever both hashes are.
void claim_double_hashing(Rows& rows) {
  constexpr double kWindow = 1000;
  std::string numbers;
  bool below = true;
  for (const Cut& cut : kLowest) {
    const double m = kWindow * cut.k / cut.l / std::numbers::ln2;
    const double floor = kWindow / (m * m), error = model::apbf_fpr(cut.k, cut.l);
    below &= floor < error;
    numbers += fmt::format("{}({},{}): {:.1e} against {:.1e}", numbers.empty() ? "" : "; ", cut.k,
                           cut.l, floor, error);
  }
  rows.claim("claim.doublehashing", below, numbers);
}

}  // namespace

Result run_table1(const Context& context) {
  Result result{context.rows(), {}};
  Cells cells(result.rows, "table1");
  Curve positive{"found", Curve::Style::line, {}, 0},
      negative{"not found", Curve::Style::line, {}, 1};
  Curve printed_positive{"found, printed", Curve::Style::points, {}, 0};
  Curve printed_negative{"not found, printed", Curve::Style::points, {}, 1};
  std::vector<std::string> names;
  for (const char* aimed : {"0.1", "0.01", "0.001", "0.0001", "0.00001"}) {
    const std::string name = std::string(aimed) + ".";
    const unsigned k = model::half_full_parts(std::stod(aimed));
    const auto x = static_cast<double>(names.size());
    names.emplace_back(aimed);
    cells.add(name + "k", k);
    cells.add(name + "bits", k / std::numbers::ln2);
    cells.add(name + "fp", std::pow(0.5, k));
    cells.add(name + "positive", k);
    cells.add(name + "negative", model::half_full_negative_accesses(k));
    positive.points.push_back({x, static_cast<double>(k)});
    negative.points.push_back({x, model::half_full_negative_accesses(k)});
    printed_positive.points.push_back({x, printed("table1." + name + "positive")});
    printed_negative.points.push_back({x, printed("table1." + name + "negative")});
  }
  cells.finish();
  claim_double_hashing(result.rows);
  result.table = cells.table();
  result.figure = {"Bloom filters of half-full slices",
                   {{"what a query looks at",
                     {"aimed error (share of the distinct)", false, -0.5, 4.5, names},
                     {"slices asked a query", false, 0.0},
                     {positive, negative, printed_positive, printed_negative}}}};
  return result;
}

Result run_table2(const Context& context) {
  Result result{context.rows(), {}};
  const std::vector<Cut> cuts = cuts_of(context);
  const bool papers = cuts.size() > 1;
  Cells cells(result.rows, "table2");
  ErrorPanels panels;
  double least = 100, most = 0, least_exact = 100, most_exact = 0;
  for (std::size_t i = 0; i < cuts.size(); ++i) {
    const Cut& cut = cuts[i];
    const std::string name = fmt::format("{},{}", cut.k, cut.l);
    if (papers) add_table2_cells(cells, cut);
    const double exact = model::apbf_fpr(cut.k, cut.l);
    const MeasuredError error =
        measured(context, apbf_of(cut.k, cut.l, context.scaled(kKeys, 1000)), exact);
    result.rows.predicted("Table 2", fmt::format("({}): error measured, against exact fills", name),
                          exact, error.share, {error.tolerance});
    if (!papers)
      panels.begin("just before a shift, when it is worst", "k,l", false);
    else if (i % 5 == 0)
      panels.begin(fmt::format("aimed at 10^-{}", i / 5 + 1), "k,l", false);
    panels.add(name, error.share, exact,
               papers ? printed(fmt::format("table2.{}-{}.fp", cut.k, cut.l)) : 0);
    const double linear = model::apbf_fpr(cut.k, cut.l, Fills::linear);
    if (exact > 5e-5) {  // below, chance is as large as the difference
      least = std::min(least, error.share / linear), most = std::max(most, error.share / linear);
      least_exact = std::min(least_exact, error.share / exact);
      most_exact = std::max(most_exact, error.share / exact);
    }
    context.progress(static_cast<double>(i + 1) / static_cast<double>(cuts.size()));
  }
  if (papers) {
    cells.finish();
    result.rows.value("table2.count", static_cast<double>(cells.as_printed()));
    claim_time(result.rows);
    result.rows.claim(
        "claim.formulas", least > 0.9 && most < 1.1,
        fmt::format("{:.2f} to {:.2f} of the printed formula, {:.2f} to {:.2f} of the other", least,
                    most, least_exact, most_exact));
    result.table = cells.table();
  } else {
    result.table = own_cut(cuts.front());
    show(result.rows, "Table 2", *result.table);
  }
  result.figure =
      panels.figure("Error of age-partitioned Bloom filters, just before a shift", papers ? 2 : 1);
  return result;
}

namespace {

// The one row of the user's own, if there is one.
std::optional<BlockCut> own_block_cut(const Context& context) {
  const BlockCut cut{context.whole("k"), context.whole("l"), context.whole("B"),
                     context.whole("b")};
  if (cut.k + cut.l + cut.block + cut.bits == 0) return std::nullopt;
  if (cut.k == 0 || cut.l == 0 || (cut.block != 64 && cut.block != 512) ||
      (cut.bits != 4 && cut.bits != 8))
    throw BadParameters(
        "--set: give all of k, l, B and b: blocks of B = 64 or 512 bits, b = 4 or 8 of them a key");
  return cut;
}

Result run_own_blocks(const Context& context, const BlockCut& cut) {
  Result result{context.rows(), {}};
  const BlockShape shape{cut.block, cut.bits};
  const auto matches = model::block_matches(cut.k, cut.l, shape);
  const auto asked = model::query_accesses(matches, cut.k);
  const double fpr = model::apbbf_fpr(cut.k, cut.l, shape);
  const MeasuredError error = measured(
      context, apbbf_of(cut.k, cut.l, cut.block, cut.bits, context.scaled(kKeys, 1000)), fpr);
  const std::string name = fmt::format("{},{},{},{}", cut.k, cut.l, cut.block, cut.bits);
  result.rows.predicted("Table 3",
                        fmt::format("({}): error measured, against the block model", name), fpr,
                        error.share, {error.tolerance},
                        "too few were found to tell: the error is small for the keys asked for");
  Table table{{"quantity", "block model"}, {}};
  const auto line = [&](const char* what, double value) {
    table.lines.push_back({what, fmt::format("{:.6g}", value)});
  };
  line("error", fpr);
  line("blocks asked, key of the window", asked.window);
  line("blocks asked, false positive", asked.positive);
  line("blocks asked, not found", asked.negative);
  line("peak weighted slack, of the window", model::apbf_npws(cut.k, cut.l, matches.back()));
  line("bits per key", model::apbbf_bits(cut.k, cut.l, shape));
  show(result.rows, "Table 3", table);
  result.table = std::move(table);
  ErrorPanels panels;
  panels.begin("just before a shift, when it is worst", "k,l,B,b", false);
  panels.add(name, error.share, fpr, 0);
  result.figure =
      panels.figure("Error of age-partitioned blocked Bloom filters, just before a shift", 1);
  return result;
}

}  // namespace

Result run_table3(const Context& context) {
  if (const auto own = own_block_cut(context)) return run_own_blocks(context, *own);
  Result result{context.rows(), {}};
  Cells cells(result.rows, "table3");
  ErrorPanels panels;
  double most_asked = 0, least_asked = 100, worst = 0;
  unsigned fewest = 100, most = 0;
  for (std::size_t i = 0; i < kTable3.size(); ++i) {
    const BlockCut& cut = kTable3[i];
    const BlockShape shape{cut.block, cut.bits};
    const std::string name = cut.name();
    const auto matches = model::block_matches(cut.k, cut.l, shape);
    const auto asked = model::query_accesses(matches, cut.k);
    const double fpr = model::apbbf_fpr(cut.k, cut.l, shape);
    cells.add(name + ".fp", fpr);
    cells.add(name + ".apbf", model::apbf_fpr(cut.k * cut.bits, cut.l * cut.bits, Fills::linear));
    cells.add(name + ".capacity",
              model::block_capacity(shape) / (std::numbers::ln2 * shape.lane()));
    cells.add(name + ".window", asked.window);
    cells.add(name + ".positive", asked.positive);
    cells.add(name + ".negative", asked.negative);
    cells.add(name + ".npws", model::apbf_npws(cut.k, cut.l, matches.back()));
    double share = 0;
    if (fpr > 5e-6) {
      const MeasuredError error = measured(
          context, apbbf_of(cut.k, cut.l, cut.block, cut.bits, context.scaled(kKeys, 1000)), fpr);
      result.rows.predicted("Table 3",
                            fmt::format("({},{},{},{}): error measured, against the block model",
                                        cut.k, cut.l, cut.block, cut.bits),
                            fpr, error.share, {error.tolerance});
      share = error.share;
      worst = std::max(worst, std::abs(error.share / fpr - 1) - error.tolerance);
    }
    if (i % 8 == 0) panels.begin(fmt::format("b = {} bits per block", cut.bits), "k,l,B", true);
    panels.add(fmt::format("{},{},{}", cut.k, cut.l, cut.block), share, fpr,
               printed("table3." + name + ".fp"));
    if (cut.block == 512) {
      most_asked = std::max({most_asked, asked.window, asked.positive, asked.negative});
      least_asked = std::min({least_asked, asked.window, asked.positive, asked.negative});
      fewest = std::min(fewest, cut.k), most = std::max(most, cut.k);
    }
    context.progress(static_cast<double>(i + 1) / static_cast<double>(kTable3.size()));
  }
  cells.finish();
  result.rows.claim("claim.blocking", worst <= 0,
                    fmt::format("14 rows measured, {:.0f} % off the model beyond chance",
                                100 * std::max(0.0, worst)));
  result.rows.claim("claim.insertlines", fewest == 2 && most == 3,
                    fmt::format("{} to {}", fewest, most));
  result.rows.claim("claim.querylines", least_asked > 1.5 && most_asked < 4.5,
                    fmt::format("{:.2f} to {:.2f}", least_asked, most_asked));
  result.table = cells.table();
  result.figure =
      panels.figure("Error of age-partitioned blocked Bloom filters, just before a shift", 1);
  return result;
}

Result run_table4(const Context& context) {
  Result result{context.rows(), {}};
  Cells cells(result.rows, "table4");
  Curve apbbf{"apbbf", Curve::Style::bars, {}, 0},
      swamp{"SWAMP, as published", Curve::Style::bars, {}, 1};
  Curve paper{"apbbf, printed", Curve::Style::points, {}, 0};
  const std::uint64_t keys = context.scaled(65536, 4096);
  std::vector<std::string> names;
  bool smaller = true;
  double slack = 0, least = 1e9, most = 0, swamp_least = 1e9, swamp_most = 0;
  for (const BlockCut& cut : kTable4) {
    const BlockShape shape{cut.block, cut.bits};
    const std::string name = cut.name();
    const double bits = model::apbbf_bits(cut.k, cut.l, shape);
    const double npws =
        model::apbf_npws(cut.k, cut.l, model::block_matches(cut.k, cut.l, shape).back());
    cells.add(name + ".fp", model::apbbf_fpr(cut.k, cut.l, shape));
    cells.add(name + ".bits", bits);
    cells.add(name + ".npws", npws);
    const ApbbfParams params = apbbf_of(cut.k, cut.l, cut.block, cut.bits, keys);
    const double made = static_cast<double>(Apbbf::make(params).stats().bytes) * 8 /
                        static_cast<double>(params.capacity);
    result.rows.predicted(
        "Table 4",
        fmt::format("({},{},{},{}): bits per element of a filter made for {}, all counted", cut.k,
                    cut.l, cut.block, cut.bits, keys),
        bits, made, {0.02});
    result.rows.value("table4." + name + ".swamp", made);
    const double swamp_bits = printed("table4." + name + ".swamp");
    smaller &= made < swamp_bits;
    slack = std::max(slack, npws);
    least = std::min(least, made), most = std::max(most, made);
    swamp_least = std::min(swamp_least, swamp_bits), swamp_most = std::max(swamp_most, swamp_bits);
    const auto x = static_cast<double>(names.size());
    names.push_back(error_name(model::apbbf_fpr(cut.k, cut.l, shape)));
    apbbf.points.push_back({x, made});
    swamp.points.push_back({x, swamp_bits});
    paper.points.push_back({x, printed("table4." + name + ".bits")});
  }
  cells.finish();
  result.rows.claim(
      "claim.space", smaller,
      fmt::format("{:.1f} to {:.1f} bits against {:.1f} to {:.1f}; weighted slack up to {:.2f} "
                  "of the window, SWAMP's is 0",
                  least, most, swamp_least, swamp_most, slack));
  const ApbfParams plain = apbf_of(10, 7, keys);
  const double beside = static_cast<double>(Apbf::make(plain).stats().bytes - plain.table_bytes());
  result.rows.claim("claim.simple", beside < 0.01 * static_cast<double>(plain.table_bytes()),
                    fmt::format("(10,7): {:.2f} % of the memory is not bits of keys: marks of "
                                "slices being emptied and a counter a generation",
                                100 * beside / static_cast<double>(plain.table_bytes())));
  result.table = cells.table();
  result.figure = {"Memory at equal error",
                   {{fmt::format("a window of {} keys", keys),
                     {"error (share of the distinct)", false, -0.6, 3.6, names},
                     {"bits per element", false, 0.0},
                     {apbbf, swamp, paper}}}};
  return result;
}

}  // namespace sluice::repro::shtul
