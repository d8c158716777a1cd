#include "dedup_known.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <string_view>
#include <tuple>
#include <unordered_map>

#include "sluice/stream/splitter.hpp"

namespace sluice::cli {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kBlockBytes = std::size_t{1} << 16;
// A folder may have millions of files, and this search only makes a message better.
constexpr std::size_t kMostFilesBeside = 1000;

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

// Up to `count` bytes from the offset.
std::string bytes_at(int descriptor, std::uint64_t offset, std::size_t count) {
  std::string bytes(count, '\0');
  const ssize_t got = ::pread(descriptor, bytes.data(), count, static_cast<off_t>(offset));
  bytes.resize(got < 0 ? 0 : static_cast<std::size_t>(got));
  return bytes;
}

bool is_table(const Format& format) {
  return format.kind == Format::Kind::csv || format.kind == Format::Kind::tsv;
}

// Where the line begins that ends at `end` without a terminator.
std::uint64_t line_start(int descriptor, std::uint64_t base, std::uint64_t end, char terminator) {
  for (std::uint64_t before = end; before > base;) {
    const std::size_t count = std::min<std::uint64_t>(kBlockBytes, before - base);
    const std::string block = bytes_at(descriptor, before - count, count);
    const std::size_t found = block.rfind(terminator);
    before -= count;
    if (found != std::string::npos) return before + found + 1;
  }
  return base;
}

// The same for a table. Quotes can be understood only from the front.
std::uint64_t row_start(int descriptor, std::uint64_t base, std::uint64_t end,
                        const Format& format) {
  const auto splitter = make_splitter(format);
  splitter->reset(true);
  std::uint64_t start = base;
  std::string held;
  std::vector<Record> records;
  for (std::uint64_t at = base; at < end;) {
    const std::string block =
        bytes_at(descriptor, at, std::min<std::uint64_t>(kBlockBytes, end - at));
    if (block.empty()) break;
    at += block.size();
    held += block;
    records.clear();
    const std::size_t used = splitter->split(held, false, held.size() + 1, records);
    held.erase(0, used);
    start += used;
  }
  return start;
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

bool holds(const GivenInput& input, const InputPosition& known, const Hasher& hasher) {
  return input.source.regular() && input.base <= known.end.offset &&
         known.end.matches(input.source.descriptor(), hasher);
}

bool holds_moved(const GivenInput& input, const InputPosition& known, const Hasher& hasher) {
  if (known.end.checked == 0 || !holds(input, known, hasher)) return false;
  struct stat there;
  if (known.name == "-" || ::stat(known.name.c_str(), &there) != 0) return true;
  const FileIdentity identity = input.source.identity();
  return (there.st_dev == identity.device && there.st_ino == identity.inode) ||
         !matches(known.name, known, hasher);
}

std::vector<const InputPosition*> find_known(const std::vector<GivenInput>& inputs,
                                             const RunPosition& run, const Hasher& hasher) {
  std::unordered_multimap<std::string, const InputPosition*> by_name, by_file_name;
  std::unordered_multimap<std::uint64_t, const InputPosition*> by_inode;
  for (const auto* list : {&run.inputs, &run.others})
    for (const InputPosition& known : *list)
      if (known.regular) {
        by_name.emplace(known.name, &known);
        by_file_name.emplace(file_name(known.name), &known);
        by_inode.emplace(known.inode, &known);
      }
  std::vector<const InputPosition*> found(inputs.size(), nullptr);
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
  return found;
}

std::string found_beside(const std::string& beside, const InputPosition& known,
                         const Hasher& hasher, bool renamed) {
  if (known.end.checked == 0 || beside == "-") return {};
  const fs::path folder = fs::path(beside).parent_path();
  std::error_code error;
  std::size_t looked = 0;
  for (fs::directory_iterator entry(folder.empty() ? "." : folder, error), end;
       !error && entry != end && looked < kMostFilesBeside; entry.increment(error), ++looked) {
    const fs::path path = folder / entry->path().filename();
    std::error_code ignored;
    if (!entry->is_regular_file(ignored) || entry->file_size(ignored) < known.end.offset) continue;
    if (matches(path.string(), known, hasher, renamed)) return path.string();
  }
  return {};
}

ReadOn read_on(const GivenInput& input, const InputPosition& known, const Format& format) {
  const int file = input.source.descriptor();
  const std::uint64_t end = known.end.offset;
  const ReadOn same{{end - input.base, known.records}};
  const char terminator = format.kind == Format::Kind::nul ? '\0' : '\n';
  if (end == input.base || size_of(input.source) <= end ||
      bytes_at(file, end - 1, 1)[0] == terminator)
    return same;
  const std::uint64_t start = is_table(format) ? row_start(file, input.base, end, format)
                                               : line_start(file, input.base, end, terminator);
  const std::string next = bytes_at(file, end, 2);
  // In lines, a carriage return is a part of the line.
  const std::size_t skipped = next[0] == terminator                ? 1
                              : is_table(format) && next == "\r\n" ? 2
                                                                   : 0;
  bool within_quotes = false;
  if (is_table(format)) {
    const std::string row = bytes_at(file, start, static_cast<std::size_t>(end - start));
    within_quotes = std::ranges::count(row, '"') % 2 == 1;
  }
  if (skipped > 0 && !within_quotes) return {{end + skipped - input.base, known.records}};
  return {{start - input.base, known.records - std::min<std::uint64_t>(known.records, 1)}, true};
}

}  // namespace sluice::cli
