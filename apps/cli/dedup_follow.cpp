#include "dedup_follow.hpp"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <filesystem>

#include "command.hpp"
#include "connectors/files/file_watch.hpp"
#include "dedup_known.hpp"
#include "sluice/base/error.hpp"
#include "sluice/base/quantity.hpp"

namespace sluice::cli {
namespace {

// A program may still write to the old file for a moment after another one has its name: until it is told to
// open its log again.
constexpr std::chrono::milliseconds kLinger(1000);
// With several files, one that is written to without a pause must not keep the others waiting.
constexpr std::chrono::milliseconds kTurn(500);

struct Found {
  FileIdentity identity;
  std::uint64_t size = 0;
};

std::optional<Found> found_at(const std::string& name) {
  struct stat status;
  if (::stat(name.c_str(), &status) != 0) return std::nullopt;
  return Found{{status.st_dev, status.st_ino, S_ISREG(status.st_mode)},
               static_cast<std::uint64_t>(status.st_size)};
}

// It may be shorter than what was read of it.
std::uint64_t present_size(const FileSource& file) {
  struct stat status;
  if (::fstat(file.descriptor(), &status) != 0)
    throw IoError("cannot read input '" + file.name() + "'", errno);
  return static_cast<std::uint64_t>(status.st_size);
}

// A file up to its present end.
class Pausing final : public ByteSource {
 public:
  explicit Pausing(FileSource& file) : file_(file) {}
  std::size_t read(std::span<char> into) override {
    const std::size_t got = file_.read(into);
    if (got == 0) at_end_ = true;
    return got;
  }
  const std::string& name() const override { return file_.name(); }
  bool at_end() const noexcept { return at_end_; }

 private:
  FileSource& file_;
  std::atomic<bool> at_end_ = false;
};

}  // namespace

std::vector<std::string> take_missing(DedupRequest& request) {
  std::vector<std::string> missing;
  if (!request.follow) return missing;
  for (const std::string& file : request.files) {
    if (file == "-")
      throw BadParameters(
          "--follow follows files by their names, and standard input has none: it is read until "
          "its "
          "writer closes it in any case; leave --follow out, or name a file");
    const std::optional<Found> found = found_at(file);
    if (!found && errno == ENOENT)
      missing.push_back(file);
    else if (found && !found->identity.regular)
      throw BadParameters(fmt::format(
          "--follow: '{}' is not a regular file: pipes are read until their writers close them in "
          "any case; leave --follow out",
          file));
  }
  std::erase_if(request.files,
                [&](const std::string& file) { return std::ranges::count(missing, file) > 0; });
  return missing;
}

namespace {

// A file beside `name` with this inode, or empty.
std::string renamed_beside(const std::string& name, std::uint64_t inode) {
  namespace fs = std::filesystem;
  const fs::path folder = fs::path(name).parent_path();
  std::error_code error;
  for (fs::directory_iterator entry(folder.empty() ? "." : folder, error), end;
       !error && entry != end; entry.increment(error)) {
    std::string path = (folder / entry->path().filename()).string();
    const std::optional<Found> found = found_at(path);
    if (found && found->identity.regular && found->identity.inode == inode) return path;
  }
  return {};
}

// The file that the state has read, under its new name or as a copy; empty if there is none.
std::string found_again(const InputPosition& old, const Hasher& hasher,
                        const std::vector<FileIdentity>& outputs) {
  if (old.end.checked == 0) return renamed_beside(old.name, old.inode);
  std::string path = found_beside(old.name, old, hasher, outputs, true);
  return path.empty() && may_be_copied(old) ? found_beside(old.name, old, hasher, outputs) : path;
}

bool is_among(const InputPosition& old, const DedupRequest& request,
              const std::vector<FileSource>& inputs, const Hasher& hasher) {
  for (std::size_t i = 0; i < inputs.size(); ++i)
    if (old.end.checked == 0 ? inputs[i].identity().inode == old.inode
                             : holds({request.files[i], inputs[i], 0}, old, hasher))
      return true;
  return false;
}

// After one rotation the old file is `path`. After more than one, the files in between are not known to the
// state.
void warn_of_others(const std::string& name, const std::string& path, const RunPosition& run) {
  namespace fs = std::filesystem;
  const fs::path folder = fs::path(name).parent_path();
  std::error_code error;
  const auto since = fs::last_write_time(path, error);
  std::string others;
  for (fs::directory_iterator entry(folder.empty() ? "." : folder, error), end;
       !error && entry != end; entry.increment(error)) {
    const std::string other = (folder / entry->path().filename()).string();
    const std::optional<Found> found = found_at(other);
    std::error_code ignored;
    if (!other.starts_with(name) || other == name || other == path || !found ||
        !found->identity.regular || fs::last_write_time(other, ignored) < since)
      continue;
    const auto is_known = [&](const InputPosition& input) {
      return input.inode == found->identity.inode;
    };
    if (std::ranges::any_of(run.inputs, is_known) || std::ranges::any_of(run.others, is_known))
      continue;
    others += fmt::format("{}'{}'", others.empty() ? "" : ", ", other);
  }
  if (!others.empty())
    warn("dedup",
         fmt::format("'{}' seems to have been rotated more than once while nothing followed it: {} "
                     "may hold records that were not read, and is not read now; if so, stop this "
                     "run, and give it as an input before '{}'",
                     name, others, name));
}

}  // namespace

FileSource open_followed(const std::string& file, int wake, const DedupRequest& request) {
  FileSource source = FileSource::open(file, wake, "input", request.archives, request.unpack);
  if (source.packing() != Packing::none)
    throw BadParameters(fmt::format(
        "--follow: '{}' is compressed, and more is not appended to such a file: give it to a run "
        "without --follow, before this one",
        file));
  return source;
}

std::vector<bool> find_rotated(DedupRequest& request, const std::vector<std::string>& missing,
                               Positions& known, std::vector<FileSource>& inputs,
                               const Hasher& hasher, int wake) {
  std::vector<bool> added(inputs.size(), false);
  if (!request.follow || request.abandon || !known.unfinished()) return added;
  RunPosition& run = *known.run;
  std::vector<FileIdentity> outputs;
  for (const OutputPosition& output : known.outputs)
    if (const std::optional<Found> found = found_at(output.path))
      outputs.push_back(found->identity);
  for (std::size_t k = 0; k < run.inputs.size();) {
    InputPosition& old = run.inputs[k];
    if (!old.regular || is_among(old, request, inputs, hasher)) {
      ++k;
      continue;
    }
    const auto place = std::ranges::find(request.files, old.name);
    const std::string path = found_again(old, hasher, outputs);
    const std::string name = path.empty() ? old.name : std::exchange(old.name, path);
    std::optional<FileSource> source;
    if (!path.empty()) source = open_followed(path, wake, request);
    if (source && (place != request.files.end() || std::ranges::count(missing, name) > 0))
      warn_of_others(name, path, run);
    if (source && present_size(*source) > old.end.offset) {
      note("dedup",
           fmt::format("'{}' was rotated while nothing followed it: '{}' is read on first, "
                       "from byte {}",
                       name, path, format_count(old.end.offset)));
      const auto at = place - request.files.begin();
      old.inode = source->identity().inode;
      inputs.insert(inputs.begin() + at, std::move(*source));
      request.files.insert(place, path);
      added.insert(added.begin() + at, true);
      ++k;
      continue;
    }
    if (source)
      run.others.push_back(old);
    else
      warn(
          "dedup",
          fmt::format("'{}' was read up to byte {}, and that file is no longer there or beside it: "
                      "what was written to it after that is not read. If it was moved elsewhere, "
                      "stop this run and give the file as an input, before the others",
                      name, format_count(old.end.offset)));
    run.inputs.erase(run.inputs.begin() + static_cast<std::ptrdiff_t>(k));
    if (run.current > k) --run.current;
  }
  if (run.current == run.inputs.size() && run.current > 0) --run.current;
  if (run.inputs.empty()) known.run.reset();
  return added;
}

Follow::Follow(const Parts& parts, std::vector<std::string> missing, const std::vector<bool>& once)
    : parts_(parts), files_(parts.inputs.size()), missing_(std::move(missing)) {
  for (std::size_t i = 0; i < files_.size(); ++i) {
    files_[i].position = parts.resume.position_in(i);
    files_[i].once = once[i];
    files_[i].end =
        FileEnd::at(parts.inputs[i].descriptor(), files_[i].position.offset, parts.hasher);
    if (files_[i].position.offset > 0) {
      parts.inputs[i].seek(0);
      parts.dedup.read_header(parts.inputs[i]);
    }
  }
  for (const std::string& name : missing_)
    tell(fmt::format("'{}' does not exist: waiting for it to appear", name));
}

void Follow::tell(const std::string& text) const {
  if (parts_.request.stats != DedupRequest::Stats::none) note("dedup", text);
}

SourcePosition Follow::position() const {
  if (reading_) return parts_.dedup.position();
  return current_ < files_.size() ? files_[current_].position : SourcePosition{};
}

void Follow::run(const std::function<bool()>& between) {
  FileWatch watch(parts_.wake);
  for (const auto* names : {&parts_.request.files, &missing_})
    for (const std::string& name : *names) watch.add(name);
  while (!stopped_) {
    bool moved = open_missing();
    for (std::size_t i = 0; i < files_.size() && !stopped_; ++i) moved |= advance(i, between);
    if (moved || stopped_) continue;
    parts_.dedup.flush();
    parts_.dedup.flush_sinks();
    if (!between()) return;
    watch.wait();
  }
}

// Returns whether it has done something. The input may then be gone, and others added at the end.
bool Follow::advance(std::size_t input, const std::function<bool()>& between) {
  if (waits(input)) return false;
  if (files_[input].once) {
    read(input, true, between);
    if (!stopped_) retire(input);
    return true;
  }
  if (is_rewritten(input)) {
    restart(input, between);
    return true;
  }
  // The name first: what is written to the old file before another has its name is then read.
  const bool found = look_at_name(input);
  if (read(input, false, between)) {
    files_[input].quiet_since = Clock::now();
    return true;
  }
  if (!is_over(input)) return found;
  read(input, true, between);
  if (stopped_) return true;
  tell(fmt::format(
      "'{}' was replaced: the old file was read to its end, {}; now reading the new one",
      parts_.request.files[input], counted(files_[input].position.offset, "byte")));
  retire(input);
  return true;
}

bool Follow::waits(std::size_t input) const {
  const std::optional<FileIdentity>& after = files_[input].after;
  return after && std::ranges::any_of(parts_.inputs, [&](const FileSource& source) {
           return source.identity() == *after;
         });
}

// Nothing more will come to a file that was replaced. A new file that is empty may have been made for a program
// that still writes to the old one.
bool Follow::is_over(std::size_t input) const {
  if (!files_[input].replaced || Clock::now() - files_[input].quiet_since < kLinger) return false;
  const FileIdentity identity = parts_.inputs[input].identity();
  for (std::size_t i = 0; i < files_.size(); ++i)
    if (files_[i].after == identity)
      return files_[i].replaced || present_size(parts_.inputs[i]) > 0;
  return true;
}

// What the name leads to now, if that is another file, becomes an input: it may soon be renamed, too.
bool Follow::look_at_name(std::size_t input) {
  Followed& file = files_[input];
  if (file.replaced) {
    // The newest one looks, if it waits for this one.
    for (std::size_t i = 0; i < files_.size(); ++i)
      if (files_[i].after && !files_[i].replaced && waits(i) && look_at_name(i)) return true;
    return false;
  }
  const std::string name = parts_.request.files[input];
  const std::optional<Found> found = found_at(name);
  const FileIdentity identity = parts_.inputs[input].identity();
  if (found && found->identity == identity) {
    file.gone = false;
    return false;
  }
  // Two names would be read as one file: what comes to the other file would be missed.
  for (std::size_t i = 0; found && i < files_.size(); ++i)
    if (parts_.inputs[i].identity() == found->identity && parts_.request.files[i] != name)
      throw RunFailed(fmt::format(
          "'{}' is now the file that is followed as '{}': follow a log by the name that "
          "it is written to, and not by the names that it is rotated to",
          name, parts_.request.files[i]));
  std::optional<FileSource> source;
  if (found && found->identity.regular) source = open(name);
  if (!source) {
    if (!std::exchange(file.gone, true))
      tell(fmt::format("'{}' is gone: waiting for it to appear again", name));
    return false;
  }
  file.replaced = true;
  file.quiet_since = Clock::now();
  add(name, std::move(*source), {.after = identity});
  return true;
}

void Follow::add(std::string name, FileSource source, Followed followed) {
  parts_.request.files.push_back(std::move(name));
  parts_.inputs.push_back(std::move(source));
  parts_.resume.add_last();
  files_.push_back(std::move(followed));
  changed_ = true;
}

void Follow::retire(std::size_t input) {
  const auto at = static_cast<std::ptrdiff_t>(input);
  parts_.resume.retire(input);
  parts_.request.files.erase(parts_.request.files.begin() + at);
  parts_.inputs.erase(parts_.inputs.begin() + at);
  files_.erase(files_.begin() + at);
  if (current_ > input || current_ == files_.size()) current_ -= current_ > 0;
  changed_ = true;
}

// None if it is gone again.
std::optional<FileSource> Follow::open(const std::string& name) const {
  try {
    FileSource source = open_followed(name, parts_.wake, parts_.request);
    if (std::ranges::count(parts_.outputs, source.identity()) > 0)
      throw RunFailed(
          fmt::format("'{}' is now an output of this run: it cannot be followed", name));
    return source;
  } catch (const IoError&) {
    return std::nullopt;
  }
}

bool Follow::is_rewritten(std::size_t input) const {
  const Followed& file = files_[input];
  const FileSource& source = parts_.inputs[input];
  const std::uint64_t size = present_size(source);
  if (size == file.seen && size >= file.position.offset) return false;
  return !file.end.matches(source.descriptor(), parts_.hasher);
}

// A file that was copied and then truncated (logrotate's `copytruncate`): what the copy has more is read first.
void Follow::restart(std::size_t input, const std::function<bool()>& between) {
  const std::string name = parts_.request.files[input];
  const SourcePosition position = files_[input].position;
  const InputPosition old{.name = name,
                          .regular = true,
                          .end = files_[input].end,
                          .records = position.records,
                          .inode = 0};
  std::vector<FileIdentity> outputs = parts_.resume.output_files();
  outputs.insert(outputs.end(), parts_.outputs.begin(), parts_.outputs.end());
  const std::string path =
      may_be_copied(old) ? found_beside(name, old, parts_.hasher, outputs) : std::string();
  std::optional<FileSource> copy;
  if (!path.empty()) copy = open(path);
  warn("dedup",
       fmt::format("'{}' was truncated or rewritten after {} of it were read: {}, and it is read "
                   "from its beginning",
                   name, counted(position.offset, "byte"),
                   copy ? fmt::format("'{}' is a copy of it, whose rest is read", path)
                        : std::string("what was not read yet is lost")));
  if (copy) {
    add(path, std::move(*copy), {.position = position, .end = old.end, .once = true});
    if (!parts_.request.state.empty()) parts_.resume.done_with(files_.size() - 1, position);
    advance(files_.size() - 1, between);
    if (stopped_) return;
  }
  parts_.resume.restart(input);
  files_[input].position = {};
  files_[input].end = {};
  files_[input].seen = 0;
  changed_ = true;
}

// Reads what is new, and if nothing follows, also a record without a terminator. Returns whether anything was.
bool Follow::read(std::size_t input, bool last, const std::function<bool()>& between) {
  Followed& file = files_[input];
  FileSource& source = parts_.inputs[input];
  if (present_size(source) == (last ? file.position.offset : file.seen)) return false;
  source.seek(file.position.offset);
  current_ = input;
  reading_ = true;
  Pausing pausing(source);
  const Clock::time_point start = Clock::now();
  const bool others = files_.size() + missing_.size() > 1;
  parts_.dedup.run(
      pausing,
      [&] {
        stopped_ = !between();
        if (stopped_ || last) return !stopped_;
        return !pausing.at_end() && !(others && Clock::now() - start >= kTurn);
      },
      file.position);
  file.position = parts_.dedup.position();
  reading_ = false;
  file.seen = pausing.at_end() ? source.offset() : file.position.offset;
  file.end = FileEnd::at(source.descriptor(), file.position.offset, parts_.hasher);
  if (!parts_.request.state.empty()) parts_.resume.done_with(input, file.position);
  return true;
}

bool Follow::open_missing() {
  bool any = false;
  for (std::size_t i = 0; i < missing_.size();) {
    const std::optional<Found> found = found_at(missing_[i]);
    std::optional<FileSource> source;
    if (found && found->identity.regular) source = open(missing_[i]);
    if (!source) {
      ++i;
      continue;
    }
    tell(fmt::format("'{}' has appeared: now reading it", missing_[i]));
    add(missing_[i], std::move(*source), {});
    missing_.erase(missing_.begin() + static_cast<std::ptrdiff_t>(i));
    any = true;
  }
  return any;
}

}  // namespace sluice::cli
