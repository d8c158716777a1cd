// How a run begins and what its state records of files: it continues the unfinished run of its
// state, or begins a new one after what earlier runs wrote. docs/resuming.md has the rules.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "connectors/files/files.hpp"
#include "connectors/files/positions.hpp"
#include "dedup_report.hpp"
#include "dedup_request.hpp"
#include "sluice/stream/dedup.hpp"

namespace sluice::cli {

class Resume {
 public:
  // `known` comes from the state. Inputs that the unfinished run has read are compared with what it
  // read. Throws BadParameters when this run cannot continue it.
  Resume(const DedupRequest& request, Positions known, std::vector<FileSource>& inputs,
         const Hasher& hasher);

  // Called for each output, before anything is written: one that the state knows is continued, and
  // what was written after its last checkpoint is removed. Throws BadParameters when it is not what
  // the state says, or the unfinished run wrote elsewhere.
  SinkBefore join(OutputRole role, FileSink& sink);
  // After the last join: throws BadParameters when an output of the unfinished run is missing.
  void check_joined();
  // Before the first write: what this run removes and may not write again is kept in FILE.cut.
  void keep_tails() const;

  // Whether it continues, and with which input. The input stands where it is to be read on.
  bool continues() const noexcept { return continues_; }
  // Whether the last run has done all that this one is asked to do, and nothing has changed since.
  bool has_ended() const noexcept { return first_ == inputs_.size(); }
  std::size_t first_input() const noexcept { return first_; }
  SourcePosition position_in(std::size_t input) const;
  // Whether the keys of --forget were taken back before.
  bool has_forgotten() const;
  std::optional<ContinuedReport> continued() const;

  // Seeks, after the header was read.
  void seek();

  // An input was read to its end.
  void done_with(std::size_t input, const SourcePosition& end);
  // What the state is to record: `current` input is judged up to `at`; finished if that is past the
  // last one.
  Positions at(std::size_t current, const SourcePosition& position, bool forgot) const;

 private:
  struct Output {
    OutputRole role;
    FileSink* sink;
    bool ours = false;  // holds what the state says
    bool cuts = false;  // removes what this run may not write again
  };

  bool same_inputs() const;
  bool inputs_done() const;
  bool outputs_done() const;
  RunPosition run_at(std::size_t current, const SourcePosition& position) const;
  void check_same() const;
  void check_read(std::size_t input) const;
  const OutputPosition* find(const FileSink& sink, const std::string& path) const;
  SinkBefore continue_output(Output& output, const OutputPosition& known);
  SinkBefore join_unfinished(Output& output, const OutputPosition& known);
  SinkBefore join_finished(Output& output);
  void check_header(const Output& output) const;
  [[noreturn]] void refuse_output(const Output& output, const OutputPosition& known) const;
  FileEnd end_of(std::size_t input, const SourcePosition& position) const;

  const DedupRequest& request_;
  Positions known_;
  std::vector<FileSource>& inputs_;
  const Hasher& hasher_;
  std::vector<std::uint64_t> base_;  // where each input stood at first
  std::vector<FileEnd> ends_;        // of the inputs that are done
  std::vector<Output> outputs_;
  bool continues_ = false;  // an unfinished run
  std::size_t first_ = 0;
};

}  // namespace sluice::cli
