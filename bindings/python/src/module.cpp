// sluice._core: what the Python files beside this folder need of the library.
#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <chrono>
#include <cstring>

#include "arrow.hpp"
#include "errors.hpp"
#include "objects.hpp"
#include "plan.hpp"
#include "seen.hpp"
#include "sluice/sluice.hpp"
#include "sluice/stream/json_key.hpp"
#include "sluice/stream/json_tree.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace sluice::python {
namespace {

// A Seen on its way into a Python object.
struct Made {
  std::optional<Seen> seen;
};

std::shared_ptr<Made> made(Seen seen) {
  return std::make_shared<Made>(Made{std::move(seen)});
}

template <class Make>
std::shared_ptr<Made> make_alone(const Make& make) {
  const nb::gil_scoped_release free;
  return made(make());
}

std::optional<WindowLength> window_of(nb::handle window) {
  if (window.is_none()) return std::nullopt;
  if (nb::isinstance<nb::str>(window)) return WindowLength(nb::cast<std::string>(window));
  // (nanoseconds,) for a duration, so that it cannot be taken for a number of keys.
  if (nb::isinstance<nb::tuple>(window))
    return WindowLength(std::chrono::nanoseconds(nb::cast<std::int64_t>(window[0])));
  return WindowLength(nb::cast<std::int64_t>(window));
}

std::shared_ptr<Made> make(nb::handle window, bool refresh, std::optional<std::int64_t> max_ahead,
                           std::optional<std::uint64_t> keys, std::optional<double> rate,
                           std::optional<double> fpr, std::optional<std::uint64_t> memory,
                           const std::string& filter, bool untrusted_keys,
                           std::optional<std::uint64_t> seed) {
  Seen::Options options;
  options.window = window_of(window);
  options.refresh = refresh;
  if (max_ahead) options.max_ahead = std::chrono::nanoseconds(*max_ahead);
  options.keys = keys;
  options.rate = rate;
  options.fpr = fpr;
  options.memory = memory;
  options.filter = filter;
  options.untrusted_keys = untrusted_keys;
  options.seed = seed;
  return make_alone([&] { return Seen(options); });
}

// Bytes of any object that has a buffer.
class Bytes {
 public:
  Bytes(nb::handle object, int flags) {
    if (PyObject_GetBuffer(object.ptr(), &view_, flags) != 0) throw nb::python_error();
  }
  ~Bytes() { PyBuffer_Release(&view_); }
  Bytes(const Bytes&) = delete;
  Bytes& operator=(const Bytes&) = delete;
  template <class Item>
  std::span<Item> items() const {
    if (view_.itemsize != sizeof(Item)) throw BadParameters("a buffer of another type");
    return {static_cast<Item*>(view_.buf), static_cast<std::size_t>(view_.len) / sizeof(Item)};
  }

 private:
  Py_buffer view_;
};

// A whole number with its unit, as sluice._times.instant() reads it; nothing if that must see it.
std::optional<std::int64_t> whole_time(nb::handle when, nb::handle unit) {
  using namespace std::string_view_literals;
  constexpr std::int64_t kMost = std::int64_t{1} << 62;
  if (!PyLong_CheckExact(when.ptr()) || !PyUnicode_CheckExact(unit.ptr())) return std::nullopt;
  int overflow = 0;
  const long long count = PyLong_AsLongLongAndOverflow(when.ptr(), &overflow);
  if (overflow != 0 || !PyUnicode_IS_COMPACT_ASCII(unit.ptr())) return std::nullopt;
  const std::string_view name(reinterpret_cast<const char*>(PyUnicode_1BYTE_DATA(unit.ptr())),
                              static_cast<std::size_t>(PyUnicode_GET_LENGTH(unit.ptr())));
  const std::int64_t each = name == "s"sv    ? 1'000'000'000
                            : name == "ms"sv ? 1'000'000
                            : name == "us"sv ? 1'000
                            : name == "ns"sv ? 1
                                             : 0;
  if (each == 0 || count > kMost / each || count < -(kMost / each)) return std::nullopt;
  return count * each;
}

std::optional<Seen::Time> time_of(nb::handle when, nb::handle unit) {
  if (when.is_none() && unit.is_none()) return std::nullopt;
  if (const auto whole = whole_time(when, unit))
    return Seen::Time(std::chrono::nanoseconds(*whole));
  // Never released: there is one interpreter. The GIL protects it, and not the lock of a static
  // object: importing may give the GIL to a thread that would wait for that lock.
  static PyObject* instant = nullptr;
  if (instant == nullptr)
    instant = nb::object(nb::module_::import_("sluice._times").attr("instant")).release().ptr();
  const nb::object found = nb::handle(instant)(when, unit);
  return Seen::Time(std::chrono::nanoseconds(nb::cast<std::int64_t>(found)));
}

// For one key at a time: its slice has room for thousands.
Slice& scratch() {
  static Slice slice;  // the GIL protects it
  return slice;
}

// The key is a copy unless it is in the object itself: the GIL may be released before it is judged.
std::string_view key_of(nb::handle key, std::string& copy) {
  const std::string_view found = one_key(key.ptr(), scratch());
  if (PyUnicode_Check(key.ptr()) != 0 && PyUnicode_IS_ASCII(key.ptr())) return found;
  if (PyBytes_Check(key.ptr()) != 0) return found;
  copy = found;
  return copy;
}

bool first(SharedSeen& self, nb::handle key, nb::handle when, nb::handle unit) {
  std::string copy;
  const std::string_view bytes = key_of(key, copy);
  const auto time = time_of(when, unit);
  return self.with([&](Seen& seen) { return time ? seen.first(bytes, *time) : seen.first(bytes); });
}

bool contains(SharedSeen& self, nb::handle key, nb::handle when, nb::handle unit) {
  std::string copy;
  const std::string_view bytes = key_of(key, copy);
  const auto time = time_of(when, unit);
  return self.with(
      [&](Seen& seen) { return time ? seen.contains(bytes, *time) : seen.contains(bytes); });
}

bool forget(SharedSeen& self, nb::handle key) {
  std::string copy;
  const std::string_view bytes = key_of(key, copy);
  return self.with([&](Seen& seen) { return seen.forget(bytes); });
}

nb::bytes key_bytes(nb::handle key) {
  std::string copy;
  const std::string_view bytes = key_of(key, copy);
  return nb::bytes(bytes.data(), bytes.size());
}

// The form of a JSON value in keys of the command; `text` is JSON.
nb::bytes json_form(const std::string& text) {
  JsonTree tree;
  std::string form;
  const JsonPointer all;
  if (!tree.parse(text) || JsonKeyWriter<JsonTree::Value>().append_key(
                               tree.root(), std::span(&all, 1), form) != KeyStatus::keyed)
    throw BadKey("this value is not JSON: " + text, false);
  return nb::bytes(form.data(), form.size());
}

// Returns how many rows were judged, and the exception that ended it or None.
nb::tuple observe(SharedSeen& self, Column& column, nb::handle times, nb::handle first) {
  const Bytes answers(first, PyBUF_WRITABLE);
  std::optional<Bytes> given;
  Times whens;
  if (!times.is_none()) {
    given.emplace(times, PyBUF_FORMAT | PyBUF_ND);
    whens = given->items<const std::int64_t>();
  }
  const Observed observed = self.observe(column, whens, answers.items<std::uint8_t>());
  return nb::make_tuple(observed.judged,
                        observed.error ? exception_of(observed.error) : nb::none());
}

void check_column(Column& column) {
  std::optional<nb::gil_scoped_release> free;
  if (!column.needs_gil()) free.emplace();
  column.check();
}

nb::tuple stats(SharedSeen& self) {
  const FilterStats is = self.with([](Seen& seen) { return seen.stats(); });
  return nb::make_tuple(is.keys, is.capacity, is.bytes, is.target_fpr, is.predicted_fpr,
                        is.planned_fpr, is.stash, is.listed, is.forgotten, is.forget_misses,
                        is.forget_kept, is.disbelieved, is.over_target);
}

// The filter's name, and what the window is in words or None.
nb::tuple about(SharedSeen& self) {
  return self.with([](Seen& seen) {
    const Window* const window = seen.filter().window();
    if (window == nullptr)
      return nb::make_tuple(std::string(name_of(seen.filter().kind())), nb::none());
    return nb::make_tuple(
        std::string(window->filter_name()),
        describe(window->params().spec, window->params().anchor == Anchor::refreshed));
  });
}

std::string string_of(const nb::bytes& bytes) {
  return {bytes.c_str(), bytes.size()};
}

// Labels are any bytes: pairs of them, in Python.
using LabelBytes = std::vector<std::pair<nb::bytes, nb::bytes>>;

LabelBytes get_labels(const SharedSeen& self) {
  const auto bytes = [](const std::string& text) { return nb::bytes(text.data(), text.size()); };
  LabelBytes labels;
  for (const auto& [name, value] : self.labels()) labels.emplace_back(bytes(name), bytes(value));
  return labels;
}

void set_labels(SharedSeen& self, const LabelBytes& given) {
  Labels labels;
  for (const auto& [name, value] : given) labels.emplace_back(string_of(name), string_of(value));
  self.set_labels(std::move(labels));
}

// A path is bytes: what os.fsencode() makes of it.
void save(SharedSeen& self, const nb::bytes& file) {
  const std::filesystem::path path = string_of(file);
  const Labels labels = self.labels();
  self.alone([&](Seen& seen) { seen.save(path, labels); });
}

nb::bytes to_bytes(SharedSeen& self) {
  const Labels labels = self.labels();
  const std::vector<std::byte> bytes = self.alone([&](Seen& seen) { return seen.save(labels); });
  return nb::bytes(bytes.data(), bytes.size());
}

std::shared_ptr<Made> from_bytes(nb::handle bytes) {
  const Bytes given(bytes, PyBUF_SIMPLE);
  const auto items = given.items<const std::byte>();
  return make_alone([&] { return Seen::load(items); });
}

// For help(). Types are in _core.pyi and _seen.py.
constexpr const char* kFirst =
    "Whether the key is new; it is remembered from then on.\n\n"
    ">>> seen = Seen(window=\"10m\")\n"
    ">>> seen.first(\"user-17\"), seen.first(\"user-17\")\n"
    "(True, False)\n\n"
    "The event happens now or at `when`: a datetime with a zone, a datetime64 (UTC), or a\n"
    "number with unit=\"s\", \"ms\", \"us\" or \"ns\" since 1970. An event that is a window or "
    "more\n"
    "behind the latest is let through (True) and not remembered. Raises NoMemory; the key is\n"
    "then neither judged nor remembered.";
constexpr const char* kContains =
    "Whether the key was seen: what `not first(key, when)` would be. Changes nothing.\n\n"
    "`key in seen` is the same as of now.";
constexpr const char* kForget =
    "Takes a key back, and returns whether there was a trace of it.\n\n"
    "Raises BadParameters if the filter cannot forget: the planner chooses one that can for a\n"
    "window, and if neither keys= nor memory= is given.";
constexpr const char* kClear = "Forgets all keys. It is then as it was when it was made.";

void bind_seen(nb::module_& m) {
  nb::class_<Made>(m, "Made");
  nb::class_<SharedSeen>(m, "Seen")
      .def(
          "__init__",
          [](SharedSeen* self, const std::shared_ptr<Made>& from) {
            if (!from->seen) throw BadParameters("this state was taken already");
            new (self) SharedSeen(std::move(*from->seen));
            from->seen.reset();
          },
          "made"_a)
      .def("first", first, "key"_a.none(), "when"_a.none() = nb::none(), nb::kw_only(),
           "unit"_a.none() = nb::none(), kFirst)
      .def("contains", contains, "key"_a.none(), "when"_a.none() = nb::none(), nb::kw_only(),
           "unit"_a.none() = nb::none(), kContains)
      .def(
          "__contains__",
          [](SharedSeen& self, nb::handle key) {
            return contains(self, key, nb::none(), nb::none());
          },
          "key"_a.none())
      .def("forget", forget, "key"_a.none(), kForget)
      .def(
          "clear", [](SharedSeen& self) { self.alone([](Seen& seen) { seen.clear(); }); }, kClear)
      .def("_observe", observe, "column"_a, "times"_a.none(), "first"_a)
      .def("_merge", &SharedSeen::merge)
      .def("_stats", stats)
      .def("_about", about)
      .def("_plan",
           [](SharedSeen& self) {
             return self.with([](Seen& seen) { return planning_tuple(seen.plan()); });
           })
      .def("_nbytes",
           [](SharedSeen& self) { return self.with([](Seen& seen) { return seen.bytes(); }); })
      .def("_save", save)
      .def("_to_bytes", to_bytes)
      .def("_labels", get_labels)
      .def("_set_labels", set_labels)
      .def("_clone", [](SharedSeen& self) {
        return self.alone([](Seen& seen) { return made(seen.clone()); });
      });
  m.def("make", make, "window"_a.none(), "refresh"_a, "max_ahead"_a.none(), "keys"_a.none(),
        "rate"_a.none(), "fpr"_a.none(), "memory"_a.none(), "filter"_a, "untrusted_keys"_a,
        "seed"_a.none());
  m.def("load", [](const nb::bytes& file) {
    const std::filesystem::path path = string_of(file);
    return make_alone([&] { return Seen::load(path); });
  });
  m.def("from_bytes", from_bytes);
}

void bind_columns(nb::module_& m) {
  nb::class_<Column>(m, "Column").def("check", check_column).def("__len__", &Column::size);
  nb::class_<ArrowStream>(m, "ArrowStream")
      .def("__init__",
           [](ArrowStream* self, nb::handle stream, bool pass_missing) {
             new (self) ArrowStream(stream.ptr(), pass_missing);
           })
      .def("next", &ArrowStream::next);
  m.def("list_column",
        [](nb::handle list, const std::string& name, bool pass_missing, std::size_t start) {
          auto column = make_list(list.ptr(), name, pass_missing);
          column->count_from(start);
          return column;
        });
  m.def("array_column",
        [](nb::handle array, const std::string& kind, const std::string& name, bool pass_missing) {
          return make_array(array.ptr(), kind.empty() ? ' ' : kind[0], name, pass_missing);
        });
  m.def("arrow_column",
        [](nb::handle schema, nb::handle array, const std::string& name, bool pass_missing) {
          return make_arrow(schema.ptr(), array.ptr(), name, pass_missing);
        });
  m.def("coded_column", [](nb::handle codes, const std::shared_ptr<Column>& values,
                           const std::string& name, bool pass_missing) {
    const Bytes given(codes, PyBUF_FORMAT | PyBUF_ND);
    const auto items = given.items<const std::int64_t>();
    return make_coded({items.begin(), items.end()}, values, name, pass_missing);
  });
  m.def("fields_column", [](const Columns& columns) {
    if (columns.empty()) throw BadParameters("keys is a table without columns");
    return make_fields(columns);
  });
  m.def("json_form", json_form);
  m.def("key_bytes", key_bytes, "key"_a.none());
}

void bind_quantities(nb::module_& m) {
  m.def("parse_count",
        [](const std::string& name, const std::string& text) { return parse_count(name, text); });
  m.def("parse_size",
        [](const std::string& name, const std::string& text) { return parse_size(name, text); });
  m.def("parse_duration", [](const std::string& name, const std::string& text) {
    return static_cast<std::int64_t>(parse_duration(name, text).count());
  });
  m.def("parse_rate",
        [](const std::string& name, const std::string& text) { return parse_rate(name, text); });
  m.def("parse_probability", [](const std::string& name, const std::string& text) {
    return parse_probability(name, text);
  });
  m.def("format_size", format_size);
}

}  // namespace
}  // namespace sluice::python

NB_MODULE(_core_of_main, m) {
  using namespace sluice::python;
  translate_errors();
  bind_seen(m);
  bind_columns(m);
  bind_quantities(m);
  bind_plan(m);
  m.attr("version") = SLUICE_VERSION;
}

// What nanobind and the scratch of this module hold is for one interpreter: in a second one, calls
// would wait for a GIL that nobody gives back. Refused before nanobind does anything.
extern "C" NB_EXPORT PyObject* PyInit__core() {
  if (PyInterpreterState_Get() == PyInterpreterState_Main()) return PyInit__core_of_main();
  PyErr_SetString(
      PyExc_ImportError,
      "sluice does not work in subinterpreters: import it in the main interpreter, or use "
      "threads or processes");
  return nullptr;
}
