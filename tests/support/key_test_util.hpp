// For the tests of key extractors.
#pragma once

#include <gtest/gtest.h>

#include <ostream>
#include <string>
#include <string_view>
#include <vector>

#include "sluice/base/error.hpp"
#include "sluice/stream/key_extractor.hpp"
#include "sluice/stream/record.hpp"

namespace sluice {

struct Key {
  KeyStatus status = KeyStatus::keyed;
  std::string bytes;
  bool operator==(const Key&) const = default;
};

inline std::ostream& operator<<(std::ostream& to, const Key& key) {
  static constexpr const char* kNames[] = {"keyed ", "missing ", "malformed "};
  return to << kNames[static_cast<int>(key.status)] << testing::PrintToString(key.bytes);
}

inline const Key kMissing{KeyStatus::missing, ""};
inline const Key kMalformed{KeyStatus::malformed, ""};

// The keys of a batch; each record stands in a buffer of its own that ends with the padding.
inline std::vector<Key> keys_of(KeyExtractor& extractor, const std::vector<std::string>& texts) {
  std::vector<std::string> buffers;
  for (const std::string& text : texts) buffers.push_back(text + std::string(kPaddingBytes, '"'));
  std::vector<Record> records;
  for (std::size_t i = 0; i < texts.size(); ++i)
    records.push_back({buffers[i].data(), texts[i].size(), texts[i].size()});
  std::vector<std::string_view> views(texts.size(), "stale");
  std::vector<KeyStatus> status(texts.size());
  const std::size_t keyed = extractor.extract(records, views, status);
  std::vector<Key> keys;
  std::size_t count = 0;
  for (std::size_t i = 0; i < texts.size(); ++i) {
    keys.push_back({status[i], std::string(views[i])});
    count += status[i] == KeyStatus::keyed;
  }
  EXPECT_EQ(keyed, count);
  return keys;
}

inline Key key_of(KeyExtractor& extractor, const std::string& text) {
  return keys_of(extractor, {text})[0];
}

// The sentence of the BadParameters that `run` throws.
template <class Run>
std::string bad_parameters(Run run) {
  try {
    run();
  } catch (const BadParameters& error) {
    return error.what();
  }
  ADD_FAILURE() << "nothing was thrown";
  return "";
}

}  // namespace sluice
