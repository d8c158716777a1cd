// Every model by name, with what it takes and what it tells: the one place that knows them all.
#pragma once

#include <map>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace sluice::model {

// What a parameter may be.
enum class Takes : unsigned char {
  whole,   // a whole number from `least` to `most`
  number,  // any number from `least` to `most`
  chance,  // more than 0 and less than 1
  choice,  // one of the words of `choices`
};

struct ModelParameter {
  std::string_view name;     // "k"
  std::string_view meaning;  // with the paper's symbol, where it has another
  Takes takes = Takes::number;
  std::string_view standard;  // what it is when not given; empty: it must be given
  double least = 0, most = 0;
  std::string_view choices = {};  // "horizontal vertical"
  bool may_lack = false;          // `standard` is then a remark, not a value
};

struct ModelOutput {
  std::string_view name;
  std::string_view meaning;
};

// The values that a model is asked for.
class ModelArguments {
 public:
  double number(std::string_view name) const;
  unsigned whole(std::string_view name) const;
  std::string_view choice(std::string_view name) const;
  bool given(std::string_view name) const;

 private:
  friend struct ModelInfo;
  std::map<std::string_view, double> numbers_;
  std::map<std::string_view, std::string_view> choices_;
};

// Outputs in the order in which the model declares them. One that has no value (a size that would
// be infinite, an inverse that does not exist) is not finite.
using ModelResults = std::vector<std::pair<std::string_view, double>>;

struct ModelInfo {
  std::string_view name;
  std::string_view summary;  // what it is and where it is from, in a sentence
  std::span<const ModelParameter> parameters;
  std::span<const ModelOutput> outputs;
  // One number an output, in their order.
  std::vector<double> (*compute)(const ModelArguments& arguments);

  // With the parameters as people write them: "10", "1e-4", "5.7k", "2%", "vertical". Throws
  // BadParameters that names what is unknown, missing, repeated or out of range.
  ModelResults run(std::span<const std::pair<std::string, std::string>> given) const;
  const ModelParameter& parameter(std::string_view wanted) const;
};

// "whole number from 1 to 64", "more than 0 and less than 1", "horizontal or vertical".
std::string range_of(const ModelParameter& parameter);

// In the order in which they should be shown.
std::span<const ModelInfo> models();

// Throws BadParameters, with the names there are, when there is no such model.
const ModelInfo& model_named(std::string_view name);

}  // namespace sluice::model
