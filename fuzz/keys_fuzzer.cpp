// Keys of lines by expressions and byte ranges, and keys without case and blanks in every format. The
// first line is the expression or the ranges, the others are records.
#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "fuzz/records.hpp"
#include "sluice/stream/case_folding.hpp"

namespace {

using namespace sluice;
using fuzzing::require;

std::string fold(std::string_view text) {
  std::string out(most_folded_bytes(text.size()), '\0');
  out.resize(static_cast<std::size_t>(fold_case(text, out.data()) - out.data()));
  return out;
}

// The keys, or none if it is refused.
std::vector<fuzzing::Key> keys_by(const std::string& key, const KeyStyle& style,
                                  const std::vector<Record>& records) {
  try {
    const std::vector<std::string> keys(1, key);
    return fuzzing::keys_of(*make_key_extractor({.kind = Format::Kind::lines}, keys, style),
                            records);
  } catch (const BadParameters&) {
    return {};
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::string_view text(reinterpret_cast<const char*>(data), size);
  const std::size_t first = std::min(text.find('\n'), text.size());
  const std::string key(text.substr(0, std::min<std::size_t>(first, 256)));
  text.remove_prefix(std::min(first + 1, text.size()));
  fuzzing::Padded padded;
  while (!text.empty() && padded.records().size() < kBatchRecords) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    padded.add(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  const auto& records = padded.records();
  for (const auto by : {KeyStyle::By::regex, KeyStyle::By::bytes, KeyStyle::By::time_group}) {
    const auto plain = keys_by(key, {.by = by}, records);
    const auto changed = keys_by(key, {.by = by, .ignore_case = true, .trim = true}, records);
    require(plain.size() == changed.size());
    for (std::size_t i = 0; i < plain.size(); ++i) require(plain[i].status == changed[i].status);
  }
  for (const auto kind : {Format::Kind::lines, Format::Kind::csv, Format::Kind::json}) {
    const Format format{.kind = kind, .header = false};
    const auto plain = fuzzing::keys_of(*make_key_extractor(format, {}), records);
    const auto changed = fuzzing::keys_of(
        *make_key_extractor(format, {}, {.ignore_case = true, .trim = true}), records);
    for (std::size_t i = 0; i < plain.size(); ++i) {
      require(plain[i].status == changed[i].status);
      for (std::size_t j = 0; j < i; ++j)
        if (plain[i] == plain[j]) require(changed[i] == changed[j]);
    }
  }
  for (const Record& record : records) {
    const std::string once = fold(record.text());
    require(fold(once) == once);
    require(may_fold(record.text()) || once == record.text());
  }
  return 0;
}
