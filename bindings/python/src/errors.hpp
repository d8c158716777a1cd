// The library's errors as Python exceptions: the classes of sluice/_errors.py, with sentences that
// name keywords (fpr=) instead of fields.
#pragma once

#include <nanobind/nanobind.h>

#include <exception>
#include <string>
#include <string_view>

namespace sluice::python {

// `fpr` becomes fpr=.
std::string in_keywords(std::string_view message);

// The exception that Python is to see for what was thrown. What is neither ours nor Python's is
// thrown again.
nanobind::object exception_of(const std::exception_ptr& thrown);

// Makes all functions of the module throw them.
void translate_errors();

}  // namespace sluice::python
