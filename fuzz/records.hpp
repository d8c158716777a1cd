// What the fuzz targets of records have in common.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <deque>
#include <string>
#include <string_view>
#include <vector>

#include "sluice/stream/key_extractor.hpp"
#include "sluice/stream/record.hpp"

namespace sluice::fuzzing {

inline void require(bool holds) {
  if (!holds) std::abort();
}

// Takes the first byte off; 0 if there is none.
inline unsigned take_byte(std::string_view& bytes) {
  if (bytes.empty()) return 0;
  const auto byte = static_cast<unsigned char>(bytes.front());
  bytes.remove_prefix(1);
  return byte;
}

// Copies of texts as records, each with the padding that may be read behind it and no byte more, so
// that the address sanitizer sees every read beyond.
class Padded {
 public:
  void add(std::string_view text) {
    std::vector<char>& copy = copies_.emplace_back(text.begin(), text.end());
    copy.insert(copy.end(), kPaddingBytes, '"');
    records_.push_back({copy.data(), text.size(), text.size()});
  }
  const std::vector<Record>& records() const { return records_; }

 private:
  std::deque<std::vector<char>> copies_;
  std::vector<Record> records_;
};

struct Key {
  KeyStatus status = KeyStatus::keyed;
  std::string bytes;
  bool operator==(const Key&) const = default;
};

// The keys of one batch.
inline std::vector<Key> keys_of(KeyExtractor& extractor, const std::vector<Record>& records) {
  std::vector<std::string_view> views(records.size());
  std::vector<KeyStatus> status(records.size());
  extractor.extract(records, views, status);
  std::vector<Key> keys;
  for (std::size_t i = 0; i < records.size(); ++i)
    keys.push_back({status[i], std::string(views[i])});
  // A reason is given for those that have none, and for no others.
  for (std::size_t i = 0; i < records.size(); ++i)
    require(extractor.why_not(records[i]).empty() == (status[i] == KeyStatus::keyed));
  return keys;
}

}  // namespace sluice::fuzzing
