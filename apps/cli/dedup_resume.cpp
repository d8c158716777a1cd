#include "dedup_resume.hpp"

#include <fcntl.h>
#include <fmt/format.h>

#include <algorithm>
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
      starts_(inputs.size()),
      now_(inputs.size()) {
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    base_.push_back(inputs[i].regular() ? inputs[i].offset() : 0);
    start_anew(i);
  }
  if (request.abandon || !known_.unfinished()) return;
  const RunPosition& run = *known_.run;
  // A run that has judged nothing may be replaced by another. One that reads pipes, too: nobody
  // knows what they would still bring.
  replaceable_ =
      !run.begun ||
      std::none_of(run.inputs.begin() + static_cast<std::ptrdiff_t>(run.current), run.inputs.end(),
                   [](const InputPosition& input) { return input.regular; });
  if (replaceable_ && !(same_inputs() && run.shape == request.shape)) return;
  check_same();
  continue_inputs();
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
  now_[input].end.offset = base_[input];
}

void Resume::start_at(std::size_t input, const InputPosition& known) {
  if (!known.regular) {
    now_[input].drained = known.drained && !inputs_[input].regular();
    return;
  }
  const ReadOn on = read_on(given(input), known, request_.options.format);
  starts_[input] = on.from;
  now_[input].end =
      FileEnd::at(inputs_[input].descriptor(), base_[input] + on.from.offset, hasher_);
  now_[input].records = on.from.records;
  if (on.again)
    warn(
        "dedup",
        fmt::format("the last line of input '{}' had no end when it was read, and was judged as it "
                    "stood then. It has been continued since: it is judged again, as a whole{}",
                    inputs_[input].name(),
                    request_.options.keys.empty()
                        ? ""
                        : ", and held back as a duplicate if its key was complete before"));
}

// Each input where it ended: one that was done may have grown since.
void Resume::continue_inputs() {
  const RunPosition& run = *known_.run;
  for (std::size_t i = 0; i < inputs_.size(); ++i) {
    const InputPosition& known = run.inputs[i];
    if (i <= run.current || known.end.checked > 0) check_read(i);
    if (known.regular && !inputs_[i].regular()) continue;  // not begun, and now a pipe
    start_at(i, known);
    if (skips(i))
      warn("dedup",
           fmt::format("input '{}' had been read to its end when the run was interrupted: what it "
                       "brings now is not read. If that is new, run the command once more after "
                       "this run",
                       inputs_[i].name()));
  }
  continues_ = true;
  others_ = run.others;
  say_read_on();
}

// By their file names: a disk may be mounted elsewhere; what was read of them is compared later. Or
// by what was read of them, if there is no such file at the old name: a log may have been rotated.
bool Resume::same_inputs() const {
  const auto& known = known_.run->inputs;
  if (known.size() != inputs_.size()) return false;
  for (std::size_t i = 0; i < known.size(); ++i)
    if (file_name(known[i].name) != file_name(request_.files[i]) &&
        !(known[i].regular && holds_moved(given(i), known[i], hasher_)))
      return false;
  return true;
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
  return !inputs_[input].regular() ||
         size_of(inputs_[input]) > base_[input] + starts_[input].offset;
}

const OutputPosition* Resume::placed(OutputRole role) const {
  const auto& place = known_.run->outputs[static_cast<std::size_t>(role)];
  return place && *place != RunPosition::kNoFile ? &known_.outputs[*place] : nullptr;
}

// The last run has finished, and this one is the same command.
void Resume::read_on_after_finished() {
  reads_on_ = true;
  std::vector<GivenInput> all;
  for (std::size_t i = 0; i < inputs_.size(); ++i) all.push_back(given(i));
  const auto found = find_known(all, *known_.run, hasher_);
  for (std::size_t i = 0; i < inputs_.size(); ++i) {
    const std::string& name = inputs_[i].name();
    if (found[i] != nullptr && found[i]->end.offset == size_of(inputs_[i]) &&
        found[i]->end.offset > base_[i] && as_new_as(request_.state, inputs_[i].descriptor())) {
      warn("dedup", fmt::format("input '{}' was written to after the last run and is as long as it "
                                "was: it is read again from its beginning",
                                name));
    } else if (found[i] != nullptr) {
      start_at(i, *found[i]);
    } else if (const auto old =
                   std::ranges::find(known_.run->inputs, request_.files[i], &InputPosition::name);
               old != known_.run->inputs.end() && old->regular && inputs_[i].regular() &&
               old->name != "-" && old->end.offset > 0) {
      const std::string beside = found_beside(name, *old, hasher_, true);
      const bool is_given = std::ranges::count(request_.files, beside) > 0;
      warn("dedup",
           fmt::format("input '{}' is not the file that the last run read up to byte {}: it {}. It "
                       "is read from its beginning{}",
                       name, format_count(old->end.offset), difference(i, *old),
                       beside.empty() || is_given
                           ? ""
                           : fmt::format("; '{}' is the file that was read: if it has grown since, "
                                         "give it as an input, too",
                                         beside)));
    }
  }
  keep_others(found);
  say_read_on();
}

// Files that this command has read before, with other inputs: the last ones, as many as are kept.
void Resume::keep_others(const std::vector<const InputPosition*>& found) {
  const std::unordered_set<const InputPosition*> taken(found.begin(), found.end());
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
    if (starts_[i].offset == 0 || !is_new(i)) continue;
    if (continues_ && i == known_.run->current) continue;  // is in the first line
    if (notes_.size() == kMostLines) {
      ++more;
      continue;
    }
    notes_.push_back(fmt::format(
        "reads on after the last run: {}",
        describe({inputs_[i].name(), base_[i] + starts_[i].offset, size_of(inputs_[i])})));
  }
  if (more > 0)
    notes_.push_back(fmt::format("reads on after the last run in {} more", counted(more, "input")));
}

void Resume::check_same() const {
  const RunPosition& run = *known_.run;
  const InputPosition& current = run.inputs[run.current];
  const std::string where = fmt::format(
      "--state '{}' holds an unfinished run, which has read '{}' "
      "up to byte {}",
      request_.state, current.name, format_count(current.end.offset));
  if (!same_inputs()) {
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
  return "has other contents before that (was it rotated or edited?)";
}

void Resume::check_read(std::size_t input) const {
  const InputPosition& known = known_.run->inputs[input];
  if (!known.regular || holds(given(input), known, hasher_)) return;
  const FileSource& source = inputs_[input];
  const std::string beside = found_beside(request_.files[input], known, hasher_);
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

bool Resume::has_forgotten() const {
  return (continues_ || reads_on_) && !request_.forget.empty() &&
         known_.run->forgot == request_.forget;
}

std::optional<ContinuedReport> Resume::continued() const {
  std::size_t input = 0;
  if (continues_)
    input = known_.run->current;
  else
    while (input < inputs_.size() && !(starts_[input].offset > 0 && is_new(input))) ++input;
  if (input == inputs_.size()) return std::nullopt;
  ContinuedReport report{.input = inputs_[input].name()};
  if (inputs_[input].regular()) {
    report.offset = base_[input] + starts_[input].offset;
    report.size = size_of(inputs_[input]);
  }
  return report;
}

void Resume::done_with(std::size_t input, const SourcePosition& end) {
  now_[input] = at(input, end);
  now_[input].drained = !inputs_[input].regular();
}

InputPosition Resume::at(std::size_t input, const SourcePosition& position) const {
  InputPosition now = now_[input];
  now.records = position.records;
  if (now.regular)
    now.end = FileEnd::at(inputs_[input].descriptor(), base_[input] + position.offset, hasher_);
  return now;
}

bool Resume::has_begun(const RunPosition& run) const {
  if (continues_ && known_.run->begun) return true;
  for (std::size_t i = 0; i < inputs_.size(); ++i)
    if (run.inputs[i].records != starts_[i].records) return true;
  return false;
}

Positions Resume::at(std::size_t current, const SourcePosition& position, bool forgot) const {
  Positions now{.outputs = known_.outputs, .run = std::nullopt};
  bool files = true;
  for (const Output& output : outputs_) {
    const FileSink& sink = *output.sink;
    files = files && sink.identity().regular;
    if (sink.identity().regular)
      now.set_output({sink.path(), FileEnd::at(sink.descriptor(), sink.offset(), hasher_)});
  }
  const bool over = current == inputs_.size();
  if (over && !(files && std::ranges::any_of(inputs_, &FileSource::regular))) return now;
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
