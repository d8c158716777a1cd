#include "sluice/stream/csv.hpp"

#include "sluice/base/error.hpp"

namespace sluice {
namespace {

constexpr auto kNone = std::string_view::npos;

// Where the field that starts at `start` without a quote ends.
std::size_t plain_end(std::string_view record, std::size_t start, char delimiter) {
  const std::size_t end = record.find(delimiter, start);
  return end == kNone ? record.size() : end;
}

// Takes the field whose quote opens at `start` and returns where it ends; kNone: malformed.
std::size_t take_quoted(std::string_view record, std::size_t start, char delimiter,
                        CsvField& field) {
  std::size_t close = record.find(kQuote, start + 1);
  while (close != kNone && close + 1 < record.size() && record[close + 1] == kQuote) {
    field.doubled = true;
    close = record.find(kQuote, close + 2);
  }
  if (close == kNone) return kNone;
  field.text = record.substr(start + 1, close - start - 1);
  const std::size_t end = close + 1;
  return end == record.size() || record[end] == delimiter ? end : kNone;
}

}  // namespace

char csv_delimiter(const Format& format) {
  const char delimiter =
      format.delimiter != 0 ? format.delimiter : (format.kind == Format::Kind::tsv ? '\t' : ',');
  if (delimiter == kQuote || delimiter == '\n' || delimiter == '\r')
    throw BadParameters("a quote or a line end cannot separate csv fields: use ',', ';' or a tab");
  return delimiter;
}

bool next_field(std::string_view record, char delimiter, std::size_t& at, CsvField& field) {
  field = {};
  std::size_t end;
  if (at < record.size() && record[at] == kQuote) {
    end = take_quoted(record, at, delimiter, field);
    if (end == kNone) return false;
  } else {
    end = plain_end(record, at, delimiter);
    field.text = record.substr(at, end - at);
  }
  at = end == record.size() ? kNoMoreFields : end + 1;
  return true;
}

bool split_fields(std::string_view record, char delimiter, std::size_t most,
                  std::vector<CsvField>& fields) {
  fields.clear();
  // With quotes the rest is still read, to see that it is well formed, but not kept.
  const bool quotes = record.find(kQuote) != kNone;
  for (std::size_t at = 0; at != kNoMoreFields && (quotes || fields.size() < most);) {
    CsvField field;
    if (!next_field(record, delimiter, at, field)) return false;
    if (fields.size() < most) fields.push_back(field);
  }
  return true;
}

void append_value(const CsvField& field, std::string& out) {
  if (!field.doubled) {
    out += field.text;
    return;
  }
  for (std::size_t at = 0; at < field.text.size(); ++at) {
    out += field.text[at];
    if (field.text[at] == kQuote) ++at;
  }
}

}  // namespace sluice
