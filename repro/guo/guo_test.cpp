// The figures of Guo et al. 2010 that are formulas: all rows hold, or say why not.
#include <gtest/gtest.h>

#include "repro/run.hpp"
#include "sluice/base/error.hpp"

namespace sluice::repro {
namespace {

std::vector<Done> run_guo(const std::vector<Task>& tasks) {
  return run(tasks, 1, {});
}

TEST(GuoFormulas, AreThePapers) {
  Wish wish{.papers = {"guo"}};
  wish.only = {"fig2",  "fig4",  "fig7",  "fig8",  "fig10", "fig11",
               "fig13", "fig14", "fig15", "fig16", "nodes"};
  const std::vector<Task> tasks = tasks_of(wish);
  const std::vector<Done> done = run_guo(tasks);
  const Score score = score_of(done);
  EXPECT_EQ(score.unexplained, 0u);
  EXPECT_EQ(score.explained, 1u) << "Figure 14's five percent";
  EXPECT_GE(score.within(), 20u);
  for (const Done& one : done) EXPECT_FALSE(one.result.figure.panels.empty());
}

TEST(GuoFormulas, OtherParametersAreShownAndNotJudged) {
  Wish wish{.papers = {"guo"}, .only = {"fig2"}};
  wish.settings = {"c=100"};
  const std::vector<Task> tasks = tasks_of(wish);
  const Score score = score_of(run_guo(tasks));
  EXPECT_EQ(score.shown, 3u);
  EXPECT_EQ(score.within() + score.explained + score.unexplained, 0u);
}

TEST(GuoFormulas, RefuseWhatCannotBe) {
  const auto with = [](const char* only, const char* setting) {
    Wish wish{.papers = {"guo"}, .only = {only}};
    wish.settings = {setting};
    const std::vector<Task> tasks = tasks_of(wish);
    run_guo(tasks);
  };
  EXPECT_THROW(with("fig2", "m=100"), BadParameters);
  EXPECT_THROW(with("fig2", "c=0"), BadParameters);
  EXPECT_THROW(with("fig10", "N=0"), BadParameters);
  EXPECT_THROW(with("fig11", "sigma=0"), BadParameters);
  EXPECT_THROW(with("nodes", "beta=0.001"), BadParameters);
}

}  // namespace
}  // namespace sluice::repro
