#include "dedup_rotated.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "command.hpp"
#include "dedup_follow.hpp"
#include "dedup_known.hpp"
#include "sluice/base/error.hpp"
#include "sluice/base/quantity.hpp"

namespace sluice::cli {

std::optional<Found> found_at(const std::string& name) {
  struct stat status;
  if (::stat(name.c_str(), &status) != 0) return std::nullopt;
  return Found{{status.st_dev, status.st_ino, S_ISREG(status.st_mode)},
               static_cast<std::uint64_t>(status.st_size)};
}

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

std::filesystem::file_time_type written_at(const std::string& path) {
  std::error_code error;
  return std::filesystem::last_write_time(path.empty() ? "." : path, error);
}

namespace {

std::string plain_path(const std::string& path) {
  std::error_code error;
  return std::filesystem::absolute(path, error).lexically_normal().string();
}

// The path begins with the name, and its last word or number ends there: node10.log is none of node1.
bool begins_with(const std::string& path, const std::string& name) {
  if (!path.starts_with(name) || name.empty() || path.size() == name.size()) return path == name;
  const auto kind = [](char c) {
    const bool digit = c >= '0' && c <= '9';
    const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
    return digit ? 1 : letter ? 2 : 0;
  };
  const int last = kind(name.back());
  return last == 0 || last != kind(path[name.size()]);
}

}  // namespace

bool belongs_to(const std::string& path, const std::string& name,
                const std::vector<std::string>& followed) {
  const std::string plain = plain_path(path), own = plain_path(name);
  if (!plain.starts_with(own)) return false;
  return std::ranges::none_of(followed, [&](const std::string& other) {
    const std::string longer = plain_path(other);
    return longer.size() > own.size() && begins_with(plain, longer);
  });
}

std::vector<FileIdentity> of_other_logs(const std::string& name,
                                        const std::vector<std::string>& followed) {
  namespace fs = std::filesystem;
  std::vector<FileIdentity> files;
  if (followed.size() < 2) return files;
  const fs::path folder = fs::path(name).parent_path();
  std::error_code error;
  for (fs::directory_iterator entry(folder.empty() ? "." : folder, error), end;
       !error && entry != end; entry.increment(error)) {
    const std::string path = (folder / entry->path().filename()).string();
    if (belongs_to(path, name, followed)) continue;
    const auto has = [&](const std::string& other) {
      return begins_with(plain_path(path), plain_path(other));
    };
    if (std::ranges::none_of(followed, has)) continue;
    if (const std::optional<Found> found = found_at(path)) files.push_back(found->identity);
  }
  return files;
}

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

std::string copy_with_more(const std::string& name, const std::vector<std::string>& followed,
                           const FileSource& log, const FileEnd& read, FileTime since,
                           const Hasher& hasher, const IsKnown& is_known) {
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
    if (path.size() <= name.size() || !path.starts_with(name) || !is_mark(path[name.size()]) ||
        !belongs_to(path, name, followed))
      continue;
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

namespace {

// The file that the state has read, under its new name or as a copy; empty if there is none.
std::string found_again(const InputPosition& old, const std::vector<std::string>& followed,
                        const Hasher& hasher, const std::vector<FileIdentity>& outputs) {
  if (old.end.checked == 0) {
    // Nothing is known of its contents, and another file may have its inode by now: only a name like its own counts.
    std::string path = renamed_beside(old.name, old.inode);
    const bool like_it =
        belongs_to(path, old.name, followed) && packing_of_name(path) == Packing::none;
    return like_it ? path : std::string();
  }
  std::string path = found_beside(old.name, old, hasher, outputs, true);
  if (!path.empty() || !may_be_copied(old)) return path;
  std::vector<FileIdentity> others = of_other_logs(old.name, followed);
  others.insert(others.end(), outputs.begin(), outputs.end());
  return found_beside(old.name, old, hasher, others);
}

// What is known of a run that goes on.
struct Before {
  const RunPosition& run;
  const DedupRequest& request;
  std::vector<FileIdentity> outputs;
  std::vector<std::string> followed;  // names, also of files that are missing
};

// Files beside `name`, named like it, that were written to since then and that the state does not know; quoted,
// and empty if there are none. `path`: one that is known.
std::string unknown_beside(const std::string& name, const std::string& path,
                           std::filesystem::file_time_type since, const Before& before) {
  const auto& [run, request, outputs, followed] = before;
  namespace fs = std::filesystem;
  const fs::path folder = fs::path(name).parent_path();
  std::error_code error;
  std::string others;
  for (fs::directory_iterator entry(folder.empty() ? "." : folder, error), end;
       !error && entry != end; entry.increment(error)) {
    const std::string other = (folder / entry->path().filename()).string();
    const std::optional<Found> found = found_at(other);
    std::error_code ignored;
    if (!belongs_to(other, name, followed) || other == name || other == path ||
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
void warn_of_others(const std::string& name, const std::string& path, const Before& before) {
  std::error_code error;
  const std::string others =
      unknown_beside(name, path, std::filesystem::last_write_time(path, error), before);
  if (!others.empty())
    warn("dedup",
         fmt::format("'{}' seems to have been rotated more than once while nothing followed it: {} "
                     "{} '{}'",
                     name, others, kGiveThem, name));
}

// A log of which little was read may have been replaced by one that begins alike, and then compressed.
void warn_of_others_like(const InputPosition& known, const Before& before) {
  if (known.end.checked == FileEnd::kMostChecked) return;
  std::error_code error;
  const auto saved = std::filesystem::last_write_time(before.request.state, error);
  if (error) return;
  const std::string others = unknown_beside(known.name, {}, saved, before);
  if (!others.empty())
    warn("dedup",
         fmt::format("'{}' begins with the {} that were read of it, but it is another "
                     "file, or was copied: {} {} '{}'",
                     known.name, counted(known.end.offset, "byte"), others, kGiveThem, known.name));
}

// A file of which nothing was read has no bytes by which a copy of it could be known.
void warn_of_copies(const std::string& name, const Before& before) {
  std::error_code error;
  const auto saved = std::filesystem::last_write_time(before.request.state, error);
  if (error) return;
  const std::string others = unknown_beside(name, {}, saved, before);
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

// What the state knows of the inputs. It may be older than what it was copied from, so of files that are known
// by their contents alone, a warning names others that may hold more.
std::vector<Known> know_inputs(const Before& before, const std::vector<FileSource>& inputs,
                               const Hasher& hasher) {
  const auto& run = before.run;
  const auto& request = before.request;
  const auto& outputs = before.outputs;
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
      known.copy = copy_with_more(inputs[place].name(), before.followed, inputs[place], old.end,
                                  saved, hasher, is_known);
    if (!known.copy.empty())
      known.input.reset();
    else
      known.by_contents = std::exchange(known.old.inode, known.input->inode) != known.input->inode;
  }
  return all;
}

}  // namespace

std::vector<bool> find_rotated(DedupRequest& request, const std::vector<std::string>& missing,
                               Positions& known, std::vector<FileSource>& inputs,
                               const Hasher& hasher, int wake) {
  std::vector<bool> added(inputs.size(), false);
  if (!request.follow || request.abandon || !known.unfinished()) return added;
  RunPosition& run = *known.run;
  Before before{run, request, {}, request.files};
  before.followed.insert(before.followed.end(), missing.begin(), missing.end());
  for (const OutputPosition& output : known.outputs)
    if (const std::optional<Found> found = found_at(output.path))
      before.outputs.push_back(found->identity);
  std::vector<Known> all = know_inputs(before, inputs, hasher);
  sort_as_given(all, run.current, request, inputs);
  std::ranges::transform(all, run.inputs.begin(), &Known::old);
  // Two logs may begin alike: an input is no copy of another one.
  std::vector<FileIdentity> others = before.outputs;
  for (const FileSource& input : inputs) others.push_back(input.identity());
  std::vector<InputPosition> left;
  std::uint64_t current = run.current;
  std::size_t next = 0;
  for (std::size_t k = 0; k < all.size(); ++k) {
    InputPosition& old = all[k].old;
    const std::size_t known_place = place_among(all[k], inputs);
    if (!old.regular || known_place < inputs.size()) {
      if (known_place < inputs.size()) next = known_place + 1;
      if (old.regular && old.end.checked == 0) warn_of_copies(old.name, before);
      if (all[k].by_contents) warn_of_others_like(old, before);
      left.push_back(old);
      continue;
    }
    // Under a name that is not given, it was already rotated when the state was saved.
    const auto named = std::ranges::find(request.files, old.name);
    const bool given = named != request.files.end();
    const auto place = given ? named : request.files.begin() + static_cast<std::ptrdiff_t>(next);
    const std::string path =
        all[k].copy.empty() ? found_again(old, before.followed, hasher, others) : all[k].copy;
    const std::string name = path.empty() ? old.name : std::exchange(old.name, path);
    std::optional<FileSource> source;
    if (!path.empty()) source = open_followed(path, wake, request);
    // A copy has another inode, and the old one may be that of a file that is not known.
    if (source) run.inputs[k].inode = old.inode = source->identity().inode;
    if (source && (given || std::ranges::count(missing, name) > 0))
      warn_of_others(name, path, before);
    if (source && found_at(path).value_or(Found{}).size > old.end.offset) {
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

}  // namespace sluice::cli
