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

std::string file_name(const std::string& path) {
  return std::filesystem::path(path).filename().string();
}

std::string text_of(OutputRole role, const std::string& path) {
  if (role == OutputRole::duplicates) return fmt::format("--duplicates '{}'", path);
  if (role == OutputRole::late) return fmt::format("--late-output '{}'", path);
  return path.empty() ? "standard output" : fmt::format("--output '{}'", path);
}

std::string text_of(OutputRole role, const FileSink& sink) {
  return text_of(role, is_standard(sink) ? "" : sink.name());
}

std::string bytes(std::uint64_t count) {
  return fmt::format("{} byte{}", format_count(count), count == 1 ? "" : "s");
}

std::uint64_t size_of(const FileSource& input) {
  return input.offset() + input.bytes_left();
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

// Appends what stands in the file after `end` to PATH.cut.
void keep_tail(const FileSink& sink, std::uint64_t end) {
  const std::string kept = sink.path() + ".cut";
  const Descriptor from = readable(sink.descriptor());
  const Descriptor to(
      ::open(kept.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0666), true);
  const auto fail = [&] {
    throw IoError(fmt::format("cannot keep the end of '{}' in '{}'", sink.name(), kept), errno);
  };
  if (!from || !to) fail();
  std::array<char, 65536> buffer;
  for (std::uint64_t at = end;;) {
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
                            sink.name(), bytes(end), bytes(sink.size() - end), kept));
}

}  // namespace

Resume::Resume(const DedupRequest& request, Positions known, std::vector<FileSource>& inputs,
               const Hasher& hasher)
    : request_(request),
      known_(std::move(known)),
      inputs_(inputs),
      hasher_(hasher),
      ends_(inputs.size()) {
  for (const FileSource& input : inputs) base_.push_back(input.offset());
  if (request.abandon || !known_.unfinished()) return;
  const RunPosition& run = *known_.run;
  // A run that has judged nothing may be replaced by another. One that reads pipes, too: nobody
  // knows what they would still bring.
  const bool may_be_replaced =
      (run.current == 0 && run.records == 0) ||
      std::none_of(run.inputs.begin() + static_cast<std::ptrdiff_t>(run.current), run.inputs.end(),
                   [](const InputPosition& input) { return input.regular; });
  if (may_be_replaced && !same_inputs()) return;
  check_same();
  for (std::size_t i = 0; i <= run.current; ++i) {
    check_read(i);
    if (i < run.current) ends_[i] = run.inputs[i].end;
  }
  continues_ = true;
  first_ = run.current;
}

// By their file names: a disk may be mounted elsewhere. What was read of them is compared later.
bool Resume::same_inputs() const {
  return std::ranges::equal(known_.run->inputs, request_.files,
                            [](const InputPosition& known, const std::string& given) {
                              return file_name(known.name) == file_name(given);
                            });
}

bool Resume::inputs_done() const {
  const RunPosition& run = *known_.run;
  if (!same_inputs() || run.shape != request_.shape || run.forgot != request_.forget) return false;
  if (!request_.forget.empty()) {
    const Descriptor file(::open(request_.forget.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK), true);
    if (!file || as_new_as(request_.state, file.number())) return false;
  }
  for (std::size_t i = 0; i < inputs_.size(); ++i)
    if (!inputs_[i].regular() || size_of(inputs_[i]) != run.inputs[i].end.offset ||
        as_new_as(request_.state, inputs_[i].descriptor()) ||
        !run.inputs[i].end.matches(inputs_[i].descriptor(), hasher_))
      return false;
  return true;
}

bool Resume::outputs_done() const {
  const auto& roles = known_.run->outputs;
  const auto known =
      std::ranges::count_if(roles, [](const auto& place) { return place.has_value(); });
  return std::ranges::ssize(outputs_) == known &&
         std::ranges::all_of(outputs_, [&](const Output& output) {
           return output.ours && roles[static_cast<std::size_t>(output.role)];
         });
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
        fmt::format("{} with '{}', and this run has '{}': run it again with the same flags, or {}",
                    where, run.shape, request_.shape, kGiveUp));
}

void Resume::check_read(std::size_t input) const {
  const InputPosition& known = known_.run->inputs[input];
  if (!known.regular) return;
  const FileSource& source = inputs_[input];
  if (source.regular() && base_[input] <= known.end.offset &&
      known.end.matches(source.descriptor(), hasher_))
    return;
  throw BadParameters(fmt::format(
      "input '{}' is not the file that the unfinished run of --state '{}' has read up to byte {}: "
      "it {}. Give it that file again, or {}",
      source.name(), request_.state, format_count(known.end.offset),
      !source.regular() ? "is not a file that can be read from there"
      : size_of(source) < known.end.offset
          ? fmt::format("has only {}", bytes(size_of(source)))
          : "has other contents before that (was it rotated or edited?)",
      kGiveUp));
}

SourcePosition Resume::position_in(std::size_t input) const {
  if (!continues_ || input != first_) return {};
  const InputPosition& known = known_.run->inputs[input];
  if (!known.regular) return {};
  return {known.end.offset - base_[input], known_.run->records};
}

void Resume::seek() {
  if (continues_ && known_.run->inputs[first_].regular)
    inputs_[first_].seek(known_.run->inputs[first_].end.offset);
}

bool Resume::has_forgotten() const {
  return continues_ && !request_.forget.empty() && known_.run->forgot == request_.forget;
}

std::optional<ContinuedReport> Resume::continued() const {
  if (!continues_) return std::nullopt;
  const InputPosition& known = known_.run->inputs[first_];
  ContinuedReport report{.input = inputs_[first_].name()};
  if (known.regular) {
    report.offset = known.end.offset;
    report.size = size_of(inputs_[first_]);
  }
  return report;
}

SinkBefore Resume::join(OutputRole role, FileSink& sink) {
  if (request_.state.empty()) return {};
  Output& output = outputs_.emplace_back(Output{.role = role, .sink = &sink});
  const bool regular = sink.identity().regular;
  if (!continues_) return regular ? join_finished(output) : SinkBefore{};
  const auto& place = known_.run->outputs[static_cast<std::size_t>(role)];
  if (!place) return regular ? join_finished(output) : SinkBefore{};
  const OutputPosition& known = known_.outputs[*place];
  if (!regular) refuse_output(output, known);
  return join_unfinished(output, known);
}

SinkBefore Resume::join_unfinished(Output& output, const OutputPosition& known) {
  if (!known.end.matches(output.sink->descriptor(), hasher_)) refuse_output(output, known);
  // From a pipe, or a file that was changed, the records after the last checkpoint may not come again.
  output.cuts = !known_.run->inputs[first_].regular ||
                as_new_as(request_.state, inputs_[first_].descriptor());
  return continue_output(output, known);
}

// A finished run has written all that it had to. So an output that was moved away begins anew.
SinkBefore Resume::join_finished(Output& output) {
  FileSink& sink = *output.sink;
  const OutputPosition* const known = find(sink, is_standard(sink) ? "" : sink.path());
  if (known == nullptr) return {};
  output.ours = sink.size() == 0 && known->end.offset == 0;
  if (sink.size() == 0) return {};
  const bool ours = known->end.matches(sink.descriptor(), hasher_);
  if (is_standard(sink)) {
    // It may be any file, and what follows may be another program's.
    if (!ours || known->end.offset == 0 || sink.offset() < known->end.offset) return {};
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

// The same path, or another to a file with the same name or length, and the same contents.
const OutputPosition* Resume::find(const FileSink& sink, const std::string& path) const {
  const auto& outputs = known_.outputs;
  const auto same = std::ranges::find(outputs, path, &OutputPosition::path);
  if (same != outputs.end()) return &*same;
  const auto moved = std::ranges::find_if(outputs, [&](const OutputPosition& each) {
    return !each.path.empty() && !path.empty() && each.end.checked > 0 &&
           (file_name(each.path) == file_name(path) || each.end.offset == sink.size()) &&
           each.end.matches(sink.descriptor(), hasher_);
  });
  return moved == outputs.end() ? nullptr : &*moved;
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
  const std::string wrote = fmt::format("the {} that --state '{}' has written there",
                                        bytes(known.end.offset), request_.state);
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
  if (!table || !format.header || adds_column || !inputs_[first_].regular()) return;
  const auto ours = header_at(output.sink->descriptor(), 0, format);
  const auto input = header_at(inputs_[first_].descriptor(), base_[first_], format);
  if (ours && input && *ours != *input)
    throw BadParameters(fmt::format(
        "{} has the header '{}', and input '{}' has '{}': write to another file, or give inputs "
        "with the same columns",
        text_of(output.role, *output.sink), *ours, inputs_[first_].name(), *input));
}

void Resume::keep_tails() const {
  for (const Output& output : outputs_)
    if (output.cuts && output.sink->size() > output.sink->offset())
      keep_tail(*output.sink, output.sink->offset());
}

void Resume::check_joined() {
  const bool finished = !request_.abandon && known_.run && known_.run->finished();
  if (finished && inputs_done() && outputs_done()) first_ = inputs_.size();
  if (!continues_) return;
  for (std::size_t role = 0; role < kOutputRoles; ++role) {
    const auto& place = known_.run->outputs[role];
    const auto has_role = [&](const Output& output) {
      return static_cast<std::size_t>(output.role) == role;
    };
    if (place && std::ranges::none_of(outputs_, has_role))
      throw BadParameters(fmt::format(
          "the unfinished run of --state '{}' also writes {}: run the same command again, or {}",
          request_.state, text_of(static_cast<OutputRole>(role), known_.outputs[*place].path),
          kGiveUp));
  }
}

FileEnd Resume::end_of(std::size_t input, const SourcePosition& position) const {
  const FileSource& source = inputs_[input];
  if (!source.regular()) return {};
  return FileEnd::at(source.descriptor(), base_[input] + position.offset, hasher_);
}

void Resume::done_with(std::size_t input, const SourcePosition& end) {
  ends_[input] = end_of(input, end);
}

Positions Resume::at(std::size_t current, const SourcePosition& position, bool forgot) const {
  Positions now{.outputs = known_.outputs, .run = std::nullopt};
  std::vector<std::pair<OutputRole, std::string>> roles;
  for (const Output& output : outputs_) {
    const FileSink& sink = *output.sink;
    if (!sink.identity().regular) continue;
    std::string path = is_standard(sink) ? "" : sink.path();
    now.set_output({path, FileEnd::at(sink.descriptor(), sink.offset(), hasher_)});
    roles.emplace_back(output.role, std::move(path));
  }
  const bool files = std::ranges::all_of(inputs_, &FileSource::regular);
  if (current == inputs_.size() && !(files && roles.size() == outputs_.size())) return now;
  RunPosition& run = now.run.emplace(run_at(current, position));
  for (const auto& [role, path] : roles)
    run.outputs[static_cast<std::size_t>(role)] = static_cast<std::uint8_t>(
        std::ranges::find(now.outputs, path, &OutputPosition::path) - now.outputs.begin());
  if (forgot) run.forgot = request_.forget;
  return now;
}

RunPosition Resume::run_at(std::size_t current, const SourcePosition& position) const {
  RunPosition run;
  for (std::size_t i = 0; i < inputs_.size(); ++i)
    run.inputs.push_back({request_.files[i], inputs_[i].regular(),
                          i < current    ? ends_[i]
                          : i == current ? end_of(i, position)
                                         : FileEnd{base_[i], 0, {}}});
  run.current = current;
  run.records = position.records;
  run.shape = request_.shape;
  return run;
}

}  // namespace sluice::cli
