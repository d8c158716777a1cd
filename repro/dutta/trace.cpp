#include "repro/dutta/trace.hpp"

#include <algorithm>
#include <cmath>

namespace sluice::repro::dutta {
namespace {

// One filter's moments; when there are too many, every second goes.
class Recorder {
 public:
  Recorder(Subject subject, unsigned colour) : subject_(std::move(subject)) {
    trace_.name = subject_.name();
    trace_.colour = colour;
    trace_.ones_most = subject_.cells();
  }
  void take(const Batch& batch) { subject_.take(batch); }
  void step() {
    const double ones = subject_.ones();
    changed_ += std::abs(ones - ones_);
    ones_ = ones;
    if (trace_.growth.empty() || records() >= 1.02 * trace_.growth.back().x)
      trace_.growth.push_back({records(), ones_});
    if (++steps_ < stride_) return;
    trace_.moments.push_back({static_cast<double>(subject_.errors().records()), subject_.errors(),
                              ones_, changed_ / static_cast<double>(steps_)});
    steps_ = 0, changed_ = 0;
    if (trace_.moments.size() == 2 * kMostMoments) thin_out();
  }
  Trace finish() {
    if (trace_.moments.empty() ||
        trace_.moments.back().records != static_cast<double>(subject_.errors().records()))
      trace_.moments.push_back({static_cast<double>(subject_.errors().records()), subject_.errors(),
                                ones_, steps_ == 0 ? 0 : changed_ / static_cast<double>(steps_)});
    return std::move(trace_);
  }
  double records() const { return static_cast<double>(subject_.errors().records()); }

 private:
  void thin_out() {
    std::vector<Moment>& moments = trace_.moments;
    for (std::size_t i = 0; 2 * i + 1 < moments.size(); ++i) {
      const double difference = (moments[2 * i].difference + moments[2 * i + 1].difference) / 2;
      moments[i] = moments[2 * i + 1];
      moments[i].difference = difference;
    }
    moments.resize(moments.size() / 2);
    stride_ *= 2;
  }

  Subject subject_;
  Trace trace_;
  double ones_ = 0, changed_ = 0;
  std::uint64_t steps_ = 0, stride_ = 1;
};

template <class Of>
std::vector<Point> points_of(const Trace& trace, Of of) {
  std::vector<Point> points;
  for (const Moment& moment : trace.moments) points.push_back({moment.records / 1e6, of(moment)});
  return points;
}

}  // namespace

double Trace::fnr_at(double records) const {
  const auto after = std::ranges::lower_bound(moments, records, {}, &Moment::records);
  if (after == moments.end()) return moments.back().errors.fnr();
  if (after == moments.begin()) return after->errors.fnr();
  const auto before = after - 1;
  const double share = (records - before->records) / (after->records - before->records);
  return std::lerp(before->errors.fnr(), after->errors.fnr(), share);
}

std::vector<Point> Trace::fpr() const {
  return points_of(*this, [](const Moment& moment) { return moment.errors.fpr(); });
}

std::vector<Point> Trace::fnr() const {
  return points_of(*this, [](const Moment& moment) { return moment.errors.fnr(); });
}

StreamPlan uniform_plan(const Context& context) {
  return {.records = count_of(context, "records", 1000),
          .distinct = context.number("distinct"),
          .seed = context.seed(),
          .input = context.input()};
}

StreamPlan clicks_plan(const Context& context) {
  return {.kind = StreamPlan::Kind::clicks,
          .records = count_of(context, "records", 1000),
          .keys = count_of(context, "keys"),
          .skew = context.number("skew"),
          .seed = context.seed(),
          .input = context.input()};
}

std::vector<Trace> follow(const Context& context, const Follow& how,
                          std::vector<Subject> subjects) {
  std::vector<Recorder> recorders;
  for (Subject& subject : subjects)
    recorders.emplace_back(std::move(subject), static_cast<unsigned>(recorders.size()));
  const double records = static_cast<double>(std::max<std::uint64_t>(how.plan.records, 1));
  std::uint64_t since = 0;
  each_batch(how.plan, how.step, [&](const Batch& batch) {
    for (Recorder& recorder : recorders) recorder.take(batch);
    since += batch.digests.size();
    if (since < how.step) return;
    since = 0;
    for (Recorder& recorder : recorders) recorder.step();
    context.progress(how.begin + how.share * std::min(recorders.front().records() / records, 1.0));
  });
  std::vector<Trace> traces;
  for (Recorder& recorder : recorders) traces.push_back(recorder.finish());
  return traces;
}

std::vector<Subject> both(const Context& context, double bits, const std::string& size) {
  std::vector<Subject> subjects;
  subjects.emplace_back("stable, " + size, AnyFilter(Stable::make(stable_params(context, bits))));
  subjects.emplace_back("reservoir, " + size,
                        AnyFilter(Reservoir::make(reservoir_params(context, bits))));
  return subjects;
}

}  // namespace sluice::repro::dutta
