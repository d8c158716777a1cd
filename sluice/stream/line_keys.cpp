// Keys of lines and nul records: the body, or some of its fields.
#include <fmt/format.h>

#include <algorithm>

#include "sluice/base/error.hpp"
#include "sluice/stream/format_keys.hpp"
#include "sluice/stream/key_form.hpp"

namespace sluice {
namespace {

constexpr auto kNone = std::string_view::npos;

bool is_blank(char byte) {
  return byte == ' ' || byte == '\t';
}

class WholeRecordKeys final : public KeyExtractor {
 public:
  std::size_t extract(std::span<const Record> records, std::span<std::string_view> keys,
                      std::span<KeyStatus> status) override {
    for (std::size_t i = 0; i < records.size(); ++i) keys[i] = records[i].text();
    std::fill(status.begin(), status.end(), KeyStatus::keyed);
    return records.size();
  }
  std::size_t parts() const override { return 1; }
  std::string name() const override { return "the record"; }
  std::string why_not(const Record&) override { return ""; }
};

class FieldKeys final : public KeyExtractor {
 public:
  FieldKeys(char delimiter, std::vector<std::size_t> fields)
      : delimiter_(delimiter),
        wanted_(std::move(fields)),
        found_(*std::max_element(wanted_.begin(), wanted_.end()) + 1) {}

  std::size_t extract(std::span<const Record> records, std::span<std::string_view> keys,
                      std::span<KeyStatus> status) override {
    buffer_.clear();
    std::size_t keyed = 0;
    for (std::size_t i = 0; i < records.size(); ++i) {
      keys[i] = {};
      const std::string_view text = records[i].text();
      const bool all = find(text) == found_.size();
      status[i] = all ? KeyStatus::keyed : KeyStatus::missing;
      if (!all) continue;
      ++keyed;
      if (wanted_.size() == 1) {
        keys[i] = found_.back();
      } else {
        for (const std::size_t field : wanted_) append_part(found_[field], buffer_.bytes());
        buffer_.keep(i);
      }
    }
    buffer_.place(keys);
    return keyed;
  }

  std::size_t parts() const override { return wanted_.size(); }

  std::string name() const override {
    std::string numbers;
    for (const std::size_t field : wanted_)
      numbers += fmt::format("{}{}", numbers.empty() ? "" : ",", field + 1);
    return fmt::format("field{} {}", wanted_.size() == 1 ? "" : "s", numbers);
  }

  std::string why_not(const Record& record) override {
    const std::size_t found = find(record.text());
    for (const std::size_t field : wanted_)
      if (field >= found)
        return fmt::format("there is no field {} in {}", field + 1, quoted(record.text()));
    return "";
  }

 private:
  // Fills `found_` and returns how many fields there are, up to its size.
  std::size_t find(std::string_view text) {
    return delimiter_ == 0 ? find_between_blanks(text) : find_delimited(text);
  }

  std::size_t find_delimited(std::string_view text) {
    std::size_t at = 0;
    for (std::size_t i = 0; i < found_.size(); ++i) {
      if (at == kNone) return i;
      const std::size_t end = text.find(delimiter_, at);
      found_[i] = text.substr(at, end == kNone ? kNone : end - at);
      at = end == kNone ? kNone : end + 1;
    }
    return found_.size();
  }

  std::size_t find_between_blanks(std::string_view text) {
    auto at = text.begin();
    for (std::size_t i = 0; i < found_.size(); ++i) {
      const auto begin = std::find_if_not(at, text.end(), is_blank);
      if (begin == text.end()) return i;
      at = std::find_if(begin, text.end(), is_blank);
      found_[i] = {begin, at};
    }
    return found_.size();
  }

  char delimiter_;
  std::vector<std::size_t> wanted_;      // in the order of the key
  std::vector<std::string_view> found_;  // the first fields, as many as the highest wanted
  KeyBuffer buffer_;
};

}  // namespace

std::unique_ptr<KeyExtractor> make_line_keys(const Format& format,
                                             std::span<const std::string> keys) {
  if (keys.empty()) return std::make_unique<WholeRecordKeys>();
  std::vector<std::size_t> fields;
  for (const std::string& key : keys) {
    for (const std::string_view part : split_at_commas(key)) {
      const auto field = parse_field_number(part);
      if (!field)
        throw BadKey(part_of_key(key, part) +
                     " is no field number; fields of lines are counted from 1, as in '2' "
                     "or '1,3'");
      fields.push_back(*field);
    }
  }
  return std::make_unique<FieldKeys>(format.delimiter, std::move(fields));
}

}  // namespace sluice
