#include "arrow.hpp"

#include <nanobind/nanobind.h>

#include <array>
#include <charconv>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

namespace nb = nanobind;

namespace sluice::python {
namespace {

[[noreturn]] void refuse(const std::string& what) {
  throw BadKey("the Arrow data is damaged: " + what, false);
}

// What must stay alive while a column is read. Its libraries may need the GIL to release it.
struct Held {
  explicit Held(ArrowArray& from) : array(std::in_place, from) {}
  ~Held() {
    const nb::gil_scoped_acquire gil;
    array.reset();
  }
  std::optional<Released<ArrowArray>> array;
};
using Owner = std::shared_ptr<Held>;

// The rows of an array as its struct tells them, checked.
struct Rows {
  std::size_t offset;
  std::size_t size;
  const std::uint8_t* valid;  // null: all are

  bool is_valid(std::size_t row) const noexcept {
    const std::size_t bit = offset + row;
    return valid == nullptr || (valid[bit / 8] >> (bit % 8) & 1) != 0;
  }
};

Rows rows_of(const ArrowArray& array, std::int64_t buffers) {
  constexpr std::int64_t kMost = std::int64_t{1} << 48;
  if (array.length < 0 || array.offset < 0 || array.length > kMost || array.offset > kMost)
    refuse("length " + std::to_string(array.length) + " and offset " +
           std::to_string(array.offset));
  if (array.n_buffers < buffers || (buffers > 0 && array.buffers == nullptr))
    refuse(std::to_string(array.n_buffers) + " buffers instead of " + std::to_string(buffers));
  if (array.null_count < -1 || array.null_count > array.length)
    refuse("null_count " + std::to_string(array.null_count));
  const auto* const valid =
      buffers == 0 ? nullptr : static_cast<const std::uint8_t*>(array.buffers[0]);
  if (valid == nullptr && array.null_count > 0 && buffers > 0)
    refuse("nulls without a buffer that tells which");
  return {static_cast<std::size_t>(array.offset), static_cast<std::size_t>(array.length),
          array.null_count == 0 ? nullptr : valid};
}

const void* buffer_of(const ArrowArray& array, std::int64_t number) {
  const void* const buffer = array.buffers[number];
  if (buffer == nullptr && array.length > 0)
    refuse("buffer " + std::to_string(number) + " is null");
  return buffer;
}

template <class Value>
Value read(const void* buffer, std::size_t index) noexcept {
  Value value;
  std::memcpy(&value, static_cast<const char*>(buffer) + index * sizeof(Value), sizeof value);
  return value;
}

// A column whose rows Source tells: source.view(row) of a valid row, source.check(row) if it is
// where it should be.
template <class Source>
class ArrowColumn final : public Column {
 public:
  ArrowColumn(Owner owner, const Rows& rows, const Source& source, std::string name,
              bool pass_missing)
      : Column(rows.size, std::move(name), pass_missing),
        owner_(std::move(owner)),
        rows_(rows),
        source_(source) {}

  void check() override {
    for (std::size_t row = 0; row < size(); ++row) {
      if (!rows_.is_valid(row))
        refuse_missing(row, "null");
      else
        source_.check(rows_.offset + row);
    }
  }
  std::size_t gather(std::size_t begin, std::size_t most, Slice& to) override {
    std::size_t i = 0;
    for (; i < most && to.arena.used() < Slice::kMostBytes; ++i) {
      if (!rows_.is_valid(begin + i))
        to.put_missing(i);
      else
        source_.put(rows_.offset + begin + i, i, to);
    }
    return i;
  }

 private:
  Owner owner_;
  Rows rows_;
  Source source_;
};

template <class Offset>
struct Strings {
  const void* offsets;
  const char* data;

  void check(std::size_t at) const {
    const auto begin = read<Offset>(offsets, at), end = read<Offset>(offsets, at + 1);
    if (begin < 0 || end < begin || (data == nullptr && end > 0))
      refuse("row " + std::to_string(at) + " is from byte " + std::to_string(begin) + " to " +
             std::to_string(end));
  }
  void put(std::size_t at, std::size_t i, Slice& to) const {
    const auto begin = read<Offset>(offsets, at), end = read<Offset>(offsets, at + 1);
    to.put_view(i, data + begin, static_cast<std::size_t>(end - begin));
  }
};

// 16 bytes per row: the length, then up to 12 bytes; or a prefix, the number of a buffer and an
// offset in it.
struct Views {
  const void* views;
  const void** buffers;
  const void* sizes;
  std::size_t count;

  struct Long {
    std::int32_t size, prefix, buffer, offset;
  };
  void check(std::size_t at) const {
    const auto view = read<Long>(views, at);
    if (view.size >= 0 && view.size <= 12) return;
    if (view.size < 0 || view.buffer < 0 || static_cast<std::size_t>(view.buffer) >= count ||
        view.offset < 0 ||
        std::int64_t{view.offset} + view.size >
            read<std::int64_t>(sizes, static_cast<std::size_t>(view.buffer)) ||
        buffers[view.buffer] == nullptr)
      refuse("the view of row " + std::to_string(at) + " has size " + std::to_string(view.size) +
             ", buffer " + std::to_string(view.buffer) + " and offset " +
             std::to_string(view.offset));
  }
  void put(std::size_t at, std::size_t i, Slice& to) const {
    const auto view = read<Long>(views, at);
    const char* const data = view.size <= 12
                                 ? static_cast<const char*>(views) + at * sizeof(Long) + 4
                                 : static_cast<const char*>(buffers[view.buffer]) + view.offset;
    to.put_view(i, data, static_cast<std::size_t>(view.size));
  }
};

struct FixedWidth {
  const char* data;
  std::size_t width;

  void check(std::size_t) const {}
  void put(std::size_t at, std::size_t i, Slice& to) const {
    to.put_view(i, data + at * width, width);
  }
};

template <class Value>
struct Numbers {
  const void* values;

  void check(std::size_t) const {}
  void put(std::size_t at, std::size_t i, Slice& to) const {
    std::array<char, 24> digits;
    char* const end =
        std::to_chars(digits.data(), digits.data() + digits.size(), read<Value>(values, at)).ptr;
    to.put_copy(i, digits.data(), static_cast<std::size_t>(end - digits.data()));
  }
};

struct Nulls {
  void check(std::size_t) const {}
  void put(std::size_t, std::size_t i, Slice& to) const { to.put_missing(i); }
};

// What is made of one array: the array itself may be a child of the one that is owned.
struct Making {
  const ArrowSchema& schema;
  const ArrowArray& array;
  const Owner& owner;
  std::string name;
  bool pass_missing;
  std::size_t start = 0;  // rows of the arrays before

  template <class Source>
  std::shared_ptr<Column> column(const Rows& rows, const Source& source) const {
    return std::make_shared<ArrowColumn<Source>>(owner, rows, source, name, pass_missing);
  }
  template <class Offset>
  std::shared_ptr<Column> strings() const {
    const Rows rows = rows_of(array, 3);
    return column(rows,
                  Strings<Offset>{buffer_of(array, 1), static_cast<const char*>(array.buffers[2])});
  }
  template <class Value>
  std::shared_ptr<Column> numbers() const {
    const Rows rows = rows_of(array, 2);
    return column(rows, Numbers<Value>{buffer_of(array, 1)});
  }
  std::shared_ptr<Column> views() const {
    const Rows rows = rows_of(array, 3);
    const auto count = static_cast<std::size_t>(array.n_buffers) - 3;
    const void* const sizes = array.buffers[array.n_buffers - 1];
    if (sizes == nullptr && count > 0) refuse("the sizes of its buffers are missing");
    return column(rows, Views{buffer_of(array, 1), array.buffers + 2, sizes, count});
  }
  std::shared_ptr<Column> fixed(std::string_view width_text) const {
    std::size_t width = 0;
    const auto [end, error] =
        std::from_chars(width_text.data(), width_text.data() + width_text.size(), width);
    if (error != std::errc() || end != width_text.data() + width_text.size() ||
        width > (std::size_t{1} << 31))
      refuse("the width of its values is '" + std::string(width_text) + "'");
    const Rows rows = rows_of(array, 2);
    return column(rows, FixedWidth{static_cast<const char*>(buffer_of(array, 1)), width});
  }
  std::shared_ptr<Column> nulls() const {
    // It has no buffers: that all rows are null is its type.
    const Rows rows = rows_of(array, 0);
    if (rows.size > 0 && !pass_missing)
      throw BadKey(
          "keys[" + std::to_string(start) +
              "] is null, and so are all the others: the Arrow type is null; drop such rows, "
              "or give missing='pass' to let them through",
          true);
    return column(rows, Nulls{});
  }
  std::shared_ptr<Column> make() const;
  std::shared_ptr<Column> dictionary() const;
  std::shared_ptr<Column> fields() const;
};

template <class Value>
void read_codes(const ArrowArray& array, const Rows& rows, std::vector<std::int64_t>& codes) {
  const void* const values = buffer_of(array, 1);
  for (std::size_t row = 0; row < rows.size; ++row) {
    if (!rows.is_valid(row)) {
      codes[row] = -1;
      continue;
    }
    const auto code = read<Value>(values, rows.offset + row);
    if (code > Value{0} && static_cast<std::uint64_t>(code) > (std::uint64_t{1} << 48))
      refuse("code " + std::to_string(code) + " of a dictionary");
    if (std::is_signed_v<Value> && code < Value{0})
      refuse("code " + std::to_string(code) + " of a dictionary");
    codes[row] = static_cast<std::int64_t>(code);
  }
}

std::shared_ptr<Column> Making::dictionary() const {
  if (array.dictionary == nullptr) refuse("it has no dictionary");
  const Rows rows = rows_of(array, 2);
  std::vector<std::int64_t> codes(rows.size);
  switch (schema.format[0]) {
    case 'c':
      read_codes<std::int8_t>(array, rows, codes);
      break;
    case 'C':
      read_codes<std::uint8_t>(array, rows, codes);
      break;
    case 's':
      read_codes<std::int16_t>(array, rows, codes);
      break;
    case 'S':
      read_codes<std::uint16_t>(array, rows, codes);
      break;
    case 'i':
      read_codes<std::int32_t>(array, rows, codes);
      break;
    case 'I':
      read_codes<std::uint32_t>(array, rows, codes);
      break;
    case 'l':
      read_codes<std::int64_t>(array, rows, codes);
      break;
    case 'L':
      read_codes<std::uint64_t>(array, rows, codes);
      break;
    default:
      refuse("the codes of its dictionary are of type " + std::string(schema.format));
  }
  // A dictionary may hold a null that no row uses.
  const Making values{*schema.dictionary, *array.dictionary, owner, name, true, 0};
  return make_coded(std::move(codes), values.make(), name, pass_missing);
}

std::shared_ptr<Column> Making::fields() const {
  const Rows rows = rows_of(array, 1);
  if (schema.n_children != array.n_children || schema.n_children < 0 ||
      (schema.n_children > 0 && (schema.children == nullptr || array.children == nullptr)))
    refuse("the columns of a struct and of its schema differ");
  if (schema.n_children == 0) throw BadParameters("keys is a table without columns");
  if (rows.valid != nullptr || rows.offset != 0)
    for (std::size_t row = 0; row < rows.size; ++row)
      if (!rows.is_valid(row))
        throw BadKey(
            "keys[" + std::to_string(start + row) + "] is null, and no key: drop such rows", true);
  Columns columns;
  for (std::int64_t i = 0; i < schema.n_children; ++i) {
    const ArrowSchema* const child_schema = schema.children[i];
    ArrowArray* const child = array.children[i];
    if (child_schema == nullptr || child == nullptr) refuse("a column of a struct is missing");
    if (child->length < 0 || child->offset < 0 || child->length < array.offset + array.length)
      refuse("a column of a struct is too short");
    // The rows of the struct: a part of those of its columns.
    child->offset += array.offset;
    child->length = array.length;
    if (child->null_count > 0) child->null_count = -1;
    const Making making{*child_schema, *child,
                        owner,         child_schema->name == nullptr ? "" : child_schema->name,
                        pass_missing,  start};
    columns.push_back(making.make());
  }
  return make_fields(std::move(columns));
}

std::shared_ptr<Column> Making::make() const {
  if (schema.format == nullptr) refuse("its schema has no format");
  const std::string_view format = schema.format;
  if (schema.dictionary != nullptr) return dictionary();
  if (format == "u" || format == "z") return strings<std::int32_t>();
  if (format == "U" || format == "Z") return strings<std::int64_t>();
  if (format == "vu" || format == "vz") return views();
  if (format == "c") return numbers<std::int8_t>();
  if (format == "C") return numbers<std::uint8_t>();
  if (format == "s") return numbers<std::int16_t>();
  if (format == "S") return numbers<std::uint16_t>();
  if (format == "i") return numbers<std::int32_t>();
  if (format == "I") return numbers<std::uint32_t>();
  if (format == "l") return numbers<std::int64_t>();
  if (format == "L") return numbers<std::uint64_t>();
  if (format == "n") return nulls();
  if (format == "+s") return fields();
  if (format.starts_with("w:")) return fixed(format.substr(2));
  throw BadKey("keys are of the Arrow type with format '" + std::string(format) +
                   "': give strings, binaries or integers",
               true);
}

template <class Struct>
Struct& from_capsule(PyObject* capsule, const char* name) {
  if (PyCapsule_IsValid(capsule, name) == 0)
    throw BadKey(std::string("not a capsule of an ") + name, true);
  auto* const found = static_cast<Struct*>(PyCapsule_GetPointer(capsule, name));
  if (found->release == nullptr) throw BadKey(std::string("an ") + name + " that was used", false);
  return *found;
}

std::shared_ptr<Column> make_owned_column(const ArrowSchema& schema, ArrowArray& array,
                                          std::string name, bool pass_missing,
                                          std::size_t start = 0) {
  const auto owner = std::make_shared<Held>(array);
  auto column = Making{schema, **owner->array, owner, std::move(name), pass_missing, start}.make();
  column->count_from(start);
  return column;
}

}  // namespace

std::shared_ptr<Column> make_arrow(PyObject* schema, PyObject* array, std::string name,
                                   bool pass_missing) {
  const ArrowSchema& described = from_capsule<ArrowSchema>(schema, "arrow_schema");
  return make_owned_column(described, from_capsule<ArrowArray>(array, "arrow_array"),
                           std::move(name), pass_missing);
}

ArrowStream::ArrowStream(PyObject* stream, bool pass_missing)
    : stream_(from_capsule<ArrowArrayStream>(stream, "arrow_array_stream")),
      pass_missing_(pass_missing) {
  if (const int error = stream_->get_schema(&*stream_, &**schema_); error != 0)
    fail("schema", error);
}

std::shared_ptr<Column> ArrowStream::next() {
  ArrowArray array{};
  if (const int error = stream_->get_next(&*stream_, &array); error != 0) fail("array", error);
  if (array.release == nullptr) return nullptr;
  auto column = make_owned_column(**schema_, array, "", pass_missing_, rows_);
  rows_ += column->size();
  return column;
}

void ArrowStream::fail(const char* step, int error) {
  // Its libraries may be written in Python, and their exceptions say more.
  if (PyErr_Occurred() != nullptr) throw nb::python_error();
  const char* const said = stream_->get_last_error(&*stream_);
  throw BadKey(std::string("the Arrow stream gave no ") + step + ": " +
                   (said == nullptr ? std::strerror(error) : said),
               false);
}

}  // namespace sluice::python
