// §4.3 and §4.4: sets without a known bound, on one node and on many.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "repro/guo/experiments.hpp"
#include "repro/guo/series.hpp"
#include "sluice/base/error.hpp"
#include "sluice/model/bloom.hpp"
#include "sluice/model/dynamic_sizing.hpp"

namespace sluice::repro::guo {
namespace {

using model::DynamicConfiguration;
using model::DynamicShape;

double limit_of(const Context& context, double target) {
  const double limit = context.number("beta");
  if (!(limit > target && limit < 1))
    throw BadParameters(fmt::format(
        "--set beta={:g}: give more than the {:.4g} of a full filter, below 1", limit, target));
  return limit;
}

// How often a standard filter is rebuilt until it holds `most` keys: by the rule that
// DynamicConfiguration has for dynamic ones, at least double the keys.
unsigned standard_rebuilds(double capacity, double target, double limit, double most) {
  unsigned rebuilds = 0;
  for (DynamicShape shape = model::filter_for(capacity, target);;) {
    const double at = model::standard_rebuild_at(shape, limit);
    if (at >= most) return rebuilds;
    shape = model::filter_for(std::max(2 * shape.capacity, at + 1), target);
    ++rebuilds;
  }
}

unsigned dynamic_rebuilds(double capacity, double target, double limit, double most) {
  unsigned rebuilds = 0;
  for (auto configuration = DynamicConfiguration::make(capacity, target, limit);;) {
    const double at = std::floor(model::dynamic_rebuild_at(configuration.shape, limit)) + 1;
    if (at >= most) return rebuilds;
    configuration = configuration.next(at);
    ++rebuilds;
  }
}

}  // namespace

Result run_rebuild(const Context& context) {
  const DynamicShape shape = shape_of(context);
  const double target = model::filter_fpr(shape, shape.capacity);
  const double limit = limit_of(context, target);
  const unsigned rounds = rounds_of(context);
  Result result{context.rows(), {}};
  Rows& rows = result.rows;
  const double standard = model::standard_rebuild_at(shape, limit);
  const double dynamic = std::floor(model::dynamic_rebuild_at(shape, limit));
  rows.value("rebuild.standard", standard);
  rows.value("rebuild.dynamic", dynamic);
  SplitMix64 random(context.seed());
  double standard_fpr = 0, dynamic_fpr = 0;
  for (unsigned round = 0; round < rounds; ++round) {
    Bloom one = standard_of(shape.bits, shape.probes, standard);
    write(one, random, std::round(standard));
    standard_fpr += found_share(one, random) / rounds;
    Dynamic series = dynamic_of(shape, false);
    write(series, random, dynamic);
    dynamic_fpr += found_share(series, random) / rounds;
    context.progress((round + 1.0) / rounds);
  }
  rows.predicted("§4.3", fmt::format("standard, {:.0f} keys: false positives", standard), limit,
                 standard_fpr, of_formula(limit, rounds), kLuck);
  rows.predicted("§4.3", fmt::format("dynamic, {:.0f} keys: false positives", dynamic), limit,
                 dynamic_fpr, of_formula(limit, rounds), kAsks);
  Curve standards{"standard", Curve::Style::line, {}, 1},
      dynamics{"dynamic", Curve::Style::line, {}, 0};
  bool fewer = true;
  const double least = std::max(limit, 1.2 * target);
  for (double each = 1.2 * target; each <= 0.5; each *= 1.1) {
    standards.points.push_back({each, model::standard_rebuild_at(shape, each) / shape.capacity});
    dynamics.points.push_back({each, model::dynamic_rebuild_at(shape, each) / shape.capacity});
    fewer &= each < least || dynamics.points.back().y > standards.points.back().y;
  }
  const unsigned often = standard_rebuilds(shape.capacity, target, limit, 1000 * shape.capacity);
  const unsigned seldom = dynamic_rebuilds(shape.capacity, target, limit, 1000 * shape.capacity);
  rows.claim(
      "claim.stable", fewer && seldom < often,
      fmt::format("a set that grows a thousandfold makes {} rebuilds against {}", seldom, often));
  result.figure = {
      "When a filter must be built anew (§4.3)",
      {{fmt::format("m = {:.0f}, k = {}, c = {:.0f}", shape.bits, shape.probes, shape.capacity),
        {"error β that may not be passed", true},
        {"keys in the set by then, over c", true},
        {dynamics,
         standards,
         {"dynamic, paper",
          Curve::Style::points,
          {{0.05, context.published("rebuild.dynamic").printed / 133}},
          0},
         {"standard, paper",
          Curve::Style::points,
          {{0.05, context.published("rebuild.standard").printed / 133}},
          1}}}}};
  return result;
}

// Nodes whose sets grow each at its own pace must keep one configuration: one node that outgrows it
// makes all of them rebuild.
Result run_nodes(const Context& context) {
  const unsigned nodes = context.whole("nodes");
  if (nodes == 0 || nodes > 100'000) throw BadParameters("--set nodes: give 1 to 100000");
  const double capacity = context.whole("c"), target = context.number("fpr");
  const double limit = limit_of(context, target);
  const double most = context.number("growth") * capacity;
  SplitMix64 random(context.seed());
  std::vector<double> share(nodes);  // of the largest set, at any time
  for (double& each : share) each = std::max(random.next_unit(), 0.01);
  share.front() = 1;

  Curve dynamics{"dynamic", Curve::Style::line, {}, 0},
      standards{"standard", Curve::Style::line, {}, 1};
  auto configuration = DynamicConfiguration::make(capacity, target, limit);
  DynamicShape standard = model::filter_for(capacity, target);
  double seldom = 0, often = 0, dynamic_bits = 0, standard_bits = 0;
  for (double largest = capacity; largest <= most; largest = std::floor(largest * 1.02) + 1) {
    while (configuration.must_rebuild(largest))
      configuration = configuration.next(largest), ++seldom;
    while (model::standard_rebuild_at(standard, limit) < largest)
      standard = model::filter_for(std::max(2 * standard.capacity, largest), target), ++often;
    dynamics.points.push_back({largest / capacity, seldom});
    standards.points.push_back({largest / capacity, often});
    for (const double each : share)
      dynamic_bits += model::dynamic_filters(configuration.shape, std::ceil(each * largest)) *
                      configuration.shape.bits;
    standard_bits += nodes * standard.bits;
  }
  Result result{context.rows(), {}};
  result.rows.claim(
      "claim.distributed", seldom < often && dynamic_bits < standard_bits,
      fmt::format("{} nodes: {:.0f} rebuilds of all against {:.0f}, and {:.0f} % less "
                  "memory on average",
                  nodes, seldom, often, 100 * (1 - dynamic_bits / standard_bits)));
  result.figure = {"Configurations that nodes must agree on (§4.4)",
                   {{fmt::format("{} nodes, ε = {:g}, β = {:g}", nodes, target, limit),
                     {"keys of the largest set, over c", true},
                     {"times that all nodes rebuilt", false, 0.0},
                     {dynamics, standards}}}};
  return result;
}

}  // namespace sluice::repro::guo
