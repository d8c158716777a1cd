// The outputs of a run that continues, or follows a finished one: which files they are, and from where
// each is written on.
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <filesystem>

#include "command.hpp"
#include "dedup_known.hpp"
#include "dedup_resume.hpp"
#include "sluice/base/error.hpp"
#include "sluice/base/quantity.hpp"
#include "sluice/stream/csv.hpp"
#include "sluice/stream/splitter.hpp"

namespace sluice::cli {
namespace {

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

bool ends_open(const FileSink& sink, const OutputPosition& known, char terminator) {
  const std::uint64_t end = known.end.offset;
  if (known.packed.packing != Packing::none)
    return known.packed.contents > 0 && known.packed.last != terminator;
  const Descriptor file = readable(sink.descriptor());
  char last = terminator;
  if (end == 0 || !file || ::pread(file.number(), &last, 1, static_cast<off_t>(end) - 1) != 1)
    return false;
  return last != terminator;
}

constexpr std::size_t kMostHeader = std::size_t{1} << 16;

// The header of a table with these first bytes; none if it is longer than can be expected.
std::optional<std::string> header_in(const std::string& bytes, const Format& format) {
  std::vector<Record> records;
  make_splitter(format)->split(bytes, bytes.size() < kMostHeader, 1, records);
  if (records.empty()) return std::nullopt;
  return std::string(without_mark(records.front().text()));
}

// Returns 0, or what went wrong. So do the next two.
int write_all(int to, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(to, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return errno;
    bytes.remove_prefix(static_cast<std::size_t>(written));
  }
  return 0;
}

// Writes what stands in a file after `at` to another one, and syncs that.
int copy_from(int from, std::uint64_t& at, int to) {
  std::array<char, 65536> buffer;
  for (;;) {
    const ssize_t got = ::pread(from, buffer.data(), buffer.size(), static_cast<off_t>(at));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return errno;
    if (got == 0) return ::fsync(to) == 0 ? 0 : errno;
    const int error = write_all(to, {buffer.data(), static_cast<std::size_t>(got)});
    if (error != 0) return error;
    at += static_cast<std::uint64_t>(got);
  }
}

// The same, unpacked: the last member may be cut off, and what follows it could not be unpacked. What is
// not packed is written as it is.
int unpack_from(int from, std::uint64_t& at, Packing packing, int to) {
  struct stat before, all;
  if (::fstat(to, &before) != 0 || ::fstat(from, &all) != 0) return errno;
  try {
    UnpackedInput unpacked({.descriptor = from, .regular = true, .offset = at}, packing,
                           {.own_thread = false});
    std::array<char, 65536> buffer;
    try {
      while (const std::size_t got = unpacked.read(buffer))
        if (const int error = write_all(to, {buffer.data(), got}); error != 0) return error;
    } catch (const BadPacked& error) {
      if (!error.cut_off()) throw;
    }
    at = static_cast<std::uint64_t>(all.st_size);
    return ::fsync(to) == 0 ? 0 : errno;
  } catch (const BadPacked&) {
    return ::ftruncate(to, before.st_size) == 0 ? copy_from(from, at, to) : errno;
  } catch (const IoError& error) {
    return error.error_number();
  }
}

// A file whose name is not on the disk is lost with the power, whatever of its contents is. Some file systems
// cannot sync folders.
int sync_folder_of(const std::string& path) {
  const std::string folder = std::filesystem::path(path).parent_path().string();
  const Descriptor opened(
      ::open(folder.empty() ? "." : folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC), true);
  const bool done = opened && ::fsync(opened.number()) == 0;
  return done || errno == EINVAL || errno == ENOTSUP || errno == EACCES ? 0 : errno;
}

// Moves what stands in the file after `end` to PATH.cut, which is for those who may read PATH. All or
// nothing: the next try would append a part of it again.
void cut_back(int descriptor, const std::string& name, const std::string& path, std::uint64_t end,
              Packing packing) {
  constexpr int kFlags = O_WRONLY | O_APPEND | O_CLOEXEC | O_NOFOLLOW;
  const std::string kept = path + ".cut";
  const auto fail = [&](int error) {
    throw IoError(fmt::format("cannot keep the end of '{}' in '{}'", name, kept), error);
  };
  const Descriptor from = readable(descriptor);
  struct stat status, before;
  if (!from || ::fstat(from.number(), &status) != 0) fail(errno);
  Descriptor to(::open(kept.c_str(), kFlags | O_CREAT | O_EXCL, 0600), true);
  const bool created = static_cast<bool>(to);
  if (!created) to = {::open(kept.c_str(), kFlags), true};
  if (!to || ::fstat(to.number(), &before) != 0) fail(errno);
  std::uint64_t at = end;
  int error = created && ::fchmod(to.number(), status.st_mode & 0777) != 0 ? errno
              : packing == Packing::none ? copy_from(from.number(), at, to.number())
                                         : unpack_from(from.number(), at, packing, to.number());
  // Also if it was there before: who made it may have been cut off here.
  if (error == 0) error = sync_folder_of(kept);
  if (error != 0 && created) ::unlink(kept.c_str());
  if (error != 0 && !created && ::ftruncate(to.number(), before.st_size) != 0)
    warn("dedup", fmt::format("'{}' holds a part of the end of '{}'", kept, name));
  if (error != 0) fail(error);
  warn("dedup",
       fmt::format("'{}' was cut back to {}, where the last run ended; what came after that, "
                   "{}, was appended to '{}'{}",
                   name, counted(end, "byte"), counted(at - end, "byte"), kept,
                   packing == Packing::none ? "" : ", unpacked"));
  // At once: if something fails later, the next try finds nothing to keep.
  if (::ftruncate(descriptor, static_cast<off_t>(end)) != 0 || ::fsync(descriptor) != 0)
    throw IoError(fmt::format("cannot shorten '{}'", name), errno);
}

}  // namespace

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
  check_packing(output, known);
  // From a pipe, or a file that was changed, the records after the last checkpoint may not come again.
  for (std::size_t i = 0; i < inputs_.size(); ++i)
    if (!skips(i) && !further_[i] &&
        (!inputs_[i].regular() || as_new_as(request_.state, inputs_[i].descriptor())))
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
  if (is_standard(sink) && sink.size() < known->end.offset) {
    emptied_text_ = less_than_written(sink, *known);
    appends_ = (::fcntl(sink.descriptor(), F_GETFL) & O_APPEND) != 0;
  }
  if (sink.size() == 0) return {};
  const bool ours = known->end.matches(sink.descriptor(), hasher_);
  if (ours) check_packing(output, *known);
  if (is_standard(sink)) {
    // It may be any file, and what follows may be another program's.
    if (!ours || known->end.offset == 0 || sink.offset() < known->end.offset) return {};
    output.same = in_role;
    output.ours = sink.offset() == known->end.offset;
    if (output.ours) output.from = known;
    if (!known_.unfinished() || output.ours)
      return {.header = take_header(output, *known),
              .open_end = sink.offset() == known->end.offset &&
                          ends_open(sink, *known, terminator_of(request_))};
  }
  if (!ours) refuse_output(output, *known);
  output.cuts = true;
  return continue_output(output, *known);
}

// The file as it was left last, by whatever name it was written: the same path, another to the same
// file, one to a file with the same name or length, or that of an unfinished run; in any case with the
// same contents. Else what is known of its path.
const OutputPosition* Resume::find(const FileSink& sink) const {
  const std::string path = sink.path();
  const FileIdentity identity = sink.identity();
  const auto is_unfinished = [&](const OutputPosition& each) {
    for (std::size_t role = 0; known_.unfinished() && role < kOutputRoles; ++role)
      if (placed(static_cast<OutputRole>(role)) == &each) return true;
    return false;
  };
  const OutputPosition* at_path = nullptr;
  const OutputPosition* longest = nullptr;
  for (const OutputPosition& each : known_.outputs) {
    const bool here = each.path == path || leads_to(each.path, identity);
    if (each.path == path || (here && at_path == nullptr)) at_path = &each;
    const bool may_be = here || file_name(each.path) == file_name(path) ||
                        each.end.offset == sink.size() || is_unfinished(each);
    if (may_be && each.end.checked > 0 &&
        (longest == nullptr || each.end.offset > longest->end.offset) &&
        each.end.matches(sink.descriptor(), hasher_))
      longest = &each;
  }
  return longest != nullptr ? longest : at_path;
}

SinkBefore Resume::continue_output(Output& output, const OutputPosition& known) {
  output.ours = true;
  output.from = &known;
  const bool header = take_header(output, known);
  output.sink->continue_at(known.end.offset, known.packed);
  return {.header = header, .open_end = ends_open(*output.sink, known, terminator_of(request_))};
}

// A file that was renamed: half of it packed, and half of it not, would be neither.
void Resume::check_packing(const Output& output, const OutputPosition& known) const {
  const auto text = [](Packing packing) {
    return packing == Packing::none ? std::string("not compressed")
                                    : fmt::format("compressed with {}", name_of(packing));
  };
  const Packing before = known.packed.packing, now = output.sink->packed().packing;
  if (known.end.offset > 0 && before != now)
    throw BadParameters(fmt::format(
        "what --state '{}' has written to {} is {}, and this run would write to it {}: names that "
        "end in .gz or .zst are compressed; give the file its old name, or write to another one",
        request_.state, text_of(output.role, *output.sink), text(before), text(now)));
}

std::string Resume::less_than_written(const FileSink& sink, const OutputPosition& known) const {
  return fmt::format(
      "standard output has {}, fewer than the {} that --state '{}' has written {}",
      counted(sink.size(), "byte"), counted(known.end.offset, "byte"), request_.state,
      known.path.empty() || known.path == sink.path() ? "there"
                                                      : fmt::format("to '{}'", known.path));
}

void Resume::refuse_output(const Output& output, const OutputPosition& known) const {
  const FileSink& sink = *output.sink;
  const std::string what = text_of(output.role, sink);
  const bool there = known.path.empty() || known.path == sink.path();
  const std::string wrote =
      fmt::format("the {} that --state '{}' has written {}", counted(known.end.offset, "byte"),
                  request_.state, there ? "there" : fmt::format("to '{}'", known.path));
  if (!sink.identity().regular)
    throw BadParameters(
        fmt::format("{} is not a file, and the unfinished run of --state '{}' "
                    "writes to one: run the same command again, or {}",
                    what, request_.state, kGiveUp));
  const bool shorter = sink.size() < known.end.offset;
  if (shorter && is_standard(sink))
    throw BadParameters(fmt::format(
        "{}: `>` empties the file before the run begins. Use --output FILE or `>>`; if the records "
        "are lost, delete the state and begin again{}",
        less_than_written(sink, known),
        std::ranges::all_of(inputs_, &FileSource::regular)
            ? ""
            : ". Nothing was read of what came through a pipe now: it must be sent again"));
  throw BadParameters(fmt::format(
      "{} {} {}: give that file again{}", what,
      shorter ? fmt::format("has {}, fewer than", counted(sink.size(), "byte"))
              : "has other contents in place of",
      wrote, continues_ ? fmt::format(", or {}", kGiveUp) : ", or write to another one"));
}

// Whether the output, which holds what is known of it, has a header.
bool Resume::take_header(Output& output, const OutputPosition& known) {
  const bool packed = known.packed.packing != Packing::none;
  const bool has = known.header.kind == WrittenHeader::Kind::unknown
                       ? (packed ? known.packed.contents : known.end.offset) > 0
                       : known.header.kind == WrittenHeader::Kind::known;
  if (has) output.header = known.header;
  return has;
}

std::string Resume::as_written(const std::string& header) const {
  const DedupOptions& options = request_.options;
  const bool adds_column = options.infer && options.infer->posterior;
  return adds_column ? header + posterior_column(options.format) : header;
}

// Before states recorded it, the header was the first record of the file; but what standard output appends
// to may begin with something else.
std::optional<WrittenHeader> Resume::header_of(const Output& output) const {
  if (!output.header || output.header->kind == WrittenHeader::Kind::known) return output.header;
  const Descriptor file = readable(output.sink->descriptor());
  if (!file || is_standard(*output.sink)) return std::nullopt;
  const auto found =
      header_in(first_contents(file.number(), output.sink->packed().packing, kMostHeader),
                request_.options.format);
  if (!found) return std::nullopt;
  return WrittenHeader::of(*found, hasher_);
}

// Rows under the header of other columns would be misread; and what is taken for a header is not written.
void Resume::check_header(const std::string& source, const std::string& header) const {
  const WrittenHeader ours = WrittenHeader::of(as_written(header), hasher_);
  for (const Output& output : outputs_) {
    const auto there = header_of(output);
    if (!there || there->digest == ours.digest) continue;
    throw BadParameters(fmt::format(
        "{} has the header '{}', and input '{}' has '{}': write to another file, or give inputs "
        "with the same columns. If that is no header but data, give --no-header, to every run from "
        "the first one on, with a new state",
        text_of(output.role, *output.sink), there->shown, source, ours.shown));
  }
}

void Resume::keep_tails() const {
  for (const Output& output : outputs_)
    if (output.cuts && output.sink->size() > output.sink->offset())
      cut_back(output.sink->descriptor(), output.sink->name(), output.sink->path(),
               output.sink->offset(), output.sink->packed().packing);
  if (!known_.unfinished() || continues_) return;
  for (std::size_t role = 0; role < kOutputRoles; ++role)
    if (const OutputPosition* const known = placed(static_cast<OutputRole>(role)))
      cut_given_up(*known);
}

// What a run that is given up wrote after its last checkpoint, to a file that this run does not write.
void Resume::cut_given_up(const OutputPosition& known) const {
  for (const Output& output : outputs_) {
    if (output.from == &known) return;
    if (leads_to(known.path, output.sink->identity()))
      return warn_given_up(known, "was moved away, emptied or replaced");
  }
  const Descriptor file(::open(known.path.c_str(), O_RDWR | O_CLOEXEC | O_NONBLOCK), true);
  struct stat status;
  if (!file && errno == ENOENT) return warn_given_up(known, "is gone");
  if (!file || ::fstat(file.number(), &status) != 0)
    return warn_given_up(known, "cannot be written, and is not cut back");
  if (!known.end.matches(file.number(), hasher_))
    return warn_given_up(known, "has other contents now, and is not cut back");
  if (static_cast<std::uint64_t>(status.st_size) == known.end.offset) return;
  cut_back(file.number(), known.path, known.path, known.end.offset, known.packed.packing);
}

void Resume::warn_given_up(const OutputPosition& known, const std::string& why) const {
  warn("dedup",
       fmt::format("the output {} of the run that is given up {}: what that run wrote to it after "
                   "byte {} is not in the state, and may come again",
                   known.path.empty() ? "(standard output)" : fmt::format("'{}'", known.path), why,
                   format_count(known.end.offset)));
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
      known_.run->shape == request_.shape && std::ranges::all_of(outputs_, &Output::same) &&
      std::ranges::ssize(outputs_) ==
          std::ranges::count_if(known_.run->outputs,
                                [](const auto& each) { return each.has_value(); })) {
    read_on_after_finished();
    bool any = false;
    for (std::size_t i = 0; i < inputs_.size(); ++i) any = any || is_new(i);
    nothing_new_ = !any && same_forget();
    ended_ = nothing_new_ && outputs_done() && !request_.follow;
    if (!any && !ended_ && !request_.follow) say_nothing_new();
  } else {
    say_read_before();
  }
  keep_last();
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

}  // namespace sluice::cli
