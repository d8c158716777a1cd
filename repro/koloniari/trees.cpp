// Table 1 and Figure 12: trees of filters near the producers.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <unordered_set>

#include "repro/koloniari/experiments.hpp"
#include "repro/koloniari/streams.hpp"
#include "sluice/base/bits.hpp"
#include "sluice/base/error.hpp"
#include "sluice/cluster/tree.hpp"

namespace sluice::repro::koloniari {
namespace {

using cluster::Slices;
using cluster::Slicing;
using cluster::Tree;
using cluster::TreeShape;

struct HashDigest {
  std::size_t operator()(const Digest& digest) const { return digest.lo; }
};

Tree local_tree(const TreeShape& shape, const Tree::Options& options, std::uint64_t bits,
                unsigned probes) {
  // Every node has a filter of the whole stream's size.
  constexpr double kMostBytes = 4e9;
  if (static_cast<double>(shape.size()) * static_cast<double>(bits) / 8 > kMostBytes)
    throw BadParameters(fmt::format(
        "a tree of {} nodes of {} bits each: give fewer levels, children or leaves, or a smaller "
        "scale",
        shape.size(), bits));
  std::vector<std::unique_ptr<Slices>> nodes;
  for (std::size_t i = 0; i < shape.size(); ++i)
    nodes.push_back(std::make_unique<Slices>(
        Slices::Options{.slices = {Slicing::vertical, bits, probes, 1, 1, 1},
                        .rule = model::FaultRule::distinct(probes),
                        .test_and_set = options.kind == Tree::Kind::dense},
        cluster::connect(cluster::local_memories(1, bits))));
  return Tree(shape, options, std::move(nodes));
}

struct Found {
  std::vector<Tree::Level> levels;  // the root's first
  std::vector<double> climbs;       // share of the events, from the leaf
  double fpr = 0, fnr = 0;
  std::vector<bool> duplicate;  // one per event
};

Found run_tree(const Context& context, const std::vector<Event>& events, const TreeShape& shape,
               const Tree::Options& options, std::uint64_t bits) {
  Tree tree = local_tree(shape, options, bits, context.whole("k"));
  const std::vector<unsigned> leaves = shape.leaves();
  std::unordered_set<Digest, HashDigest> seen;
  Found found;
  double lost = 0, distinct = 0, passed = 0, repeated = 0;
  for (const Event& event : events) {
    const bool known = !seen.insert(event.key).second;
    const bool judged = tree.observe(leaves[scale_to(event.source, leaves.size())], event.key) ==
                        Verdict::duplicate;
    found.duplicate.push_back(judged);
    (known ? repeated : distinct) += 1;
    lost += judged && !known;
    passed += !judged && known;
  }
  found.levels.assign(tree.levels().begin(), tree.levels().end());
  for (const std::uint64_t count : tree.climbs())
    found.climbs.push_back(static_cast<double>(count) / static_cast<double>(events.size()));
  found.fpr = lost / std::max(1.0, distinct);
  found.fnr = passed / std::max(1.0, repeated);
  return found;
}

struct Setup {
  std::vector<Event> events;
  std::uint64_t bits;
};

Setup setup_of(const Context& context) {
  Setup setup{web_log(context).events, 0};
  const double keys = static_cast<double>(count_keys(setup.events).size());
  setup.bits = bits_for(keys, context.whole("k"), context.number("P"));
  return setup;
}

double share_of(const std::vector<Tree::Level>& levels, std::size_t level) {
  double all = 0;
  for (const Tree::Level& one : levels) all += static_cast<double>(one.hits);
  return static_cast<double>(levels[level].hits) / std::max(1.0, all);
}

std::uint64_t accesses(const Found& found) {
  std::uint64_t all = 0;
  for (const Tree::Level& level : found.levels) all += level.accesses;
  return all;
}

constexpr Tree::Kind kKinds[] = {Tree::Kind::sparse, Tree::Kind::dense};

const char* name_of(Tree::Kind kind) {
  return kind == Tree::Kind::sparse ? "sparse" : "dense";
}

struct BothTrees {
  Found of[2];  // sparse, dense
};

BothTrees run_both(const Context& context, const Setup& setup, const TreeShape& shape) {
  BothTrees both;
  for (std::size_t i = 0; i < 2; ++i) {
    both.of[i] = run_tree(context, setup.events, shape, {.kind = kKinds[i]}, setup.bits);
    context.progress((static_cast<double>(i) + 1) / 3);
  }
  return both;
}

TreeShape five_levels(const Context& context) {
  return TreeShape::even(context.whole("levels"), context.whole("children"));
}

}  // namespace

Result run_table1(const Context& context) {
  const Setup setup = setup_of(context);
  const BothTrees both = run_both(context, setup, TreeShape::even(2, context.whole("leaves")));
  Result result{context.rows(), {}};
  result.table = Table{{"tree", "level", "hits", "accesses"}, {}};
  Panel hits{"hits",
             {"level", false, -0.6, 1.6, {"0 (root)", "1 (leaves)"}},
             {"events judged duplicates (thousands)", false, 0.0},
             {}};
  Panel contacts = hits;
  contacts.title = "accesses";
  contacts.y.label = "filters accessed (thousands)";
  for (std::size_t i = 0; i < 2; ++i) {
    Curve hit{name_of(kKinds[i]), Curve::Style::bars, {}}, contact = hit;
    for (std::size_t level = 0; level < both.of[i].levels.size(); ++level) {
      const Tree::Level& found = both.of[i].levels[level];
      const double x = static_cast<double>(level);
      hit.points.push_back({x, static_cast<double>(found.hits) / 1000});
      contact.points.push_back({x, static_cast<double>(found.accesses) / 1000});
      result.table->lines.push_back({name_of(kKinds[i]), fmt::format("{}", level),
                                     fmt::format("{}", found.hits),
                                     fmt::format("{}", found.accesses)});
    }
    hits.curves.push_back(hit);
    contacts.curves.push_back(contact);
  }
  const double leaf = share_of(both.of[1].levels, 1), root = share_of(both.of[0].levels, 0);
  result.rows.claim("table1.dense", leaf > 0.5,
                    fmt::format("{:.0f} % of the hits are at the leaves", 100 * leaf));
  result.rows.claim("table1.sparse", root > 0.5,
                    fmt::format("{:.0f} % of the hits are at the root", 100 * root));
  result.rows.claim("table1.accesses", accesses(both.of[1]) < accesses(both.of[0]),
                    fmt::format("{} against {}", accesses(both.of[1]), accesses(both.of[0])));
  // One filter alone is a tree of one level.
  const Found one = run_tree(context, setup.events, TreeShape{}, {}, setup.bits);
  result.rows.claim(
      "claim.trees",
      both.of[0].duplicate == both.of[1].duplicate && one.duplicate == both.of[0].duplicate,
      fmt::format("all {} verdicts of sparse tree, dense tree and a single filter are the same; "
                  "false positives {:.4f}",
                  setup.events.size(), one.fpr));
  result.figure = {"Hits and accesses of trees of two levels", {hits, contacts}, 2};
  return result;
}

Result run_fig12a(const Context& context) {
  const Setup setup = setup_of(context);
  const TreeShape shape = five_levels(context);
  const BothTrees both = run_both(context, setup, shape);
  Result result{context.rows(), {}};
  Panel panel{
      "levels that an event goes up before it is judged",
      {"levels up (0: judged at the leaf)", false, -0.6, context.whole("levels") - 0.4, {}, 1.0},
      {"events (%)", false, 0.0},
      {}};
  double mean[2] = {};
  for (std::size_t i = 0; i < 2; ++i) {
    Curve curve{name_of(kKinds[i]), Curve::Style::bars, {}};
    for (std::size_t up = 0; up < both.of[i].climbs.size(); ++up) {
      curve.points.push_back({static_cast<double>(up), 100 * both.of[i].climbs[up]});
      mean[i] += static_cast<double>(up) * both.of[i].climbs[up];
    }
    panel.curves.push_back(curve);
  }
  result.rows.claim(
      "fig12a.dense", mean[1] < mean[0],
      fmt::format("{:.2f} levels up on average against {:.2f}; judged at the leaf: "
                  "{:.0f} % against {:.0f} %",
                  mean[1], mean[0], 100 * both.of[1].climbs[0], 100 * both.of[0].climbs[0]));
  result.figure = {fmt::format("How far events climb: {} levels", context.whole("levels")),
                   {panel}};
  return result;
}

Result run_fig12b(const Context& context) {
  const Setup setup = setup_of(context);
  const BothTrees both = run_both(context, setup, five_levels(context));
  Result result{context.rows(), {}};
  Panel panel{"accesses by level",
              {"level (0: the root)", false, -0.6, context.whole("levels") - 0.4, {}, 1.0},
              {"filters accessed (thousands)", false, 0.0},
              {}};
  for (std::size_t i = 0; i < 2; ++i) {
    Curve curve{name_of(kKinds[i]), Curve::Style::bars, {}};
    for (std::size_t level = 0; level < both.of[i].levels.size(); ++level)
      curve.points.push_back({static_cast<double>(level),
                              static_cast<double>(both.of[i].levels[level].accesses) / 1000});
    panel.curves.push_back(curve);
  }
  result.rows.claim("claim.dense", accesses(both.of[1]) < accesses(both.of[0]),
                    fmt::format("{} accesses against {}; of the root {} against {}",
                                accesses(both.of[1]), accesses(both.of[0]),
                                both.of[1].levels[0].accesses, both.of[0].levels[0].accesses));
  result.figure = {fmt::format("Accesses by level: {} levels", context.whole("levels")), {panel}};
  return result;
}

Result run_fig12c(const Context& context) {
  const Setup setup = setup_of(context);
  const TreeShape shape = five_levels(context);
  const unsigned deepest = context.whole("levels") - 1;
  Result result{context.rows(), {}};
  Panel fpr{"false positives",
            {"threshold level d (0: hits are not checked)", false, -0.1, deepest + 0.1, {}, 1.0},
            {"false positives (share of the distinct)", false, 0.0},
            {}};
  Panel fnr{"false negatives",
            {"threshold level d (0: hits are not checked)", false, -0.1, deepest + 0.1, {}, 1.0},
            {"false negatives (share of the duplicates)", false, 0.0},
            {}};
  double done = 0, ours_fnr = 0, paper_fnr = 0;
  std::vector<double> dense;
  bool falls = true;
  for (const Tree::Kind kind : kKinds)
    for (const bool stop : {false, true}) {
      const std::string name =
          fmt::format("{}{}", name_of(kind), stop ? ", a refuted hit ends the climb" : "");
      Curve positives{
          name, stop ? Curve::Style::model : Curve::Style::line, {}, static_cast<unsigned>(kind)};
      Curve negatives = positives;
      for (unsigned d = 0; d <= deepest; ++d) {
        const Found found = run_tree(context, setup.events, shape, {kind, d, stop}, setup.bits);
        positives.points.push_back({static_cast<double>(d), found.fpr});
        negatives.points.push_back({static_cast<double>(d), found.fnr});
        (stop ? paper_fnr : ours_fnr) = std::max(stop ? paper_fnr : ours_fnr, found.fnr);
        if (!stop && kind == Tree::Kind::dense) dense.push_back(found.fpr);
        context.progress(++done / (4.0 * (deepest + 1)));
      }
      falls &= positives.points.back().y < positives.points.front().y;
      fpr.curves.push_back(positives);
      fnr.curves.push_back(negatives);
    }
  result.rows.claim("fig12c.falls", falls,
                    fmt::format("dense, d = 0 to {}: {:.2g}", deepest, fmt::join(dense, ", ")));
  if (deepest >= 4)
    result.rows.claim("fig12c.two", dense[2] - dense[4] < 0.15 * (dense[0] - dense[4]),
                      fmt::format("d = 2 leaves {:.0f} % of what d = 0 has, d = 4 {:.0f} %",
                                  100 * dense[2] / dense[0], 100 * dense[4] / dense[0]));
  result.rows.claim(
      "fig12c.ours", ours_fnr == 0,
      fmt::format("none when the climb goes on; a share of {:.2g} of the duplicates when it ends",
                  paper_fnr));
  result.figure = {"Top-down testing", {fpr, fnr}, 2};
  return result;
}

}  // namespace sluice::repro::koloniari
