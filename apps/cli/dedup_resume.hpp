// How a run begins and what its state records of files: it continues the unfinished run of its
// state, reads what is new since a finished one, or begins a new one after what earlier runs wrote.
// docs/resuming.md has the rules.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "connectors/files/files.hpp"
#include "connectors/files/positions.hpp"
#include "dedup_known.hpp"
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
  // The header of the inputs, before anything is judged: throws BadParameters when an output that is
  // continued has another one, whose columns the rows to come would be taken for.
  void check_header(const std::string& source, const std::string& header) const;
  // After the last join: throws BadParameters when an output of the unfinished run is missing. If
  // the same command has finished before, its inputs are read on from where it ended.
  void check_joined();
  // Before the first write: what this run removes and may not write again is kept in FILE.cut, and
  // so is what a run that is given up wrote to other files after its last checkpoint.
  void keep_tails() const;

  // Whether it continues an unfinished run.
  bool continues() const noexcept { return continues_; }
  // Whether the last run has done all that this one is asked to do, and nothing has changed since.
  bool has_ended() const noexcept { return ended_; }
  // Where an input is to be read on; its front if the state does not know it.
  SourcePosition position_in(std::size_t input) const { return starts_[input]; }
  // A pipe that was read to its end before the run was interrupted.
  bool skips(std::size_t input) const { return now_[input].drained; }
  // Whether the keys of --forget were taken back before: by the run that this one continues, or by the last
  // one, if FILE is the same since and there is nothing new to read.
  bool has_forgotten() const;
  // Whether it reads files that the unfinished run did not.
  bool has_further() const { return std::ranges::count(further_, true) > 0; }
  std::optional<ContinuedReport> continued() const;
  // What else a user should know of the inputs: which are read on, and from where.
  const std::vector<std::string>& notes() const noexcept { return notes_; }

  // That standard output has lost what runs of this state wrote there, in a sentence that has not been said
  // yet; empty if it has not, or a warning said so.
  const std::string& emptied() const noexcept { return emptied_text_; }
  bool appends() const noexcept { return appends_; }

  // Seeks, after the header was read.
  void seek(std::size_t input);

  // An input was read to its end.
  void done_with(std::size_t input, const SourcePosition& end);
  // For inputs that are followed. The input was truncated: it is read from its beginning.
  void restart(std::size_t input);
  // A file was added to the inputs, as the last one.
  void add_last();
  // The input is done and will be removed from the inputs.
  void retire(std::size_t input);
  // Of this run and of those that the state knows.
  std::vector<FileIdentity> output_files() const;
  // Files that this command has read before.
  const std::vector<InputPosition>& others() const noexcept { return others_; }
  // What the state is to record: `current` input is judged up to `at`; finished if that is past the
  // last one. `header`: that of the inputs, if it was written to the outputs that had none; may be null.
  Positions at(std::size_t current, const SourcePosition& position, bool forgot,
               const std::string* header) const;

 private:
  // The remedy, where the same command cannot run again.
  static constexpr const char* kGiveUp = "give that run up with --abandon, which keeps its keys";

  struct Output {
    OutputRole role;
    FileSink* sink;
    bool ours = false;                     // holds what the state says
    bool same = false;                     // that of the last run in this role
    bool cuts = false;                     // removes what this run may not write again
    const OutputPosition* from = nullptr;  // what it continues
    // That it has from runs before.
    std::optional<WrittenHeader> header = {};
  };

  GivenInput given(std::size_t input) const;
  bool same_forget() const;
  bool outputs_done() const;
  bool is_new(std::size_t input) const;
  std::uint64_t start_in_file(std::size_t input) const;
  bool leaves_record() const;
  void keep_last();
  std::optional<RunPosition> last_finished(const Positions& now) const;
  const OutputPosition* placed(OutputRole role) const;
  std::vector<GivenInput> all_given() const;
  void continue_inputs(Unfinished unfinished);
  void read_on_after_finished();
  void find_packed_since(std::vector<const InputPosition*>& found);
  void start_known(const std::vector<const InputPosition*>& found, std::size_t input);
  void start_at(std::size_t input, const InputPosition& known);
  void warn_if_rotated(const std::vector<const InputPosition*>& found, std::size_t input);
  void say_copied(std::size_t input);
  void tell(std::string text);
  const char* again_text() const;
  void start_anew(std::size_t input);
  void keep_others(const std::vector<const InputPosition*>& found);
  void say_read_on();
  void say_nothing_new();
  void say_read_before();
  bool nothing_new(const std::vector<const InputPosition*>& found) const;
  std::string less_than_written(const FileSink& sink, const OutputPosition& known) const;
  void check_same(bool same_inputs) const;
  void check_read(std::size_t input, const InputPosition& known, bool by_names_alone);
  std::string difference(std::size_t input, const InputPosition& known) const;
  const OutputPosition* find(const FileSink& sink) const;
  SinkBefore continue_output(Output& output, const OutputPosition& known);
  SinkBefore join_unfinished(Output& output, const OutputPosition& known);
  SinkBefore join_finished(Output& output);
  static bool take_header(Output& output, const OutputPosition& known);
  std::optional<WrittenHeader> header_of(const Output& output) const;
  std::string as_written(const std::string& header) const;
  void check_packing(const Output& output, const OutputPosition& known) const;
  [[noreturn]] void refuse_output(const Output& output, const OutputPosition& known) const;
  void cut_given_up(const OutputPosition& known) const;
  void warn_given_up(const OutputPosition& known, const std::string& why) const;
  InputPosition at(std::size_t input, const SourcePosition& position) const;
  bool has_begun(const RunPosition& run) const;

  const DedupRequest& request_;
  Positions known_;
  std::vector<FileSource>& inputs_;
  const Hasher& hasher_;
  RenamedFiles renamed_;
  std::vector<std::uint64_t> base_;     // where each input stood at first
  std::vector<FileStamp> stamps_;       // of each before it is read
  std::vector<SourcePosition> starts_;  // where each is to be read on
  std::vector<InputPosition> now_;      // how far each is read
  std::vector<InputPosition> others_;   // that this run does not read
  std::vector<bool> further_;           // that the unfinished run does not read
  std::vector<Output> outputs_;
  // Files that were compressed since they were read, as they are now, and as they were.
  std::vector<std::unique_ptr<InputPosition>> packed_since_;
  std::vector<const InputPosition*> were_plain_;
  std::vector<std::string> notes_;
  std::size_t current_ = 0;   // the input that the unfinished run was reading
  std::size_t compared_ = 0;  // files, to find copies
  bool continues_ = false;    // an unfinished run
  bool replaceable_ = false;  // that may be followed by any other
  bool nothing_new_ = false;  // since a finished run of the same command; nor is --forget
  bool ended_ = false;
  std::string emptied_text_;         // of standard output, if it is shorter than recorded
  bool appends_ = false;             // so the shell has not emptied it
  bool restarted_ = false;           // an input of this run
  std::optional<RunPosition> kept_;  // the last finished run, if this one leaves no record
};

}  // namespace sluice::cli
