// CSV: records do not depend on how the bytes are read, and the fast way to columns (CsvCutter)
// agrees with the plain one (split_fields) about fields, about what is malformed and about keys.
// The first three bytes are the delimiter, the size of a read, and the number of records asked for.
#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "fuzz/records.hpp"
#include "sluice/stream/csv.hpp"
#include "sluice/stream/key_form.hpp"
#include "sluice/stream/splitter.hpp"

namespace {

using namespace sluice;
using fuzzing::require;

// The bodies of the records, read in pieces; all bytes belong to one.
std::vector<std::string> split(const Format& format, std::string_view text, std::size_t read,
                               std::size_t most) {
  const auto splitter = make_splitter(format);
  std::vector<std::string> bodies;
  std::size_t start = 0, end = 0;
  while (start < text.size()) {
    end = std::min(end + read, text.size());
    while (true) {
      // In a place of its own, as a reader's buffer may move.
      const std::vector<char> buffer(text.begin() + static_cast<std::ptrdiff_t>(start),
                                     text.begin() + static_cast<std::ptrdiff_t>(end));
      std::vector<Record> records;
      const std::size_t taken =
          splitter->split({buffer.data(), buffer.size()}, end == text.size(), most, records);
      std::size_t sum = 0;
      for (const Record& record : records) {
        bodies.emplace_back(record.text());
        sum += record.whole;
      }
      require(sum == taken && records.size() <= most);
      start += taken;
      if (records.size() < most) break;
    }
  }
  return bodies;
}

fuzzing::Key plain_key(std::string_view record, char delimiter,
                       const std::vector<std::size_t>& columns) {
  std::vector<CsvField> fields;
  if (!split_fields(record, delimiter, columns.back() + 1, fields))
    return {KeyStatus::malformed, ""};
  fuzzing::Key key;
  for (const std::size_t column : columns) {
    if (column >= fields.size()) return {KeyStatus::missing, ""};
    std::string value;
    append_value(fields[column], value);
    if (columns.size() == 1)
      key.bytes = value;
    else
      append_part(value, key.bytes);
  }
  return key;
}

void check_cutter(const Record& record, char delimiter) {
  for (const std::size_t most : {1u, 4u}) {
    std::vector<CsvField> expected, fields(most);
    const bool sound = split_fields(record.text(), delimiter, most, expected);
    const std::size_t count = CsvCutter(delimiter).cut(record.text(), fields);
    require((count != kMalformedRecord) == sound);
    if (!sound) continue;
    require(count == expected.size());
    for (std::size_t i = 0; i < count; ++i)
      require(fields[i].text == expected[i].text && fields[i].doubled == expected[i].doubled);
  }
}

// A header names columns, or is refused.
void check_header(Format format, const std::vector<Record>& records) {
  format.header = true;
  const std::vector<std::string> keys = {"id"};
  const auto extractor = make_key_extractor(format, keys);
  try {
    extractor->set_header(records.front());
  } catch (const BadParameters&) {
    return;
  }
  fuzzing::keys_of(*extractor, records);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::string_view text(reinterpret_cast<const char*>(data), size);
  const char delimiter = ",;\t|"[fuzzing::take_byte(text) % 4];
  // At most 256 reads: each copies what is left.
  const std::size_t read = 1 + fuzzing::take_byte(text) + size / 256;
  const std::size_t most = 1 + fuzzing::take_byte(text) % 8;
  const Format format{.kind = Format::Kind::csv, .header = false, .delimiter = delimiter};
  const auto bodies = split(format, text, text.size() + 1, kBatchRecords);
  require(split(format, text, read, most) == bodies);
  fuzzing::Padded padded;
  for (std::size_t i = 0; i < std::min(bodies.size(), kBatchRecords); ++i) padded.add(bodies[i]);
  for (const Record& record : padded.records()) check_cutter(record, delimiter);
  const std::vector<std::vector<std::size_t>> all = {{0}, {1}, {0, 2}};
  for (const std::vector<std::size_t>& columns : all) {
    std::vector<std::string> keys;
    for (const std::size_t column : columns) keys.push_back(std::to_string(column + 1));
    const auto extractor = make_key_extractor(format, keys);
    const auto found = fuzzing::keys_of(*extractor, padded.records());
    for (std::size_t i = 0; i < found.size(); ++i)
      require(found[i] == plain_key(padded.records()[i].text(), delimiter, columns));
  }
  fuzzing::keys_of(*make_key_extractor(format, {}), padded.records());
  if (!padded.records().empty()) check_header(format, padded.records());
  return 0;
}
