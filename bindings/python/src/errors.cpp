#include "errors.hpp"

#include <algorithm>
#include <array>
#include <new>
#include <optional>

#include "column.hpp"
#include "sluice/base/error.hpp"
#include "sluice/base/fields.hpp"

namespace nb = nanobind;

namespace sluice::python {
namespace {

using namespace std::string_view_literals;

std::optional<std::string> keyword_of(std::string_view field) {
  constexpr std::array kSame{"filter"sv, "fnr"sv,   "fpr"sv,   "keys"sv,           "lines"sv,
                             "memory"sv, "npws"sv,  "rate"sv,  "max_ahead"sv,      "refresh"sv,
                             "seed"sv,   "slack"sv, "times"sv, "untrusted_keys"sv, "window"sv};
  if (field == "expect") return "keys=";
  if (std::ranges::find(kSame, field) == kSame.end()) return {};
  return std::string(field) + "=";
}

// Messages may hold bytes of others that are not UTF-8, such as names of files.
nb::object sentence(const std::exception& error) {
  const std::string text = in_keywords(error.what());
  return nb::steal(
      PyUnicode_DecodeUTF8(text.data(), static_cast<Py_ssize_t>(text.size()), "backslashreplace"));
}

nb::object make(const char* name, const std::exception& error) {
  return nb::module_::import_("sluice._errors").attr(name)(sentence(error));
}

}  // namespace

std::string in_keywords(std::string_view message) {
  return in_words_of(message, keyword_of);
}

nb::object exception_of(const std::exception_ptr& thrown) {
  try {
    std::rethrow_exception(thrown);
  } catch (const nb::python_error& error) {
    return nb::borrow(error.value());
  } catch (const BadKey& error) {
    return make(error.wrong_type() ? "BadKey" : "BadKeyValue", error);
  } catch (const IoError& error) {
    return nb::module_::import_("sluice._errors")
        .attr("io_error")(error.error_number(), sentence(error));
  } catch (const NoMemory& error) {
    return make("NoMemory", error);
  } catch (const std::bad_alloc&) {
    return make("NoMemory", NoMemory("there is no memory"));
  } catch (const CorruptSnapshot& error) {
    return make("CorruptState", error);
  } catch (const BadParameters& error) {
    return make("BadParameters", error);
  } catch (const Error& error) {
    return make("Error", error);
  }
}

void translate_errors() {
  nb::register_exception_translator([](const std::exception_ptr& thrown, void*) {
    const nb::object error = exception_of(thrown);
    PyErr_SetObject(error.type().ptr(), error.ptr());
  });
}

}  // namespace sluice::python
