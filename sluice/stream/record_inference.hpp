// Inference for records: where their costs and priors stand in them, and how the probability is
// written with them.
//
// A record without a cost of its own takes the fixed one; where there is none, the filter judges
// it. One without a prior of its own takes the table's.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "sluice/infer/inference.hpp"
#include "sluice/stream/csv.hpp"
#include "sluice/stream/json_tree.hpp"
#include "sluice/stream/record.hpp"

namespace sluice {

struct InferOptions {
  // Without any cost the verdicts are the filter's own. Where only one error has one, the other
  // costs 1.
  std::optional<double> cost_lost = {}, cost_duplicate = {};
  // Fields, each written as one --key.
  std::optional<std::string> cost_lost_field = {}, cost_duplicate_field = {}, prior_field = {};
  const PriorTable* table = nullptr;  // must outlive the run
  bool learn = false;                 // learns priors from the stream, and uses no others
  bool posterior = false;             // the probability is written with each record

  bool has_costs() const noexcept {
    return cost_lost || cost_duplicate || cost_lost_field || cost_duplicate_field;
  }
};

// Numbers in a field of records. NaN: the record has none.
class NumberField {
 public:
  // `flag` is for messages. Throws BadParameters.
  NumberField(const Format& format, const std::string& field, const char* flag);
  void set_header(const Record& header, const std::string& source);
  void extract(std::span<const Record> records, std::span<double> numbers);

 private:
  bool json_;
  const char* flag_;
  std::unique_ptr<KeyExtractor> field_;
  std::vector<std::string_view> texts_;
  std::vector<KeyStatus> found_;
};

class RecordInference {
 public:
  // Throws BadParameters.
  RecordInference(const Format& format, const InferOptions& options, AnyFilter& filter);

  void set_header(const Record& header, const std::string& source);
  // Reads costs and priors of the records. With `strict` a keyed record that lacks one becomes one
  // without a key. Returns how many are keyed.
  std::size_t extract(std::span<const Record> records, bool strict, std::span<KeyStatus> status);
  // Only those of keyed records follow each other from the front.
  void keep_keyed(std::span<const KeyStatus> status);
  // The reverse for what came of them.
  void spread(std::span<const KeyStatus> status);

  // As the window's and the filter's; `late` and `times` only with event time.
  [[nodiscard]] std::size_t observe(std::span<const Digest> digests, std::span<Verdict> verdicts);
  [[nodiscard]] std::size_t judge(std::span<const Digest> digests,
                                  std::span<const Nanoseconds> times, std::span<Verdict> verdicts,
                                  std::span<bool> late);

  // Whether records have costs or priors of their own.
  bool reads_fields() const noexcept { return lost_ || duplicate_ || prior_; }
  bool writes_posterior() const noexcept { return options_.posterior; }
  // Of the batch that was judged last.
  std::span<const std::optional<double>> posteriors() const noexcept { return posteriors_; }
  // The record, or header, as it is to be written: lives until the next call. `malformed`: as it
  // is.
  Record with_posterior(const Record& record, const std::optional<double>& posterior,
                        KeyStatus status);
  Record with_name(const Record& header);

  struct Counts {
    Inference::Stats verdicts = {};
    std::uint64_t without_cost = 0;   // records that lack a cost in a field that was named
    std::uint64_t without_prior = 0;  // the same for --prior-field
    bool withheld = false;            // learnt priors did harm of late
  };
  Counts counts() const;
  const InferOptions& options() const noexcept { return options_; }

 private:
  Inference::Known known(std::size_t count) const;
  void read_costs(std::span<const Record> records);
  bool is_whole(const Record& record, KeyStatus status);
  Record append(const Record& record, std::string_view text);

  Format format_;
  InferOptions options_;
  Inference inference_;
  std::optional<NumberField> lost_, duplicate_, prior_;
  bool per_record_;  // costs
  std::uint64_t without_cost_ = 0, without_prior_ = 0;
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
