#include "apps/cli/models/registry.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <set>
#include <string>

#include "sluice/base/error.hpp"
#include "sluice/model/apbf.hpp"
#include "sluice/model/distinct_keys.hpp"
#include "sluice/model/posterior.hpp"
#include "tests/support/shtul_tables.hpp"

namespace sluice::model {
namespace {

using Pairs = std::vector<std::pair<std::string, std::string>>;

double output(const ModelResults& results, std::string_view name) {
  for (const auto& [known, value] : results)
    if (known == name) return value;
  ADD_FAILURE() << "no output " << name;
  return NAN;
}

std::string refusal(std::string_view model, const Pairs& given) {
  try {
    model_named(model).run(given);
  } catch (const BadParameters& error) {
    return error.what();
  }
  return "";
}

// Something that fits, for what must be given.
std::string some_value(const ModelParameter& parameter) {
  if (parameter.takes == Takes::chance) return "0.01";
  if (parameter.name == "m") return "100k";
  if (parameter.name == "n") return "5000";
  if (parameter.name == "c") return "1000";
  return parameter.most >= 4 && parameter.least <= 4 ? "4" : "10";
}

Pairs enough(const ModelInfo& model) {
  Pairs given;
  for (const ModelParameter& parameter : model.parameters)
    if (parameter.standard.empty()) given.emplace_back(parameter.name, some_value(parameter));
  return given;
}

TEST(ModelRegistry, NamesAreUniqueAndAllIsExplained) {
  std::set<std::string_view> names;
  for (const ModelInfo& model : models()) {
    EXPECT_TRUE(names.insert(model.name).second) << model.name;
    EXPECT_FALSE(model.summary.empty());
    std::set<std::string_view> own;
    for (const ModelParameter& parameter : model.parameters) {
      EXPECT_TRUE(own.insert(parameter.name).second) << model.name << ' ' << parameter.name;
      EXPECT_FALSE(parameter.meaning.empty() || range_of(parameter).empty());
      EXPECT_NE(parameter.name, "json");
      EXPECT_NE(parameter.name, "help");
    }
    own.clear();
    for (const ModelOutput& told : model.outputs) {
      EXPECT_TRUE(own.insert(told.name).second) << model.name << ' ' << told.name;
      EXPECT_FALSE(told.meaning.empty()) << model.name << ' ' << told.name;
    }
  }
}

// With what it needs and defaults for the rest, each tells all that it declares, in finite numbers.
TEST(ModelRegistry, EveryModelRuns) {
  for (const ModelInfo& model : models()) {
    SCOPED_TRACE(model.name);
    const ModelResults results = model.run(enough(model));
    ASSERT_EQ(results.size(), model.outputs.size());
    for (std::size_t i = 0; i < results.size(); ++i) {
      EXPECT_EQ(results[i].first, model.outputs[i].name);
      EXPECT_TRUE(std::isfinite(results[i].second)) << results[i].first;
    }
  }
}

// Each word of each choice is one that the model knows.
TEST(ModelRegistry, EveryChoiceRuns) {
  for (const ModelInfo& model : models()) {
    for (const ModelParameter& parameter : model.parameters) {
      if (parameter.takes != Takes::choice) continue;
      std::string words(parameter.choices);
      while (!words.empty()) {
        const std::size_t end = std::min(words.find(' '), words.size());
        Pairs given = enough(model);
        given.emplace_back(parameter.name, words.substr(0, end));
        EXPECT_NO_THROW(model.run(given)) << model.name << ' ' << words;
        words.erase(0, end + 1);
      }
    }
  }
}

TEST(ModelRegistry, SaysWhatIsWrong) {
  EXPECT_THROW(model_named("nope"), BadParameters);
  EXPECT_EQ(refusal("apbf", {{"k", "10"}, {"l", "7"}}), "");
  EXPECT_NE(refusal("apbf", {{"k", "10"}}).find("--l"), std::string::npos);
  EXPECT_NE(refusal("apbf", {{"q", "10"}}).find("--k, --l"), std::string::npos);
  EXPECT_NE(refusal("apbf", {{"k", "1"}, {"k", "2"}, {"l", "7"}}).find("twice"), std::string::npos);
  for (const char* bad : {"0", "65", "1.5", "ten", "", "1e", "nan", "inf", "3x", " 3", "-1", "3 "})
    EXPECT_NE(refusal("apbf", {{"k", bad}, {"l", "7"}}).find("--k"), std::string::npos) << bad;
  for (const char* bad : {"0", "1", "1.2", "-0.1", "100%"})
    EXPECT_NE(refusal("lower-bound", {{"fpr", bad}}).find("--fpr"), std::string::npos) << bad;
  EXPECT_NE(refusal("timer", {{"layout", "tall"}, {"m", "1"}, {"k", "1"}, {"n", "1"}})
                .find("plain, horizontal or vertical"),
            std::string::npos);
  const Pairs sliced{{"m", "1M"}, {"k", "4"}, {"n", "1k"}, {"slices", "4"}};
  EXPECT_EQ(refusal("sliced", sliced), "");
  Pairs too_many = sliced;
  too_many.emplace_back("failed", "5");
  EXPECT_NE(refusal("sliced", too_many).find("--failed"), std::string::npos);
}

struct Cell {
  const char* name;
  double printed, step;
};

void expect_cells(const char* model, const Pairs& given, std::initializer_list<Cell> cells) {
  const ModelResults results = model_named(model).run(given);
  std::string asked = model;
  for (const auto& [name, value] : given) asked += fmt::format(" --{} {}", name, value);
  for (const Cell& cell : cells)
    EXPECT_NEAR(output(results, cell.name), cell.printed, cell.step) << asked << ' ' << cell.name;
}

// Every cell of Shtul's tables, as `sluice model` says it: to the printed precision, where tables 1
// and 2 cut off some last digits and round others.
TEST(ModelRegistry, EveryTableOfShtulByName) {
  using namespace testing_support;
  for (const Row1& row : kTable1)
    expect_cells("slices", {{"fpr", fmt::format("{}", row.aimed)}},
                 {{"k", static_cast<double>(row.k), 0},
                  {"bits_per_key", row.bits, 0.01},
                  {"fpr", row.fpr, 1e-10},
                  {"accesses_positive", static_cast<double>(row.k), 0},
                  {"accesses_negative", row.negative, 0.006}});
  for (const Row2& row : kTable2)
    expect_cells("apbf", {{"k", fmt::format("{}", row.k)}, {"l", fmt::format("{}", row.l)}},
                 {{"fpr_linear", row.fpr, 1.0001e-6},
                  {"efficiency", row.efficiency, 0.010001},
                  {"accesses_window", row.window, 0.010001},
                  {"accesses_positive", row.positive, 0.010001},
                  {"accesses_negative", row.negative, 0.010001},
                  {"npws", row.npws, 0.010001}});
  const auto blocks = [](const auto& row) {
    return Pairs{{"k", fmt::format("{}", row.k)},
                 {"l", fmt::format("{}", row.l)},
                 {"block", fmt::format("{}", row.block)},
                 {"bits", fmt::format("{}", row.bits)}};
  };
  for (const Row3& row : kTable3)
    expect_cells("apbbf", blocks(row),
                 {{"fpr", row.fpr, 0.51e-7},
                  {"fpr_slices", row.slices_fpr, 0.51e-7},
                  {"capacity_share", row.capacity, 0.00051},
                  {"accesses_window", row.window, 0.0051},
                  {"accesses_positive", row.positive, 0.0051},
                  {"accesses_negative", row.negative, 0.0051},
                  {"npws", row.npws, 0.0051}});
  for (const Row4& row : kTable4)
    expect_cells("apbbf", blocks(row),
                 {{"fpr", row.fpr, 0.51e-7},
                  {"bits_per_key", row.bits_per_key, 0.051},
                  {"npws", row.npws, 0.0051}});
}

// What stands in no table, by its name: no output stands in another's place.
TEST(ModelRegistry, OutputsByName) {
  expect_cells("apbf", {{"k", "14"}, {"l", "40"}},
               {{"slack", 0.35, 1e-9},
                {"fpr_exact", 0.00100751, 0.51e-8},
                {"fpr_best", 0.000977005, 0.51e-9},
                {"fpr_mean", 0.000991625, 1e-7},
                {"accesses_window_exact", 16.846, 0.00051},
                {"accesses_positive_exact", 16.213, 0.00051},
                {"accesses_negative_exact", 6.785, 0.00051},
                {"efficiency_exact", 0.5267, 0.000051},
                {"bits_per_key", 27.27, 0.0051}});
  expect_cells("apbbf", {{"k", "2"}, {"l", "5"}, {"block", "512"}, {"bits", "8"}},
               {{"fpr_column", 1.6e-4, 1e-5}});
}

TEST(ModelRegistry, TheFormulasAnswer) {
  const ModelResults apbf = model_named("apbf").run(Pairs{{"k", "10"}, {"l", "7"}});
  EXPECT_EQ(output(apbf, "fpr_linear"), apbf_fpr(10, 7, Fills::linear));
  EXPECT_EQ(output(apbf, "fpr_exact"), apbf_fpr(10, 7));
  const ModelResults sliced = model_named("sliced").run(Pairs{{"layout", "vertical"},
                                                              {"m", "66.3k"},
                                                              {"k", "8"},
                                                              {"n", "5700"},
                                                              {"slices", "40"},
                                                              {"failed", "8"},
                                                              {"rule", "hybrid"},
                                                              {"x", "3"}});
  EXPECT_NEAR(output(sliced, "fnr"), 0.00123136, 1e-12);
  EXPECT_NEAR(output(model_named("lower-bound").run(Pairs{{"fpr", "1%"}}), "set_bits"),
              std::log2(100), 1e-12);
}

// Theorems 1 to 5 against sums over single ages, and D(j) against the values known for it.
TEST(ModelRegistry, Posteriors) {
  const double p = 0.002, none = 1 - p;
  const ModelResults classic =
      model_named("posterior-classic").run(Pairs{{"p", "0.002"}, {"n", "300"}, {"fpr", "0.1"}});
  const double written = 1 - std::pow(none, 300);
  EXPECT_NEAR(output(classic, "prior"), written, 1e-12);
  EXPECT_NEAR(output(classic, "posterior"), written / (written + (1 - written) * 0.1), 1e-12);
  // At the p of the threshold both verdicts cost the same.
  const ModelResults at_threshold =
      model_named("posterior-classic")
          .run(Pairs{{"p", fmt::format("{:.17g}", output(classic, "p_threshold"))},
                     {"n", "300"},
                     {"fpr", "0.1"}});
  EXPECT_NEAR(output(at_threshold, "posterior"), 0.5, 1e-9);
  struct Case {
    const char* age;
    double theorem, from, to;  // ages that the block covers; w = 100, B = 30, b = 10
  };
  for (const Case& asked : {Case{"0", 3, 0, 10}, Case{"2", 4, 40 - 0, 70}, Case{"3", 5, 70, 100},
                            Case{"4", 2, 100, 130}}) {
    const ModelResults timing = model_named("posterior-timing")
                                    .run(Pairs{{"p", "0.002"},
                                               {"window", "100"},
                                               {"block", "30"},
                                               {"position", "10"},
                                               {"age", asked.age},
                                               {"oldest", "2"},
                                               {"k", "3"},
                                               {"m", "400"}});
    EXPECT_EQ(output(timing, "theorem"), asked.theorem) << asked.age;
    const double keys = asked.theorem == 3 ? 10 : 30;
    const double touched = std::pow(1 - std::pow(1 - 1 / 400.0, 3 * keys), 2);
    EXPECT_NEAR(output(timing, "touched"), touched, 1e-12);
    double inside = 0, all = 0;
    for (int i = static_cast<int>(asked.from); i < 20'000; ++i) {
      const double weight = std::pow(none, i) * (i < asked.to ? 1 : touched);
      all += weight;
      if (i < 100) inside += weight;
    }
    EXPECT_NEAR(output(timing, "printed"), inside / all, 1e-9) << asked.age;
    EXPECT_NEAR(output(timing, "posterior"), inside / all, 1e-9) << asked.age;
  }
  const ModelResults age =
      model_named("posterior-age").run(Pairs{{"p", "0.002"}, {"window", "1000"}, {"ticks", "500"}});
  EXPECT_NEAR(output(age, "renewal"), 2.0 / 3, 1e-12);
  EXPECT_NEAR(output(age, "renewal_within"), 1.0 / 3, 1e-12);
  EXPECT_NEAR(output(age, "refreshed"), 1 - std::pow(none, 1000), 1e-12);
  EXPECT_EQ(output(age, "cycle"), 1500);
  EXPECT_EQ(output(age, "distinct"), 1000);
  const ModelResults cohort = model_named("posterior-cohort")
                                  .run(Pairs{{"p", "1e-5"},
                                             {"window", "24000"},
                                             {"age", "3"},
                                             {"buckets", "1200"},
                                             {"fingerprint", "12"},
                                             {"lost", "100"}});
  const double match = 2.0 / (1200 * 4096.0), tail = 1000 / -std::expm1(1000 * std::log1p(-1e-5));
  EXPECT_NEAR(output(cohort, "match"), match, match * 1e-6);
  EXPECT_NEAR(output(cohort, "posterior"), 1 / (1 + match * tail), 1e-6);
  EXPECT_EQ(output(cohort, "passes"), 1);
}

TEST(ModelRegistry, DistinctKeysAndLeastCost) {
  const auto keys = [](const char* j) {
    return model_named("distinct-keys").run(Pairs{{"j", j}, {"universe", "65536"}});
  };
  const auto one = keys("1"), some = keys("2048");
  EXPECT_NEAR(output(one, "power_law"), 1, 1e-9);
  EXPECT_NEAR(output(one, "power_law_limit"), 1.19733, 1e-5);
  EXPECT_NEAR(output(some, "power_law"), 1113.6, 0.05);
  EXPECT_NEAR(output(some, "power_law_limit"), 1113.79, 0.005);
  EXPECT_NEAR(output(keys("262144"), "power_law"), 37194, 0.5);
  EXPECT_NEAR(output(keys("1048576"), "power_law_table") / 59815, 1, 1e-4);
  EXPECT_NEAR(output(keys("65536"), "uniform"), 65536 * (1 - std::pow(1 - 1 / 65536.0, 65536)),
              1e-6);
  // Half way on a log-log plot is the geometric mean.
  EXPECT_NEAR(
      output(
          model_named("distinct-keys")
              .run(Pairs{{"j", "10k"}, {"j1", "1k"}, {"d1", "900"}, {"j2", "100k"}, {"d2", "40k"}}),
          "interpolated"),
      6000, 1e-6);
  expect_cells("least-cost", {{"posterior", "0.98"}, {"lost", "100"}, {"duplicate", "1"}},
               {{"threshold", 100.0 / 101, 1e-12},
                {"cost_duplicate", 2, 1e-12},
                {"cost_distinct", 0.98, 1e-12},
                {"cost", 0.98, 1e-12},
                {"passes", 1, 0}});
}

}  // namespace
}  // namespace sluice::model
