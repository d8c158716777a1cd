// Keys of csv and tsv records: chosen columns, or all of them.
#include <fmt/format.h>

#include <algorithm>

#include "sluice/base/error.hpp"
#include "sluice/base/near_miss.hpp"
#include "sluice/stream/csv.hpp"
#include "sluice/stream/format_keys.hpp"
#include "sluice/stream/key_form.hpp"

namespace sluice {
namespace {

// The whole record in its plainest spelling: quotes stay only around a field that holds the
// delimiter or begins with a quote. A record without quotes is spelled so already and is its own
// key, which is why this form and not lengths.
void append_plainest(const CsvField& field, char delimiter, std::string& out) {
  const bool needs_quotes =
      field.text.find(delimiter) != std::string_view::npos || field.text.starts_with(kQuote);
  if (!needs_quotes) {
    append_value(field, out);
    return;
  }
  // Such a field was quoted, so that its quotes are doubled already.
  out += kQuote;
  out += field.text;
  out += kQuote;
}

class CsvKeys final : public KeyExtractor {
 public:
  CsvKeys(const Format& format, std::span<const std::string> keys, bool apart)
      : kind_(format.kind),
        delimiter_(csv_delimiter(format)),
        delimiter_given_(format.delimiter != 0),
        apart_(apart),
        keys_(keys.begin(), keys.end()),
        cutter_(delimiter_) {
    if (!format.header) resolve();
  }

  void set_header(const Record& header) override {
    std::string_view text = header.text();
    if (text.starts_with(kByteOrderMark)) text.remove_prefix(kByteOrderMark.size());
    std::vector<CsvField> fields;
    if (!split_fields(text, delimiter_, kMostFields, fields))
      throw BadParameters("the header has a quote that is not closed before a delimiter: '" +
                          std::string(text) + "'");
    names_.clear();
    for (const CsvField& field : fields) append_value(field, names_.emplace_back());
    resolve();
  }

  std::size_t extract(std::span<const Record> records, std::span<std::string_view> keys,
                      std::span<KeyStatus> status) override {
    buffer_.clear();
    cutter_.start();
    std::size_t keyed = 0;
    for (std::size_t i = 0; i < records.size(); ++i) {
      keys[i] = {};
      const std::string_view text = records[i].text();
      status[i] = keys_.empty() ? whole_key(text, i, keys[i]) : column_key(text, i, keys[i]);
      keyed += status[i] == KeyStatus::keyed;
    }
    buffer_.place(keys);
    return keyed;
  }

  std::size_t parts() const override { return std::max<std::size_t>(columns_.size(), 1); }

  std::string name() const override {
    if (columns_.empty()) return "the record";
    std::string names;
    for (const std::size_t column : columns_)
      names += (names.empty() ? "" : ", ") + name_of(column);
    return fmt::format("column{} {}", columns_.size() == 1 ? "" : "s", names);
  }

  std::string why_not(const Record& record) override {
    std::vector<CsvField> fields;
    if (!split_fields(record.text(), delimiter_, highest_ + 1, fields))
      return fmt::format("a quote is not closed before a delimiter in {}", quoted(record.text()));
    for (const std::size_t column : columns_)
      if (column >= fields.size())
        return fmt::format("there is no column {} in {}", name_of(column), quoted(record.text()));
    return "";
  }

 private:
  KeyStatus whole_key(std::string_view text, std::size_t record, std::string_view& key) {
    if (!apart_ && text.find(kQuote) == std::string_view::npos) {
      key = text;
      return KeyStatus::keyed;
    }
    CsvField field;
    for (std::size_t at = 0; at != kNoMoreFields;) {
      if (at > 0 && !apart_) buffer_.bytes() += delimiter_;
      if (!next_field(text, delimiter_, at, field)) {
        buffer_.drop();
        return KeyStatus::malformed;
      }
      if (apart_)
        append_apart(field);
      else
        append_plainest(field, delimiter_, buffer_.bytes());
    }
    buffer_.keep(record);
    return KeyStatus::keyed;
  }

  KeyStatus column_key(std::string_view text, std::size_t record, std::string_view& key) {
    const std::size_t count = cutter_.cut(text, fields_);
    if (count == kMalformedRecord) return KeyStatus::malformed;
    if (columns_.empty() || count <= highest_) return KeyStatus::missing;
    if (columns_.size() == 1) {
      const CsvField& field = fields_[highest_];
      if (!field.doubled) {
        key = field.text;
      } else {
        append_value(field, buffer_.bytes());
        buffer_.keep(record);
      }
      return KeyStatus::keyed;
    }
    std::size_t most = 0;
    for (const std::size_t column : columns_) most += most_part_bytes(fields_[column].text.size());
    char* to = buffer_.room(most);
    for (const std::size_t column : columns_) to = put_value(fields_[column], to);
    buffer_.keep(record, to);
    return KeyStatus::keyed;
  }

  void append_apart(const CsvField& field) {
    value_.clear();
    append_value(field, value_);
    append_part(value_, buffer_.bytes());
  }

  char* put_value(const CsvField& field, char* to) {
    if (!field.doubled) return put_part(field.text, to);
    value_.clear();
    append_value(field, value_);
    value_.resize(value_.size() + kShortPart);  // as behind a record
    return put_part(std::string_view(value_).substr(0, value_.size() - kShortPart), to);
  }

  void resolve() {
    columns_.clear();
    if (!keys_.empty()) look_at_delimiter();
    for (const std::string& key : keys_) {
      if (const auto column = find_name(key)) {
        columns_.push_back(*column);
        continue;
      }
      for (const std::string_view part : split_at_commas(key))
        columns_.push_back(resolve_part(key, part));
    }
    highest_ = columns_.empty() ? 0 : *std::max_element(columns_.begin(), columns_.end());
    fields_.resize(highest_ + 1);
  }

  // A header of one column with another delimiter in it: the records would be cut in wrong places,
  // and keys that differ would be the same.
  void look_at_delimiter() const {
    if (names_.size() != 1 || delimiter_given_) return;
    std::size_t most = 0;
    char likely = 0;
    for (const char other : {';', '\t', '|', ','}) {
      const auto count = static_cast<std::size_t>(std::ranges::count(names_[0], other));
      if (other == delimiter_ || count <= most) continue;
      most = count;
      likely = other;
    }
    if (likely == 0) return;
    const std::string text = likely == '\t' ? "\\t" : std::string(1, likely);
    const std::string column = fmt::format("'{}': the header is one column, {}, and has '{}' in it",
                                           keys_.front(), quoted(names_[0]), text);
    throw BadKey(
        kind_ == Format::Kind::tsv
            ? fmt::format("{}: read it as CSV, with `delimiter` '{}'", column, text)
            : fmt::format("{}: give `delimiter` '{}', or `delimiter` ',' if it is one column",
                          column, text));
  }

  std::string name_of(std::size_t column) const {
    return column < names_.size() ? quoted(names_[column]) : fmt::format("{}", column + 1);
  }

  std::optional<std::size_t> find_name(std::string_view name) const {
    const auto found = std::find(names_.begin(), names_.end(), name);
    if (found == names_.end()) return {};
    return static_cast<std::size_t>(found - names_.begin());
  }

  std::size_t resolve_part(const std::string& key, std::string_view part) const {
    if (const auto column = find_name(part)) return *column;
    const auto number = parse_field_number(part);
    if (number && (names_.empty() || *number < names_.size())) return *number;
    std::string message = part_of_key(key, part) + " is no column";
    if (names_.empty())
      throw BadKey(message +
                   " number; without a header columns are counted from 1, as in "
                   "'2' or '1,3'");
    message += "; the columns are ";
    for (std::size_t i = 0; i < names_.size(); ++i) {
      if (i > 0) message += ", ";
      message += "'" + names_[i] + "'";
    }
    if (const auto meant = near_miss(part, names_))
      message += fmt::format(": did you mean '{}'?", *meant);
    throw BadKey(message);
  }

  Format::Kind kind_;
  char delimiter_;
  bool delimiter_given_;
  bool apart_;
  std::vector<std::string> keys_;     // as they were given
  std::vector<std::string> names_;    // of the columns, when there is a header
  std::vector<std::size_t> columns_;  // that the key takes, in its order
  std::size_t highest_ = 0;           // of columns_
  CsvCutter cutter_;
  std::vector<CsvField> fields_;  // of one record, up to the highest
  std::string value_;             // of one field
  KeyBuffer buffer_;
};

}  // namespace

std::unique_ptr<KeyExtractor> make_csv_keys(const Format& format, std::span<const std::string> keys,
                                            bool apart) {
  return std::make_unique<CsvKeys>(format, keys, apart);
}

}  // namespace sluice
