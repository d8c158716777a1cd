// Inference for records: the fields of their costs and priors, and how the probability is written
// with them.
//
// A record without its own cost uses the fixed cost; if there is none, the filter's verdict counts.
// A record without its own prior uses the table's.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "sluice/infer/inference.hpp"
#include "sluice/stream/csv.hpp"
#include "sluice/stream/json_tree.hpp"
#include "sluice/stream/key_extractor.hpp"
#include "sluice/stream/record.hpp"

namespace sluice {

struct InferOptions {
  // Without any cost the verdicts are the filter's own. If only one error has a cost, the other
  // costs 1.
  std::optional<double> cost_lost = {}, cost_duplicate = {};
  // Fields, each written as one --key.
  std::optional<std::string> cost_lost_field = {}, cost_duplicate_field = {}, prior_field = {};
  bool posterior = false;  // the probability is written with each record

  bool has_costs() const noexcept {
    return cost_lost || cost_duplicate || cost_lost_field || cost_duplicate_field;
  }
};

// What a header gets, with its delimiter, if the probabilities are written.
std::string posterior_column(const Format& format);

// Numbers in a field of records. NaN: the record has none.
class NumberField {
 public:
  // `name` is for messages. Throws BadParameters.
  NumberField(const Format& format, const std::string& field, const char* name);
  void set_header(const Record& header, const std::string& source);
  void extract(std::span<const Record> records, std::span<double> numbers);

 private:
  bool json_;
  const char* name_;
  std::unique_ptr<KeyExtractor> field_;
  std::vector<std::string_view> texts_;
  std::vector<KeyStatus> found_;
};

class RecordInference {
 public:
  // `has_table`: records without their own prior may have one in a table. Throws BadParameters.
  RecordInference(const Format& format, const InferOptions& options, bool has_table);

  void set_header(const Record& header, const std::string& source);
  // Reads costs and priors of the records. With `strict`, a keyed record that lacks one is treated
  // as a record without a key. Returns how many are keyed.
  std::size_t extract(std::span<const Record> records, bool strict, std::span<KeyStatus> status);
  // Compacts the values: those of keyed records come first, without gaps.
  void keep_keyed(std::span<const KeyStatus> status);
  // The reverse, for the results.
  void spread(std::span<const KeyStatus> status);

  // What is known about the first `count` keys, and room for their results.
  Inference::Known known(std::size_t count) const;
  std::span<std::optional<double>> posteriors(std::size_t count) noexcept {
    return std::span(posteriors_).first(count);
  }

  // Whether records have costs or priors of their own.
  bool writes_posterior() const noexcept { return options_.posterior; }
  // The text to write for a record or header; valid until the next call. A `malformed` record is
  // written unchanged.
  Record with_posterior(const Record& record, const std::optional<double>& posterior,
                        KeyStatus status);
  Record with_name(const Record& header);

  struct Counts {
    std::uint64_t without_cost = 0;   // records that lack a cost in a field that was named
    std::uint64_t without_prior = 0;  // the same for --prior-field
  };
  const Counts& counts() const noexcept { return counts_; }
  const InferOptions& options() const noexcept { return options_; }

 private:
  void read_costs(std::span<const Record> records);
  bool is_whole(const Record& record, KeyStatus status);
  Record append(const Record& record, std::string_view text);

  Format format_;
  InferOptions options_;
  bool has_table_;
  std::optional<NumberField> lost_, duplicate_, prior_;
  bool per_record_;  // costs
  Counts counts_;
  // One batch.
  std::vector<double> found_, lost_costs_, duplicate_costs_;
  std::vector<std::uint8_t> lacking_;
  std::vector<Costs> costs_;
  std::vector<Prior> priors_;
  std::vector<std::optional<double>> posteriors_;
  std::string text_;
  std::vector<CsvField> fields_;
  JsonTree tree_;
};

}  // namespace sluice
