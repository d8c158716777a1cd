#include "dedup_known.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <iterator>
#include <string_view>
#include <thread>
#include <tuple>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "sluice/stream/splitter.hpp"

namespace sluice::cli {
namespace {

namespace fs = std::filesystem;

// A folder may have millions of files, and this search only makes a message better.
constexpr std::size_t kMostFilesBeside = 1000;
// Fewer bytes may be the same in any two files.
constexpr std::uint64_t kLeastCopied = 8;
constexpr std::chrono::nanoseconds kSecond = std::chrono::seconds(1);
// Two writes this far apart have different times: the system's clock of files has ticks of up to 10 ms.
constexpr std::chrono::nanoseconds kTick = std::chrono::milliseconds(20);

Descriptor open_to_compare(const std::string& path) {
  return {::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK), true};
}

bool matches(const std::string& path, const InputPosition& known, const Hasher& hasher,
             bool renamed = false) {
  const Descriptor file = open_to_compare(path);
  struct stat status;
  return file && ::fstat(file.number(), &status) == 0 &&
         (!renamed || status.st_ino == known.inode) && known.end.matches(file.number(), hasher);
}

// "access.log" of access.log, access.log.1, access.log.2.gz and access.log-20240131.zst.
std::string log_name(const std::string& path) {
  std::string name = file_name(path);
  if (packing_of_name(name) != Packing::none) name.resize(name.rfind('.'));
  for (;;) {
    const std::size_t end = name.find_last_not_of("0123456789");
    if (end == std::string::npos || end == 0 || end + 1 == name.size()) return name;
    if (name[end] != '.' && name[end] != '-') return name;
    name.resize(end);
  }
}

std::uint64_t nanoseconds_of(const struct stat& status) {
  const std::uint64_t time = static_cast<std::uint64_t>(status.st_mtim.tv_sec) * kSecond.count() +
                             static_cast<std::uint64_t>(status.st_mtim.tv_nsec);
  return time == 0 ? 1 : time;
}

// Whether another write may still get the same time. Some file systems count whole seconds.
std::chrono::nanoseconds left_of_tick(std::uint64_t modified_ns) {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  const auto age = now - std::chrono::nanoseconds(static_cast<std::int64_t>(modified_ns));
  const std::chrono::nanoseconds tick = modified_ns % kSecond.count() == 0 ? 2 * kSecond : kTick;
  return age.count() < 0 || age >= tick ? std::chrono::nanoseconds(0) : tick - age;
}

}  // namespace

bool as_new_as(const std::string& state, int descriptor) {
  struct stat saved, file;
  if (::stat(state.c_str(), &saved) != 0 || ::fstat(descriptor, &file) != 0) return true;
  return std::tie(file.st_mtim.tv_sec, file.st_mtim.tv_nsec) >=
         std::tie(saved.st_mtim.tv_sec, saved.st_mtim.tv_nsec);
}

std::string file_name(const std::string& path) {
  return fs::path(path).filename().string();
}

std::uint64_t size_of(const FileSource& input) {
  return input.offset() + input.bytes_left();
}

bool leads_to(const std::string& path, const FileIdentity& file) {
  struct stat found;
  return !path.empty() && ::stat(path.c_str(), &found) == 0 && found.st_dev == file.device &&
         found.st_ino == file.inode;
}

bool holds(const GivenInput& input, const InputPosition& known, const Hasher& hasher) {
  // The same bytes may have been read packed (--binary).
  return input.source.regular() && input.base <= known.end.offset &&
         (input.source.packing() == known.packing || known.end.checked == 0) &&
         known.end.matches(input.source.descriptor(), hasher);
}

bool holds_moved(const GivenInput& input, const InputPosition& known, const Hasher& hasher) {
  if (known.end.checked == 0 || !holds(input, known, hasher)) return false;
  return known.name == "-" || leads_to(known.name, input.source.identity()) ||
         !matches(known.name, known, hasher);
}

FileStamp stamp_of(int descriptor) {
  FileStamp stamp;
  for (const bool again : {false, true}) {
    struct stat status;
    if (::fstat(descriptor, &status) != 0) return {};
    stamp = {static_cast<std::uint64_t>(status.st_size), nanoseconds_of(status)};
    const auto left = left_of_tick(stamp.modified_ns);
    if (left.count() == 0) return stamp;
    if (!again && left <= kTick) std::this_thread::sleep_for(left);
  }
  stamp.modified_ns = 0;
  return stamp;
}

std::uint64_t modified_since(const FileStamp& before, int descriptor, std::uint64_t end) {
  struct stat status;
  if (::fstat(descriptor, &status) != 0 || static_cast<std::uint64_t>(status.st_size) != end)
    return 0;
  const FileStamp now = stamp_of(descriptor);
  const bool as_read =
      now.size == end && (now.modified_ns == before.modified_ns || end > before.size);
  return as_read ? now.modified_ns : 0;
}

bool is_rewritten(const GivenInput& input, const InputPosition& known, const FileStamp& now) {
  return known.end.offset == now.size && known.end.offset > input.base &&
         (known.modified_ns == 0 || known.modified_ns != now.modified_ns);
}

std::string RenamedFiles::find(const std::string& beside, const InputPosition& known,
                               const Hasher& hasher) {
  if (beside == "-" || known.end.checked == 0) return {};
  const fs::path folder = fs::path(beside).parent_path();
  const auto [entry, is_new] = folders_.try_emplace(folder.string());
  auto& files = entry->second;
  std::error_code error;
  for (fs::directory_iterator each(folder.empty() ? "." : folder, error), end;
       is_new && !error && each != end; each.increment(error)) {
    const std::string path = (folder / each->path().filename()).string();
    struct stat status;
    if (::stat(path.c_str(), &status) != 0 || !S_ISREG(status.st_mode)) continue;
    if (std::ranges::count(except_, FileIdentity{status.st_dev, status.st_ino, true}) == 0)
      files.emplace(status.st_ino, path);
  }
  const auto [first, last] = files.equal_range(known.inode);
  const auto it = std::find_if(
      first, last, [&](const auto& file) { return matches(file.second, known, hasher, true); });
  return it == last ? std::string() : it->second;
}

bool is_replaced(const GivenInput& input, const InputPosition& known, const Hasher& hasher,
                 RenamedFiles& renamed) {
  return input.source.regular() && input.source.identity().inode != known.inode &&
         !renamed.find(input.name, known, hasher).empty();
}

namespace {

std::uint64_t inode_of(const GivenInput& input) {
  return input.source.identity().inode;
}

// Which known file each input is. A known one is one of the inputs at most.
class Matching {
 public:
  Matching(const std::vector<GivenInput>& inputs, const Hasher& hasher, RenamedFiles& renamed,
           std::vector<const InputPosition*>& found)
      : inputs_(inputs), hasher_(hasher), renamed_(renamed), found_(found) {}

  void add(const InputPosition& known) {
    by_name_[known.name].push_back(&known);
    by_file_name_[file_name(known.name)].push_back(&known);
    if (known.regular) by_inode_[known.inode].push_back(&known);
    all_.push_back(&known);
  }

  // An inode may have been used again for another file: so the contents are compared in any case.
  void by_inode(bool unread) {
    look(by_inode_, inode_of, [&](const GivenInput& input, const InputPosition& known) {
      return known.name == input.name && is_file(input, known, unread);
    });
    look(by_inode_, inode_of, [&](const GivenInput& input, const InputPosition& known) {
      return is_file(input, known, unread) &&
             !has_more(input.name, known,
                       [&](const InputPosition& other) { return is_file(input, other, false); });
    });
  }

  void by_name() {
    look(by_name_, name_of, [&](const GivenInput& input, const InputPosition& known) {
      // Standard input has no name: it may be another file each time.
      return (known.name != "-" || known.inode == inode_of(input)) && is_file(input, known, true) &&
             !replaced(input, known);
    });
  }

  void by_file_name() {
    look(by_file_name_, file_name_of, [&](const GivenInput& input, const InputPosition& known) {
      return known.name != "-" && is_moved(input, known);
    });
  }

  // Pipes, and files of which nothing was read.
  void by_name_alone() {
    const auto has_no_bytes = [](const GivenInput&, const InputPosition& known) {
      return !known.regular || known.end.checked == 0;
    };
    look(by_name_, name_of, has_no_bytes);
    look(by_file_name_, file_name_of, has_no_bytes);
  }

  void by_contents() {
    std::unordered_map<int, std::vector<const InputPosition*>> left;
    for (const InputPosition* known : all_)
      if (!taken_.contains(known)) left[0].push_back(known);
    look(
        left, [](const GivenInput&) { return 0; },
        [&](const GivenInput& input, const InputPosition& known) {
          return is_moved(input, known);
        });
  }

 private:
  static const std::string& name_of(const GivenInput& input) { return input.name; }
  static std::string file_name_of(const GivenInput& input) { return file_name(input.name); }

  bool is_file(const GivenInput& input, const InputPosition& known, bool unread) const {
    return known.regular && (unread || known.end.checked > 0) && holds(input, known, hasher_);
  }

  bool is_moved(const GivenInput& input, const InputPosition& known) {
    return known.regular && holds_moved(input, known, hasher_) && !replaced(input, known);
  }

  bool replaced(const GivenInput& input, const InputPosition& known) {
    if (input.source.identity().inode == known.inode) return false;
    const std::string path = renamed_.find(input.name, known, hasher_);
    return !path.empty() && !has_more(path, known, [&](const InputPosition& other) {
      return matches(path, other, hasher_);
    });
  }

  // Whether the file is another one that is known by this name, and more was read of it: on a copy of a disk, it
  // may have the inode that this one had.
  bool has_more(const std::string& name, const InputPosition& known, auto is_it) const {
    const auto named = by_name_.find(name);
    return named != by_name_.end() &&
           std::ranges::any_of(named->second, [&](const InputPosition* other) {
             return other->end.offset > known.end.offset && is_it(*other);
           });
  }

  void look(const auto& map, auto key_of, auto is_it) {
    for (std::size_t i = 0; i < inputs_.size(); ++i) {
      if (found_[i] != nullptr) continue;
      const auto entry = map.find(key_of(inputs_[i]));
      if (entry == map.end()) continue;
      const auto it = std::ranges::find_if(entry->second, [&](const InputPosition* known) {
        return !taken_.contains(known) && is_it(inputs_[i], *known);
      });
      if (it == entry->second.end()) continue;
      found_[i] = *it;
      taken_.insert(*it);
    }
  }

  const std::vector<GivenInput>& inputs_;
  const Hasher& hasher_;
  RenamedFiles& renamed_;
  std::vector<const InputPosition*>& found_;
  std::unordered_map<std::string, std::vector<const InputPosition*>> by_name_, by_file_name_;
  std::unordered_map<std::uint64_t, std::vector<const InputPosition*>> by_inode_;
  std::vector<const InputPosition*> all_;
  std::unordered_set<const InputPosition*> taken_;
};

}  // namespace

Unfinished find_unfinished(const std::vector<GivenInput>& inputs, const RunPosition& run,
                           const Hasher& hasher, RenamedFiles& renamed) {
  std::vector<const InputPosition*> found(inputs.size(), nullptr);
  Matching matching(inputs, hasher, renamed, found);
  for (const InputPosition& known : run.inputs) matching.add(known);
  matching.by_inode(true);
  matching.by_name_alone();
  matching.by_name();
  matching.by_file_name();
  matching.by_contents();
  // Both are in the same order, and each of the run must be there.
  const auto fits = [&] {
    std::size_t next = 0;
    for (std::size_t i = 0; i < inputs.size(); ++i)
      if (found[i] == nullptr ? !inputs[i].source.regular()  // more than files
                              : found[i] != &run.inputs[next++])
        return false;
    return next == run.inputs.size();
  };
  if (fits()) return {found};
  // The message names the input that is another file.
  std::size_t next = 0;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const bool is_it =
        next < run.inputs.size() && file_name(run.inputs[next].name) == file_name(inputs[i].name);
    found[i] = is_it ? &run.inputs[next++] : nullptr;
  }
  if (!fits()) return {};
  return {found, true};
}

std::vector<const InputPosition*> find_followed(const std::vector<GivenInput>& inputs,
                                                const RunPosition& run, const Hasher& hasher,
                                                RenamedFiles& renamed) {
  std::vector<const InputPosition*> found(inputs.size(), nullptr);
  Matching matching(inputs, hasher, renamed, found);
  for (const InputPosition& known : run.inputs)
    if (known.regular) matching.add(known);
  matching.by_inode(true);
  const std::vector<const InputPosition*> by_inode = found;
  matching.by_name();
  matching.by_file_name();
  // Nothing was read of it, and another file has its name.
  for (std::size_t i = 0; i < inputs.size(); ++i)
    if (found[i] != by_inode[i] && found[i]->end.checked == 0) found[i] = nullptr;
  return found;
}

void find_known(const std::vector<GivenInput>& inputs,
                std::initializer_list<const std::vector<InputPosition>*> lists,
                const Hasher& hasher, RenamedFiles& renamed,
                std::vector<const InputPosition*>& found) {
  Matching matching(inputs, hasher, renamed, found);
  for (const auto* list : lists)
    for (const InputPosition& known : *list)
      if (known.regular) matching.add(known);
  matching.by_inode(false);
  matching.by_name();
  matching.by_file_name();
}

bool was_moved_away(const InputPosition& known, const Hasher& hasher) {
  return known.packing == Packing::none && known.name != "-" && may_be_copied(known) &&
         !matches(known.name, known, hasher);
}

const InputPosition* read_before_packing(const FileSource& input,
                                         std::vector<const InputPosition*> plain,
                                         const Hasher& hasher) {
  const std::string log = log_name(input.name());
  std::erase_if(plain, [&](const InputPosition* each) { return log_name(each->name) != log; });
  if (plain.empty()) return nullptr;
  std::ranges::sort(plain, {}, [](const InputPosition* each) { return each->end.offset; });
  const std::uint64_t last = plain.back()->end.offset;
  UnpackedInput contents = input.contents_again();
  const InputPosition* found = nullptr;
  const InputPosition* short_one = nullptr;
  auto next = plain.begin();
  std::string held;  // the last bytes
  std::uint64_t end = 0;
  std::vector<char> buffer(std::size_t{1} << 18);
  try {
    while (end <= last) {
      const std::size_t got = contents.read(buffer);
      if (got == 0) {
        if (short_one != nullptr && short_one->end.offset == end) found = short_one;
        break;
      }
      held.append(buffer.data(), got);
      end += got;
      for (; next != plain.end() && (*next)->end.offset <= end; ++next) {
        const FileEnd& known = (*next)->end;
        const std::size_t begin = held.size() - (end - known.offset) - known.checked;
        if (hasher.digest(std::string_view(held).substr(begin, known.checked)) == known.digest)
          (known.checked == FileEnd::kMostChecked ? found : short_one) = *next;
      }
      if (held.size() > FileEnd::kMostChecked) held.erase(0, held.size() - FileEnd::kMostChecked);
    }
  } catch (const IoError&) {
    // Whoever reads the file will say so.
  }
  return found;
}

bool may_be_copied(const InputPosition& known) {
  return known.regular && known.records > 0 && known.end.checked >= kLeastCopied;
}

std::string found_beside(const std::string& beside, const InputPosition& known,
                         const Hasher& hasher, const std::vector<FileIdentity>& outputs,
                         bool renamed) {
  if (known.end.checked == 0 || beside == "-") return {};
  const fs::path folder = fs::path(beside).parent_path();
  std::error_code error;
  const std::string wanted = file_name(beside);
  std::size_t looked = 0;
  std::string best;
  std::pair<std::size_t, std::uint64_t> rank_of_best;
  for (fs::directory_iterator entry(folder.empty() ? "." : folder, error), end;
       !error && entry != end && looked < kMostFilesBeside; entry.increment(error), ++looked) {
    const std::string name = entry->path().filename().string();
    const std::string path = (folder / name).string();
    std::error_code ignored;
    if (!entry->is_regular_file(ignored)) continue;
    const std::uint64_t size = entry->file_size(ignored);
    if (ignored || size < known.end.offset) continue;
    const auto alike =
        static_cast<std::size_t>(std::ranges::mismatch(wanted, name).in1 - wanted.begin());
    const std::pair rank(alike, size);
    if (!best.empty() && rank <= rank_of_best) continue;
    const auto is_output = [&](const FileIdentity& output) { return leads_to(path, output); };
    if (std::ranges::any_of(outputs, is_output)) continue;
    if (!matches(path, known, hasher, renamed)) continue;
    best = path;
    rank_of_best = rank;
  }
  return best;
}

ReadOn read_on(const GivenInput& input, const InputPosition& known, const Format& format) {
  const std::uint64_t end = known.packing == Packing::none ? known.end.offset : known.unpacked;
  const std::uint64_t open = std::min(known.open_bytes, end - input.base);
  if (open == 0 || size_of(input.source) <= known.end.offset)
    return {{end - input.base, known.records, known.open_bytes}};
  const std::uint64_t start = end - open;
  // With the longest terminator, which is two bytes.
  const std::string record = input.source.peek(start, open + 2);
  const auto splitter = make_splitter(format);
  splitter->reset(start == input.base);
  std::vector<Record> records;
  splitter->split(record, false, 1, records);
  // In lines, a carriage return is a part of the line.
  const bool ended = !records.empty() && records[0].body <= open && records[0].whole > open;
  if (ended) return {{start + records[0].whole - input.base, known.records}};
  const bool table = format.kind == Format::Kind::csv || format.kind == Format::Kind::tsv;
  return {.from = {start - input.base, known.records - std::min<std::uint64_t>(known.records, 1)},
          .again = true,
          .within_quotes = table && record.size() >= open && record[open - 1] == '\n'};
}

}  // namespace sluice::cli
