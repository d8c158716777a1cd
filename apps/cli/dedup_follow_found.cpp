// What Follow finds beside its logs, and what is left of them at the end.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "command.hpp"
#include "connectors/files/state_file.hpp"
#include "dedup_follow.hpp"
#include "dedup_known.hpp"
#include "dedup_rotated.hpp"
#include "places.hpp"
#include "sluice/base/error.hpp"
#include "sluice/base/quantity.hpp"
#include "sluice/stream/splitter.hpp"

namespace sluice::cli {

std::vector<std::string> Follow::followed() const {
  std::vector<std::string> names = missing_;
  for (std::size_t i = 0; i < files_.size(); ++i)
    if (!files_[i].once && std::ranges::count(names, parts_.request.files[i]) == 0)
      names.push_back(parts_.request.files[i]);
  return names;
}

// Files that have come beside a log since that was looked at. `old`: see files_between().
FilesBetween Follow::come_beside(const std::string& name, const FileSource* old,
                                 const FileSource& now) {
  const std::vector<FileIdentity> outputs = parts_.resume.output_files();
  const std::vector<std::string> names = followed();
  const auto& request = parts_.request;
  std::vector<std::filesystem::path> state;
  if (!request.state.empty()) state = files_of_state(request.state);
  const auto is_state = [&](const std::string& path) {
    return std::ranges::any_of(
        state, [&](const std::filesystem::path& each) { return same_place(path, each); });
  };
  const auto is_ours = [&](const std::string& path, const FileIdentity& file) {
    return is_state(path) || std::ranges::count(request.files, path) > 0 ||
           std::ranges::count(missing_, path) > 0 || std::ranges::count(outputs, file) > 0 ||
           std::ranges::count(parts_.outputs, file) > 0 || !belongs_to(path, name, names);
  };
  const auto open = [&](const std::string& path) {
    return FileSource::open(path, parts_.wake, "input", request.archives, request.unpack);
  };
  return files_between(
      name, old, now, beside_[name], is_ours,
      [&](const FileSource& file) { return is_copy_of_read(file); }, open);
}

void Follow::warn_of(const std::string& path, const std::string& name, std::string_view meanwhile) {
  if (std::ranges::count(unsure_, path) == 0) unsure_.push_back(path);
  warn("dedup", fmt::format("'{}' has come beside '{}' while that was {}: it may hold records that "
                            "are not read; if so, give it to a run without --follow",
                            path, name, meanwhile));
}

// Files that had the name after `old` (null: after none) and before `now` become inputs. Returns the last one.
std::optional<FileIdentity> Follow::add_between(const std::string& name, const FileSource* old,
                                                const FileSource& now) {
  FilesBetween found = come_beside(name, old, now);
  std::optional<FileIdentity> after;
  if (old != nullptr) after = old->identity();
  std::optional<FileIdentity> last;
  for (auto& [path, source] : found.read) {
    tell(fmt::format("'{}' was rotated more than once between two looks: '{}' came in between{}",
                     name, path,
                     stopped_ ? std::string() : fmt::format(", and is read before '{}'", name)));
    last = source.identity();
    // Under the name that it had, as the others: a later run finds it from there.
    add(name, std::move(source), {.replaced = true, .between = true, .after = after});
    files_.back().quiet_since = Clock::now();
    after = last;
  }
  for (const std::string& path : found.unsure) warn_of(path, name, "rotated");
  return last;
}

bool Follow::is_known(const FileIdentity& found, int descriptor) const {
  const auto is_left = [&](const Left& left) {
    return left.identity == found && left.end.matches(descriptor, parts_.hasher);
  };
  const auto is_other = [&](const InputPosition& other) {
    return other.inode == found.inode && other.end.matches(descriptor, parts_.hasher);
  };
  const std::vector<FileIdentity> outputs = parts_.resume.output_files();
  return std::ranges::count(outputs, found) > 0 || std::ranges::count(parts_.outputs, found) > 0 ||
         std::ranges::any_of(left_, is_left) ||
         std::ranges::any_of(parts_.resume.others(), is_other) ||
         std::ranges::any_of(parts_.inputs,
                             [&](const FileSource& source) { return source.identity() == found; });
}

// Whether the file was read or is being read, or holds nothing else, plain or packed.
bool Follow::is_copy_of_read(const FileSource& file) const {
  if (is_known(file.identity(), file.descriptor())) return true;
  std::vector<FileEnd> ends;
  for (const Left& left : left_) ends.push_back(left.end);
  for (const InputPosition& other : parts_.resume.others()) ends.push_back(other.end);
  for (std::size_t i = 0; i < files_.size(); ++i) {
    const int input = parts_.inputs[i].descriptor();
    ends.push_back(files_[i].read);
    ends.push_back(FileEnd::at(input, present_size(parts_.inputs[i]), parts_.hasher));
  }
  if (file.packing() != Packing::none) {
    std::vector<InputPosition> plain;
    for (const FileEnd& end : ends)
      if (end.checked > 0) plain.push_back({.name = file.name(), .regular = true, .end = end});
    std::vector<const InputPosition*> pointers;
    for (const InputPosition& each : plain) pointers.push_back(&each);
    return read_before_packing(file, std::move(pointers), parts_.hasher) != nullptr;
  }
  const InputPosition whole{
      .name = file.name(),
      .regular = true,
      .end = FileEnd::at(file.descriptor(), present_size(file), parts_.hasher),
      .records = 1};
  if (!may_be_copied(whole)) return false;
  return std::ranges::count(ends, whole.end) > 0 ||
         std::ranges::any_of(parts_.inputs, [&](const FileSource& input) {
           return whole.end.matches(input.descriptor(), parts_.hasher);
         });
}

// Logs may begin alike: a new file of one that is followed is no copy of another one, also before it is opened.
bool Follow::has_own_name(const FileIdentity& file) const {
  return std::ranges::any_of(parts_.request.files, [&](const std::string& name) {
    const std::optional<Found> found = found_at(name);
    return found && found->identity == file;
  });
}

// A log that was truncated may begin with what was read of it before: a copy that is newer than that has more.
std::string Follow::newer_copy(std::size_t input) {
  Followed& file = files_[input];
  const std::string& name = parts_.request.files[input];
  const auto folder = written_at(std::filesystem::path(name).parent_path().string());
  if (folder == file.searched) return {};
  std::string path = copy_with_more(name, followed(), parts_.inputs[input], file.read, file.written,
                                    parts_.hasher, [&](const FileIdentity& found, int descriptor) {
                                      return is_known(found, descriptor) || has_own_name(found);
                                    });
  // A folder that changes again within the same tick must be searched again.
  if (path.empty())
    file.searched = std::filesystem::file_time_type::clock::now() - folder > std::chrono::seconds(2)
                        ? folder
                        : std::filesystem::file_time_type();
  return path;
}

// A copy of a file that was truncated, with what was read of it and was judged up to that position. Empty if there
// is none.
std::string Follow::copy_of(std::size_t input, std::uint64_t records) {
  const std::string name = parts_.request.files[input];
  files_[input].searched = {};
  std::string path = newer_copy(input);
  const InputPosition old{
      .name = name, .regular = true, .end = files_[input].end, .records = records, .inode = 0};
  if (!path.empty() || !may_be_copied(old)) return path;
  // Two logs may begin alike: one that is followed is no copy of another one, nor is one that was rotated.
  std::vector<FileIdentity> others = parts_.resume.output_files();
  others.insert(others.end(), parts_.outputs.begin(), parts_.outputs.end());
  for (const FileSource& source : parts_.inputs) others.push_back(source.identity());
  for (const std::string& other : parts_.request.files)
    if (const std::optional<Found> found = found_at(other)) others.push_back(found->identity);
  const std::vector<FileIdentity> rotated = of_other_logs(name, followed());
  others.insert(others.end(), rotated.begin(), rotated.end());
  return found_beside(name, old, parts_.hasher, others);
}

// A file that was copied and then truncated (logrotate's `copytruncate`): what the copy has more is to be read first.
// Returns whether a copy became the last input.
bool Follow::begin_again(std::size_t input, const Interrupted* interrupted) {
  const std::string name = parts_.request.files[input];
  SourcePosition position = files_[input].position;
  const FileEnd end = files_[input].end;
  const std::string path = copy_of(input, position.records + (interrupted != nullptr ? 1 : 0));
  std::optional<FileSource> copy;
  if (!path.empty()) copy = open(path);
  const bool copied = copy.has_value();
  warn("dedup",
       fmt::format("'{}' was truncated or rewritten {}: {}{}", name,
                   interrupted != nullptr
                       ? std::string("while it was read")
                       : fmt::format("after {} of it were read", counted(position.offset, "byte")),
                   !copied    ? std::string("what was not read yet is lost")
                   : stopped_ ? fmt::format("'{}' is a copy of it", path)
                              : fmt::format("'{}' is a copy of it, whose rest is read", path),
                   stopped_ ? "" : ", and it is read from its beginning"));
  // Before the copy is read: a state that is saved meanwhile holds what was read of the file only once.
  parts_.resume.restart(input);
  if (copied) {
    // A copy that has all that was read is read on; another one from where that read began. Records that were
    // judged are then duplicates.
    if (interrupted != nullptr && interrupted->last.checked > 0 &&
        interrupted->last.matches(copy->descriptor(), parts_.hasher))
      position = interrupted->judged;
    add(path, std::move(*copy), {.position = position, .end = end, .once = true});
    if (!parts_.request.state.empty()) parts_.resume.done_with(files_.size() - 1, position);
  }
  // It may have been copied and truncated more than once: a copy that does not begin as what was read cannot be
  // told from another file.
  FilesBetween others = come_beside(name, nullptr, parts_.inputs[input]);
  for (FilesBetween::File& each : others.read) others.unsure.push_back(std::move(each.path));
  for (const std::string& other : others.unsure) warn_of(other, name, "truncated or rewritten");
  files_[input].position = {};
  files_[input].end = {};
  files_[input].read = {};
  files_[input].seen = 0;
  files_[input].to_end = false;
  changed_ = true;
  return copied;
}

// The state, or else what is told of files that were not read, should know those that were rotated just now.
void Follow::look_last() {
  stopped_ = true;
  const auto look = [](const auto& at) {
    try {
      at();
    } catch (const Error&) {
      // The next run meets it, too.
    }
  };
  look([&] { open_missing(); });
  for (std::size_t i = files_.size(); i-- > 0;)
    look([&] {
      if (files_[i].once || files_[i].replaced) return;
      // Where there is a state, the next run notices this.
      if (parts_.request.state.empty() && is_rewritten(i)) begin_again(i, nullptr);
      look_at_name(i);
    });
}

// Whether what is left of it is no whole record: one without a terminator is not judged in any case.
bool Follow::is_within_record(std::size_t input, std::uint64_t left) const {
  constexpr std::uint64_t kMost = std::uint64_t{1} << 20;
  if (left > kMost) return false;
  const std::uint64_t from = files_[input].position.offset;
  const std::string bytes = parts_.inputs[input].peek(from, static_cast<std::size_t>(left));
  const auto splitter = make_splitter(parts_.request.options.format);
  splitter->reset(from == 0);
  std::vector<Record> records;
  splitter->split(bytes, false, 1, records);
  return bytes.size() == left && records.empty();
}

// Files that a run without a state would have to be given: those that have lost their name, and those that were not
// read to their ends since they came.
std::vector<std::string> Follow::unread() const {
  std::vector<std::string> files;
  const auto add = [&](const std::string& path, std::uint64_t bytes) {
    if (bytes > 0) files.push_back(fmt::format("'{}' ({})", path, format_size(bytes)));
  };
  const auto add_input = [&](std::size_t i) {
    const std::string& name = parts_.request.files[i];
    const FileIdentity identity = parts_.inputs[i].identity();
    const std::optional<Found> found = found_at(name);
    const bool at_name = found && found->identity == identity;
    const std::uint64_t size = present_size(parts_.inputs[i]);
    const std::uint64_t left = size - std::min(size, files_[i].position.offset);
    if (at_name && !files_[i].once && (files_[i].to_end || is_within_record(i, left))) return;
    const std::string path = at_name ? name : renamed_beside(name, identity.inode);
    add(path.empty() ? name + ", which has no name any more" : path, left);
  };
  // Copies first: they are older.
  for (const bool once : {true, false})
    for (std::size_t i = 0; i < files_.size(); ++i)
      if (files_[i].once == once) add_input(i);
  // What has got a name since that was looked at.
  for (const std::string& name : followed()) {
    const std::optional<Found> found = found_at(name);
    const auto is_it = [&](const FileSource& input) { return input.identity() == found->identity; };
    if (found && found->identity.regular && std::ranges::none_of(parts_.inputs, is_it) &&
        std::ranges::count(parts_.outputs, found->identity) == 0)
      add(name, found->size);
  }
  return files;
}

}  // namespace sluice::cli
