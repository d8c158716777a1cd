#include "repro/run.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "repro/input.hpp"
#include "sluice/base/error.hpp"

namespace sluice::repro {
namespace {

std::string text_of(const std::filesystem::path& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

std::vector<Done> run_small(const Wish& wish, const std::vector<Task>& tasks) {
  return run(tasks, wish.threads, {});
}

TEST(Repro, EveryPaperIsReadWhole) {
  ASSERT_EQ(papers().size(), 5u);
  for (const Paper& paper : papers()) {
    EXPECT_FALSE(paper.title.empty());
    std::vector<std::string> names;
    for (const Experiment& experiment : paper.experiments) names.push_back(experiment.name);
    std::ranges::sort(names);
    EXPECT_EQ(std::ranges::adjacent_find(names), names.end()) << paper.name;
    // A statement that fails, or a value that is misprinted, is to be explained.
    for (const PublishedValue& value : paper.published.all())
      EXPECT_FALSE(value.corrected && !value.printed_text.empty() && value.why.empty()) << value.id;
  }
}

TEST(Repro, TheSameSeedGivesTheSamePageOnAnyNumberOfThreads) {
  Wish wish{.papers = {"koloniari"}, .only = {"fig1a", "fig1b", "table1", "fig12a"}, .scale = 0.02};
  wish.threads = 1;
  const std::vector<Task> tasks = tasks_of(wish);
  const std::string one = page_of(run_small(wish, tasks), false);
  wish.threads = 4;
  EXPECT_EQ(page_of(run_small(wish, tasks), false), one);
  wish.seed = 2;
  const std::vector<Task> others = tasks_of(wish);
  EXPECT_NE(page_of(run_small(wish, others), false), one);
}

TEST(Repro, OtherParametersAreUsedAndNotJudgedByThePaper) {
  const Wish wish{.papers = {"koloniari"}, .only = {"fig1b"}, .settings = {"k=8", "limit=0.2"}};
  const std::vector<Task> tasks = tasks_of(wish);
  const std::vector<Done> done = run(tasks, 1, {});
  for (const Row& row : done[0].result.rows.all()) EXPECT_EQ(row.verdict, Row::Verdict::shown);
  EXPECT_NE(page_of(done, false).find("k 8"), std::string::npos);
  EXPECT_EQ(score_of(done).shown, done[0].result.rows.all().size());
}

std::vector<std::string> names_of(const std::vector<Task>& tasks) {
  std::vector<std::string> names;
  for (const Task& task : tasks) names.push_back(task.experiment->name);
  return names;
}

TEST(Repro, ClaimsAreNotJudgedWithOtherParameters) {
  const std::vector<Task> tasks =
      tasks_of({.papers = {"koloniari"}, .only = {"fig1a"}, .settings = {"k=6"}});
  const std::vector<Done> done = run(tasks, 1, {});
  const Score score = score_of(done);
  EXPECT_EQ(score.within(), 0u);
  EXPECT_EQ(score.shown, 3u);
}

TEST(Repro, FindsFiguresByTheNameThatThePaperHas) {
  using Names = std::vector<std::string>;
  const auto of = [](const char* paper, const char* name) {
    return tasks_of({.papers = {paper}, .only = {name}});
  };
  EXPECT_EQ(names_of(of("koloniari", "fig1")), (Names{"fig1a", "fig1b"}));
  EXPECT_EQ(names_of(of("koloniari", "Figure 5(a)")), (Names{"fig5a"}));
  EXPECT_EQ(names_of(of("koloniari", "fig9c")), (Names{"fig9"}));
  EXPECT_EQ(names_of(of("guo", "Table 1")), (Names{"table1"}));
  EXPECT_EQ(names_of(of("guo", "fig1")), (Names{"fig1"}));
  const std::vector<Task> eight = of("dautrich", "fig8");
  EXPECT_EQ(names_of(eight), (Names{"fig7"}));
  EXPECT_EQ(eight.front().asked_as, "fig8");
  EXPECT_EQ(of("dautrich", "fig7").front().asked_as, "");
}

TEST(Repro, SaysWhichExperimentsThereAre) {
  try {
    tasks_of({.papers = {"dautrich"}, .only = {"fig99"}});
    FAIL();
  } catch (const BadParameters& error) {
    const std::string text = error.what();
    EXPECT_NE(text.find("'fig99'"), std::string::npos);
    EXPECT_NE(text.find("fig7, fig8, fig9"), std::string::npos) << text;
    EXPECT_EQ(text.find("koloniari"), std::string::npos);
  }
}

TEST(Repro, EveryParameterIsWithinItsOwnRange) {
  for (const Paper& paper : papers())
    for (const Experiment& experiment : paper.experiments)
      for (const Parameter& parameter : experiment.parameters) {
        EXPECT_LE(parameter.least, parameter.standard)
            << paper.name << " " << experiment.name << " " << parameter.name;
        EXPECT_TRUE(parameter.most > parameter.standard || parameter.name == "new" ||
                    parameter.name == "different" || parameter.name == "kmax")
            << paper.name << " " << experiment.name << " " << parameter.name;
        // A share may be made smaller, all may be made larger.
        EXPECT_TRUE(parameter.standard == std::floor(parameter.standard) ||
                    parameter.least < parameter.standard)
            << paper.name << " " << experiment.name << " " << parameter.name;
      }
}

TEST(Repro, OwnStreamsAreForThoseThatReadThem) {
  EXPECT_THROW(tasks_of({.papers = {"guo"}, .input = "a"}), BadParameters);
  const std::vector<Task> tasks =
      tasks_of({.papers = {"koloniari"}, .only = {"fig1a", "table1"}, .input = "a"});
  EXPECT_EQ(tasks[0].settings.input, "");
  EXPECT_EQ(tasks[1].settings.input, "a");
}

TEST(Repro, RefusesWhatThereIsNot) {
  EXPECT_THROW(tasks_of({.papers = {"newton"}}), BadParameters);
  EXPECT_THROW(tasks_of({.papers = {"koloniari"}, .only = {"fig99"}}), BadParameters);
  EXPECT_THROW(tasks_of({.papers = {"koloniari"}, .settings = {"k"}}), BadParameters);
  EXPECT_THROW(tasks_of({.papers = {"koloniari"}, .settings = {"k=four"}}), BadParameters);
  EXPECT_THROW(tasks_of({.papers = {"koloniari"}, .settings = {"zeta=4"}}), BadParameters);
  EXPECT_THROW(tasks_of({.papers = {"koloniari"}, .settings = {"k=0"}}), BadParameters);
  EXPECT_THROW(tasks_of({.papers = {"koloniari"}, .settings = {"P=1"}}), BadParameters);
}

TEST(Repro, AnErrorOfAnExperimentIsHandedOn) {
  const std::vector<Task> tasks =
      tasks_of({.papers = {"koloniari"}, .only = {"fig1a", "table1"}, .settings = {"k=2.5"}});
  EXPECT_THROW(run(tasks, 2, {}), BadParameters);
}

TEST(Repro, WritesAPageAndDataInCsv) {
  const std::filesystem::path folder =
      std::filesystem::path(testing::TempDir()) / "sluice-repro-test";
  std::filesystem::remove_all(folder);
  const std::vector<Task> tasks =
      tasks_of({.papers = {"koloniari"}, .only = {"fig1a", "table1"}, .scale = 0.02});
  std::size_t finished = 0;
  double last = 0;
  const std::vector<Done> done = run(tasks, 2,
                                     {.moved =
                                          [&](double share, std::size_t) {
                                            EXPECT_GE(share, last - 1e-9);
                                            last = share;
                                          },
                                      .finished = [&](const Task&, double) { ++finished; }});
  EXPECT_EQ(finished, 2u);
  EXPECT_NEAR(last, 1, 1e-9);
  write(done, folder.string(), false);
  EXPECT_TRUE(text_of(folder / "koloniari/fig1a.csv").starts_with("panel,curve,x,y\n"));
  EXPECT_TRUE(text_of(folder / "koloniari/table1.csv").starts_with("tree,level,hits,accesses\n"));
  EXPECT_EQ(text_of(folder / "reproduction.md"), page_of(done, false));
  std::filesystem::remove_all(folder);
}

TEST(ReproInput, ReadsKeysAndSources) {
  const std::filesystem::path path = std::filesystem::path(testing::TempDir()) / "sluice-events";
  std::ofstream(path) << "a\tx\nb\tx\nx\n\na\ty";
  const std::vector<Event> events = all_events(path.string(), 1);
  ASSERT_EQ(events.size(), 5u);
  EXPECT_EQ(events[0].key, events[1].key);
  EXPECT_EQ(events[0].key, events[2].key);
  EXPECT_FALSE(events[0].key == events[4].key);
  EXPECT_NE(events[0].source, events[1].source);
  EXPECT_EQ(events[0].source, events[4].source);
  EXPECT_EQ(events[2].source, 0u);
  std::ofstream(path, std::ios::trunc) << "";
  EXPECT_THROW(all_events(path.string(), 1), BadParameters);
  std::filesystem::remove(path);
  EXPECT_THROW(all_events(path.string(), 1), IoError);
}

TEST(ReproFigure, ScriptsNameEveryCurveAndAxis) {
  const Figure figure{
      "It's a title",
      {{"panel",
        {"bits per key"},
        {"errors (share)", true, 1e-3},
        {{"ours", Curve::Style::line, {{1, 0.1}, {2, 0}}}, {"none", Curve::Style::points, {}}}}}};
  const std::string script = script_of(figure);
  EXPECT_NE(script.find("'It''s a title'"), std::string::npos);
  EXPECT_NE(script.find("'bits per key'"), std::string::npos);
  EXPECT_NE(script.find("'errors (share)'"), std::string::npos);
  EXPECT_NE(script.find("'ours'"), std::string::npos);
  // The legend is beside the plot, in one column.
  EXPECT_NE(script.find("set key at screen"), std::string::npos);
  // What a logarithm cannot show is left out, and so is a curve of nothing.
  EXPECT_EQ(script.find("2 0\n"), std::string::npos);
  EXPECT_EQ(script.find("'none'"), std::string::npos);
  EXPECT_EQ(csv_of(figure), "panel,curve,x,y\npanel,ours,1,0.1\npanel,ours,2,0\n");
  EXPECT_EQ(csv_field("a,\"b\""), "\"a,\"\"b\"\"\"");
}

// gnuplot would read 2^16 as 2¹6.
TEST(ReproFigure, PowersAreRaised) {
  const Figure figure{"w = 2^16",
                      {{"at 10^-4, not 2^(i+1)",
                        {"window", false, -0.5, 1.5, {"2^8", "2^11"}},
                        {"share", false, 0.0},
                        {{"2^18", Curve::Style::bars, {{0, 1}, {1, 2}}}}}}};
  const std::string script = script_of(figure);
  for (const char* text :
       {"'w = 2¹⁶'", "'at 10⁻⁴, not 2^(i+1)'", "'2⁸' 0", "'2¹¹' 1", "title '2¹⁸'"})
    EXPECT_NE(script.find(text), std::string::npos) << text;
}

TEST(ReproFigure, WhatCannotBeSeenIsNotDrawn) {
  Panel panel{"panel",
              {"x", false, 0.0, 1.0},
              {"y", true, 1e-3},
              {{"outside", Curve::Style::line, {{2, 0.1}, {3, 0.1}}},
               {"below", Curve::Style::points, {{0.5, 1e-5}}}}};
  EXPECT_EQ(script_of({"figure", {panel}}).find("plot '-'"), std::string::npos);
  panel.curves.push_back({"seen", Curve::Style::line, {{0.5, 0.1}, {2, 0.1}}});
  const std::string script = script_of({"figure", {panel}});
  EXPECT_NE(script.find("title 'seen'"), std::string::npos);
  EXPECT_EQ(script.find("title 'outside'"), std::string::npos);
}

TEST(ReproFigure, ThePapersValuesAreNotDrawnOverOtherParameters) {
  const auto printed = [](std::vector<std::string> settings) {
    const std::vector<Task> tasks =
        tasks_of({.papers = {"koloniari"}, .only = {"fig1a"}, .settings = std::move(settings)});
    const std::vector<Done> done = run(tasks, 1, {});
    return script_of(done[0].result.figure).find("recomputed") != std::string::npos;
  };
  EXPECT_TRUE(printed({}));
  EXPECT_FALSE(printed({"k=6"}));
}

TEST(ReproFigure, PointsStandOverTheirBarAndLegendsThatAreAlikeAreOne) {
  const Panel panel{"panel",
                    {"class", false, -0.5, 1.5, {"a", "b"}},
                    {"share", false, 0.0},
                    {{"ours", Curve::Style::bars, {{0, 1}}, 0},
                     {"theirs", Curve::Style::bars, {{0, 2}}, 1},
                     {"printed", Curve::Style::points, {{0, 1.5}}, 1}}};
  const std::string script = script_of({"figure", {panel, panel, panel}, 2});
  EXPECT_NE(script.find("\n-0.2 1\n"), std::string::npos);
  EXPECT_NE(script.find("\n0.2 2\n"), std::string::npos);
  EXPECT_NE(script.find("\n0.2 1.5\n"), std::string::npos);
  std::size_t keys = 0;
  for (std::size_t at = 0; (at = script.find("set key at", at)) != std::string::npos; ++at) ++keys;
  EXPECT_EQ(keys, 1u);
}

}  // namespace
}  // namespace sluice::repro
