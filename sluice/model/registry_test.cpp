#include "sluice/model/registry.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <set>
#include <string>

#include "sluice/base/error.hpp"
#include "sluice/model/apbf.hpp"

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

// Rows of Shtul's tables by their names: no output stands in another's place.
TEST(ModelRegistry, TablesByName) {
  struct Cell {
    const char* name;
    double printed, step;
  };
  const auto check = [](const ModelResults& results, std::initializer_list<Cell> cells) {
    for (const Cell& cell : cells)
      EXPECT_NEAR(output(results, cell.name), cell.printed, cell.step) << cell.name;
  };
  check(model_named("slices").run(Pairs{{"fpr", "0.01"}}), {{"k", 7, 0},
                                                            {"bits_a_key", 10.09, 0.01},
                                                            {"fpr", 0.0078125, 1e-12},
                                                            {"accesses_positive", 7, 0},
                                                            {"accesses_negative", 1.94, 0.006}});
  check(model_named("apbf").run(Pairs{{"k", "14"}, {"l", "40"}}),
        {{"fpr_linear", 0.000988, 0.51e-6},
         {"efficiency", 0.53, 0.0051},
         {"accesses_window", 16.85, 0.0051},
         {"accesses_positive", 16.16, 0.0051},
         {"accesses_negative", 6.75, 0.0051},
         {"npws", 0.05, 0.0051},
         {"slack", 0.35, 1e-9},
         {"fpr_exact", 0.00100751, 0.51e-8},
         {"fpr_best", 0.000977005, 0.51e-9},
         {"fpr_mean", 0.000991625, 1e-7},
         {"accesses_window_exact", 16.846, 0.00051},
         {"accesses_positive_exact", 16.213, 0.00051},
         {"accesses_negative_exact", 6.785, 0.00051},
         {"efficiency_exact", 0.5267, 0.000051},
         {"bits_a_key", 27.27, 0.0051}});
  check(model_named("apbbf").run(Pairs{{"k", "2"}, {"l", "5"}, {"block", "512"}, {"bits", "8"}}),
        {{"fpr", 0.0001226, 0.51e-7},
         {"fpr_slices", 0.0002342, 0.51e-7},
         {"capacity_share", 0.992, 0.00051},
         {"accesses_window", 3.80, 0.0051},
         {"accesses_positive", 3.21, 0.0051},
         {"accesses_negative", 3.03, 0.0051},
         {"npws", 0.20, 0.0051},
         {"bits_a_key", 32.6, 0.051},
         {"fpr_column", 1.6e-4, 1e-5}});
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

}  // namespace
}  // namespace sluice::model
