#include "dedup_run.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/resource.h>
#ifdef __GLIBC__
#include <malloc.h>
#endif

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <filesystem>
#include <optional>
#include <span>
#include <utility>

#include "command.hpp"
#include "connectors/files/files.hpp"
#include "connectors/files/state_file.hpp"
#include "dedup_follow.hpp"
#include "dedup_infer.hpp"
#include "dedup_report.hpp"
#include "dedup_resume.hpp"
#include "dedup_rotated.hpp"
#include "dedup_shared.hpp"
#include "dedup_state.hpp"
#include "dedup_warnings.hpp"
#include "dedup_window.hpp"
#include "printable.hpp"
#include "signals.hpp"
#include "sluice/base/error.hpp"
#include "sluice/filters/catalogue.hpp"
#include "sluice/plan/sizing.hpp"
#include "sluice/stream/event_time.hpp"

namespace sluice::cli {
namespace {

using Clock = std::chrono::steady_clock;

// The default interval between checkpoints: a crash then costs half a minute of duplicates, and
// saving some tens of megabytes takes little time compared with it.
constexpr DurationOrCount kCheckpointEvery = std::chrono::nanoseconds(std::chrono::seconds(30));

// Ghosts per turn take a few milliseconds, so that the next record or a signal does not wait
// longer. With the most in all, an error of 10^-7 can be measured.
constexpr std::uint64_t kGhostsAtOnce = 1 << 15;
constexpr double kMostGhostsWhenIdle = 1e8;

// Reading what is being written, or writing two things into one file, destroys both.
void check_distinct_files(std::span<const FileSource> inputs,
                          const std::vector<std::pair<const char*, const FileSink*>>& outputs) {
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    const auto& [flag, sink] = outputs[i];
    const FileIdentity identity = sink->identity();
    if (!identity.regular) continue;
    const std::string output =
        flag == sink->name() ? sink->name() : fmt::format("{} '{}'", flag, sink->name());
    for (const FileSource& input : inputs)
      if (input.identity() == identity)
        throw BadParameters(
            fmt::format("{} is also the input '{}': write to another file", output, input.name()));
    for (std::size_t j = 0; j < i; ++j)
      if (outputs[j].second->identity() == identity)
        throw BadParameters(
            fmt::format("{} is also {}: write to another file", output, outputs[j].first));
  }
}

// What a run cuts off an output goes to a file beside it.
void check_apart_from_cut(const std::vector<std::pair<const char*, const FileSink*>>& outputs) {
  for (const auto& [flag, sink] : outputs)
    for (const auto& [other_flag, other] : outputs)
      if (sink != other && sink->identity().regular && other->identity().regular &&
          sink->path() == other->path() + ".cut")
        throw BadParameters(fmt::format(
            "{} '{}' is where the end of {} '{}' would be kept if it were cut off: write to "
            "another file",
            flag, sink->name(), other_flag, other->name()));
}

class Run {
 public:
  explicit Run(const DedupRequest& request);
  int execute();

 private:
  void say_reading() const;
  void say_continued() const;
  void say_stopped() const;
  std::string after_stop() const;
  bool empties_output() const;
  bool flush_what_goes() noexcept;
  void warn_unwritten() const;
  bool forget();
  bool read(std::size_t input);
  void follow();
  void begin();
  bool between();
  bool checkpoint_due() const;
  bool has_news() const;
  bool is_near_limit() const;
  [[noreturn]] void fail_at_limit(const IoError& error) const;
  void checkpoint();
  bool is_over() const;
  void save_state();
  void finish();
  void ask_ghosts();
  void ask_ghosts_when_idle();
  void tell();
  DedupReport report() const;

  DedupRequest request_;
  std::vector<std::string> missing_;  // files to follow that are not there
  StopSignals signals_;
  std::vector<FileSource> inputs_;
  std::optional<FileSource> to_forget_;
  std::optional<StateFile> state_file_;
  Positions known_;
  std::optional<PriorTable> priors_;
  Judge judge_;
  std::vector<bool> rotated_;  // for each input: added by find_rotated()
  FileSink passed_;
  std::optional<FileSink> held_;
  std::optional<FileSink> late_;
  Resume resume_;
  std::optional<Dedup> dedup_;
  std::optional<Follow> follow_;
  Progress progress_;
  DedupWarnings warnings_{request_, judge_, progress_};
  std::optional<ContinuedReport> continued_;
  std::optional<ForgetReport> forgotten_;
  Clock::time_point start_ = Clock::now();
  bool began_empty_ = false;  // nothing was remembered from an earlier run
  bool begun_ = false;
  bool only_begun_ = false;  // the state holds what it held before, and where the run begins
  std::size_t input_ = 0;    // the one that is being read; past the last one: all are done
  bool reading_ = false;
  bool running_ = true;
  std::uint64_t seen_records_ = 0;     // at the last turn
  unsigned turns_without_ = 0;         // turns in a row without a new record
  rlim_t most_bytes_ = RLIM_INFINITY;  // that a file may have (ulimit -f)
  Clock::time_point last_checkpoint_ = start_;
  std::uint64_t last_checkpoint_records_ = 0;
};

std::vector<FileSource> open_all(const DedupRequest& request, int wake) {
  std::vector<FileSource> sources;
  for (const std::string& file : request.files)
    sources.push_back(
        request.follow ? open_followed(file, wake, request)
                       : FileSource::open(file, wake, "input", request.archives, request.unpack));
  check_arrival(request, sources);
  return sources;
}

FileSink open_sink(const std::string& file) {
  return is_standard_output(file) ? FileSink::standard_output() : FileSink::open(file);
}

std::optional<FileSource> open_forget(const DedupRequest& request, int wake) {
  if (request.forget.empty()) return std::nullopt;
  return FileSource::open(request.forget, wake, "--forget", request.archives, request.unpack);
}

// 0 if it is not known.
std::uint64_t bytes_in_all(std::span<const FileSource> sources) {
  std::uint64_t bytes = 0;
  for (const FileSource& source : sources) {
    if (!source.identity().regular || source.packing() != Packing::none) return 0;
    bytes += source.bytes_left();
  }
  return bytes;
}

// Called before an output is opened. Fills `priors` if the request names a table, and `known` with
// what the state says of files.
Judge make_judge(const DedupRequest& request, Snapshot state, std::optional<PriorTable>& priors,
                 Positions& known, int wake) {
  known = positions_of(request, state.sections);
  check_can_infer(request, state.filter);
  priors = load_priors(request, state.hasher, wake);
  JudgeOptions options{.audit = request.audit};
  if (request.options.infer)
    options.infer = {.table = priors ? &*priors : nullptr, .learn = request.learn_priors};
  return Judge(state.hasher, std::move(state.filter), options);
}

Run::Run(const DedupRequest& request)
    : request_(request),
      missing_(take_missing(request_)),
      inputs_(open_all(request_, signals_.wake_descriptor())),
      to_forget_(open_forget(request, signals_.wake_descriptor())),
      judge_(make_judge(request, checked_to_forget(request, load_or_make(request, state_file_)),
                        priors_, known_, signals_.wake_descriptor())),
      rotated_(find_rotated(request_, missing_, known_, inputs_, judge_.hasher(),
                            signals_.wake_descriptor())),
      passed_(open_sink(request.output)),
      resume_(request_, known_, inputs_, judge_.hasher()),
      progress_(0, false) {
  if (!request.duplicates.empty()) held_.emplace(open_sink(request.duplicates));
  if (!request.late_output.empty()) late_.emplace(open_sink(request.late_output));
  std::vector<std::pair<const char*, const FileSink*>> outputs;
  outputs.emplace_back(is_standard_output(request.output) ? "standard output" : "--output",
                       &passed_);
  if (held_) outputs.emplace_back("--duplicates", &*held_);
  if (late_) outputs.emplace_back("--late-output", &*late_);
  check_distinct_files(inputs_, outputs);
  if (to_forget_) check_distinct_files({&*to_forget_, 1}, outputs);
  if (state_file_) check_apart_from_cut(outputs);
  DedupOptions options = request.options;
  options.clock = arrival_clock(judge_.window());
  options.forget_early = judge_.window() != nullptr && judge_.window()->params().memory;
  options.passed_before = resume_.join(OutputRole::passed, passed_);
  if (held_) options.held_before = resume_.join(OutputRole::duplicates, *held_);
  if (late_) options.late_before = resume_.join(OutputRole::late, *late_);
  resume_.check_joined();
  // It was that of a record which is already judged.
  if (resume_.continues() || options.time_format.year()) options.years_from = known_.years;
  if (resume_.continues()) options.time_format.forget_year();
  options.before_first = [this] {
    begin();
    if (state_file_ && follow_ && follow_->has_changed()) save_state();
  };
  options.check_header = [this](const std::string& source, const std::string& header) {
    resume_.check_header(source, header);
  };
  if (resume_.has_ended()) input_ = inputs_.size();
  struct rlimit limit;
  if (state_file_ && ::getrlimit(RLIMIT_FSIZE, &limit) == 0) most_bytes_ = limit.rlim_cur;
  continued_ = resume_.continued();
  began_empty_ = judge_.filter().stats().keys == 0;
  const std::uint64_t all = bytes_in_all(inputs_);
  std::uint64_t before = 0;
  for (std::size_t i = 0; i < inputs_.size(); ++i) before += resume_.position_in(i).offset;
  progress_ = Progress(all > before ? all - before : 0, writes_standard_output(request));
  if (request_.follow) progress_ = Progress(0, writes_standard_output(request));
  ByteSink* const held = held_ ? &*held_ : nullptr;
  ByteSink* const late = late_ ? &*late_ : nullptr;
  if (!request_.shared) {
    dedup_.emplace(options, judge_, passed_, held, late);
    return;
  }
  request_.shared->attach(signals_);
  StreamJudge& judge =
      request_.shared->start(request_.window ? request_.window->max_ahead : std::nullopt);
  dedup_.emplace(options, judge, passed_, held, late);
}

int Run::execute() {
  for (const std::string* output : {&request_.output, &request_.duplicates, &request_.late_output})
    warn_if_seems_packed("dedup", *output);
  if (request_.stats != DedupRequest::Stats::none)
    for (const std::string& text : request_.notes) note("dedup", printable(text));
  if (request_.stats == DedupRequest::Stats::text) say_reading();
  if (request_.stats != DedupRequest::Stats::none) say_continued();
  try {
    const bool forgets = to_forget_ && !resume_.has_forgotten() && !resume_.has_ended();
    if (forgets && !forget()) return 128 + signals_.received();
    if (request_.follow) follow();
    while (!request_.follow && input_ < inputs_.size() && signals_.received() == 0 &&
           (resume_.skips(input_) || read(input_)))
      ++input_;
  } catch (const BadRecord&) {
    // The records before the bad one are judged and written.
    dedup_->flush();
    throw;
  } catch (const OutputClosed&) {
    warn_unwritten();
    throw;
  } catch (const RunFailed& error) {
    // The filter on servers is gone.
    flush_what_goes();
    throw RunFailed(fmt::format("{}: {} were judged and written", error.what(),
                                counted(dedup_->counts().records, "record")));
  } catch (const NoMemory& error) {
    flush_what_goes();
    throw RunFailed(fmt::format("filter '{}' holds {} and cannot grow: {}", report().filter_name,
                                counted(judge_.filter().stats().keys, "key"), error.what()));
  } catch (const IoError& error) {
    // So are the records read before an input failed. An output that failed gets no more.
    if (!flush_what_goes()) warn_unwritten();
    if (error.error_number() == EFBIG) fail_at_limit(error);
    throw;
  }
  try {
    finish();
  } catch (const IoError& error) {
    warn_unwritten();
    if (error.error_number() == EFBIG) fail_at_limit(error);
    throw;
  }
  return signals_.received() == 0 ? kDone : 128 + signals_.received();
}

// The records after the last save may be delivered in part, so their keys may not be saved.
void Run::fail_at_limit(const IoError& error) const {
  if (!state_file_) throw error;
  throw RunFailed(fmt::format(
      "{}; the state is the one saved after {} of this run: allow larger files and run the same "
      "command again{}",
      error.what(), counted(last_checkpoint_records_, "record"),
      std::ranges::all_of(inputs_, &FileSource::regular)
          ? ""
          : ". What a pipe has brought since then must be sent again"));
}

// Says how the flags were understood if that could be a surprise.
void Run::say_reading() const {
  if (request_.shared) return note("dedup", reading_of_shared(request_));
  const FilterStats stats = judge_.filter().stats();
  if (request_.plan) {
    const Plan& plan = request_.plan->choice();
    note("dedup", fmt::format("memory: {}: {}",
                              plan.fpr == 0 ? "exact"
                                            : "planned for false positives of " +
                                                  format_probability(plan.target_fpr),
                              request_.plan->reason));
  }
  if (const Window* window = judge_.window())
    note("dedup", reading_of(request_, *window));
  else if (!request_.wish.keys && stats.capacity == kStandardCapacity &&
           request_.filter.find(",keys=") == std::string::npos)
    note("dedup", fmt::format("no --expect: the filter is planned for {} distinct keys",
                              format_count(stats.capacity)));
}

void Run::say_continued() const {
  if (resume_.continues())
    note("dedup", "continues the unfinished run of its state: " + describe(*continued_));
  for (const std::string& text : resume_.notes()) note("dedup", text);
  if (resume_.has_ended())
    note("dedup",
         "the last run has read these inputs to their ends, and its outputs are complete: there is "
         "nothing left to do (--abandon reads them again)");
}

// An interrupted run may look like a loss.
void Run::say_stopped() const {
  if (signals_.received() == 0) return;
  if (state_file_ && request_.stats != DedupRequest::Stats::none)
    note("dedup", fmt::format("stopped by {}; {}", signals_.name(), after_stop()));
  if (const auto unread = follow_ && !state_file_ ? follow_->unread() : std::vector<std::string>();
      !unread.empty()) {
    std::string files;
    for (const std::string& file : unread) files += (files.empty() ? "" : ", ") + file;
    warn("dedup", fmt::format("stopped before what is left of these files was read: {}; without "
                              "--state the next run does not know where this one stopped: give it "
                              "these files as inputs",
                              files));
  }
  // A file is read again from the first record that was not judged. A pipe is not.
  const std::uint64_t unfinished = dedup_->counts().unfinished_bytes;
  if (unfinished > 0 && input_ < inputs_.size() && !inputs_[input_].regular())
    warn("dedup", fmt::format("stopped within a record of '{}': the {} of it that came are not "
                              "judged, so its sender should send it again",
                              inputs_[input_].name(), format_size(unfinished)));
}

std::string Run::after_stop() const {
  if (input_ == inputs_.size())
    return "nothing is lost: all inputs were read to their ends, the outputs are complete, and the "
           "state is saved";
  if (is_over())
    return "no record that was read is lost: all are judged and written, the state is saved, and "
           "the same command again continues with what comes next";
  return fmt::format(
      "{}the state is saved, and the same command again continues from here{}",
      follow_ && !follow_->unsure().empty() ? "" : "nothing that was read is lost: ",
      empties_output() ? ", if you write >> instead of > (which would empty the output)" : "");
}

// Whether a shell would empty the output of this run if its command was run again.
bool Run::empties_output() const {
  return is_standard_output(request_.output) && passed_.identity().regular &&
         (fcntl(passed_.descriptor(), F_GETFL) & O_APPEND) == 0;
}

// Whether all is written that was judged.
bool Run::flush_what_goes() noexcept {
  try {
    dedup_->flush();
    return true;
  } catch (const Error&) {
    // The first failure is the one to report.
    return false;
  }
}

// A filter of this process forgets with it.
void Run::warn_unwritten() const {
  if (!request_.shared) return;
  warn(
      "dedup",
      "records that were judged last are not written, and the filter remembers their keys: if they "
      "are read again they are held back as duplicates, so give them to a run with another filter");
}

// Returns whether it was read to its end.
bool Run::read(std::size_t number) {
  FileSource& input = inputs_[number];
  const SourcePosition from = resume_.position_in(number);
  if (from.offset > 0) {
    dedup_->read_header(input);
    resume_.seek(number);
  }
  reading_ = true;
  if (!dedup_->run(
          input, [this] { return between(); }, from))
    return false;
  reading_ = false;
  if (state_file_) resume_.done_with(number, dedup_->position());
  return true;
}

// Until it is told to stop: the run is not finished then, and the same command continues it.
void Run::follow() {
  std::vector<FileIdentity> outputs = {passed_.identity()};
  if (held_) outputs.push_back(held_->identity());
  if (late_) outputs.push_back(late_->identity());
  follow_.emplace(Follow::Parts{request_, inputs_, resume_, *dedup_, judge_.hasher(), outputs,
                                signals_.wake_descriptor()},
                  missing_, rotated_);
  follow_->run([this] {
    input_ = follow_->current();
    return between();
  });
  input_ = follow_->current();
}

// Called before anything is judged or written. A state that is to tell what was written before a
// crash must know where the outputs began.
void Run::begin() {
  if (std::exchange(begun_, true) || !state_file_) return;
  resume_.keep_tails();
  // A file that is followed may have another name when the run is continued: the state must know it before
  // anything of it is written.
  const bool has_more = request_.follow && resume_.has_further();
  if (resume_.continues() && !forgotten_ && !has_more) return;
  save_state();
  only_begun_ = true;
}

// Takes back all keys, or none if it is stopped or fails on the way: the state is saved when the run
// begins, after the header of the input was found to be right, and before the first record can bring
// one of them back.
bool Run::forget() {
  if (!state_file_)
    warn("dedup", "--forget without --state has no effect: nothing is remembered yet");
  DedupOptions options = request_.options;
  options.forget = true;
  options.event_time.reset();
  const FilterStats before = judge_.filter().stats();
  Dedup taker(options, judge_, passed_, nullptr);
  taker.run(*to_forget_, [this] { return signals_.received() == 0; });
  if (signals_.received() != 0) {
    warn("dedup",
         fmt::format("stopped while forgetting the keys of '{}': nothing was changed; run the same "
                     "command again",
                     to_forget_->name()));
    return false;
  }
  const DedupCounts& counts = taker.counts();
  const std::uint64_t kept = judge_.filter().stats().forget_kept - before.forget_kept;
  const std::uint64_t missing = counts.distinct - kept;
  forgotten_ = ForgetReport{.forgotten = counts.duplicates,
                            .missing = missing,
                            .kept = kept,
                            .expected_wrong = expected_wrong(missing, before.predicted_fpr)};
  if (counts.unkeyed > 0)
    warn("dedup",
         fmt::format("--forget '{}': {} of {} had no key and {} left out: record {}: {}",
                     to_forget_->name(), format_count(counts.unkeyed),
                     counted(counts.records, "record"), counts.unkeyed == 1 ? "was" : "were",
                     format_count(taker.faults().front().record), taker.faults().front().reason));
  return true;
}

// Nobody knows what a pipe would have brought: a run that was told to stop there is over.
bool Run::is_over() const {
  return input_ == inputs_.size() ||
         (signals_.received() != 0 && input_ + 1 == inputs_.size() && !inputs_[input_].regular());
}

void Run::save_state() {
  if (follow_) input_ = follow_->current();
  const bool over = !running_ && is_over();
  Positions now =
      resume_.at(over ? inputs_.size() : input_,
                 follow_                   ? follow_->position()
                 : reading_                ? dedup_->position()
                 : input_ < inputs_.size() ? resume_.position_in(input_)
                                           : SourcePosition{},
                 forgotten_.has_value() || resume_.has_forgotten(), dedup_->written_header());
  now.years = dedup_->years();
  const auto write = [&](Encoder& to) {
    write_snapshot(judge_.hasher(), judge_.filter(), labels_of(request_.options), to,
                   sections_of(now));
  };
  // The previous state is the one before the run, not what it was when the run began to read.
  if (std::exchange(only_begun_, false))
    state_file_->replace(write);
  else
    state_file_->save(write);
  if (follow_) follow_->saved();
}

bool Run::between() {
  if (judge_.meter().was_over()) warnings_.look_at_error();
  warnings_.look_at_memory(dedup_->counts());
  if (state_file_ && (has_news() || is_near_limit())) {
    begin();
    if (has_news() || is_near_limit()) checkpoint();
  }
  if (judge_.audit() != nullptr) ask_ghosts_when_idle();
  if (signals_.asked()) tell();
  progress_.update(dedup_->counts(), judge_.audit());
  return signals_.received() == 0;
}

// A file that is followed may be idle for days.
bool Run::has_news() const {
  if (!follow_) return checkpoint_due();
  return follow_->has_changed() ||
         (dedup_->counts().records != last_checkpoint_records_ && checkpoint_due());
}

// What is written between two turns might be cut off at the limit on the size of files. What was saved before
// stays as it is then.
bool Run::is_near_limit() const {
  if (most_bytes_ == RLIM_INFINITY || dedup_->counts().records == last_checkpoint_records_)
    return false;
  // Two chunks under way and two buffers that are not written, and as much again.
  constexpr std::uint64_t kRoom = std::uint64_t{1} << 21;
  const auto is_near = [&](const FileSink& sink) {
    return sink.identity().regular && sink.size() + kRoom > most_bytes_;
  };
  return is_near(passed_) || (held_ && is_near(*held_)) || (late_ && is_near(*late_));
}

bool Run::checkpoint_due() const {
  const DurationOrCount every = request_.checkpoint_every.value_or(kCheckpointEvery);
  if (const auto* records = std::get_if<std::uint64_t>(&every))
    return dedup_->counts().records - last_checkpoint_records_ >= *records;
  return Clock::now() - last_checkpoint_ >= std::get<std::chrono::nanoseconds>(every);
}

// Outputs are written first: a state must never hold a key whose record was not written.
void Run::checkpoint() {
  begin();
  dedup_->flush();
  passed_.sync();
  if (held_) held_->sync();
  if (late_) late_->sync();
  save_state();
  last_checkpoint_ = Clock::now();
  last_checkpoint_records_ = dedup_->counts().records;
}

void Run::finish() {
  running_ = false;
  if (resume_.has_ended()) {
    resume_.keep_tails();
    state_file_->remove_leftovers();
  } else if (state_file_) {
    checkpoint();
  } else {
    dedup_->flush();
  }
  passed_.finish();
  if (held_) held_->finish();
  if (late_) late_->finish();
  const DedupCounts& counts = dedup_->counts();
  warnings_.look_at_error();
  warnings_.look_at_memory(counts);
  warnings_.look_at_late(counts);
  progress_.clear();
  warnings_.look_at_slack(counts);
  DedupWarnings::look_at_quotes(dedup_->open_quotes());
  if (signals_.received() == 0 && began_empty_)
    warnings_.look_at_arrival(counts, !std::ranges::all_of(inputs_, &FileSource::regular),
                              std::chrono::duration<double>(Clock::now() - start_).count());
  say_stopped();
  warnings_.look_at_keys(counts);
  warnings_.look_at_peak();
  const std::uint64_t held = request_.options.invert ? counts.distinct : counts.duplicates;
  if (is_standard_output(request_.output) && !resume_.emptied().empty() && held > 0 &&
      held == counts.records) {
    if (!resume_.appends())
      warn("dedup",
           fmt::format("{}: no record of this run was written, because the state remembers "
                       "all of them. To keep what was written, use --output FILE, or `>>`",
                       resume_.emptied()));
    else if (request_.stats != DedupRequest::Stats::none)
      note("dedup", resume_.emptied() + ": it was moved or emptied since");
  }
  tell();
}

// Ghosts asked while the input is idle delay nothing. The first turn without a record shows only
// that the input is no faster than we are.
void Run::ask_ghosts_when_idle() {
  const std::uint64_t records = dedup_->counts().records;
  turns_without_ = records == seen_records_ ? turns_without_ + 1 : 0;
  seen_records_ = records;
  Audit& audit = *judge_.audit();
  if (turns_without_ > 1 && records > 0 && audit.report().ghosts.trials < kMostGhostsWhenIdle)
    audit.ask_ghosts(kGhostsAtOnce);
}

// A user who interrupts a run should not have to wait for ghosts.
void Run::ask_ghosts() {
  Audit* const audit = judge_.audit();
  if (audit == nullptr) return;
  // As the filter is now, in any case.
  constexpr std::uint64_t kAtTheEnd = 128;
  audit->ask_ghosts(kAtTheEnd);
  for (std::uint64_t left = request_.audit_ghosts; left > 0 && signals_.received() == 0;) {
    const std::uint64_t part = std::min(left, kGhostsAtOnce);
    audit->ask_ghosts(part);
    left -= part;
  }
}

void Run::tell() {
  if (request_.stats == DedupRequest::Stats::none) return;
  warnings_.look_at_error();
  warnings_.look_at_late(dedup_->counts());
  ask_ghosts();
  progress_.clear();
  if (request_.stats == DedupRequest::Stats::text)
    note("dedup", as_text(report()));
  else if (request_.stats == DedupRequest::Stats::json)
    say(as_json(report()));
}

std::optional<WindowReport> report_of(const Judge& judge) {
  const Window* const window = judge.window();
  if (window == nullptr) return std::nullopt;
  const SlackMeter& slack = *judge.slack();
  return WindowReport{.spec = window->params().spec,
                      .refreshed = window->params().anchor == Anchor::refreshed,
                      .slack = window->slack(),
                      .npws = window->npws(),
                      .generations = window->generations(),
                      .growths = window->growths(),
                      .disbelieved = window->clock().disbelieved(),
                      .latest = window->clock().now(),
                      .slack_lost = slack.counted(),
                      .slack_predicted = slack.predicted(),
                      .slack_weight = slack.weight(),
                      .slack_unknown = slack.unknown()};
}

// What its producer knows of it.
std::optional<WindowReport> report_of(const SharedReport& shared, const cluster::Layout& layout) {
  if (!layout.window) return std::nullopt;
  return WindowReport{.spec = *layout.window,
                      .refreshed = layout.anchor == Anchor::refreshed,
                      .slack = layout.slack,
                      .disbelieved = shared.disbelieved,
                      .latest = shared.latest};
}

std::optional<InferReport> report_of(const RecordInference* of_records, const Judge& judge,
                                     const std::optional<PriorTable>& priors) {
  if (of_records == nullptr) return std::nullopt;
  const Inference& inference = *judge.inference();
  return InferReport{.options = of_records->options(),
                     .counts = of_records->counts(),
                     .verdicts = inference.stats(),
                     .learnt = inference.learns(),
                     .withheld = inference.withheld(),
                     .table_keys = priors ? std::optional(priors->size()) : std::nullopt};
}

DedupReport Run::report() const {
  const FilterStats stats = judge_.filter().stats();
  const Window* window = judge_.filter().window();
  std::optional<SharedReport> shared;
  if (request_.shared) shared = request_.shared->report();
  return {.counts = dedup_->counts(),
          .faults = dedup_->faults(),
          .bytes_out = dedup_->bytes_out(),
          .filter_name = std::string(window == nullptr ? name_of(judge_.filter().kind())
                                                       : window->filter_name()),
          .settings = window == nullptr ? judge_.filter().settings() : window->filter_settings(),
          .filter = stats,
          .expected_lost = judge_.meter().expected_lost(stats),
          .over_target_records = judge_.meter().over_target(stats),
          .worst_fpr = judge_.meter().worst_fpr(stats),
          .hash = judge_.hasher().kind(),
          .seconds = std::chrono::duration<double>(Clock::now() - start_).count(),
          .memory_bytes = peak_memory_bytes(),
          .interrupted = signals_.received() != 0,
          .running = running_,
          .invert = request_.options.invert,
          .continued = continued_,
          .window = shared ? report_of(*shared, request_.shared->layout()) : report_of(judge_),
          .forget = forgotten_,
          .plan = request_.plan,
          .audit = judge_.audit() ? std::optional(judge_.audit()->report()) : std::nullopt,
          .infer = report_of(dedup_->inference(), judge_, priors_),
          .shared = std::move(shared)};
}

}  // namespace

int run_dedup(const DedupRequest& request) {
#ifdef __GLIBC__
  // One malloc arena for both threads: memory that one frees can be reused by the other, which
  // --memory relies on.
  mallopt(M_ARENA_MAX, 1);
#endif
  return Run(request).execute();
}

}  // namespace sluice::cli
