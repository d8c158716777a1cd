#include "sluice/stream/prior_file.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <vector>

#include "sluice/base/error.hpp"
#include "sluice/base/quantity.hpp"
#include "sluice/stream/format_keys.hpp"
#include "sluice/stream/json_key.hpp"
#include "sluice/stream/json_tree.hpp"

namespace sluice {
namespace {

constexpr std::size_t kReadBytes = std::size_t{1} << 16;
constexpr std::size_t kMostLineBytes = std::size_t{1} << 20;

std::size_t parts_of(const Format& format, std::span<const std::string> keys,
                     const KeyStyle& style) {
  if (style.by != KeyStyle::By::fields) return make_key_extractor(format, keys, style)->parts();
  std::size_t parts = 0;
  for (const std::string& key : keys)
    parts += format.kind == Format::Kind::json ? parse_json_pointers(key).size()
                                               : split_at_commas(key).size();
  return parts;
}

// Digests of keys as the pipeline takes them: by its own extractors, of a record made for it.
class PriorReader {
 public:
  PriorReader(const std::string& name, const Format& format, std::span<const std::string> keys,
              const KeyStyle& style, const Hasher& hasher)
      : name_(name),
        json_(format.kind == Format::Kind::json),
        parts_(parts_of(format, keys, style)),
        hasher_(hasher),
        table_(Prior::Kind::arrival) {
    Format cut = format;
    std::vector<std::string> fields;
    if (json_) {
      for (std::size_t i = 0; i < parts_; ++i) fields.push_back(fmt::format("/{}", i));
    } else if (parts_ > 0) {
      cut = {.kind = Format::Kind::lines, .header = false, .delimiter = '\t'};
      for (std::size_t i = 1; i <= parts_; ++i) fields.push_back(fmt::format("{}", i));
    }
    cut.header = false;
    extractor_ =
        make_key_extractor(cut, fields, {.ignore_case = style.ignore_case, .trim = style.trim});
  }

  void take(std::string_view line) {
    ++line_;
    if (line.ends_with('\r')) line.remove_suffix(1);
    const std::size_t tab = line.rfind('\t');
    if (tab == std::string_view::npos)
      refuse("there is no tab: write a key, a tab and its probability");
    const double chance = parse_chance(line.substr(tab + 1));
    const Digest digest = digest_of(line.substr(0, tab));
    if (table_.of(digest).known()) refuse("this key has a prior already: give each key once");
    if (table_.size() == kMostPriors)
      refuse(fmt::format("there are more than {} keys: give those that come most often",
                         format_count(kMostPriors)));
    table_.add(digest, chance);
  }

  [[noreturn]] void refuse(const std::string& why) const {
    throw BadParameters(fmt::format("{}:{}: {}", name_, line_, why));
  }
  [[noreturn]] void refuse_long() {
    ++line_;
    refuse(fmt::format("the line is longer than {}", format_size(kMostLineBytes)));
  }
  PriorTable finish() { return std::move(table_); }

 private:
  double parse_chance(std::string_view text) const {
    double chance = 0;
    const char* const end = text.data() + text.size();
    const auto [stop, error] = std::from_chars(text.data(), end, chance);
    if (error != std::errc() || stop != end || !(chance > 0 && chance < 1))
      refuse(fmt::format("'{}' is no probability: give a number above 0 and below 1, such as 1e-4",
                         text.substr(0, 64)));
    return chance;
  }

  // Each part is to be JSON by itself: "1,2" is one part, and none.
  std::string array_of(std::string_view key) {
    std::string array = "[";
    for (std::size_t at = 0; at <= key.size();) {
      const std::size_t end = std::min(key.find('\t', at), key.size());
      const std::string_view part = key.substr(at, end - at);
      if (!tree_.parse(part)) refuse_json();
      if (at > 0) array += ',';
      array += part;
      at = end + 1;
    }
    return array + ']';
  }

  [[noreturn]] void refuse_json() const { refuse("the key is not JSON: write strings in quotes"); }

  Digest digest_of(std::string_view key) {
    const auto tabs = static_cast<std::size_t>(std::ranges::count(key, '\t'));
    if (parts_ > 0 && tabs + 1 != parts_)
      refuse(fmt::format(
          "the key has {} fields, and `key` takes {}: write them with tabs between, and give a "
          "column whose name has a comma by its number",
          tabs + 1, parts_));
    text_.assign(key);
    if (json_ && parts_ > 0) text_ = array_of(key);
    const std::size_t length = text_.size();
    text_.append(kPaddingBytes, '\0');
    const Record record{text_.data(), length, length};
    std::string_view found;
    KeyStatus status{};
    extractor_->extract(std::span(&record, 1), std::span(&found, 1), std::span(&status, 1));
    if (status != KeyStatus::keyed && json_) refuse_json();
    if (status != KeyStatus::keyed) refuse("the key is malformed: check its quotes");
    Digest digest;
    hasher_.digest(std::span(&found, 1), std::span(&digest, 1));
    return digest;
  }

  std::string name_;
  bool json_;
  std::size_t parts_;  // 0: the whole record
  const Hasher& hasher_;
  PriorTable table_;
  std::unique_ptr<KeyExtractor> extractor_;
  JsonTree tree_;
  std::size_t line_ = 0;
  std::string text_;
};

}  // namespace

PriorTable read_priors(ByteSource& source, const Format& format, std::span<const std::string> keys,
                       const KeyStyle& style, const Hasher& hasher) {
  PriorReader reader(source.name(), format, keys, style, hasher);
  std::string unread;
  std::vector<char> buffer(kReadBytes);
  while (const std::size_t got = source.read(buffer)) {
    unread.append(buffer.data(), got);
    std::string_view rest = unread;
    for (std::size_t end; (end = rest.find('\n')) != std::string_view::npos;) {
      if (end > kMostLineBytes) reader.refuse_long();
      reader.take(rest.substr(0, end));
      rest.remove_prefix(end + 1);
    }
    if (rest.size() > kMostLineBytes) reader.refuse_long();
    unread.erase(0, unread.size() - rest.size());
  }
  if (!unread.empty()) reader.take(unread);
  return reader.finish();
}

}  // namespace sluice
