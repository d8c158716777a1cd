#include "dedup_follow.hpp"

#include <fcntl.h>
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

struct Present {
  std::uint64_t size = 0;  // it may be shorter than what was read of it
  std::chrono::nanoseconds modified = {};
};

Present present(const FileSource& file) {
  struct stat status;
  if (::fstat(file.descriptor(), &status) != 0)
    throw IoError("cannot read input '" + file.name() + "'", errno);
#ifdef __APPLE__
  const timespec& modified = status.st_mtimespec;
#else
  const timespec& modified = status.st_mtim;
#endif
  return {static_cast<std::uint64_t>(status.st_size),
          std::chrono::seconds(modified.tv_sec) + std::chrono::nanoseconds(modified.tv_nsec)};
}

std::uint64_t present_size(const FileSource& file) {
  return present(file).size;
}

// Whether a file that is written to now gets another time: a clock of files ticks every few milliseconds, or
// every second or two.
bool has_ticked(std::chrono::nanoseconds modified) {
  constexpr std::chrono::seconds kTick(2);
  return std::chrono::system_clock::now().time_since_epoch() - modified > kTick;
}

std::filesystem::file_time_type written_at(const std::string& path) {
  std::error_code error;
  return std::filesystem::last_write_time(path.empty() ? "." : path, error);
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

}  // namespace

namespace {

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

// Files beside `name`, named like it, that were written to since then and that the state does not know; quoted,
// and empty if there are none. `path`: one that is known.
std::string unknown_beside(const std::string& name, const std::string& path,
                           std::filesystem::file_time_type since, const RunPosition& run,
                           const DedupRequest& request, const std::vector<FileIdentity>& outputs) {
  namespace fs = std::filesystem;
  const fs::path folder = fs::path(name).parent_path();
  std::error_code error;
  std::string others;
  for (fs::directory_iterator entry(folder.empty() ? "." : folder, error), end;
       !error && entry != end; entry.increment(error)) {
    const std::string other = (folder / entry->path().filename()).string();
    const std::optional<Found> found = found_at(other);
    std::error_code ignored;
    if (!other.starts_with(name) || other == name || other == path ||
        other.starts_with(request.state) || std::ranges::count(request.files, other) > 0 ||
        !found || !found->identity.regular || found->size == 0 ||
        std::ranges::count(outputs, found->identity) > 0 ||
        fs::last_write_time(other, ignored) < since)
      continue;
    const auto is_known = [&](const InputPosition& input) {
      return input.inode == found->identity.inode;
    };
    if (std::ranges::any_of(run.inputs, is_known) || std::ranges::any_of(run.others, is_known))
      continue;
    others += fmt::format("{}'{}'", others.empty() ? "" : ", ", other);
  }
  return others;
}

constexpr const char* kGiveThem =
    "may hold records that were not read, and is not read now; if so, stop this run, and give it "
    "as an input before";

// After one rotation the old file is `path`. After more than one, the files in between are not known to the
// state.
void warn_of_others(const std::string& name, const std::string& path, const RunPosition& run,
                    const DedupRequest& request, const std::vector<FileIdentity>& outputs) {
  std::error_code error;
  const std::string others = unknown_beside(
      name, path, std::filesystem::last_write_time(path, error), run, request, outputs);
  if (!others.empty())
    warn("dedup",
         fmt::format("'{}' seems to have been rotated more than once while nothing followed it: {} "
                     "{} '{}'",
                     name, others, kGiveThem, name));
}

// A log of which little was read may have been replaced by one that begins alike, and then compressed.
void warn_of_others_like(const InputPosition& known, const RunPosition& run,
                         const DedupRequest& request, const std::vector<FileIdentity>& outputs) {
  if (known.end.checked == FileEnd::kMostChecked) return;
  std::error_code error;
  const auto saved = std::filesystem::last_write_time(request.state, error);
  if (error) return;
  const std::string others = unknown_beside(known.name, {}, saved, run, request, outputs);
  if (!others.empty())
    warn("dedup",
         fmt::format("'{}' begins with the {} that were read of it, but it is another "
                     "file, or was copied: {} {} '{}'",
                     known.name, counted(known.end.offset, "byte"), others, kGiveThem, known.name));
}

// A file of which nothing was read has no bytes by which a copy of it could be known.
void warn_of_copies(const std::string& name, const RunPosition& run, const DedupRequest& request,
                    const std::vector<FileIdentity>& outputs) {
  std::error_code error;
  const auto saved = std::filesystem::last_write_time(request.state, error);
  if (error) return;
  const std::string others = unknown_beside(name, {}, saved, run, request, outputs);
  if (!others.empty())
    warn("dedup", fmt::format("nothing was read of '{}' before, and it may have been copied and "
                              "truncated while nothing followed it: {} {} '{}'",
                              name, others, kGiveThem, name));
}

// A file of the run, and the input that it is.
struct Known {
  InputPosition old;
  std::optional<FileIdentity> input = {};
  std::string copy = {};     // that has more of it
  bool by_contents = false;  // the input has another inode
};

// The place of the input, or their number if there is none.
std::size_t place_among(const Known& known, const std::vector<FileSource>& inputs) {
  const auto found = std::ranges::find_if(inputs, [&](const FileSource& input) {
    return known.input && input.identity() == *known.input;
  });
  return static_cast<std::size_t>(found - inputs.begin());
}

// A run that goes on adds files at its end: those that have got a name. In the order of the command, a file that
// has lost its name comes before the one that has it now.
void sort_as_given(std::vector<Known>& all, std::uint64_t& current, const DedupRequest& request,
                   const std::vector<FileSource>& inputs) {
  std::vector<std::pair<std::size_t, std::size_t>> order(all.size());
  for (std::size_t k = all.size(); k-- > 0;) {
    std::size_t place = place_among(all[k], inputs);
    if (place == inputs.size())
      place = static_cast<std::size_t>(std::ranges::find(request.files, all[k].old.name) -
                                       request.files.begin());
    // Under a name that is not given, it is read before the next one.
    if (place == request.files.size() && k + 1 < all.size()) place = order[k + 1].first;
    order[k] = {place, k};
  }
  // What is left of another file is read before the input that is there.
  std::ranges::stable_sort(order, {}, [&](const auto& each) {
    return std::pair(each.first, all[each.second].input.has_value());
  });
  std::vector<Known> sorted;
  std::size_t now = all.size();
  for (const auto& [place, k] : order) {
    if (k == current) now = sorted.size();
    sorted.push_back(std::move(all[k]));
  }
  all = std::move(sorted);
  current = now;
}

using FileTime = std::filesystem::file_time_type;

// A log that was copied and truncated may begin with what was read of it before. Then a copy that was written to
// since has more, and the log does not hold that. Empty if there is none; of several, the longest.
std::string copy_with_more(const std::string& name, const FileSource& log, const FileEnd& read,
                           FileTime since, const Hasher& hasher, const auto& is_known) {
  namespace fs = std::filesystem;
  // With that many bytes, the log is known to be the file that was read.
  if (read.checked == 0 || read.checked == FileEnd::kMostChecked) return {};
  const fs::path folder = fs::path(name).parent_path();
  std::error_code error;
  std::string best;
  std::uint64_t size_of_best = read.offset;
  for (fs::directory_iterator entry(folder.empty() ? "." : folder, error), end;
       !error && entry != end; entry.increment(error)) {
    const std::string path = (folder / entry->path().filename()).string();
    if (path == name || !path.starts_with(name)) continue;
    const std::optional<Found> found = found_at(path);
    std::error_code ignored;
    if (!found || !found->identity.regular || found->size <= size_of_best ||
        found->identity == log.identity() || fs::last_write_time(path, ignored) < since)
      continue;
    const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK), true);
    if (!file || is_known(found->identity, file.number()) || !read.matches(file.number(), hasher) ||
        FileEnd::at(file.number(), found->size, hasher).matches(log.descriptor(), hasher))
      continue;
    best = path;
    size_of_best = found->size;
  }
  return best;
}

// What the state knows of the inputs. It may be older than what it was copied from, so of files that are known
// by their contents alone, a warning names others that may hold more.
std::vector<Known> know_inputs(const RunPosition& run, const DedupRequest& request,
                               const std::vector<FileSource>& inputs,
                               const std::vector<FileIdentity>& outputs, const Hasher& hasher) {
  std::vector<GivenInput> given;
  for (std::size_t i = 0; i < inputs.size(); ++i) given.push_back({request.files[i], inputs[i], 0});
  RenamedFiles renamed(outputs);
  const auto found = find_followed(given, run, hasher, renamed);
  std::error_code error;
  const FileTime saved = std::filesystem::last_write_time(request.state, error);
  const auto is_known = [&](const FileIdentity& file, int descriptor) {
    const auto is_it = [&](const InputPosition& each) {
      return each.inode == file.inode && each.end.matches(descriptor, hasher);
    };
    return std::ranges::count(outputs, file) > 0 || std::ranges::any_of(run.inputs, is_it) ||
           std::ranges::any_of(run.others, is_it) ||
           std::ranges::any_of(inputs,
                               [&](const FileSource& input) { return input.identity() == file; });
  };
  std::vector<Known> all;
  for (const InputPosition& old : run.inputs) {
    Known& known = all.emplace_back(Known{old});
    const auto place = static_cast<std::size_t>(std::ranges::find(found, &old) - found.begin());
    if (place == inputs.size()) continue;
    known.input = inputs[place].identity();
    if (!error)
      known.copy =
          copy_with_more(inputs[place].name(), inputs[place], old.end, saved, hasher, is_known);
    if (!known.copy.empty())
      known.input.reset();
    else
      known.by_contents = std::exchange(known.old.inode, known.input->inode) != known.input->inode;
  }
  return all;
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
  std::vector<Known> all = know_inputs(run, request, inputs, outputs, hasher);
  sort_as_given(all, run.current, request, inputs);
  std::ranges::transform(all, run.inputs.begin(), &Known::old);
  // Two logs may begin alike: an input is no copy of another one.
  std::vector<FileIdentity> others = outputs;
  for (const FileSource& input : inputs) others.push_back(input.identity());
  std::vector<InputPosition> left;
  std::uint64_t current = run.current;
  std::size_t next = 0;
  for (std::size_t k = 0; k < all.size(); ++k) {
    InputPosition& old = all[k].old;
    const std::size_t known_place = place_among(all[k], inputs);
    if (!old.regular || known_place < inputs.size()) {
      if (known_place < inputs.size()) next = known_place + 1;
      if (old.regular && old.end.checked == 0) warn_of_copies(old.name, run, request, outputs);
      if (all[k].by_contents) warn_of_others_like(old, run, request, outputs);
      left.push_back(old);
      continue;
    }
    // Under a name that is not given, it was already rotated when the state was saved.
    const auto named = std::ranges::find(request.files, old.name);
    const bool given = named != request.files.end();
    const auto place = given ? named : request.files.begin() + static_cast<std::ptrdiff_t>(next);
    const std::string path = all[k].copy.empty() ? found_again(old, hasher, others) : all[k].copy;
    const std::string name = path.empty() ? old.name : std::exchange(old.name, path);
    std::optional<FileSource> source;
    if (!path.empty()) source = open_followed(path, wake, request);
    // A copy has another inode, and the old one may be that of a file that is not known.
    if (source) run.inputs[k].inode = old.inode = source->identity().inode;
    if (source && (given || std::ranges::count(missing, name) > 0))
      warn_of_others(name, path, run, request, outputs);
    if (source && present_size(*source) > old.end.offset) {
      note("dedup", name == path
                        ? fmt::format("'{}', which was rotated, is read on from byte {}", path,
                                      format_count(old.end.offset))
                        : fmt::format("'{}' was rotated while nothing followed it: '{}' is read on "
                                      "first, from byte {}",
                                      name, path, format_count(old.end.offset)));
      const auto at = place - request.files.begin();
      inputs.insert(inputs.begin() + at, std::move(*source));
      request.files.insert(place, path);
      added.insert(added.begin() + at, true);
      next = static_cast<std::size_t>(at) + 1;
      left.push_back(old);
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
    if (current > left.size()) --current;
  }
  run.inputs = std::move(left);
  run.current = current;
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
  add(name, std::move(*source), {.after = identity});
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

// A log that was truncated may begin with what was read of it before: a copy that is newer than that has more.
std::string Follow::newer_copy(std::size_t input) {
  Followed& file = files_[input];
  const std::string& name = parts_.request.files[input];
  const auto folder = written_at(std::filesystem::path(name).parent_path().string());
  if (folder == file.searched) return {};
  const auto is_known = [&](const FileIdentity& found, int descriptor) {
    const auto is_left = [&](const Left& left) {
      return left.identity == found && left.end.matches(descriptor, parts_.hasher);
    };
    const auto is_other = [&](const InputPosition& other) {
      return other.inode == found.inode && other.end.matches(descriptor, parts_.hasher);
    };
    const std::vector<FileIdentity> outputs = parts_.resume.output_files();
    return std::ranges::count(outputs, found) > 0 ||
           std::ranges::count(parts_.outputs, found) > 0 || std::ranges::any_of(left_, is_left) ||
           std::ranges::any_of(parts_.resume.others(), is_other) ||
           std::ranges::any_of(
               parts_.inputs, [&](const FileSource& source) { return source.identity() == found; });
  };
  std::string path =
      copy_with_more(name, parts_.inputs[input], file.read, file.written, parts_.hasher, is_known);
  // A folder that changes again within the same tick must be searched again.
  if (path.empty())
    file.searched = std::filesystem::file_time_type::clock::now() - folder > std::chrono::seconds(2)
                        ? folder
                        : std::filesystem::file_time_type();
  return path;
}

// Files that a run without a state would have to be given: those that have lost their name, and those that have
// got it and were to be read next.
std::vector<std::string> Follow::unread() const {
  std::vector<std::string> files;
  const auto add = [&](const std::string& path, std::uint64_t bytes) {
    if (bytes > 0) files.push_back(fmt::format("'{}' ({})", path, format_size(bytes)));
  };
  for (std::size_t i = 0; i < files_.size(); ++i) {
    const std::string& name = parts_.request.files[i];
    const FileIdentity identity = parts_.inputs[i].identity();
    const std::uint64_t size = present_size(parts_.inputs[i]);
    const std::uint64_t left = size - std::min(size, files_[i].position.offset);
    const std::optional<Found> found = found_at(name);
    const bool at_name = found && found->identity == identity;
    if (at_name && !files_[i].after) continue;
    const std::string path = at_name ? name : renamed_beside(name, identity.inode);
    add(path.empty() ? name + ", which has no name any more" : path, left);
    const auto is_input = [&](const FileSource& input) {
      return input.identity() == found->identity;
    };
    if (found && found->identity.regular && std::ranges::none_of(parts_.inputs, is_input))
      add(name, found->size);
  }
  return files;
}

// A file that was copied and then truncated (logrotate's `copytruncate`): what the copy has more is read first.
void Follow::restart(std::size_t input, const std::function<bool()>& between,
                     const Interrupted* interrupted) {
  const std::string name = parts_.request.files[input];
  SourcePosition position = files_[input].position;
  const InputPosition old{.name = name,
                          .regular = true,
                          .end = files_[input].end,
                          .records = position.records + (interrupted != nullptr ? 1 : 0),
                          .inode = 0};
  // Two logs may begin alike: one that is followed is no copy of another one.
  std::vector<FileIdentity> others = parts_.resume.output_files();
  others.insert(others.end(), parts_.outputs.begin(), parts_.outputs.end());
  for (const FileSource& source : parts_.inputs) others.push_back(source.identity());
  files_[input].searched = {};
  std::string path = newer_copy(input);
  if (path.empty() && may_be_copied(old)) path = found_beside(name, old, parts_.hasher, others);
  std::optional<FileSource> copy;
  if (!path.empty()) copy = open(path);
  warn(
      "dedup",
      fmt::format("'{}' was truncated or rewritten {}: {}, and it is read from its beginning", name,
                  interrupted != nullptr
                      ? std::string("while it was read")
                      : fmt::format("after {} of it were read", counted(position.offset, "byte")),
                  copy ? fmt::format("'{}' is a copy of it, whose rest is read", path)
                       : std::string("what was not read yet is lost")));
  // Before the copy is read: a state that is saved meanwhile holds what was read of the file only once.
  parts_.resume.restart(input);
  files_[input].position = {};
  files_[input].end = {};
  files_[input].read = {};
  files_[input].seen = 0;
  changed_ = true;
  if (!copy) return;
  // A copy that has all that was read is read on; another one from where that read began. Records that were
  // judged are then duplicates.
  if (interrupted != nullptr && interrupted->last.checked > 0 &&
      interrupted->last.matches(copy->descriptor(), parts_.hasher))
    position = interrupted->judged;
  add(path, std::move(*copy), {.position = position, .end = old.end, .once = true});
  if (!parts_.request.state.empty()) parts_.resume.done_with(files_.size() - 1, position);
  advance(files_.size() - 1, between);
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
  file.end = FileEnd::at(source.descriptor(), file.position.offset, parts_.hasher);
  file.read = FileEnd::at(source.descriptor(), file.seen, parts_.hasher);
  file.modified = std::chrono::nanoseconds(-1);
  // If it was copied and truncated meanwhile, that end is of other bytes.
  const FileEnd& first = pausing.first();
  if (!last && !stopped_ &&
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
    const std::optional<Found> found = found_at(missing_[i]);
    std::optional<FileSource> source;
    if (found) check_followed_once(missing_[i], found->identity);
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
