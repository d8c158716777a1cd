// What `sluice dedup` was asked to do, as typed and as understood.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "connectors/files/files.hpp"
#include "log_flags.hpp"
#include "record_flags.hpp"
#include "shared.hpp"
#include "sluice/audit/audit.hpp"
#include "sluice/base/quantity.hpp"
#include "sluice/filters/settings.hpp"
#include "sluice/hash/hasher.hpp"
#include "sluice/plan/plan.hpp"
#include "sluice/snapshot/snapshot.hpp"
#include "sluice/stream/dedup.hpp"
#include "sluice/window/window.hpp"
#include "time_flags.hpp"

namespace sluice::cli {

class Command;

// The flags' texts: read by the strict parsers of base/quantity.
struct DedupFlags : RecordFlags {
  std::vector<std::string> files;
  std::string max_record = "1GiB";
  bool strict = false, invert = false, follow = false;
  std::string filter, expect, fpr, memory, seed;
  bool untrusted_keys = false;
  std::string password_file, when_unreachable;  // of a filter on servers: see dedup_shared.hpp
  std::string output, duplicates, forget;
  std::string state, checkpoint_every;
  bool state_previous = false, abandon = false;
  std::string stats = "text";
  std::string threads;
  std::string audit, audit_memory, audit_ghosts;
  // Windows: see dedup_window.hpp.
  std::string window, max_ahead, late, late_output, rate, slack, npws, growth;
  bool refresh = false, arrival_time = false;
  // Least cost: see dedup_infer.hpp.
  std::string cost_lost, cost_duplicate, cost_lost_field, cost_duplicate_field, prior_field,
      prior_table;
  bool learn_priors = false, posterior = false;
};

struct DedupRequest {
  std::vector<std::string> files;  // at least one; "-" is standard input
  Archives archives = Archives::refuse_or_insist;
  UnpackOptions unpack;
  bool follow = false;  // see dedup_follow.hpp
  DedupOptions options;
  std::shared_ptr<SharedFilter> shared;  // it judges; the filter below is none
  std::string filter;                    // name and settings, to make
  std::string filter_asked;              // the same as it was given, or as --memory chose it
  Wish wish;
  // What was given about the filter and its hash: a state file must agree with it.
  bool filter_given = false;  // any of --filter, --expect and --fpr
  bool filter_named = false, fpr_given = false;
  std::optional<std::uint64_t> seed;
  bool untrusted_keys = false;
  std::vector<std::string> notes;         // what flags stand for, to say before the run
  std::string output, duplicates, state;  // empty: none, or standard output; see is_standard_output
  std::string late_output;
  std::string forget;  // keys to take back first; "-" is standard input
  bool state_previous = false;
  bool abandon = false;  // the state's unfinished run, if there is one
  std::string shape;     // the flags that decide what goes to which output, as text
  std::optional<DurationOrCount> checkpoint_every;
  std::optional<Window::Params> window;
  bool arrival_time = false;            // is meant for files, too
  std::optional<std::uint64_t> memory;  // --memory: of the whole process
  std::optional<Planning> plan;         // how it is spent, and why
  // Of it, for compressed files: what is planned, what they are known to need, and of that for outputs.
  std::uint64_t room = 0, room_needed = 0, packer_bytes = 0;
  // The same request with another `room`.
  std::function<DedupRequest(std::uint64_t)> with_room = {};
  std::optional<double> rate;         // keys per second
  std::optional<double> slack, npws;  // limits that the window's filter must keep
  std::optional<Audit::Params> audit;
  std::string prior_table;    // a file; the rest of inference is in `options`
  bool learn_priors = false;  // from the stream
  bool audit_memory_given = false;
  std::uint64_t audit_ghosts = 0;  // asked at each report, beside those of the stream
  enum class Stats { text, json, none } stats = Stats::text;
};

// Throws BadParameters: each names the flag and what would be right. `room`: what --memory keeps free for
// compressed inputs and outputs; if it is not given, what they need.
DedupRequest understand(const DedupFlags& flags, std::optional<std::uint64_t> room = {});

// The part of it that other commands share: which files, how their records are cut and keyed, and
// threads. The flags of add_input_flags() are what it reads; --log is replaced by what it stands for.
void understand_input(DedupFlags& flags, LogTimes times, DedupRequest& request);
void add_input_flags(Command& command, DedupFlags& flags);
// These flags as they were given, for a command that is shown.
std::vector<std::string> record_arguments(const DedupFlags& flags);

// Of --output, --duplicates and --late-output: "-", and no --output at all. At most one of them is.
inline bool is_standard_output(const std::string& file) {
  return file.empty() || file == "-";
}
bool writes_standard_output(const DedupRequest& request);

// Labels that a state must have to work with this request: how records are cut and keyed.
Labels labels_of(const DedupOptions& options);

}  // namespace sluice::cli
