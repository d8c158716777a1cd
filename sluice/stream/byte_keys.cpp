// Keys of records of fixed width: ranges of bytes, counted from 1, as in cut -b.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "sluice/stream/format_keys.hpp"
#include "sluice/stream/key_form.hpp"

namespace sluice {
namespace {

struct ByteRange {
  std::size_t begin = 0;  // from 0
  std::size_t end = 0;    // 0: open, what is left of the record
  std::string text = {};  // as it was written
};

// Longer records are not read.
constexpr std::size_t kMostByte = std::size_t{1} << 40;

bool take_place(std::string_view& text, std::size_t& place) {
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, place);
  if (error != std::errc() || place == 0 || place > kMostByte) return false;
  text.remove_prefix(static_cast<std::size_t>(stop - text.data()));
  return true;
}

ByteRange parse_range(std::string_view key, std::string_view text) {
  ByteRange range{.text = std::string(text)};
  std::size_t first = 0;
  std::string_view rest = text;
  bool sound = take_place(rest, first);
  range.begin = first - 1;
  range.end = first;
  if (sound && rest.starts_with('-')) {
    rest.remove_prefix(1);
    range.end = 0;
    if (!rest.empty()) sound = take_place(rest, range.end) && range.end >= first;
  }
  if (!sound || !rest.empty())
    throw BadKey(part_of_key(key, text) +
                 " is no range of bytes; they are counted from 1, as in '1-8' or '1-8,21-30', and "
                 "'21-' is all from byte 21 on");
  return range;
}

class ByteKeys final : public KeyExtractor {
 public:
  explicit ByteKeys(std::vector<ByteRange> ranges) : ranges_(std::move(ranges)) {
    for (const ByteRange& range : ranges_)
      least_ = std::max(least_, range.end == 0 ? range.begin : range.end);
  }

  std::size_t extract(std::span<const Record> records, std::span<std::string_view> keys,
                      std::span<KeyStatus> status) override {
    buffer_.clear();
    std::size_t keyed = 0;
    for (std::size_t i = 0; i < records.size(); ++i) {
      keys[i] = {};
      const std::string_view text = records[i].text();
      status[i] = text.size() >= least_ ? KeyStatus::keyed : KeyStatus::missing;
      if (status[i] != KeyStatus::keyed) continue;
      ++keyed;
      if (ranges_.size() == 1) {
        keys[i] = part(text, ranges_[0]);
        continue;
      }
      std::size_t most = 0;
      for (const ByteRange& range : ranges_) most += most_part_bytes(part(text, range).size());
      char* to = buffer_.room(most);
      for (const ByteRange& range : ranges_) to = put_part(part(text, range), to);
      buffer_.keep(i, to);
    }
    buffer_.place(keys);
    return keyed;
  }

  std::size_t parts() const override { return ranges_.size(); }

  std::string name() const override {
    std::string names;
    for (const ByteRange& range : ranges_) names += (names.empty() ? "" : ",") + range.text;
    return "bytes " + names;
  }

  std::string why_not(const Record& record) override {
    if (record.body >= least_) return "";
    return fmt::format("there are only {} byte{}, and {} are needed, in {}", record.body,
                       record.body == 1 ? "" : "s", least_, quoted(record.text()));
  }

 private:
  static std::string_view part(std::string_view text, const ByteRange& range) {
    return text.substr(range.begin,
                       range.end == 0 ? std::string_view::npos : range.end - range.begin);
  }

  std::vector<ByteRange> ranges_;
  std::size_t least_ = 0;  // bytes that a record must have
  KeyBuffer buffer_;
};

}  // namespace

std::unique_ptr<KeyExtractor> make_byte_keys(std::span<const std::string> ranges) {
  std::vector<ByteRange> parsed;
  for (const std::string& each : ranges)
    for (const std::string_view part : split_at_commas(each))
      parsed.push_back(parse_range(each, part));
  return std::make_unique<ByteKeys>(std::move(parsed));
}

}  // namespace sluice
