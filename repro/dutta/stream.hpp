// The streams of Dutta et al. 2012 with their exact truth, and what filters make of them.
//
// A generated stream keeps one bit per key of its universe: 13 MB for the paper's billion records. A
// user's own file takes up to 96 bytes per key.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "repro/experiment.hpp"
#include "sluice/filters/any_filter.hpp"
#include "sluice/filters/reservoir.hpp"
#include "sluice/filters/stable.hpp"

namespace sluice::repro::dutta {

struct Batch {
  std::span<const Digest> digests;
  std::span<const std::uint8_t> seen;  // whether each came before
};

// A stream as an experiment asks for it.
struct StreamPlan {
  enum class Kind { uniform, clicks };
  Kind kind = Kind::uniform;
  std::uint64_t records = 0;
  double distinct = 0;     // uniform: share of them
  std::uint64_t keys = 0;  // clicks: as many, the r-th drawn in proportion to r^-skew
  double skew = 0;
  std::uint64_t seed = 1;
  std::string input = {};  // a file instead; the rest then does not count
};

// The keys from which `records` draws hold a share of distinct ones: U(1 − e^{−n/U}) = share · n.
// Throws BadParameters for a share that cannot be.
std::uint64_t universe_of(double records, double share);

// Hands on the stream in batches that end at every multiple of `step` records.
void each_batch(const StreamPlan& plan, std::uint64_t step,
                const std::function<void(const Batch&)>& take);

struct Errors {
  std::uint64_t distinct = 0, duplicates = 0;
  std::uint64_t lost = 0;    // distinct, and held back
  std::uint64_t missed = 0;  // duplicates, and let through
  std::uint64_t records() const { return distinct + duplicates; }
  double fpr() const;  // in percent; 0 where there is nothing to err about
  double fnr() const;
  Errors operator-(const Errors& earlier) const;
  Errors& operator+=(const Errors& other);
};

// A filter on its way through a stream.
class Subject {
 public:
  Subject(std::string name, AnyFilter filter)
      : name_(std::move(name)), filter_(std::move(filter)) {}
  const std::string& name() const { return name_; }
  void take(const Batch& batch);
  const Errors& errors() const { return errors_; }
  double ones() const;   // cells above zero, or bits set
  double cells() const;  // as many as there are
  const AnyFilter& filter() const { return filter_; }

 private:
  std::string name_;
  AnyFilter filter_;
  Errors errors_;
  std::vector<Verdict> verdicts_;
};

// The parameters that the paper's experiments have in common.
std::vector<Parameter> filter_parameters(unsigned reservoir_filters, const char* meaning);
// A parameter that counts something, at this scale. Throws BadParameters unless it is 1 to 10^13.
std::uint64_t count_of(const Context& context, const char* parameter, std::uint64_t least = 1);
// `bits` as the paper has them, scaled; `filters` 0: as --set k says.
Stable::Params stable_params(const Context& context, double bits);
Reservoir::Params reservoir_params(const Context& context, double bits, unsigned filters = 0);

// Why a value may be outside its tolerance: what is published says so, or the run is so small that
// whole words or the luck of few events show. `errors` were counted with a table of `bits`.
std::string why_of(const Context& context, std::string_view id, double bits, std::uint64_t errors);

}  // namespace sluice::repro::dutta
