// Keys as Python has them, one column at a time: lists, arrays, Arrow buffers.
//
// A key is the same bytes wherever it comes from: a str is its UTF-8, bytes are themselves, an
// integer is its decimal text, and several fields are put together as the command does for
// --key a,b (sluice/stream/key_form.hpp). Tests hold every door to that.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "slice.hpp"
#include "sluice/base/error.hpp"

namespace sluice::python {

// A value that is no key; a TypeError or ValueError in Python.
class BadKey : public Error {
 public:
  BadKey(const std::string& what, bool wrong_type) : Error(what), wrong_type_(wrong_type) {}
  bool wrong_type() const noexcept { return wrong_type_; }

 private:
  bool wrong_type_;
};

class Column {
 public:
  // `name` is that of a column of a table, or empty: messages name it. If `pass_missing`, rows
  // without a value are gathered as missing instead of being refused.
  Column(std::size_t size, std::string name, bool pass_missing)
      : size_(size), name_(std::move(name)), pass_missing_(pass_missing) {}
  virtual ~Column() = default;
  Column(const Column&) = delete;
  Column& operator=(const Column&) = delete;

  std::size_t size() const noexcept { return size_; }
  // The keys before this column, where the keys come in several: messages count from the first.
  virtual void count_from(std::size_t start) noexcept { start_ = start; }
  bool passes_missing() const noexcept { return pass_missing_; }
  // Whether rows are Python objects: then check() and gather() need the GIL.
  virtual bool needs_gil() const noexcept { return false; }
  // Throws BadKey for the first row that gather() would refuse: so that nothing is judged of keys
  // that cannot all be judged. To be called before gather().
  virtual void check() = 0;
  // Adds the keys of the rows from `begin` to the slice, which was cleared: `most` of them, or fewer
  // if they are long, but at least one. Returns how many.
  virtual std::size_t gather(std::size_t begin, std::size_t most, Slice& to) = 0;

 protected:
  // "keys[7]", "keys['user'][7]".
  std::string place(std::size_t row) const;
  // Throws BadKey for a row without a value, unless they pass.
  void refuse_missing(std::size_t row, const char* what) const;

 private:
  std::size_t size_;
  std::size_t start_ = 0;
  std::string name_;
  bool pass_missing_;
};

using Columns = std::vector<std::shared_ptr<Column>>;

// Keys of several fields. Throws BadParameters if the columns differ in length.
std::shared_ptr<Column> make_fields(Columns columns);
// Row i is row codes[i] of `values`: an Arrow dictionary or a pandas categorical. A negative code is
// a missing value.
std::shared_ptr<Column> make_coded(std::vector<std::int64_t> codes, std::shared_ptr<Column> values,
                                   std::string name, bool pass_missing);

}  // namespace sluice::python
