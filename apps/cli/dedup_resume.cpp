#include "dedup_resume.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <filesystem>
#include <tuple>
#include <unordered_set>
#include <utility>

#include "command.hpp"
#include "sluice/base/error.hpp"
#include "sluice/base/quantity.hpp"
#include "sluice/stream/csv.hpp"
#include "sluice/stream/splitter.hpp"

namespace sluice::cli {
namespace {

constexpr const char* kGiveUp = "give that run up with --abandon, which keeps its keys";

bool is_standard(const FileSink& sink) {
  return sink.descriptor() == STDOUT_FILENO;
}

char terminator_of(const DedupRequest& request) {
  return request.options.format.kind == Format::Kind::nul ? '\0' : '\n';
}

const char* flag_of(OutputRole role) {
  return role == OutputRole::duplicates ? "--duplicates"
         : role == OutputRole::late     ? "--late-output"
                                        : "--output";
}

std::string text_of(OutputRole role, const std::string& path) {
  return path.empty() ? "standard output" : fmt::format("{} '{}'", flag_of(role), path);
}

std::string text_of(OutputRole role, const FileSink& sink) {
  return text_of(role, is_standard(sink) ? "" : sink.name());
}

std::string bytes(std::uint64_t count) {
  return fmt::format("{} byte{}", format_count(count), count == 1 ? "" : "s");
}

// Whether a file may have been written to after the state was saved: only its last bytes are compared,
// and none before the first checkpoint. The system's clock of files has ticks of some milliseconds, so
// a file of the same tick may be newer.
bool as_new_as(const std::string& state, int descriptor) {
  struct stat saved, file;
  if (::stat(state.c_str(), &saved) != 0 || ::fstat(descriptor, &file) != 0) return true;
  return std::tie(file.st_mtim.tv_sec, file.st_mtim.tv_nsec) >=
         std::tie(saved.st_mtim.tv_sec, saved.st_mtim.tv_nsec);
}

bool ends_open(const FileSink& sink, std::uint64_t end, char terminator) {
  const Descriptor file = readable(sink.descriptor());
  char last = terminator;
  if (end == 0 || !file || ::pread(file.number(), &last, 1, static_cast<off_t>(end) - 1) != 1)
    return false;
  return last != terminator;
}

// The header of a table that begins at that offset; none if it is longer than can be expected.
std::optional<std::string> header_at(int descriptor, std::uint64_t offset, const Format& format) {
  const Descriptor file = readable(descriptor);
  if (!file) return std::nullopt;
  std::string bytes(std::size_t{1} << 16, '\0');
  const ssize_t got =
      ::pread(file.number(), bytes.data(), bytes.size(), static_cast<off_t>(offset));
  if (got <= 0) return std::nullopt;
  const bool all = static_cast<std::size_t>(got) < bytes.size();
  std::vector<Record> records;
  make_splitter(format)->split({bytes.data(), static_cast<std::size_t>(got)}, all, 1, records);
  if (records.empty()) return std::nullopt;
  std::string_view header = records.front().text();
  if (header.starts_with(kByteOrderMark)) header.remove_prefix(kByteOrderMark.size());
  return std::string(header);
}

// The flags that decide what goes to which output, in a sentence.
std::string flags_text(const std::string& shape) {
  return shape.empty() ? "none of the flags that decide what goes to which output"
                       : fmt::format("'{}'", shape);
}

bool leads_to(const std::string& path, const FileIdentity& file) {
  struct stat found;
  return !path.empty() && ::stat(path.c_str(), &found) == 0 && found.st_dev == file.device &&
         found.st_ino == file.inode;
}

// Opens PATH.cut to append to it. It is for those who may read PATH.
Descriptor open_cut(const std::string& kept, mode_t mode) {
  constexpr int kFlags = O_WRONLY | O_APPEND | O_CLOEXEC | O_NOFOLLOW;
  Descriptor created(::open(kept.c_str(), kFlags | O_CREAT | O_EXCL, 0600), true);
  if (!created) return {::open(kept.c_str(), kFlags), true};
  if (::fchmod(created.number(), mode & 0777) != 0) return {-1, true};
  return created;
}

// Appends what stands in the file after `end` to PATH.cut.
void keep_tail(int descriptor, const std::string& name, const std::string& path,
               std::uint64_t end) {
  const std::string kept = path + ".cut";
  const auto fail = [&] {
    throw IoError(fmt::format("cannot keep the end of '{}' in '{}'", name, kept), errno);
  };
  const Descriptor from = readable(descriptor);
  struct stat status;
  if (!from || ::fstat(from.number(), &status) != 0) fail();
  const Descriptor to = open_cut(kept, status.st_mode);
  if (!to) fail();
  std::array<char, 65536> buffer;
  std::uint64_t at = end;
  for (;;) {
    const ssize_t got =
        ::pread(from.number(), buffer.data(), buffer.size(), static_cast<off_t>(at));
    if (got < 0) fail();
    if (got == 0) break;
    if (::write(to.number(), buffer.data(), static_cast<std::size_t>(got)) != got) fail();
    at += static_cast<std::uint64_t>(got);
  }
  if (::fsync(to.number()) != 0) fail();
  warn("dedup", fmt::format("'{}' was cut back to {}, where the last run ended; the {} after that "
                            "were appended to '{}'",
                            name, bytes(end), bytes(at - end), kept));
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
  if (size_of(source) < known.end.offset) return fmt::format("has only {}", bytes(size_of(source)));
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

SinkBefore Resume::join(OutputRole role, FileSink& sink) {
  if (request_.state.empty()) return {};
  Output& output = outputs_.emplace_back(Output{.role = role, .sink = &sink});
  const bool regular = sink.identity().regular;
  if (!continues_) return regular ? join_finished(output) : SinkBefore{};
  const auto& place = known_.run->outputs[static_cast<std::size_t>(role)];
  if (const OutputPosition* const known = placed(role)) {
    if (!regular) refuse_output(output, *known);
    return join_unfinished(output, *known);
  }
  // What a pipe has brought may have been collected in a file, which standard output now appends to.
  if (!replaceable_ && (!place || (regular && !is_standard(sink))))
    throw BadParameters(fmt::format(
        "the unfinished run of --state '{}' {}, and this run writes {}: run the same command "
        "again, or {}",
        request_.state,
        place                        ? "writes to a pipe, a terminal or a device"
        : role == OutputRole::passed ? "has no output"
                                     : fmt::format("has no {}", flag_of(role)),
        text_of(role, sink), kGiveUp));
  return regular ? join_finished(output) : SinkBefore{};
}

SinkBefore Resume::join_unfinished(Output& output, const OutputPosition& known) {
  if (!known.end.matches(output.sink->descriptor(), hasher_)) refuse_output(output, known);
  // From a pipe, or a file that was changed, the records after the last checkpoint may not come again.
  for (std::size_t i = 0; i < inputs_.size(); ++i)
    if (!skips(i) && (!inputs_[i].regular() || as_new_as(request_.state, inputs_[i].descriptor())))
      output.cuts = true;
  return continue_output(output, known);
}

// A finished run has written all that it had to. So an output that was moved away begins anew.
SinkBefore Resume::join_finished(Output& output) {
  FileSink& sink = *output.sink;
  const OutputPosition* const known = find(sink);
  if (known == nullptr) return {};
  const OutputPosition* const last = known_.run ? placed(output.role) : nullptr;
  const bool in_role = last != nullptr && (last == known || last->path == sink.path());
  output.ours = sink.size() == 0 && known->end.offset == 0;
  // What the shell has emptied is to be written anew, for all that we know.
  output.same = in_role && (output.ours || !is_standard(sink));
  if (sink.size() == 0) return {};
  const bool ours = known->end.matches(sink.descriptor(), hasher_);
  if (is_standard(sink)) {
    // It may be any file, and what follows may be another program's.
    if (!ours || known->end.offset == 0 || sink.offset() < known->end.offset) return {};
    output.same = in_role;
    output.ours = sink.offset() == known->end.offset;
    if (!known_.unfinished() || output.ours)
      return {.header = true,
              .open_end = sink.offset() == known->end.offset &&
                          ends_open(sink, known->end.offset, terminator_of(request_))};
  }
  if (!ours) refuse_output(output, *known);
  output.cuts = true;
  return continue_output(output, *known);
}

// The file as it was left last, by whatever name it was written: the same path, another to the same
// file, or one to a file with the same name or length; in any case with the same contents. Else what
// is known of its path.
const OutputPosition* Resume::find(const FileSink& sink) const {
  const std::string path = sink.path();
  const FileIdentity identity = sink.identity();
  const OutputPosition* at_path = nullptr;
  const OutputPosition* longest = nullptr;
  for (const OutputPosition& each : known_.outputs) {
    const bool here = each.path == path || leads_to(each.path, identity);
    if (each.path == path || (here && at_path == nullptr)) at_path = &each;
    const bool may_be =
        here || file_name(each.path) == file_name(path) || each.end.offset == sink.size();
    if (may_be && each.end.checked > 0 &&
        (longest == nullptr || each.end.offset > longest->end.offset) &&
        each.end.matches(sink.descriptor(), hasher_))
      longest = &each;
  }
  return longest != nullptr ? longest : at_path;
}

SinkBefore Resume::continue_output(Output& output, const OutputPosition& known) {
  output.ours = true;
  if (known.end.offset > 0) check_header(output);
  output.sink->continue_at(known.end.offset);
  return {.header = known.end.offset > 0,
          .open_end = ends_open(*output.sink, known.end.offset, terminator_of(request_))};
}

void Resume::refuse_output(const Output& output, const OutputPosition& known) const {
  const FileSink& sink = *output.sink;
  const std::string what = text_of(output.role, sink);
  const bool there = known.path.empty() || known.path == sink.path();
  const std::string wrote =
      fmt::format("the {} that --state '{}' has written {}", bytes(known.end.offset),
                  request_.state, there ? "there" : fmt::format("to '{}'", known.path));
  if (!sink.identity().regular)
    throw BadParameters(
        fmt::format("{} is not a file, and the unfinished run of --state '{}' "
                    "writes to one: run the same command again, or {}",
                    what, request_.state, kGiveUp));
  const bool shorter = sink.size() < known.end.offset;
  if (shorter && is_standard(sink))
    throw BadParameters(fmt::format(
        "standard output has {}, fewer than {}: `>` empties the file before the run begins. Use "
        "--output FILE or `>>`; if the records are lost, delete the state and begin again",
        bytes(sink.size()), wrote));
  throw BadParameters(fmt::format(
      "{} {} {}: give that file again{}", what,
      shorter ? fmt::format("has {}, fewer than", bytes(sink.size()))
              : "has other contents in place of",
      wrote, continues_ ? fmt::format(", or {}", kGiveUp) : ", or write to another one"));
}

// Rows under the header of other columns would be misread.
void Resume::check_header(const Output& output) const {
  const Format& format = request_.options.format;
  const bool table = format.kind == Format::Kind::csv || format.kind == Format::Kind::tsv;
  const bool adds_column = request_.options.infer && request_.options.infer->posterior;
  if (!table || !format.header || adds_column || !inputs_[0].regular()) return;
  const auto ours = header_at(output.sink->descriptor(), 0, format);
  const auto input = header_at(inputs_[0].descriptor(), base_[0], format);
  if (ours && input && *ours != *input)
    throw BadParameters(fmt::format(
        "{} has the header '{}', and input '{}' has '{}': write to another file, or give inputs "
        "with the same columns",
        text_of(output.role, *output.sink), *ours, inputs_[0].name(), *input));
}

void Resume::keep_tails() const {
  for (const Output& output : outputs_)
    if (output.cuts && output.sink->size() > output.sink->offset())
      keep_tail(output.sink->descriptor(), output.sink->name(), output.sink->path(),
                output.sink->offset());
  if (!known_.unfinished() || continues_) return;
  for (std::size_t role = 0; role < kOutputRoles; ++role)
    if (const OutputPosition* const known = placed(static_cast<OutputRole>(role)))
      cut_given_up(*known);
}

// What a run that is given up wrote after its last checkpoint, to a file that this run does not write.
void Resume::cut_given_up(const OutputPosition& known) const {
  for (const Output& output : outputs_)
    if (leads_to(known.path, output.sink->identity())) return;
  const Descriptor file(::open(known.path.c_str(), O_RDWR | O_CLOEXEC | O_NONBLOCK), true);
  struct stat status;
  if (!file && errno == ENOENT) return;
  if (!file || ::fstat(file.number(), &status) != 0 || !known.end.matches(file.number(), hasher_)) {
    warn("dedup",
         fmt::format("'{}' is not cut back: it cannot be written, or has other contents than the "
                     "run that is given up wrote. What that run wrote after byte {} may come again",
                     known.path, format_count(known.end.offset)));
    return;
  }
  if (static_cast<std::uint64_t>(status.st_size) == known.end.offset) return;
  keep_tail(file.number(), known.path, known.path, known.end.offset);
  if (::ftruncate(file.number(), static_cast<off_t>(known.end.offset)) != 0 ||
      ::fsync(file.number()) != 0)
    throw IoError(fmt::format("cannot shorten '{}'", known.path), errno);
}

// An output that is gone may have been moved away by a daily job, or deleted to be made again.
void Resume::say_nothing_new() {
  const std::string text =
      "the last run has read these inputs to their ends: there is nothing new in them (--abandon "
      "reads them again)";
  if (std::ranges::any_of(outputs_, [](const Output& each) { return each.sink->size() == 0; }))
    warn("dedup", text);
  else
    notes_.push_back(text);
}

void Resume::check_joined() {
  if (!request_.abandon && known_.run && known_.run->finished() &&
      known_.run->shape == request_.shape && same_forget() &&
      std::ranges::all_of(outputs_, &Output::same) &&
      std::ranges::ssize(outputs_) ==
          std::ranges::count_if(known_.run->outputs,
                                [](const auto& each) { return each.has_value(); })) {
    read_on_after_finished();
    bool any = false;
    for (std::size_t i = 0; i < inputs_.size(); ++i) any = any || is_new(i);
    ended_ = !any && outputs_done();
    if (!any && !ended_) say_nothing_new();
  }
  if (!continues_) return;
  for (std::size_t role = 0; role < kOutputRoles; ++role) {
    const auto has_role = [&](const Output& output) {
      return static_cast<std::size_t>(output.role) == role;
    };
    if (!known_.run->outputs[role] || std::ranges::any_of(outputs_, has_role)) continue;
    const OutputPosition* const known = placed(static_cast<OutputRole>(role));
    throw BadParameters(fmt::format(
        "the unfinished run of --state '{}' also writes {}: run the same command again, or {}",
        request_.state,
        known == nullptr ? flag_of(static_cast<OutputRole>(role))
                         : text_of(static_cast<OutputRole>(role), known->path),
        kGiveUp));
  }
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
