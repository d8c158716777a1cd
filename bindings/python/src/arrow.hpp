// Columns of Arrow arrays: strings, binaries, views of either, integers, dictionaries and structs of
// these (the rows of a table), without a copy.
//
// The structs come from another library in this process. What they tell is checked as far as it can
// be: counts, null buffers, the order of offsets, the bounds of views. The size of a buffer of
// strings is not part of the interface; its last offset is.
#pragma once

#include <Python.h>

#include <memory>
#include <string>

#include "arrow_abi.hpp"
#include "column.hpp"

namespace sluice::python {

// Owns a struct of the interface: releases it at the end.
template <class Struct>
class Released {
 public:
  Released() = default;
  // Takes it out of where it is, as the specification says.
  explicit Released(Struct& from) noexcept : held_(from) { from.release = nullptr; }
  ~Released() {
    if (held_.release != nullptr) held_.release(&held_);
  }
  Released(const Released&) = delete;
  Released& operator=(const Released&) = delete;
  Struct& operator*() noexcept { return held_; }
  Struct* operator->() noexcept { return &held_; }

 private:
  Struct held_{};
};

// From __arrow_c_array__(): a capsule of a schema and one of an array.
std::shared_ptr<Column> make_arrow(PyObject* schema, PyObject* array, std::string name,
                                   bool pass_missing);

// From __arrow_c_stream__(): a capsule of a stream of arrays.
class ArrowStream {
 public:
  ArrowStream(PyObject* stream, bool pass_missing);
  // The next array, or null at the end.
  std::shared_ptr<Column> next();

 private:
  [[noreturn]] void fail(const char* step, int error);

  Released<ArrowArrayStream> stream_;
  std::shared_ptr<Released<ArrowSchema>> schema_ = std::make_shared<Released<ArrowSchema>>();
  bool pass_missing_;
  std::size_t rows_ = 0;  // of the arrays so far
};

}  // namespace sluice::python
