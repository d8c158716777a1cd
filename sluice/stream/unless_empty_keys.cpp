// Keys of another extractor, except those of which all parts are empty: such a record has no key.
//
// Records without an id would otherwise be duplicates of each other, and all but one of them lost. Of JSON,
// null is as empty as "".
#include <fmt/format.h>

#include "sluice/stream/format_keys.hpp"
#include "sluice/stream/key_form.hpp"

namespace sluice {
namespace {

class UnlessEmptyKeys final : public KeyExtractor {
 public:
  UnlessEmptyKeys(std::unique_ptr<KeyExtractor> inner, KeyFormKind form)
      : inner_(std::move(inner)), form_(form) {}

  std::size_t extract(std::span<const Record> records, std::span<std::string_view> keys,
                      std::span<KeyStatus> status) override {
    std::size_t keyed = inner_->extract(records, keys, status);
    // The form of an empty key takes at most two bytes per part.
    const bool plain = form_ == KeyFormKind::plain && inner_->parts() == 1;
    const std::size_t most = plain ? 0 : 2 * inner_->parts();
    for (std::size_t i = 0; i < records.size(); ++i) {
      if (keys[i].size() > most || status[i] != KeyStatus::keyed || !is_empty(keys[i], plain))
        continue;
      keys[i] = {};
      status[i] = KeyStatus::missing;
      --keyed;
    }
    return keyed;
  }

  void set_header(const Record& header) override { inner_->set_header(header); }
  std::span<const std::string_view> times() const override { return inner_->times(); }
  std::size_t parts() const override { return inner_->parts(); }
  std::string name() const override { return inner_->name(); }

  std::string why_not(const Record& record) override {
    if (std::string why = inner_->why_not(record); !why.empty()) return why;
    std::string_view key;
    KeyStatus status{};
    if (extract({&record, 1}, {&key, 1}, {&status, 1}) == 1) return "";
    return fmt::format("the key ({}) is empty in {}", name(), quoted(record.text()));
  }

 private:
  bool is_empty(std::string_view form, bool plain) const {
    constexpr std::string_view kEmptyString{"s\0", 2};
    if (plain) return true;
    while (!form.empty()) {
      const std::string_view empty = form_ == KeyFormKind::json
                                         ? (form.front() == 'n' ? form.substr(0, 1) : kEmptyString)
                                     : form.front() == '\0' ? form.substr(0, 1)
                                                            : kAbsentPart;
      if (!form.starts_with(empty)) return false;
      form.remove_prefix(empty.size());
    }
    return true;
  }

  std::unique_ptr<KeyExtractor> inner_;
  KeyFormKind form_;
};

}  // namespace

std::unique_ptr<KeyExtractor> make_unless_empty_keys(std::unique_ptr<KeyExtractor> inner,
                                                     KeyFormKind form) {
  return std::make_unique<UnlessEmptyKeys>(std::move(inner), form);
}

}  // namespace sluice
