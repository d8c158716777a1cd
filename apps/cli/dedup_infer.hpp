// Inference flags of `sluice dedup`: their meaning in combination, and their part of the
// statistics.
#pragma once

#include <optional>
#include <string>

#include "dedup_request.hpp"
#include "json_writer.hpp"
#include "sluice/infer/priors.hpp"
#include "sluice/stream/record_inference.hpp"

namespace sluice::cli {

class Command;

void add_infer_flags(Command& command, DedupFlags& flags);

// Fills `request.options.infer`, `prior_table` and `learn_priors`. Throws BadParameters: each names
// the flag and what would be right.
void understand_infer(const DedupFlags& flags, DedupRequest& request);

// Throws BadParameters when this filter does not support inference.
void check_can_infer(const DedupRequest& request, const AnyFilter& filter);

// The table of --prior-table, if the flag is given. `wake` is as in FileSource. Throws
// BadParameters, IoError.
std::optional<PriorTable> load_priors(const DedupRequest& request, const Hasher& hasher, int wake);

struct InferReport {
  InferOptions options;
  RecordInference::Counts counts;
  Inference::Stats verdicts = {};
  bool learnt = false;
  bool withheld = false;  // learnt priors are not used: they recently raised the cost
  std::optional<std::size_t> table_keys = {};
};

std::string infer_row(const InferReport& report);
void add_infer(JsonWriter& json, const InferReport& report);

}  // namespace sluice::cli
