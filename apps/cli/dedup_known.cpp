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

std::vector<const InputPosition*> find_unfinished(const std::vector<GivenInput>& inputs,
                                                  const RunPosition& run, const Hasher& hasher) {
  // Both are in the same order, and each of the run must be there.
  const auto match = [&](auto is_it) {
    std::vector<const InputPosition*> found(inputs.size(), nullptr);
    std::size_t next = 0;
    for (std::size_t i = 0; i < inputs.size(); ++i)
      if (next < run.inputs.size() && is_it(inputs[i], run.inputs[next]))
        found[i] = &run.inputs[next++];
      else if (!inputs[i].source.regular())
        return std::vector<const InputPosition*>();  // more than files
    if (next < run.inputs.size()) found.clear();
    return found;
  };
  auto found = match([&](const GivenInput& input, const InputPosition& known) {
    if (!known.regular || known.end.checked == 0)
      return file_name(known.name) == file_name(input.name);
    return (known.name == input.name && holds(input, known, hasher)) ||
           holds_moved(input, known, hasher);
  });
  if (found.empty())
    found = match([](const GivenInput& input, const InputPosition& known) {
      return file_name(known.name) == file_name(input.name);
    });
  return found;
}

void find_known(const std::vector<GivenInput>& inputs,
                std::initializer_list<const std::vector<InputPosition>*> lists,
                const Hasher& hasher, std::vector<const InputPosition*>& found) {
  std::unordered_multimap<std::string, const InputPosition*> by_name, by_file_name;
  std::unordered_multimap<std::uint64_t, const InputPosition*> by_inode;
  for (const auto* list : lists)
    for (const InputPosition& known : *list)
      if (known.regular) {
        by_name.emplace(known.name, &known);
        by_file_name.emplace(file_name(known.name), &known);
        by_inode.emplace(known.inode, &known);
      }
  std::unordered_map<const InputPosition*, bool> taken;
  // Each known file is one of the inputs at most, and those with its name come first.
  const auto look = [&](const auto& map, auto key_of, auto is_it) {
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      if (found[i] != nullptr || !inputs[i].source.regular()) continue;
      const auto [first, last] = map.equal_range(key_of(inputs[i]));
      const auto it = std::find_if(first, last, [&](const auto& entry) {
        return !taken[entry.second] && is_it(inputs[i], *entry.second, hasher);
      });
      if (it == last) continue;
      found[i] = it->second;
      taken[it->second] = true;
    }
  };
  const auto inode_of = [](const GivenInput& input) -> std::uint64_t {
    return input.source.identity().inode;
  };
  // Standard input has no name: it may be another file each time.
  look(
      by_name, [](const GivenInput& input) { return input.name; },
      [&](const GivenInput& input, const InputPosition& known, const Hasher& by) {
        return (known.name != "-" || known.inode == inode_of(input)) && holds(input, known, by);
      });
  look(
      by_file_name, [](const GivenInput& input) { return file_name(input.name); },
      [&](const GivenInput& input, const InputPosition& known, const Hasher& by) {
        return known.name != "-" && holds_moved(input, known, by);
      });
  look(by_inode, inode_of, holds_moved);
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
