// The quoting of delimited text (RFC 4180, read leniently), shared by csv and tsv.
//
// A quote is special only at the start of a field; inside quotes "" is a quote, and delimiters and
// newlines are data. Anywhere else a quote is an ordinary byte.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sluice/kernels/marks.hpp"
#include "sluice/stream/record.hpp"

namespace sluice {

inline constexpr char kQuote = '"';

// A byte order mark, which some programs write before the first name; it is not part of the name.
inline constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";

// It is no part of a header either: one input may have it and another not.
inline std::string_view without_mark(std::string_view header) {
  if (header.starts_with(kByteOrderMark)) header.remove_prefix(kByteOrderMark.size());
  return header;
}

// What separates the fields of a csv or tsv format.
char csv_delimiter(const Format& format);

struct CsvField {
  std::string_view text;  // without the enclosing quotes
  bool doubled = false;   // contains "", each meaning one quote
};

inline constexpr std::size_t kNoMoreFields = std::string_view::npos;

// Reads the field that starts at `at` and moves `at` to the next one's start, or to kNoMoreFields.
// False: a quoted field is not closed, or something other than a delimiter follows its closing
// quote.
bool next_field(std::string_view record, char delimiter, std::size_t& at, CsvField& field);

// Fills `fields` with the fields of a record. With no quote in the record it stops after `most`,
// which is all that a key of the first columns needs. False: the record is malformed, since a quote
// is not closed or is followed by something else than a delimiter.
bool split_fields(std::string_view record, char delimiter, std::size_t most,
                  std::vector<CsvField>& fields);

// The same for records in a read buffer, by the places of delimiters and quotes: fills the first of
// `fields` and returns how many, or kMalformedRecord. The record is followed by kPaddingBytes that
// may be read.
inline constexpr std::size_t kMalformedRecord = static_cast<std::size_t>(-1);
class CsvCutter {
 public:
  explicit CsvCutter(char delimiter);
  // Before each batch: chooses the instruction set.
  void start() noexcept;
  std::size_t cut(std::string_view record, std::span<CsvField> fields);

 private:
  std::size_t cut_plain(std::string_view record, std::span<CsvField> fields) const;
  std::size_t cut_quoted(std::string_view record, std::span<CsvField> fields) const;
  std::size_t take_quoted(std::string_view record, std::size_t start, CsvField& field) const;

  char delimiter_;
  MarkNeedles mark_;
  std::size_t words_ = 0;
  std::vector<std::uint64_t> delimiters_, quotes_;
};

// Appends the field's value, with "" replaced by one quote.
void append_value(const CsvField& field, std::string& out);

}  // namespace sluice
