// Keys whose parts are compared without case, without the blanks around them, or both: the keys of
// another extractor, changed. It costs nothing when it is not asked for.
//
// Of JSON, strings are changed, at any depth. Numbers and the names of members are not.
#include <cstring>

#include "sluice/stream/case_folding.hpp"
#include "sluice/stream/format_keys.hpp"
#include "sluice/stream/key_form.hpp"

namespace sluice {
namespace {

// White space of ASCII.
constexpr std::string_view kBlanks = " \t\n\v\f\r";

std::string_view trimmed(std::string_view text) {
  const std::size_t begin = text.find_first_not_of(kBlanks);
  if (begin == std::string_view::npos) return text.substr(0, 0);
  return text.substr(begin, text.find_last_not_of(kBlanks) - begin + 1);
}

class FoldedKeys final : public KeyExtractor {
 public:
  FoldedKeys(std::unique_ptr<KeyExtractor> inner, KeyFormKind form, const KeyStyle& style)
      : inner_(std::move(inner)), form_(form), style_(style) {}

  std::size_t extract(std::span<const Record> records, std::span<std::string_view> keys,
                      std::span<KeyStatus> status) override {
    const std::size_t keyed = inner_->extract(records, keys, status);
    buffer_.clear();
    const bool plain = form_ == KeyFormKind::plain && inner_->parts() == 1;
    for (std::size_t i = 0; i < records.size(); ++i) {
      if (status[i] != KeyStatus::keyed) continue;
      if (plain)
        change(keys[i], i);
      else
        rebuild(keys[i], i);
    }
    buffer_.place(keys);
    return keyed;
  }

  void set_header(const Record& header) override { inner_->set_header(header); }
  std::span<const std::string_view> times() const override { return inner_->times(); }
  std::size_t parts() const override { return inner_->parts(); }
  std::string name() const override { return inner_->name(); }
  std::string why_not(const Record& record) override { return inner_->why_not(record); }

 private:
  // A key that is a text.
  void change(std::string_view& key, std::size_t record) {
    if (style_.trim) key = trimmed(key);
    if (!style_.ignore_case || !may_fold(key)) return;
    buffer_.keep(record, fold_case(key, buffer_.room(most_folded_bytes(key.size()))));
  }

  // A form with lengths. A changed part takes at most half as much again, and its length one byte more.
  void rebuild(std::string_view form, std::size_t record) {
    char* to = buffer_.room(2 * form.size());
    if (form_ == KeyFormKind::json) {
      to = put_values(form, to);
    } else {
      while (!form.empty()) to = put_changed(form, to);
    }
    buffer_.keep(record, to);
  }

  // Takes a part off `form`.
  char* put_changed(std::string_view& form, char* to) {
    if (form.starts_with(kAbsentPart)) {
      form.remove_prefix(kAbsentPart.size());
      return put_bytes(kAbsentPart, to);
    }
    std::string_view part = take_part(form);
    if (style_.trim) part = trimmed(part);
    if (!style_.ignore_case) return put_bytes(part, put_length(part.size(), to));
    if (is_ascii(part)) return fold_case(part, put_length(part.size(), to));
    folded_.resize(most_folded_bytes(part.size()));
    const auto size = static_cast<std::size_t>(fold_case(part, folded_.data()) - folded_.data());
    to = put_bytes({folded_.data(), size}, put_length(size, to));
    if (folded_.size() > kKeptBytes) folded_ = {};
    return to;
  }

  // The forms of JSON values (json_key.hpp). In an object, a name comes before each value.
  char* put_values(std::string_view form, char* to) {
    open_.clear();
    bool name_next = false;
    while (!form.empty()) {
      const char kind = form.front();
      form.remove_prefix(1);
      *to++ = kind;
      const bool is_name = name_next && kind == 's';
      if (kind == '[' || kind == '{') {
        open_ += kind;
      } else if (kind == ']' || kind == '}') {
        open_.pop_back();
      } else if (is_name) {
        const std::string_view name = take_part(form);
        to = put_bytes(name, put_length(name.size(), to));
      } else if (kind == 's') {
        to = put_changed(form, to);
      } else if (kind == 'd') {
        const std::size_t end = form.find(';') + 1;
        to = put_bytes(form.substr(0, end), to);
        form.remove_prefix(end);
      }
      name_next = !is_name && open_.ends_with('{');
    }
    return to;
  }

  static char* put_bytes(std::string_view bytes, char* to) {
    if (!bytes.empty()) std::memcpy(to, bytes.data(), bytes.size());
    return to + bytes.size();
  }

  static constexpr std::size_t kKeptBytes = std::size_t{1} << 20;

  std::unique_ptr<KeyExtractor> inner_;
  KeyFormKind form_;
  KeyStyle style_;
  std::string open_;    // brackets of JSON, the innermost last
  std::string folded_;  // a part
  KeyBuffer buffer_;
};

}  // namespace

std::unique_ptr<KeyExtractor> make_folded_keys(std::unique_ptr<KeyExtractor> inner,
                                               KeyFormKind form, const KeyStyle& style) {
  return std::make_unique<FoldedKeys>(std::move(inner), form, style);
}

}  // namespace sluice
