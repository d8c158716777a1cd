// JSON records: the fast ways to a key (a glance, and simdjson) agree with the slow one, JsonTree,
// about what is JSON and about every byte of the key. Each line is a record, and all are one batch,
// since the glance learns from the record before.
#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "fuzz/records.hpp"
#include "sluice/stream/json_key.hpp"
#include "sluice/stream/json_tree.hpp"

namespace {

using namespace sluice;

fuzzing::Key slow_key(std::string_view text, const std::vector<JsonPointer>& pointers) {
  JsonTree tree;
  fuzzing::Key key;
  if (!tree.parse(text)) {
    key.status = KeyStatus::malformed;
    return key;
  }
  JsonKeyWriter<JsonTree::Value> writer;
  key.status = writer.append_key(tree.root(), pointers, key.bytes).value();
  if (key.status != KeyStatus::keyed) key.bytes.clear();
  return key;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::string_view text(reinterpret_cast<const char*>(data), size);
  fuzzing::Padded padded;
  while (!text.empty() && padded.records().size() < kBatchRecords) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    padded.add(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  for (const std::string key : {"", "/k", "/a,/k", "/a/0/k"}) {
    const std::vector<std::string> keys(key.empty() ? 0 : 1, key);
    const auto extractor = make_key_extractor({.kind = Format::Kind::json}, keys);
    const auto pointers =
        key.empty() ? std::vector<JsonPointer>(1) : parse_json_pointers(std::string_view(key));
    const auto found = fuzzing::keys_of(*extractor, padded.records());
    for (std::size_t i = 0; i < found.size(); ++i)
      fuzzing::require(found[i] == slow_key(padded.records()[i].text(), pointers));
  }
  return 0;
}
