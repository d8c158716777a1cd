#include "dedup_resume.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <unordered_set>
#include <utility>

#include "command.hpp"
#include "sluice/base/error.hpp"
#include "sluice/base/quantity.hpp"

namespace sluice::cli {
namespace {

// The flags that decide what goes to which output, in a sentence.
std::string flags_text(const std::string& shape) {
  return shape.empty() ? "none of the flags that decide what goes to which output"
                       : fmt::format("'{}'", shape);
}

}  // namespace

Resume::Resume(const DedupRequest& request, Positions known, std::vector<FileSource>& inputs,
               const Hasher& hasher)
    : request_(request),
      known_(std::move(known)),
      inputs_(inputs),
      hasher_(hasher),
      renamed_(output_files()),
      stamps_(inputs.size()),
      starts_(inputs.size()),
      now_(inputs.size()),
      further_(inputs.size()) {
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const bool plain = inputs[i].regular() && inputs[i].packing() == Packing::none;
    base_.push_back(plain ? inputs[i].offset() : 0);
    start_anew(i);
    if (!request.state.empty() && inputs[i].regular())
      stamps_[i] = stamp_of(inputs[i].descriptor());
  }
  if (request.abandon || !known_.unfinished()) return;
  const RunPosition& run = *known_.run;
  // A run that has judged nothing may be replaced by another. One that reads pipes, too: nobody
  // knows what they would still bring.
  replaceable_ =
      !run.begun ||
      std::none_of(run.inputs.begin() + static_cast<std::ptrdiff_t>(run.current), run.inputs.end(),
                   [](const InputPosition& input) { return input.regular; });
  Unfinished unfinished = find_unfinished(all_given(), run, hasher_, renamed_);
  if (replaceable_ && (unfinished.found.empty() || run.shape != request.shape)) return;
  check_same(!unfinished.found.empty());
  continue_inputs(std::move(unfinished));
}

std::vector<GivenInput> Resume::all_given() const {
  std::vector<GivenInput> all;
  for (std::size_t i = 0; i < inputs_.size(); ++i) all.push_back(given(i));
  return all;
}

std::vector<FileIdentity> Resume::output_files() const {
  std::vector<std::string> paths = {request_.output, request_.duplicates, request_.late_output};
  for (const OutputPosition& output : known_.outputs) paths.push_back(output.path);
  std::vector<FileIdentity> files;
  for (const std::string& path : paths) {
    struct stat status;
    if (!path.empty() && ::stat(path.c_str(), &status) == 0)
      files.push_back({status.st_dev, status.st_ino, S_ISREG(status.st_mode)});
  }
  return files;
}

GivenInput Resume::given(std::size_t input) const {
  return {request_.files[input], inputs_[input], base_[input]};
}

void Resume::start_anew(std::size_t input) {
  const FileSource& source = inputs_[input];
  starts_[input] = {};
  now_[input] = {.name = request_.files[input], .regular = source.regular()};
  if (!source.regular()) return;
  now_[input].inode = source.identity().inode;
  now_[input].packing = source.packing();
  now_[input].end.offset = base_[input];
}

void Resume::start_at(std::size_t input, const InputPosition& known) {
  if (!known.regular) {
    now_[input].drained = known.drained && !inputs_[input].regular();
    return;
  }
  const ReadOn on = read_on(given(input), known, request_.options.format);
  starts_[input] = on.from;
  now_[input].end = known.end;
  now_[input] = at(input, on.from);
  if (!on.again) return;
  warn("dedup",
       fmt::format("the last record of input '{}' had no end when it was read{}, and was judged as "
                   "it stood then: what was written of it stays in the output. It has been "
                   "continued since: it is judged again, as a whole{}",
                   inputs_[input].name(), on.within_quotes ? ", within quotes" : "",
                   request_.options.keys.empty()
                       ? ""
                       : ", and held back as a duplicate if its key was complete before"));
}

// Each input where it ended: one that was done may have grown since. Further files as after a finished
// run.
void Resume::continue_inputs(Unfinished unfinished) {
  const RunPosition& run = *known_.run;
  std::vector<const InputPosition*>& found = unfinished.found;
  const std::vector<const InputPosition*> of_run = found;
  find_known(all_given(), {&run.others}, hasher_, renamed_, found);
  continues_ = true;
  for (std::size_t i = 0; i < inputs_.size(); ++i) {
    const InputPosition* const known = of_run[i];
    if (known != nullptr) {
      const auto place = static_cast<std::size_t>(known - run.inputs.data());
      if (place == run.current) current_ = i;
      if (place <= run.current || known->end.checked > 0)
        check_read(i, *known, unfinished.by_names_alone);
      if (known->regular && !inputs_[i].regular()) continue;  // not begun, and now a pipe
    }
    further_[i] = known == nullptr;
    start_known(found, i);
    if (skips(i))
      warn("dedup",
           fmt::format("input '{}' had been read to its end when the run was interrupted: what it "
                       "brings now is not read. If that is new, run the command once more after "
                       "this run",
                       inputs_[i].name()));
  }
  keep_others(found);
  say_read_on();
}

bool Resume::same_forget() const {
  if (known_.run->forgot != request_.forget) return false;
  if (request_.forget.empty()) return true;
  const Descriptor file(::open(request_.forget.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK), true);
  return file && !as_new_as(request_.state, file.number());
}

bool Resume::outputs_done() const {
  return std::ranges::all_of(outputs_, &Output::ours);
}

bool Resume::is_new(std::size_t input) const {
  return !inputs_[input].regular() || size_of(inputs_[input]) > start_in_file(input);
}

// In a packed file about where it is.
std::uint64_t Resume::start_in_file(std::size_t input) const {
  return now_[input].packing == Packing::none ? base_[input] + starts_[input].offset
                                              : now_[input].end.offset;
}

const OutputPosition* Resume::placed(OutputRole role) const {
  const auto& place = known_.run->outputs[static_cast<std::size_t>(role)];
  return place && *place != RunPosition::kNoFile ? &known_.outputs[*place] : nullptr;
}

// The last run has finished, and this one is the same command.
void Resume::read_on_after_finished() {
  std::vector<const InputPosition*> found(inputs_.size(), nullptr);
  find_known(all_given(), {&known_.run->inputs, &known_.run->others}, hasher_, renamed_, found);
  find_packed_since(found);
  for (std::size_t i = 0; i < inputs_.size(); ++i) start_known(found, i);
  keep_others(found);
  say_read_on();
}

// Files that are rotated and then compressed: their contents were read under another name.
void Resume::find_packed_since(std::vector<const InputPosition*>& found) {
  const auto may_be = [&](std::size_t i) {
    return found[i] == nullptr && inputs_[i].regular() && inputs_[i].packing() != Packing::none;
  };
  bool any = false;
  for (std::size_t i = 0; i < inputs_.size(); ++i) any = any || may_be(i);
  if (!any) return;
  std::vector<const InputPosition*> gone;
  for (const auto* list : {&known_.run->inputs, &known_.run->others})
    for (const InputPosition& known : *list)
      if (std::ranges::count(found, &known) == 0 && was_moved_away(known, hasher_))
        gone.push_back(&known);
  for (std::size_t i = 0; i < inputs_.size() && !gone.empty(); ++i) {
    const InputPosition* const plain =
        may_be(i) ? read_before_packing(inputs_[i], gone, hasher_) : nullptr;
    if (plain == nullptr) continue;
    notes_.push_back(
        fmt::format("input '{}' has the contents of '{}', of which {} were read before: it is read "
                    "on from there",
                    inputs_[i].name(), plain->name, counted(plain->end.offset, "byte")));
    std::erase(gone, plain);
    were_plain_.push_back(plain);
    auto packed = std::make_unique<InputPosition>(*plain);
    packed->packing = inputs_[i].packing();
    packed->unpacked = plain->end.offset;
    packed->end = {};
    found[i] = packed_since_.emplace_back(std::move(packed)).get();
  }
}

void Resume::start_known(const std::vector<const InputPosition*>& found, std::size_t input) {
  const InputPosition* const known = found[input];
  if (known == nullptr)
    warn_if_rotated(found, input);
  else if (known->regular && is_rewritten(given(input), *known, stamps_[input]))
    warn("dedup", fmt::format("input '{}' was written to after it was read and is as long as it "
                              "was: it is read again from its beginning",
                              inputs_[input].name()));
  else
    start_at(input, *known);
}

// A file that the state does not know, at the name of one that it knows. If that one is given by its new
// name, nothing is wrong.
void Resume::warn_if_rotated(const std::vector<const InputPosition*>& found, std::size_t input) {
  const std::string& name = request_.files[input];
  if (!inputs_[input].regular() || name == "-") return;
  const InputPosition* old = nullptr;
  bool was_left = false;  // read to its end, and followed no more
  for (const auto* list : {&known_.run->others, &known_.run->inputs})
    for (const InputPosition& each : *list)
      if (each.name == name && each.regular && each.end.offset > 0) {
        old = &each;
        was_left = request_.follow && list == &known_.run->others;
      }
  if (old == nullptr) return say_copied(input);
  if (std::ranges::count(found, old) > 0) return;
  const std::vector<FileIdentity> outputs = output_files();
  std::string beside = found_beside(name, *old, hasher_, outputs, true);
  const bool renamed = !beside.empty();
  if (!renamed && may_be_copied(*old)) beside = found_beside(name, *old, hasher_, outputs);
  std::error_code error;
  if (was_left &&
      (beside.empty() || std::filesystem::file_size(beside, error) <= old->end.offset || error))
    return;
  std::string hint;
  if (!beside.empty() && std::ranges::count(request_.files, beside) == 0)
    hint = renamed ? fmt::format(
                         "; '{}' is the file that was read: if it has grown since, give it as "
                         "an input, too",
                         beside)
                   : fmt::format(
                         "; '{}' seems to be a copy of the file that was read. A copy would "
                         "be read from its beginning: rotate with mv (logrotate's `create`, "
                         "not `copytruncate`), which is recognized",
                         beside);
  warn("dedup",
       fmt::format("input '{}' is not the file that was read up to byte {}: it {}. It is read from "
                   "its beginning{}",
                   name, format_count(old->end.offset), difference(input, *old), hint));
}

// Another file may begin with the same records: they must not be skipped.
void Resume::say_copied(std::size_t input) {
  constexpr std::size_t kMostCompared = 1000;
  for (const auto* list : {&known_.run->inputs, &known_.run->others})
    for (const InputPosition& known : *list) {
      if (!may_be_copied(known) || known.end.offset > stamps_[input].size) continue;
      if (compared_ == kMostCompared) return;
      ++compared_;
      if (!holds(given(input), known, hasher_)) continue;
      return tell(fmt::format(
          "input '{}' seems to be a copy of '{}', whose first {} were read before: it is read from "
          "its beginning{}. A file that is renamed with mv (logrotate's `create`) is recognized, a "
          "copy (`copytruncate`) is not",
          inputs_[input].name(), known.name, counted(known.end.offset, "byte"), again_text()));
    }
}

// The last run has finished, and this one is another command: it has its own view of the inputs.
void Resume::say_read_before() {
  if (request_.abandon || continues_ || !known_.run || !known_.run->finished()) return;
  std::vector<const InputPosition*> found(inputs_.size(), nullptr);
  find_known(all_given(), {&known_.run->inputs, &known_.run->others}, hasher_, renamed_, found);
  std::size_t first = inputs_.size(), count = 0;
  for (std::size_t i = 0; i < inputs_.size(); ++i)
    if (found[i] != nullptr && found[i]->end.offset > base_[i] && count++ == 0) first = i;
  if (count == 0) return;
  if (!emptied_text_.empty()) {
    const std::string text = std::exchange(emptied_text_, {});
    if (appends_)
      return tell(
          fmt::format("{}: it was moved or emptied since. This run reads its inputs from "
                      "their beginning{}",
                      text, again_text()));
    if (known_.run->shape == request_.shape && same_forget() && nothing_new(found))
      throw BadParameters(fmt::format(
          "{}: `>` empties the file before the run begins, and there is nothing new in the inputs. "
          "Use --output FILE or `>>`; if the records are lost, delete the state and begin again",
          text));
    return warn(
        "dedup",
        fmt::format("{}: this run reads its inputs from their beginning, but "
                    "records that {} are not written again. To keep what was "
                    "written, use --output FILE, or `>>`",
                    text, request_.window ? "the window still remembers" : "the state remembers"));
  }
  tell(fmt::format("'{}' was read before, up to byte {}{}, by a run with {}: this run reads {}{}",
                   inputs_[first].name(), format_count(found[first]->end.offset),
                   count == 1 ? "" : fmt::format(", with {}", counted(count - 1, "other input")),
                   known_.run->shape != request_.shape
                       ? fmt::format("other flags (it had {}, this one has {})",
                                     flags_text(known_.run->shape), flags_text(request_.shape))
                       : "other outputs, or with outputs that were emptied since",
                   count == 1 ? "it from its beginning" : "them from their beginnings",
                   again_text()));
}

// Whether all inputs were read to their ends. For an output that is gone, which nothing would be written to.
bool Resume::nothing_new(const std::vector<const InputPosition*>& found) const {
  for (std::size_t i = 0; i < inputs_.size(); ++i)
    if (!inputs_[i].regular() || found[i] == nullptr ||
        size_of(inputs_[i]) > found[i]->end.offset || is_rewritten(given(i), *found[i], stamps_[i]))
      return false;
  return true;
}

// What can cause duplicates is a warning.
void Resume::tell(std::string text) {
  if (request_.window)
    warn("dedup", text);
  else
    notes_.push_back(std::move(text));
}

const char* Resume::again_text() const {
  return request_.window ? ", so that records may be delivered again" : "";
}

// Files that this command has read before, with other inputs: the last ones, as many as are kept.
void Resume::keep_others(const std::vector<const InputPosition*>& found) {
  std::unordered_set<const InputPosition*> taken(found.begin(), found.end());
  taken.insert(were_plain_.begin(), were_plain_.end());
  std::unordered_set<std::uint64_t> inodes;
  for (const InputPosition& input : now_)
    if (input.regular) inodes.insert(input.inode);
  for (const auto* list : {&known_.run->others, &known_.run->inputs})
    for (const InputPosition& each : *list)
      if (each.regular && each.end.checked > 0 && !taken.contains(&each) &&
          !inodes.contains(each.inode))
        others_.push_back(each);
  if (others_.size() > RunPosition::kMostOthers)
    others_.erase(others_.begin(), others_.end() - RunPosition::kMostOthers);
}

// At most a few lines: there may be thousands of inputs.
void Resume::say_read_on() {
  constexpr std::size_t kMostLines = 5;
  std::size_t more = 0;
  for (std::size_t i = 0; i < inputs_.size(); ++i) {
    if (start_in_file(i) <= base_[i] || !is_new(i)) continue;
    if (continues_ && i == current_) continue;  // is in the first line
    if (notes_.size() == kMostLines) {
      ++more;
      continue;
    }
    notes_.push_back(
        fmt::format("reads on after the last run: {}",
                    describe({inputs_[i].name(), start_in_file(i), size_of(inputs_[i])})));
  }
  if (more > 0)
    notes_.push_back(fmt::format("reads on after the last run in {} more", counted(more, "input")));
}

void Resume::check_same(bool same_inputs) const {
  const RunPosition& run = *known_.run;
  const InputPosition& current = run.inputs[run.current];
  const std::string where = fmt::format(
      "--state '{}' holds an unfinished run, which has read '{}' "
      "up to byte {}",
      request_.state, current.name, format_count(current.end.offset));
  if (!same_inputs) {
    std::string names;
    for (const InputPosition& input : run.inputs) {
      if (names.size() > 200) {
        names += " ...";
        break;
      }
      names += fmt::format("{}'{}'", names.empty() ? "" : " ", input.name);
    }
    throw BadParameters(fmt::format(
        "{}: to finish it, run it again with the same inputs, {}; or {}", where, names, kGiveUp));
  }
  if (run.shape != request_.shape)
    throw BadParameters(
        fmt::format("{} with {}, and this run has {}: run it again with the same flags, or {}",
                    where, flags_text(run.shape), flags_text(request_.shape), kGiveUp));
}

std::string Resume::difference(std::size_t input, const InputPosition& known) const {
  const FileSource& source = inputs_[input];
  if (!source.regular()) return "is not a file that can be read from there";
  if (size_of(source) < known.end.offset)
    return fmt::format("has only {}", counted(size_of(source), "byte"));
  if (holds(given(input), known, hasher_))
    return "begins with the same bytes, but is another file (was it rotated?)";
  return "has other contents before that (was it rotated or edited?)";
}

void Resume::check_read(std::size_t input, const InputPosition& known, bool by_names_alone) {
  const bool replaced = by_names_alone && is_replaced(given(input), known, hasher_, renamed_);
  if (!known.regular || (!replaced && holds(given(input), known, hasher_))) return;
  const FileSource& source = inputs_[input];
  const std::string& name = request_.files[input];
  const std::string beside = replaced ? renamed_.find(name, known, hasher_)
                                      : found_beside(name, known, hasher_, output_files());
  throw BadParameters(fmt::format(
      "input '{}' is not the file that the unfinished run of --state '{}' has read up to byte {}: "
      "it {}. {}, or {}",
      source.name(), request_.state, format_count(known.end.offset), difference(input, known),
      beside.empty() ? "Give it that file again"
                     : fmt::format("'{}' is that file: to finish the run, give '{}' in place of "
                                   "'{}'",
                                   beside, beside, source.name()),
      kGiveUp));
}

void Resume::seek(std::size_t input) {
  inputs_[input].seek(base_[input] + starts_[input].offset);
}

// A FILE that has changed since is taken back as it is now: a duplicate may pass, but nothing is lost.
bool Resume::has_forgotten() const {
  if (request_.forget.empty()) return false;
  if (nothing_new_) return true;
  if (!continues_ || known_.run->forgot != request_.forget) return false;
  const Descriptor file(::open(request_.forget.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK), true);
  return !file || !as_new_as(request_.state, file.number());
}

std::optional<ContinuedReport> Resume::continued() const {
  std::size_t input = 0;
  if (continues_)
    input = current_;
  else
    while (input < inputs_.size() && !(starts_[input].offset > 0 && is_new(input))) ++input;
  if (input == inputs_.size()) return std::nullopt;
  ContinuedReport report{.input = inputs_[input].name()};
  if (inputs_[input].regular()) {
    report.offset = start_in_file(input);
    report.size = size_of(inputs_[input]);
  }
  return report;
}

void Resume::done_with(std::size_t input, const SourcePosition& end) {
  now_[input] = at(input, end);
  now_[input].drained = !inputs_[input].regular();
}

void Resume::restart(std::size_t input) {
  base_[input] = 0;
  start_anew(input);
  if (!request_.state.empty()) stamps_[input] = stamp_of(inputs_[input].descriptor());
  restarted_ = true;
}

void Resume::retire(std::size_t input) {
  if (now_[input].end.checked > 0) others_.push_back(now_[input]);
  if (others_.size() > RunPosition::kMostOthers) others_.erase(others_.begin());
  const auto at = static_cast<std::ptrdiff_t>(input);
  base_.erase(base_.begin() + at);
  stamps_.erase(stamps_.begin() + at);
  starts_.erase(starts_.begin() + at);
  now_.erase(now_.begin() + at);
  further_.erase(further_.begin() + at);
  restarted_ = true;
}

void Resume::add_last() {
  base_.push_back(0);
  starts_.emplace_back();
  now_.emplace_back();
  further_.push_back(true);
  stamps_.emplace_back();
  start_anew(inputs_.size() - 1);
  if (!request_.state.empty()) stamps_.back() = stamp_of(inputs_.back().descriptor());
}

InputPosition Resume::at(std::size_t input, const SourcePosition& position) const {
  InputPosition now = now_[input];
  now.records = position.records;
  if (!now.regular) return now;
  const int file = inputs_[input].descriptor();
  std::uint64_t end = base_[input] + position.offset;
  if (now.packing != Packing::none) {
    now.unpacked = position.offset;
    end = inputs_[input].packed_end(position.offset);
    // Not read yet, or not beyond what was read before.
    if (position.offset > 0) end = std::max(end, now_[input].end.offset);
  }
  // The time first: what is written from now on must be noticed.
  now.modified_ns = modified_since(stamps_[input], file, end);
  now.end = FileEnd::at(file, end, hasher_);
  now.open_bytes = position.open_bytes;
  return now;
}

bool Resume::has_begun(const RunPosition& run) const {
  if (restarted_ || (continues_ && known_.run->begun)) return true;
  for (std::size_t i = 0; i < inputs_.size(); ++i)
    if (run.inputs[i].records != starts_[i].records) return true;
  return false;
}

// Whether the same command can read on after this run.
bool Resume::leaves_record() const {
  return std::ranges::any_of(inputs_, &FileSource::regular) &&
         std::ranges::all_of(outputs_,
                             [](const Output& each) { return each.sink->identity().regular; });
}

// Whether FILE of --forget has changed is told by the time of the state, but only until the next save.
void Resume::keep_last() {
  if (leaves_record() || !known_.run || !known_.run->finished()) return;
  kept_ = known_.run;
  kept_->forgot.clear();
}

// None if one of its outputs is no longer known.
std::optional<RunPosition> Resume::last_finished(const Positions& now) const {
  std::optional<RunPosition> run = kept_;
  if (!run) return run;
  for (auto& place : run->outputs) {
    if (!place || *place == RunPosition::kNoFile) continue;
    const auto found =
        std::ranges::find(now.outputs, known_.outputs[*place].path, &OutputPosition::path);
    if (found == now.outputs.end()) return std::nullopt;
    place = static_cast<std::uint8_t>(found - now.outputs.begin());
  }
  return run;
}

Positions Resume::at(std::size_t current, const SourcePosition& position, bool forgot,
                     const std::string* header) const {
  Positions now{.outputs = known_.outputs, .run = std::nullopt};
  for (const Output& output : outputs_) {
    const FileSink& sink = *output.sink;
    if (sink.identity().regular)
      now.set_output({sink.path(), FileEnd::at(sink.descriptor(), sink.offset(), hasher_),
                      sink.packed(),
                      output.header       ? *output.header
                      : header == nullptr ? WrittenHeader::nothing()
                                          : WrittenHeader::of(as_written(*header), hasher_)});
  }
  const bool over = current == inputs_.size();
  if (over && !leaves_record()) {
    now.run = last_finished(now);
    return now;
  }
  RunPosition& run = now.run.emplace();
  run.inputs = now_;
  run.current = current;
  if (!over) run.inputs[current] = at(current, position);
  run.begun = has_begun(run);
  for (const Output& output : outputs_)
    run.outputs[static_cast<std::size_t>(output.role)] =
        output.sink->identity().regular
            ? static_cast<std::uint8_t>(
                  std::ranges::find(now.outputs, output.sink->path(), &OutputPosition::path) -
                  now.outputs.begin())
            : RunPosition::kNoFile;
  if (forgot) run.forgot = request_.forget;
  run.shape = request_.shape;
  run.others = others_;
  return now;
}

}  // namespace sluice::cli
