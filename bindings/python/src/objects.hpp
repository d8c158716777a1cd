// Columns of Python objects: lists, tuples, and NumPy arrays of objects or of plain values.
#pragma once

#include <Python.h>

#include <memory>
#include <string>

#include "column.hpp"

namespace sluice::python {

// One key: for first(), contains() and forget(). Returns a view that lives as long as `key` and
// `scratch`. Throws BadKey.
std::string_view one_key(PyObject* key, Slice& scratch);

// Keeps a reference to `list`, which must be a list or a tuple.
std::shared_ptr<Column> make_list(PyObject* list, std::string name, bool pass_missing);

// A one-dimensional array whose elements are objects (O), integers (i, u), bytes of a fixed width
// (S) or characters of a fixed width (U), in the machine's byte order: `kind` is dtype.kind.
std::shared_ptr<Column> make_array(PyObject* array, char kind, std::string name, bool pass_missing);

}  // namespace sluice::python
