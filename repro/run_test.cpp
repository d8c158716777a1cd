#include "repro/run.hpp"

#include <gtest/gtest.h>

#include <algorithm>
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
        {"bits a key"},
        {"errors (share)", true, 1e-3},
        {{"ours", Curve::Style::line, {{1, 0.1}, {2, 0}}}, {"none", Curve::Style::points, {}}}}}};
  const std::string script = script_of(figure);
  EXPECT_NE(script.find("'It''s a title'"), std::string::npos);
  EXPECT_NE(script.find("'bits a key'"), std::string::npos);
  EXPECT_NE(script.find("'errors (share)'"), std::string::npos);
  EXPECT_NE(script.find("'ours'"), std::string::npos);
  // What a logarithm cannot show is left out, and so is a curve of nothing.
  EXPECT_EQ(script.find("2 0\n"), std::string::npos);
  EXPECT_EQ(script.find("'none'"), std::string::npos);
  EXPECT_EQ(csv_of(figure), "panel,curve,x,y\npanel,ours,1,0.1\npanel,ours,2,0\n");
  EXPECT_EQ(csv_field("a,\"b\""), "\"a,\"\"b\"\"\"");
}

}  // namespace
}  // namespace sluice::repro
