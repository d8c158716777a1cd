#include "objects.hpp"

#include <nanobind/nanobind.h>

#include <array>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <utility>

#include "sluice/stream/key_form.hpp"
#include "text.hpp"

namespace nb = nanobind;

namespace sluice::python {
namespace {

constexpr std::size_t kAhead = 16;  // objects fetched before they are read

std::string type_name(PyObject* item) {
  return Py_TYPE(item)->tp_name;
}

// Python's and pandas' ways to say that there is no value. Null if it is something else.
const char* missing_name(PyObject* item) {
  if (item == Py_None) return "None";
  if (PyFloat_Check(item)) return std::isnan(PyFloat_AS_DOUBLE(item)) ? "NaN" : nullptr;
  const std::string name = type_name(item);
  if (name == "NAType" || name.ends_with(".NAType")) return "NA";
  if (name == "NaTType" || name.ends_with(".NaTType")) return "NaT";
  if (name == "MaskedConstant") return "masked";  // NumPy's np.ma.masked
  return nullptr;
}

// What a str consists of.
struct Text {
  explicit Text(PyObject* text) {
#if PY_VERSION_HEX < 0x030C0000
    if (PyUnicode_READY(text) != 0) throw nb::python_error();
#endif
    kind = PyUnicode_KIND(text);
    data = PyUnicode_DATA(text);
    size = static_cast<std::size_t>(PyUnicode_GET_LENGTH(text));
    ascii = PyUnicode_IS_ASCII(text);
  }
  std::uint32_t at(std::size_t i) const {
    return PyUnicode_READ(kind, data, i);
  }
  // The first half of a character that stands alone, or `size`.
  std::size_t find_bad() const {
    if (kind == PyUnicode_1BYTE_KIND) return size;
    std::size_t i = 0;
    while (i < size && is_character(at(i))) ++i;
    return i;
  }
  int kind;
  const void* data;
  std::size_t size;
  bool ascii;
};

[[noreturn]] void refuse_surrogate(const std::string& place) {
  throw BadKey(place +
                   " has a lone surrogate, which UTF-8 cannot write: give bytes, for example "
                   "key.encode('utf-8', 'surrogateescape')",
               false);
}

[[noreturn]] void refuse_type(const std::string& place, PyObject* item) {
  std::string advice;
  if (PyBool_Check(item) || type_name(item).starts_with("numpy.bool"))
    advice = ": give str(key) or int(key)";
  else if (PyFloat_Check(item) || type_name(item).starts_with("numpy.float"))
    advice = ": a number with a fraction has more than one text, so give the text or an int";
  throw BadKey(place + " is of type " + type_name(item) +
                   ", and a key is a str, bytes, an int, or a tuple of these" + advice,
               true);
}

bool is_integer(PyObject* item) {
  return PyLong_Check(item) ? !PyBool_Check(item)
                            : PyIndex_Check(item) && !type_name(item).starts_with("numpy.bool");
}

// The bytes of one object, in the arena or in the object itself.
class ObjectBytes {
 public:
  using Place = std::string (*)(const void* who, std::size_t row);
  ObjectBytes(Place place, const void* who) : place_(place), who_(who) {}

  // Whether put() will take it; throws BadKey if not.
  void check(PyObject* item, std::size_t row) const {
    if (PyUnicode_Check(item)) {
      const Text text(item);
      if (!text.ascii && text.find_bad() != text.size) refuse_surrogate(place_(who_, row));
    } else if (PyTuple_Check(item)) {
      if (PyTuple_GET_SIZE(item) == 0)
        throw BadKey(place_(who_, row) + " is an empty tuple: a key has one field or more", false);
      for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(item); ++i) {
        PyObject* const part = PyTuple_GET_ITEM(item, i);
        if (PyTuple_Check(part)) refuse_type(place_(who_, row), part);
        check(part, row);
      }
    } else if (!PyBytes_Check(item) && !PyByteArray_Check(item) && !is_integer(item)) {
      refuse_type(place_(who_, row), item);
    }
  }

  void put(PyObject* item, std::size_t row, std::size_t at, Slice& to) const {
    if (PyUnicode_Check(item)) return put_text(item, row, at, to);
    if (PyBytes_Check(item))
      return to.put_copy(at, PyBytes_AS_STRING(item),
                         static_cast<std::size_t>(PyBytes_GET_SIZE(item)));
    if (PyByteArray_Check(item))
      return to.put_copy(at, PyByteArray_AS_STRING(item),
                         static_cast<std::size_t>(PyByteArray_GET_SIZE(item)));
    if (is_integer(item)) return put_integer(item, row, at, to);
    if (PyTuple_Check(item) && PyTuple_GET_SIZE(item) != 0) return put_tuple(item, row, at, to);
    refuse_type(place_(who_, row), item);
  }

 private:
  void put_text(PyObject* item, std::size_t row, std::size_t at, Slice& to) const {
    const Text text(item);
    if (text.ascii) return to.put_copy(at, static_cast<const char*>(text.data), text.size);
    if (text.find_bad() != text.size) refuse_surrogate(place_(who_, row));
    char* const begin = to.arena.room(text.size * kMostUtf8);
    char* end = begin;
    for (std::size_t i = 0; i < text.size; ++i) end = put_utf8(text.at(i), end);
    to.arena.keep(end);
    to.keys[at] = {begin, static_cast<std::size_t>(end - begin)};
  }

  void put_integer(PyObject* item, std::size_t row, std::size_t at, Slice& to) const {
    // Python code may run here and drop the last reference to the item.
    const nb::object number =
        PyLong_Check(item) ? nb::borrow(item) : nb::steal(PyNumber_Index(item));
    if (!number.is_valid()) throw nb::python_error();
    int overflow = 0;
    const long long value = PyLong_AsLongLongAndOverflow(number.ptr(), &overflow);
    if (overflow == 0) {
      std::array<char, 24> digits;
      const auto [end, error] = std::to_chars(digits.data(), digits.data() + digits.size(), value);
      return to.put_copy(at, digits.data(), static_cast<std::size_t>(end - digits.data()));
    }
    const nb::object decimal = nb::steal(PyNumber_ToBase(number.ptr(), 10));
    if (!decimal.is_valid()) throw nb::python_error();
    put_text(decimal.ptr(), row, at, to);
  }

  void put_tuple(PyObject* item, std::size_t row, std::size_t at, Slice& to) const {
    const nb::object tuple = nb::borrow(item);
    const auto size = static_cast<std::size_t>(PyTuple_GET_SIZE(item));
    std::string key;
    for (std::size_t i = 0; i < size; ++i) {
      PyObject* const part = PyTuple_GET_ITEM(item, static_cast<Py_ssize_t>(i));
      if (PyTuple_Check(part)) refuse_type(place_(who_, row), part);
      put(part, row, at, to);
      if (size == 1) return;
      append_part(to.keys[at], key);
    }
    to.put_copy(at, key.data(), key.size());
  }

  Place place_;
  const void* who_;
};

bool has_missing_part(PyObject* tuple) {
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(tuple); ++i)
    if (missing_name(PyTuple_GET_ITEM(tuple, i)) != nullptr) return true;
  return false;
}

// Where the objects are: At(row) returns a borrowed reference, or null if the row is gone.
template <class At>
class Objects final : public Column {
 public:
  Objects(At at, std::size_t size, std::string name, bool pass_missing)
      : Column(size, std::move(name), pass_missing), at_(std::move(at)) {}

  bool needs_gil() const noexcept override { return true; }

  void check() override {
    const ObjectBytes bytes(name_of_row, this);
    for (std::size_t row = 0; row < size(); ++row) {
      fetch(row + kAhead);
      PyObject* const item = item_at(row);
      if (PyUnicode_CheckExact(item) && PyUnicode_IS_COMPACT_ASCII(item)) continue;
      if (refuse_or_pass(item, row)) continue;
      bytes.check(item, row);
    }
  }

  std::size_t gather(std::size_t begin, std::size_t most, Slice& to) override {
    const ObjectBytes bytes(name_of_row, this);
    std::size_t i = 0;
    for (; i < most && to.arena.used() < Slice::kMostBytes; ++i) {
      fetch(begin + i + kAhead);
      PyObject* const item = item_at(begin + i);
      if (PyUnicode_CheckExact(item) && PyUnicode_IS_COMPACT_ASCII(item)) {
        to.put_copy(i, reinterpret_cast<const char*>(PyUnicode_1BYTE_DATA(item)),
                    static_cast<std::size_t>(PyUnicode_GET_LENGTH(item)));
      } else if (refuse_or_pass(item, begin + i)) {
        to.put_missing(i);
      } else {
        bytes.put(item, begin + i, i, to);
      }
    }
    return i;
  }

 private:
  static std::string name_of_row(const void* who, std::size_t row) {
    return static_cast<const Objects*>(who)->place(row);
  }
  // Whether the row is missing and that is allowed.
  bool refuse_or_pass(PyObject* item, std::size_t row) const {
    if (PyUnicode_Check(item) || PyBytes_Check(item) || PyLong_Check(item)) return false;
    if (PyTuple_Check(item)) {
      if (!has_missing_part(item)) return false;
      refuse_missing(row, "a tuple with a missing value");
      return true;
    }
    const char* const what = missing_name(item);
    if (what == nullptr) return false;
    refuse_missing(row, what);
    return true;
  }
  // A list may shrink while Python code of an object in it runs, or another thread works.
  PyObject* item_at(std::size_t row) const {
    PyObject* const item = at_(row);
    if (item == nullptr) throw BadKey("keys changed while they were read", false);
    return item;
  }
  void fetch(std::size_t row) const {
    if (row >= size()) return;
    const auto* const item = reinterpret_cast<const char*>(at_(row));
    if (item == nullptr) return;
    __builtin_prefetch(item);
    __builtin_prefetch(item + 64);
  }

  At at_;
};

struct ListAt {
  nb::object list;
  PyObject* operator()(std::size_t row) const {
    const auto i = static_cast<Py_ssize_t>(row);
    return i < PyList_GET_SIZE(list.ptr()) ? PyList_GET_ITEM(list.ptr(), i) : nullptr;
  }
};

struct TupleAt {
  nb::object tuple;
  PyObject* operator()(std::size_t row) const {
    return PyTuple_GET_ITEM(tuple.ptr(), static_cast<Py_ssize_t>(row));
  }
};

// A buffer of one dimension.
class Buffer {
 public:
  explicit Buffer(PyObject* array) {
    if (PyObject_GetBuffer(array, &view_, PyBUF_STRIDED_RO | PyBUF_FORMAT) != 0)
      throw nb::python_error();
  }
  ~Buffer() {
    if (view_.obj == nullptr) return;
    const nb::gil_scoped_acquire gil;
    PyBuffer_Release(&view_);
  }
  Buffer(Buffer&& other) noexcept : view_(std::exchange(other.view_, Py_buffer{})) {}
  Buffer& operator=(Buffer&&) = delete;

  const char* at(std::size_t row) const {
    return static_cast<const char*>(view_.buf) + static_cast<Py_ssize_t>(row) * view_.strides[0];
  }
  const Py_buffer& view() const noexcept { return view_; }
  std::size_t width() const noexcept { return static_cast<std::size_t>(view_.itemsize); }
  std::size_t size() const noexcept { return static_cast<std::size_t>(view_.shape[0]); }

 private:
  Py_buffer view_{};
};

struct ArrayAt {
  std::shared_ptr<Buffer> buffer;
  PyObject* operator()(std::size_t row) const {
    PyObject* item = nullptr;
    std::memcpy(&item, buffer->at(row), sizeof item);
    return item == nullptr ? Py_None : item;  // NumPy makes empty arrays of null pointers
  }
};

template <class Value>
class Integers final : public Column {
 public:
  Integers(Buffer buffer, std::string name, bool pass_missing)
      : Column(buffer.size(), std::move(name), pass_missing), buffer_(std::move(buffer)) {}
  void check() override {}
  std::size_t gather(std::size_t begin, std::size_t most, Slice& to) override {
    for (std::size_t i = 0; i < most; ++i) {
      Value value;
      std::memcpy(&value, buffer_.at(begin + i), sizeof value);
      char* const digits = to.arena.room(24);
      char* const end = std::to_chars(digits, digits + 24, value).ptr;
      to.arena.keep(end);
      to.keys[i] = {digits, static_cast<std::size_t>(end - digits)};
    }
    return most;
  }

 private:
  Buffer buffer_;
};

// NumPy's S: NULs at the end are no part of the value.
class FixedBytes final : public Column {
 public:
  FixedBytes(Buffer buffer, std::string name, bool pass_missing)
      : Column(buffer.size(), std::move(name), pass_missing), buffer_(std::move(buffer)) {}
  void check() override {}
  std::size_t gather(std::size_t begin, std::size_t most, Slice& to) override {
    for (std::size_t i = 0; i < most; ++i) {
      const char* const data = buffer_.at(begin + i);
      std::size_t size = buffer_.width();
      while (size > 0 && data[size - 1] == 0) --size;
      to.put_view(i, data, size);
    }
    return most;
  }

 private:
  Buffer buffer_;
};

// NumPy's U: 32-bit characters, and NULs at the end are no part of the value.
class FixedText final : public Column {
 public:
  FixedText(Buffer buffer, std::string name, bool pass_missing)
      : Column(buffer.size(), std::move(name), pass_missing), buffer_(std::move(buffer)) {}
  void check() override {
    for (std::size_t row = 0; row < size(); ++row)
      for (std::size_t i = 0; i < buffer_.width() / 4; ++i)
        if (!is_character(code(row, i))) refuse_surrogate(place(row));
  }
  std::size_t gather(std::size_t begin, std::size_t most, Slice& to) override {
    std::size_t row = 0;
    for (; row < most && to.arena.used() < Slice::kMostBytes; ++row) {
      std::size_t size = buffer_.width() / 4;
      while (size > 0 && code(begin + row, size - 1) == 0) --size;
      char* const text = to.arena.room(size * kMostUtf8 + 1);
      char* end = text;
      for (std::size_t i = 0; i < size; ++i) {
        const std::uint32_t character = code(begin + row, i);
        if (!is_character(character)) refuse_surrogate(place(begin + row));
        end = put_utf8(character, end);
      }
      to.arena.keep(end);
      to.keys[row] = {text, static_cast<std::size_t>(end - text)};
    }
    return row;
  }

 private:
  std::uint32_t code(std::size_t row, std::size_t i) const {
    std::uint32_t value = 0;
    std::memcpy(&value, buffer_.at(row) + 4 * i, sizeof value);
    return value;
  }
  Buffer buffer_;
};

template <class Small, class Middle, class Long, class Longest>
std::shared_ptr<Column> make_integers(Buffer buffer, std::string name, bool pass_missing) {
  const auto make = [&]<class Value>(Value) -> std::shared_ptr<Column> {
    return std::make_shared<Integers<Value>>(std::move(buffer), std::move(name), pass_missing);
  };
  switch (buffer.width()) {
    case 1:
      return make(Small{});
    case 2:
      return make(Middle{});
    case 4:
      return make(Long{});
    case 8:
      return make(Longest{});
    default:
      throw BadKey("keys are integers of an unknown width", true);
  }
}

// The buffer must be what NumPy says of its array: nothing is read on the word of a caller.
void check_format(const Buffer& buffer, char kind) {
  const Py_buffer& view = buffer.view();
  const std::string_view format = view.format == nullptr ? "B" : view.format;
  const char last = format.empty() ? ' ' : format.back();
  const bool fits = kind == 'O'   ? last == 'O' && buffer.width() == sizeof(PyObject*)
                    : kind == 'S' ? last == 's' || last == 'c'
                    : kind == 'U' ? last == 'w' && buffer.width() % 4 == 0
                    : kind == 'i' ? std::string_view("bhilq").find(last) != std::string_view::npos
                    : kind == 'u' ? std::string_view("BHILQ").find(last) != std::string_view::npos
                                  : false;
  if (view.ndim != 1 || !fits)
    throw BadKey("keys are an array of " + std::to_string(view.ndim) + " dimensions and format '" +
                     std::string(format) + "': give one dimension of str, bytes or integers",
                 true);
}

}  // namespace

std::string_view one_key(PyObject* key, Slice& scratch) {
  if (PyUnicode_Check(key)) {
    const Text text(key);
    if (text.ascii) return {static_cast<const char*>(text.data), text.size};
  }
  if (PyBytes_Check(key))
    return {PyBytes_AS_STRING(key), static_cast<std::size_t>(PyBytes_GET_SIZE(key))};
  scratch.clear();
  const ObjectBytes bytes([](const void*, std::size_t) { return std::string("key"); }, nullptr);
  const char* const missing = missing_name(key);
  if (missing != nullptr) throw BadKey(std::string("key is ") + missing + ", and no key", true);
  bytes.check(key, 0);
  bytes.put(key, 0, 0, scratch);
  return scratch.keys[0];
}

std::shared_ptr<Column> make_list(PyObject* list, std::string name, bool pass_missing) {
  if (PyList_Check(list))
    return std::make_shared<Objects<ListAt>>(ListAt{nb::borrow(list)},
                                             static_cast<std::size_t>(PyList_GET_SIZE(list)),
                                             std::move(name), pass_missing);
  if (!PyTuple_Check(list)) throw BadKey("keys is neither a list nor a tuple", true);
  return std::make_shared<Objects<TupleAt>>(TupleAt{nb::borrow(list)},
                                            static_cast<std::size_t>(PyTuple_GET_SIZE(list)),
                                            std::move(name), pass_missing);
}

std::shared_ptr<Column> make_array(PyObject* array, char kind, std::string name,
                                   bool pass_missing) {
  Buffer buffer(array);
  check_format(buffer, kind);
  const std::size_t size = buffer.size();
  switch (kind) {
    case 'O':
      return std::make_shared<Objects<ArrayAt>>(
          ArrayAt{std::make_shared<Buffer>(std::move(buffer))}, size, std::move(name),
          pass_missing);
    case 'S':
      return std::make_shared<FixedBytes>(std::move(buffer), std::move(name), pass_missing);
    case 'U':
      return std::make_shared<FixedText>(std::move(buffer), std::move(name), pass_missing);
    case 'i':
      return make_integers<std::int8_t, std::int16_t, std::int32_t, std::int64_t>(
          std::move(buffer), std::move(name), pass_missing);
    default:
      return make_integers<std::uint8_t, std::uint16_t, std::uint32_t, std::uint64_t>(
          std::move(buffer), std::move(name), pass_missing);
  }
}

}  // namespace sluice::python
