// Keys of JSON records. Members of a plain object are found at a glance (json_glance.hpp); else
// simdjson reads the document; where its numbers are not exact, JsonTree reads it again
// (json_tree.hpp says why both exist).
#include <simdjson.h>

#include <cstring>
#include <new>

#include "sluice/stream/format_keys.hpp"
#include "sluice/stream/json_glance.hpp"
#include "sluice/stream/json_key.hpp"
#include "sluice/stream/json_tree.hpp"

namespace sluice {
namespace {

static_assert(kPaddingBytes >= simdjson::SIMDJSON_PADDING, "records are parsed where they are");

// simdjson's scratch memory is about 15 times its largest document and is kept. Longer documents
// take the slow path, which has less.
constexpr std::size_t kFastMostBytes = std::size_t{16} << 20;

class DomValue {
 public:
  explicit DomValue(simdjson::dom::element element) : element_(element) {}

  JsonKind kind() const {
    using Type = simdjson::dom::element_type;
    switch (element_.type()) {
      case Type::ARRAY:
        return JsonKind::array;
      case Type::OBJECT:
        return JsonKind::object;
      case Type::STRING:
        return JsonKind::string;
      case Type::BOOL:
        return element_.get_bool().value_unsafe() ? JsonKind::true_ : JsonKind::false_;
      case Type::NULL_VALUE:
        return JsonKind::null;
      case Type::INT64:
      case Type::UINT64:
      case Type::DOUBLE:
        break;
    }
    return JsonKind::number;
  }
  std::string_view text() const { return element_.get_string().value_unsafe(); }

  // False for a double: it may have been rounded.
  bool append_number(std::string& out) const {
    std::int64_t number = 0;
    if (element_.get_int64().get(number) == simdjson::SUCCESS) {
      const auto bits = static_cast<std::uint64_t>(number);
      append_integer(number < 0 ? 0 - bits : bits, number < 0, out);
      return true;
    }
    std::uint64_t large = 0;
    if (element_.get_uint64().get(large) != simdjson::SUCCESS) return false;
    append_integer(large, false, out);
    return true;
  }

  template <class Visit>
  void visit_items(Visit visit) const {
    const simdjson::dom::array array = element_.get_array().value_unsafe();
    for (const auto item : array) visit(DomValue(item));
  }
  template <class Visit>
  void visit_members(Visit visit) const {
    const simdjson::dom::object object = element_.get_object().value_unsafe();
    for (const auto field : object) visit(field.key, DomValue(field.value));
  }
  std::optional<DomValue> member(std::string_view name) const {
    return found(element_.get_object().value_unsafe().at_key(name));
  }
  std::optional<DomValue> item(std::size_t index) const {
    return found(element_.get_array().value_unsafe().at(index));
  }

 private:
  static std::optional<DomValue> found(simdjson::simdjson_result<simdjson::dom::element> result) {
    simdjson::dom::element element;
    if (result.get(element) != simdjson::SUCCESS) return {};
    return DomValue(element);
  }

  simdjson::dom::element element_;
};

class JsonKeys final : public KeyExtractor {
 public:
  explicit JsonKeys(std::vector<JsonPointer> pointers) : pointers_(std::move(pointers)) {
    std::vector<std::string> names;
    for (const JsonPointer& pointer : pointers_)
      if (pointer.tokens.size() == 1) names.push_back(pointer.tokens[0]);
    if (names.size() < pointers_.size()) return;
    values_.resize(names.size());
    glance_.emplace(std::move(names));
  }

  std::size_t extract(std::span<const Record> records, std::span<std::string_view> keys,
                      std::span<KeyStatus> status) override {
    buffer_.clear();
    if (glance_) glance_->start();
    std::size_t keyed = 0;
    for (std::size_t i = 0; i < records.size(); ++i) {
      keys[i] = {};
      const auto glanced = glance_ ? glance(records[i].text(), i) : std::nullopt;
      status[i] = glanced ? *glanced : read(records[i].text(), i);
      keyed += status[i] == KeyStatus::keyed;
    }
    buffer_.place(keys);
    return keyed;
  }

  std::size_t parts() const override { return pointers_.size(); }

  std::string name() const override {
    std::string names;
    for (const JsonPointer& pointer : pointers_) names += (names.empty() ? "" : ",") + pointer.text;
    return names.empty() ? "the value" : names;
  }

  std::string why_not(const Record& record) override {
    std::string_view key;
    KeyStatus status{};
    extract({&record, 1}, {&key, 1}, {&status, 1});
    if (status == KeyStatus::keyed) return "";
    // The tree of a long document takes much memory.
    if (status == KeyStatus::malformed || !tree_.parse(record.text()))
      return quoted(record.text()) + " is not JSON";
    for (const JsonPointer& pointer : pointers_)
      if (!find_json(tree_.root(), pointer))
        return "there is no " + pointer.text + " in " + quoted(record.text());
    return "";
  }

 private:
  // Nothing: only a full parser knows.
  std::optional<KeyStatus> glance(std::string_view text, std::size_t record) {
    if (!glance_->read(text, values_)) return {};
    std::size_t most = 0;
    for (const std::string_view value : values_) {
      if (value.empty()) return KeyStatus::missing;
      if (value.front() == '{' || value.front() == '[') return {};
      most += most_scalar_form(value.size());
    }
    char* to = buffer_.room(most);
    for (const std::string_view value : values_) to = put_scalar(value, to);
    buffer_.keep(record, to);
    return KeyStatus::keyed;
  }

  KeyStatus read(std::string_view text, std::size_t record) {
    std::optional<KeyStatus> known = append_fast(text);
    if (!known) {
      buffer_.drop();
      known = append_exact(text);
    }
    if (*known == KeyStatus::keyed)
      buffer_.keep(record);
    else
      buffer_.drop();
    return *known;
  }

  static constexpr std::size_t most_scalar_form(std::size_t size) {
    return most_part_bytes(size) + kMostDecimalExtra;
  }

  // The key form of a scalar as it is written, without escapes.
  char* put_scalar(std::string_view value, char* to) {
    if (value.front() == '"') {
      *to++ = 's';
      return put_part(value.substr(1, value.size() - 2), to);
    }
    if (value.front() >= 'f') {
      *to++ = value.front();
      return to;
    }
    decimal_.clear();
    append_decimal(value, decimal_);
    std::memcpy(to, decimal_.data(), decimal_.size());
    return to + decimal_.size();
  }

  // Nothing: only the slow path knows.
  std::optional<KeyStatus> append_fast(std::string_view text) {
    if (text.size() > kFastMostBytes) return {};
    simdjson::dom::element root;
    switch (parser_.parse(text.data(), text.size(), false).get(root)) {
      case simdjson::SUCCESS:
        return dom_writer_.append_key(DomValue(root), pointers_, buffer_.bytes());
      case simdjson::NUMBER_ERROR:  // perhaps only too large for 64 bits
      case simdjson::DEPTH_ERROR:   // simdjson does not count empty arrays and objects
        return {};
      case simdjson::MEMALLOC:
        throw std::bad_alloc();
      default:
        return KeyStatus::malformed;
    }
  }

  KeyStatus append_exact(std::string_view text) {
    if (!tree_.parse(text)) return KeyStatus::malformed;
    return *tree_writer_.append_key(tree_.root(), pointers_, buffer_.bytes());
  }

  // What a number's form may be longer than its text: d, e, ;, and an exponent it had not.
  static constexpr std::size_t kMostDecimalExtra = 24;

  std::vector<JsonPointer> pointers_;
  std::optional<JsonGlance> glance_;  // when all pointers are of one token
  std::vector<std::string_view> values_;
  std::string decimal_;
  simdjson::dom::parser parser_;
  JsonKeyWriter<DomValue> dom_writer_;
  JsonTree tree_;
  JsonKeyWriter<JsonTree::Value> tree_writer_;
  KeyBuffer buffer_;
};

}  // namespace

std::unique_ptr<KeyExtractor> make_json_keys(std::span<const std::string> keys) {
  std::vector<JsonPointer> pointers;
  for (const std::string& key : keys)
    for (JsonPointer& pointer : parse_json_pointers(key)) pointers.push_back(std::move(pointer));
  if (pointers.empty()) pointers.emplace_back();
  return std::make_unique<JsonKeys>(std::move(pointers));
}

}  // namespace sluice
