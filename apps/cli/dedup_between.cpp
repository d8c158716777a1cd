#include "dedup_between.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <optional>
#include <string_view>
#include <tuple>
#include <utility>

#include "command.hpp"
#include "dedup_known.hpp"
#include "sluice/base/error.hpp"

namespace sluice::cli {
namespace {

namespace fs = std::filesystem;

struct Times {
  FileBirth birth = {};
  std::int64_t modified_ns = 0;
  std::int64_t changed_ns = 0;  // also by a new name
};

template <typename Stamp>
std::int64_t nanoseconds_of(const Stamp& stamp) {
  return static_cast<std::int64_t>(stamp.tv_sec) * 1'000'000'000 + stamp.tv_nsec;
}

// By a path, or by a descriptor and no path.
std::optional<Times> times_of(int descriptor, const char* path) {
#ifdef STATX_BTIME
  struct statx status;
  if (::statx(descriptor, path, *path == '\0' ? AT_EMPTY_PATH : 0, STATX_BASIC_STATS | STATX_BTIME,
              &status) == 0)
    return Times{
        .birth = {status.stx_ino,
                  (status.stx_mask & STATX_BTIME) != 0 ? nanoseconds_of(status.stx_btime) : 0},
        .modified_ns = nanoseconds_of(status.stx_mtime),
        .changed_ns = nanoseconds_of(status.stx_ctime)};
#endif
  struct stat plain;
  if ((*path == '\0' ? ::fstat(descriptor, &plain) : ::stat(path, &plain)) != 0)
    return std::nullopt;
#ifdef __APPLE__
  return Times{.birth = {plain.st_ino, nanoseconds_of(plain.st_birthtimespec)},
               .modified_ns = nanoseconds_of(plain.st_mtimespec),
               .changed_ns = nanoseconds_of(plain.st_ctimespec)};
#else
  return Times{.birth = {plain.st_ino, 0},
               .modified_ns = nanoseconds_of(plain.st_mtim),
               .changed_ns = nanoseconds_of(plain.st_ctim)};
#endif
}

void each_beside(const std::string& log, const std::function<void(const std::string&)>& take) {
  const fs::path folder = fs::path(log).parent_path();
  const std::string begin = fs::path(log).filename().string();
  std::error_code error;
  for (fs::directory_iterator entry(folder.empty() ? "." : folder, error), end;
       !error && entry != end; entry.increment(error)) {
    const std::string name = entry->path().filename().string();
    if (name.starts_with(begin) && name != begin) take((folder / name).string());
  }
}

// What kinds of characters follow the log's name, without their numbers: ".0" for log.1 and log.20240131, and
// ".a" for log.old.
std::string shape_of(std::string_view suffix) {
  std::string shape;
  for (const char c : suffix) {
    const bool digit = c >= '0' && c <= '9';
    const bool mark = is_mark(c) || c == ':' || c == '+';
    const char kind = digit ? '0' : mark ? c : 'a';
    if (shape.empty() || mark || shape.back() != kind) shape += kind;
  }
  return shape;
}

// Whether the file seems to have been written after that one was made.
bool is_younger(const Times& file, const Times& than) {
  if (file.birth.born_ns != 0 && than.birth.born_ns != 0)
    return file.birth.born_ns > than.birth.born_ns;
  return file.modified_ns > than.modified_ns;
}

}  // namespace

std::optional<FilesBeside> FilesBeside::renewed(const std::string& log) const {
  constexpr std::chrono::seconds kPause(1);
  // Another change of the folder may get the same time: file systems count in ticks, some in seconds.
  constexpr std::chrono::seconds kTick(2);
  const fs::path folder = fs::path(log).parent_path();
  std::error_code error;
  FilesBeside next;
  next.folder_ = fs::last_write_time(folder.empty() ? "." : folder, error);
  next.looked_ = FileTime::clock::now();
  next.known_ = true;
  if (known_ && next.folder_ == folder_ && looked_ - folder_ > kTick) return std::nullopt;
  if (known_ && next.looked_ >= looked_ && next.looked_ - looked_ < kPause) return std::nullopt;
  each_beside(log, [&](const std::string& path) {
    if (const auto times = times_of(AT_FDCWD, path.c_str()))
      next.by_path_.emplace(path, times->birth);
  });
  return next;
}

bool FilesBeside::has_file(const std::string& path, const FileBirth& file) const {
  const auto it = by_path_.find(path);
  return it != by_path_.end() && it->second == file;
}

bool FilesBeside::has_file(const FileBirth& file) const {
  return std::ranges::any_of(by_path_, [&](const auto& each) { return each.second == file; });
}

namespace {

struct Candidate {
  std::string path;
  FileIdentity file;
  Times times;
  bool like_rotated;
};

// Files that have come to these names since.
std::vector<Candidate> come_since(
    const std::string& log, const FileSource* old, const FileSource& now, const FilesBeside& before,
    const std::function<bool(const std::string&, const FileIdentity&)>& is_ours) {
  const std::string renamed =
      old != nullptr ? renamed_beside(log, old->identity().inode) : std::string();
  const std::string shape =
      renamed.starts_with(log) ? shape_of(std::string_view(renamed).substr(log.size())) : "";
  const Times oldest = old != nullptr ? times_of(old->descriptor(), "").value_or(Times{}) : Times{};
  std::vector<Candidate> all;
  each_beside(log, [&](const std::string& path) {
    const auto at = found_at(path);
    const auto times = times_of(AT_FDCWD, path.c_str());
    if (!at || !times || !at->identity.regular || at->identity == now.identity() ||
        is_ours(path, at->identity) || before.has_file(path, times->birth))
      return;
    const std::string_view suffix = std::string_view(path).substr(log.size());
    const std::string own = shape_of(suffix);
    // Without a mark, another number may be meant: node10 is not a rotated node1.
    const bool marked = is_mark(suffix.front());
    if (!marked && own.front() == '0' && !shape.empty() && is_mark(shape.front())) return;
    const bool packed = packing_of_name(path) != Packing::none;
    const bool worded = own.find('a') != std::string::npos;
    // With a word, the name may be that of another log that was rotated, too; unless the old file is gone: it may
    // have been replaced under that name.
    const bool is_again = worded && !packed && before.has_path(path);
    if (is_again && (old == nullptr || !renamed.empty())) return;
    const bool like_rotated = !packed && !is_again && (own == shape || (marked && !worded));
    const bool is_new = before.known() && !before.has_file(times->birth);
    // It was there before under another name: the log may have got it from there. An old one of the log has
    // only got its next number.
    if (!is_new && !(like_rotated && old != nullptr && is_younger(*times, oldest))) return;
    // Packing keeps the time of the file that was packed.
    if (packed && old != nullptr && times->modified_ns < oldest.birth.born_ns) return;
    all.push_back({path, at->identity, *times, like_rotated});
  });
  std::ranges::sort(all, {}, [](const Candidate& each) {
    return std::tuple(each.times.modified_ns, each.times.birth.born_ns, each.times.changed_ns,
                      each.path);
  });
  return all;
}

// None: names have changed meanwhile.
std::optional<FilesBetween> look_between(
    const std::string& log, const FileSource* old, const FileSource& now, const FilesBeside& before,
    const std::function<bool(const std::string&, const FileIdentity&)>& is_ours,
    const std::function<bool(const FileSource&)>& is_known,
    const std::function<FileSource(const std::string&)>& open) {
  const std::vector<Candidate> candidates = come_since(log, old, now, before, is_ours);
  // If it has lost the name meanwhile, those that were made after it are found when that is noticed.
  const auto at_name = found_at(log);
  const bool is_last = at_name && at_name->identity == now.identity();
  const Times newest = times_of(now.descriptor(), "").value_or(Times{});
  FilesBetween all;
  for (const Candidate& each : candidates) {
    if (!is_last && is_younger(each.times, newest)) continue;
    const auto at = found_at(each.path);
    if (!at || at->identity != each.file) return std::nullopt;
    try {
      FileSource source = open(each.path);
      if (source.identity() != each.file) return std::nullopt;
      if (is_known(source)) continue;
      if (source.packing() == Packing::none && each.like_rotated) {
        all.read.push_back({each.path, std::move(source)});
        continue;
      }
    } catch (const Error&) {
      // Of a file that cannot be read, or is an archive, nobody knows what it holds.
    }
    if (at->size > 0) all.unsure.push_back(each.path);
  }
  // A file that has got another name while the folder was listed may be missing in the list, or be in it twice.
  const auto same = [](const Candidate& one, const Candidate& other) {
    return one.path == other.path && one.file == other.file;
  };
  if (!std::ranges::is_permutation(candidates, come_since(log, old, now, before, is_ours), same))
    return std::nullopt;
  return all;
}

}  // namespace

FilesBetween files_between(
    const std::string& log, const FileSource* old, const FileSource& now, const FilesBeside& before,
    const std::function<bool(const std::string&, const FileIdentity&)>& is_ours,
    const std::function<bool(const FileSource&)>& is_known,
    const std::function<FileSource(const std::string&)>& open) {
  // A loop that rotates without a pause for longer than this is none that writes a log.
  constexpr int kMostLooks = 1000;
  for (int looks = 0; looks < kMostLooks; ++looks)
    if (auto found = look_between(log, old, now, before, is_ours, is_known, open))
      return std::move(*found);
  throw RunFailed(fmt::format("'{}' is rotated all the time: its files cannot be told apart", log));
}

}  // namespace sluice::cli
