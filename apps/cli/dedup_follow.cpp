#include "dedup_follow.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <filesystem>

#include "command.hpp"
#include "connectors/files/file_watch.hpp"
#include "dedup_rotated.hpp"
#include "sluice/base/error.hpp"
#include "sluice/base/quantity.hpp"

namespace sluice::cli {
namespace {

// A program may still write to the old file for a moment after another one has its name: until it is told to
// open its log again.
constexpr std::chrono::milliseconds kLinger(1000);
// With several files, one that is written to without a pause must not keep the others waiting.
constexpr std::chrono::milliseconds kTurn(500);

// Whether a file that is written to now gets another time: a clock of files ticks every few milliseconds, or
// every second or two.
bool has_ticked(std::chrono::nanoseconds modified) {
  constexpr std::chrono::seconds kTick(2);
  return std::chrono::system_clock::now().time_since_epoch() - modified > kTick;
}

// A file up to its present end.
class Pausing final : public ByteSource {
 public:
  Pausing(FileSource& file, const Hasher& hasher) : file_(file), hasher_(hasher) {}
  std::size_t read(std::span<char> into) override {
    const std::uint64_t from = file_.offset();
    const std::size_t got = file_.read(into);
    if (got == 0) at_end_ = true;
    const std::uint64_t count = std::min<std::uint64_t>(got, FileEnd::kMostChecked);
    const auto end_of = [&](std::string_view bytes, std::uint64_t offset) {
      return FileEnd{offset, bytes.size(), hasher_.digest(bytes)};
    };
    if (got > 0 && first_.checked == 0) first_ = end_of({into.data(), count}, from + count);
    if (got > 0) last_ = end_of({into.data() + got - count, count}, from + got);
    return got;
  }
  const std::string& name() const override { return file_.name(); }
  bool at_end() const noexcept { return at_end_; }
  // The first and the last bytes that were read, as they were then.
  const FileEnd& first() const noexcept { return first_; }
  const FileEnd& last() const noexcept { return last_; }

 private:
  FileSource& file_;
  const Hasher& hasher_;
  FileEnd first_ = {};
  FileEnd last_ = {};
  std::atomic<bool> at_end_ = false;
};

void check_different(const std::vector<std::string>& files) {
  std::vector<std::optional<Found>> found;
  for (std::size_t i = 0; i < files.size(); ++i) {
    found.push_back(found_at(files[i]));
    for (std::size_t j = 0; j < i; ++j)
      if (files[i] == files[j] ||
          (found[i] && found[j] && found[i]->identity == found[j]->identity))
        throw BadParameters(
            fmt::format("--follow: '{}' and '{}' are the same file: follow it once, by the name "
                        "that it is written to",
                        files[j], files[i]));
  }
}

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
  check_different(request.files);
  std::erase_if(request.files,
                [&](const std::string& file) { return std::ranges::count(missing, file) > 0; });
  return missing;
}

FileSource open_followed(const std::string& file, int wake, const DedupRequest& request) {
  FileSource source = FileSource::open(file, wake, "input", request.archives, request.unpack);
  if (source.packing() != Packing::none)
    throw BadParameters(fmt::format(
        "--follow: '{}' is compressed, and more is not appended to such a file: give it to a run "
        "without --follow, before this one",
        file));
  return source;
}

Follow::Follow(const Parts& parts, std::vector<std::string> missing, const std::vector<bool>& once)
    : parts_(parts), files_(parts.inputs.size()), missing_(std::move(missing)) {
  for (std::size_t i = 0; i < files_.size(); ++i) {
    files_[i].position = parts.resume.position_in(i);
    files_[i].once = once[i];
    files_[i].end =
        FileEnd::at(parts.inputs[i].descriptor(), files_[i].position.offset, parts.hasher);
    files_[i].read = files_[i].end;
    files_[i].written = written_at(parts.request.files[i]);
    if (files_[i].position.offset > 0) {
      parts.inputs[i].seek(0);
      parts.dedup.read_header(parts.inputs[i]);
    }
  }
  changed_ = parts.resume.continues() ? parts.resume.has_further() : !files_.empty();
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
    for (std::size_t i = 0; i < files_.size() && !stopped_;) {
      const FileIdentity identity = parts_.inputs[i].identity();
      moved |= advance(i, between);
      // The next one has the place of one that is done, and what comes after it must not be read before it.
      if (i < files_.size() && parts_.inputs[i].identity() == identity) ++i;
    }
    if (moved || stopped_) continue;
    parts_.dedup.flush();
    parts_.dedup.flush_sinks();
    if (!between()) break;
    watch.wait();
  }
  look_last();
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
  // One that came between two looks was written to before.
  const bool waited = !files_[input].between || files_[input].seen > 0;
  if (read(input, false, between)) {
    if (waited) files_[input].quiet_since = Clock::now();
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
  // The list first: what is in it cannot have got the name after that.
  std::optional<FilesBeside> beside = beside_[name].renewed(name);
  const std::optional<Found> found = found_at(name);
  const FileIdentity identity = parts_.inputs[input].identity();
  if (found && found->identity == identity) {
    if (beside) beside_[name] = std::move(*beside);
    file.gone = false;
    return false;
  }
  if (found) check_followed_once(name, found->identity);
  std::optional<FileSource> source;
  if (found && found->identity.regular) source = open(name);
  if (!source) {
    if (!std::exchange(file.gone, true))
      tell(fmt::format("'{}' is gone: waiting for it to appear again", name));
    return false;
  }
  file.replaced = true;
  file.quiet_since = Clock::now();
  const auto after = add_between(name, &parts_.inputs[input], *source);
  add(name, std::move(*source), {.after = after ? after : identity});
  return true;
}

// Two names would be read as one file: what comes to the other file would be missed.
void Follow::check_followed_once(const std::string& name, const FileIdentity& file) const {
  for (std::size_t i = 0; i < files_.size(); ++i)
    if (parts_.inputs[i].identity() == file && parts_.request.files[i] != name && !files_[i].once)
      throw RunFailed(fmt::format(
          "'{}' is now the file that is followed as '{}': follow a log by the name that "
          "it is written to, and not by the names that it is rotated to",
          name, parts_.request.files[i]));
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
  // A file that is made later may get the same inode.
  for (Followed& file : files_)
    if (file.after == parts_.inputs[input].identity()) file.after.reset();
  left_.push_back({parts_.inputs[input].identity(), files_[input].read});
  constexpr std::size_t kMostLeft = 64;
  if (left_.size() > kMostLeft) left_.erase(left_.begin());
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

// A file may be rewritten to the length that it had: so whenever it was written to, its bytes are compared.
bool Follow::is_rewritten(std::size_t input) {
  Followed& file = files_[input];
  const FileSource& source = parts_.inputs[input];
  const Present now = present(source);
  if (now.size == file.seen && now.size >= file.position.offset && now.modified == file.modified)
    return false;
  if (now.size < file.seen || !file.end.matches(source.descriptor(), parts_.hasher) ||
      !file.read.matches(source.descriptor(), parts_.hasher))
    return true;
  if (!file.once && !file.replaced && !newer_copy(input).empty()) return true;
  file.modified = has_ticked(now.modified) ? now.modified : std::chrono::nanoseconds(-1);
  return false;
}

// Reads a file that was truncated from its beginning, and before that what only a copy of it has.
void Follow::restart(std::size_t input, const std::function<bool()>& between,
                     const Interrupted* interrupted) {
  if (begin_again(input, interrupted) && !stopped_) advance(files_.size() - 1, between);
}

// Reads what is new, and if nothing follows, also a record without a terminator. Returns whether anything was.
bool Follow::read(std::size_t input, bool last, const std::function<bool()>& between) {
  Followed& file = files_[input];
  FileSource& source = parts_.inputs[input];
  if (present_size(source) == (last ? file.position.offset : file.seen)) return false;
  // The state knows the files before anything of them is written: they may have other names when the run is
  // continued. At the first record, the run itself sees to it.
  if (changed_ && parts_.dedup.counts().records > 0 && !between()) {
    stopped_ = true;
    return true;
  }
  file.written = written_at(parts_.request.files[input]);
  source.seek(file.position.offset);
  current_ = input;
  reading_ = true;
  Pausing pausing(source, parts_.hasher);
  const SourcePosition begin = file.position;
  const FileEnd before = file.end;
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
  file.to_end = pausing.at_end();
  file.end = FileEnd::at(source.descriptor(), file.position.offset, parts_.hasher);
  file.read = FileEnd::at(source.descriptor(), file.seen, parts_.hasher);
  file.modified = std::chrono::nanoseconds(-1);
  // If it was copied and truncated meanwhile, that end is of other bytes.
  const FileEnd& first = pausing.first();
  const bool matters = !stopped_ || parts_.request.state.empty();
  if (!last && matters &&
      !(before.matches(source.descriptor(), parts_.hasher) &&
        first.matches(source.descriptor(), parts_.hasher))) {
    const Interrupted interrupted{file.position, pausing.last()};
    file.position = begin;
    // The bytes by which a copy is known: the more, the better.
    file.end = before.checked >= first.checked ? before : first;
    file.read = file.end;
    restart(input, between, &interrupted);
    return true;
  }
  if (!parts_.request.state.empty()) parts_.resume.done_with(input, file.position);
  return true;
}

bool Follow::open_missing() {
  bool any = false;
  for (std::size_t i = 0; i < missing_.size();) {
    const std::string name = missing_[i];
    std::optional<FilesBeside> beside = beside_[name].renewed(name);
    const std::optional<Found> found = found_at(name);
    std::optional<FileSource> source;
    if (!found && beside) beside_[name] = std::move(*beside);
    if (found) check_followed_once(name, found->identity);
    if (found && found->identity.regular) source = open(name);
    if (!source) {
      ++i;
      continue;
    }
    tell(fmt::format("'{}' has appeared{}", name, stopped_ ? "" : ": now reading it"));
    const auto after = add_between(name, nullptr, *source);
    add(name, std::move(*source), {.after = after});
    missing_.erase(missing_.begin() + static_cast<std::ptrdiff_t>(i));
    any = true;
  }
  return any;
}

}  // namespace sluice::cli
