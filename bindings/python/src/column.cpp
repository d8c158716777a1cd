#include "column.hpp"

#include <algorithm>
#include <cstdint>
#include <utility>

#include "sluice/base/quantity.hpp"
#include "sluice/stream/key_form.hpp"

namespace sluice::python {
namespace {

class Fields final : public Column {
 public:
  explicit Fields(Columns columns)
      : Column(columns.front()->size(), "", columns.front()->passes_missing()),
        columns_(std::move(columns)),
        slices_(columns_.size()) {}

  bool needs_gil() const noexcept override {
    return std::ranges::any_of(columns_, [](const auto& column) { return column->needs_gil(); });
  }
  void check() override {
    for (const auto& column : columns_) column->check();
  }
  void count_from(std::size_t start) noexcept override {
    for (const auto& column : columns_) column->count_from(start);
  }
  std::size_t gather(std::size_t begin, std::size_t most, Slice& to) override {
    for (std::size_t i = 0; i < columns_.size(); ++i) {
      slices_[i].clear();
      most = columns_[i]->gather(begin, most, slices_[i]);
    }
    for (std::size_t row = 0; row < most; ++row) build(row, to);
    return most;
  }

 private:
  void build(std::size_t row, Slice& to) {
    std::size_t room = 0;
    for (const Slice& slice : slices_) {
      if (slice.keys[row].data() == nullptr) return to.put_missing(row);
      room += slice.keys[row].size() + kMostLengthBytes;
    }
    char* const begin = to.arena.room(room);
    char* end = begin;
    for (const Slice& slice : slices_) {
      key_.clear();
      append_length(slice.keys[row].size(), key_);
      end = std::ranges::copy(key_, end).out;
      end = std::ranges::copy(slice.keys[row], end).out;
    }
    to.arena.keep(end);
    to.keys[row] = {begin, static_cast<std::size_t>(end - begin)};
  }

  static constexpr std::size_t kMostLengthBytes = 10;
  Columns columns_;
  std::vector<Slice> slices_;
  std::string key_;
};

class Coded final : public Column {
 public:
  Coded(std::vector<std::int64_t> codes, std::shared_ptr<Column> values, std::string name,
        bool pass_missing)
      : Column(codes.size(), std::move(name), pass_missing),
        codes_(std::move(codes)),
        values_(std::move(values)) {}

  bool needs_gil() const noexcept override { return texts_.empty() && values_->needs_gil(); }

  // The values are gathered once: there are few of them.
  void check() override {
    if (!texts_.empty() || values_->size() == 0) return check_codes();
    values_->check();
    texts_.reserve(values_->size());
    Slice slice;
    while (texts_.size() < values_->size()) {
      slice.clear();
      const std::size_t count = values_->gather(
          texts_.size(), std::min(Slice::kMost, values_->size() - texts_.size()), slice);
      for (std::size_t i = 0; i < count; ++i) texts_.push_back(kept(slice.keys[i]));
    }
    check_codes();
  }
  std::size_t gather(std::size_t begin, std::size_t most, Slice& to) override {
    for (std::size_t i = 0; i < most; ++i) {
      const std::string_view text = text_of(codes_[begin + i]);
      if (text.data() == nullptr) {
        to.put_missing(i);
      } else {
        to.put_view(i, text.data(), text.size());
      }
    }
    return most;
  }

 private:
  std::string_view text_of(std::int64_t code) const noexcept {
    return code < 0 ? std::string_view() : texts_[static_cast<std::size_t>(code)];
  }
  std::string_view kept(std::string_view text) {
    if (text.data() == nullptr) return text;
    char* const to = bytes_.room(text.size() + 1);
    std::ranges::copy(text, to);
    bytes_.keep(to + text.size() + 1);
    return {to, text.size()};
  }
  void check_codes() const {
    for (std::size_t i = 0; i < codes_.size(); ++i) {
      if (codes_[i] >= static_cast<std::int64_t>(texts_.size()))
        throw BadKey(place(i) + " has code " + std::to_string(codes_[i]) +
                         " of a dictionary with " + counted(texts_.size(), "value"),
                     false);
      if (text_of(codes_[i]).data() == nullptr) refuse_missing(i, "missing");
    }
  }

  std::vector<std::int64_t> codes_;
  std::shared_ptr<Column> values_;
  std::vector<std::string_view> texts_;
  Arena bytes_;
};

}  // namespace

std::string Column::place(std::size_t row) const {
  return (name_.empty() ? "keys[" : "keys['" + name_ + "'][") + std::to_string(start_ + row) + "]";
}

void Column::refuse_missing(std::size_t row, const char* what) const {
  if (pass_missing_) return;
  throw BadKey(
      place(row) + " is " + what +
          ", and no key: drop or fill such rows, or give missing='pass' to let them through",
      true);
}

std::shared_ptr<Column> make_fields(Columns columns) {
  for (const auto& column : columns)
    if (column->size() != columns.front()->size())
      throw BadParameters(
          "the columns of keys differ in length: " + counted(columns.front()->size(), "row") +
          " and " + counted(column->size(), "row"));
  // One field is the key as it is, as in the command.
  if (columns.size() == 1) return columns.front();
  return std::make_shared<Fields>(std::move(columns));
}

std::shared_ptr<Column> make_coded(std::vector<std::int64_t> codes, std::shared_ptr<Column> values,
                                   std::string name, bool pass_missing) {
  return std::make_shared<Coded>(std::move(codes), std::move(values), std::move(name),
                                 pass_missing);
}

}  // namespace sluice::python
