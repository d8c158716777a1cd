// Filters followed through one stream: how their errors and their ones go on.
#pragma once

#include "repro/dutta/stream.hpp"
#include "repro/figure.hpp"

namespace sluice::repro::dutta {

// What was seen of one filter at one point of the stream.
struct Moment {
  double records;
  Errors errors;  // so far
  double ones;
  double difference;  // mean |change of the ones| a step, since the moment before
};

struct Trace {
  std::string name;
  unsigned colour;
  double ones_most;  // cells or bits there are
  std::vector<Moment> moments;
  std::vector<Point> growth;  // ones over records, in steps of 2 % of these
  const Errors& total() const { return moments.back().errors; }
  double fnr_at(double records) const;  // in percent, between moments on a straight line
  // In percent, over millions of records.
  std::vector<Point> fpr() const;
  std::vector<Point> fnr() const;
};

struct Follow {
  StreamPlan plan;
  std::uint64_t step = 1000;    // records between two looks at the ones
  double begin = 0, share = 1;  // of the progress
};

// The streams of the figures, from an experiment's parameters.
StreamPlan uniform_plan(const Context& context);  // records, distinct
StreamPlan clicks_plan(const Context& context);   // records, keys, skew

// Up to twice as many moments, evenly spaced.
inline constexpr std::size_t kMostMoments = 100;
std::vector<Trace> follow(const Context& context, const Follow& how, std::vector<Subject> subjects);

// `stable` and the paper's `reservoir` in that many bits; `size` is for their names: "2 KB".
std::vector<Subject> both(const Context& context, double bits, const std::string& size);

}  // namespace sluice::repro::dutta
