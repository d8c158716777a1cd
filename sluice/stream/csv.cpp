#include "sluice/stream/csv.hpp"

#include <algorithm>
#include <bit>

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

// The first mark at or behind `from`; 64 times the number of words, or more, when there is none.
std::size_t next_mark(std::span<const std::uint64_t> words, std::size_t from) {
  std::size_t word = from / kMarkBytes;
  if (word >= words.size()) return from;
  std::uint64_t left = words[word] & (~std::uint64_t{0} << from % kMarkBytes);
  while (left == 0)
    if (++word == words.size())
      return word * kMarkBytes;
    else
      left = words[word];
  return word * kMarkBytes + static_cast<std::size_t>(std::countr_zero(left));
}

// Behind the last mark; 0 when there is none.
std::size_t marks_end(std::span<const std::uint64_t> words) {
  for (std::size_t word = words.size(); word-- > 0;)
    if (words[word] != 0)
      return word * kMarkBytes + static_cast<std::size_t>(std::bit_width(words[word]));
  return 0;
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

CsvCutter::CsvCutter(char delimiter) : delimiter_(delimiter), mark_(needle_marker()) {}

void CsvCutter::start() noexcept {
  mark_ = needle_marker();
}

std::size_t CsvCutter::cut(std::string_view record, std::span<CsvField> fields) {
  words_ = mark_words(record.size());
  if (delimiters_.size() < words_) {
    delimiters_.resize(2 * words_);
    quotes_.resize(2 * words_);
  }
  const bool quotes =
      mark_(record.data(), record.size(), {delimiter_, kQuote}, delimiters_.data(), quotes_.data());
  return quotes ? cut_quoted(record, fields) : cut_plain(record, fields);
}

std::size_t CsvCutter::cut_plain(std::string_view record, std::span<CsvField> fields) const {
  std::size_t count = 0, begin = 0;
  for (std::size_t word = 0; word < words_; ++word) {
    for (std::uint64_t left = delimiters_[word]; left != 0; left &= left - 1) {
      const std::size_t end = word * kMarkBytes + static_cast<std::size_t>(std::countr_zero(left));
      fields[count++] = {{record.data() + begin, end - begin}, false};
      if (count == fields.size()) return count;
      begin = end + 1;
    }
  }
  fields[count++] = {record.substr(begin), false};
  return count;
}

std::size_t CsvCutter::cut_quoted(std::string_view record, std::span<CsvField> fields) const {
  const std::span<const std::uint64_t> delimiters = std::span(delimiters_).first(words_);
  // Behind the last quote nothing can be wrong.
  const std::size_t suspect = marks_end(std::span(quotes_).first(words_));
  std::size_t count = 0;
  for (std::size_t at = 0; count < fields.size() || at < suspect;) {
    CsvField field;
    std::size_t end;
    if (at < suspect && record[at] == kQuote) {
      end = take_quoted(record, at, field);
      if (end == kMalformedRecord) return end;
    } else {
      end = std::min(next_mark(delimiters, at), record.size());
      field.text = {record.data() + at, end - at};
    }
    if (count < fields.size()) fields[count++] = field;
    if (end == record.size()) break;
    at = end + 1;
  }
  return count;
}

// Takes the field whose quote opens at `start` and returns where it ends.
std::size_t CsvCutter::take_quoted(std::string_view record, std::size_t start,
                                   CsvField& field) const {
  const std::span<const std::uint64_t> quotes = std::span(quotes_).first(words_);
  std::size_t close = next_mark(quotes, start + 1);
  while (close + 1 < record.size() && record[close + 1] == kQuote) {
    field.doubled = true;
    close = next_mark(quotes, close + 2);
  }
  if (close >= record.size()) return kMalformedRecord;
  field.text = {record.data() + start + 1, close - start - 1};
  const std::size_t end = close + 1;
  return end == record.size() || record[end] == delimiter_ ? end : kMalformedRecord;
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
