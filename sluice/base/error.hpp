// Typed errors. Each carries a sentence a person can act on: what was wrong, where, what would be
// right. Bugs are asserts, never these.
#pragma once

#include <cstddef>
#include <new>
#include <stdexcept>
#include <string>

namespace sluice {

class Error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// The caller asked for something impossible: a flag, a filter parameter, a key specification.
class BadParameters : public Error {
 public:
  using Error::Error;
};

// More memory was asked for than the system has.
class NoMemory : public BadParameters {
 public:
  using BadParameters::BadParameters;
};

// Does the work. False: memory ran out on the way. The work must leave its data intact when it
// throws, and the caller must know how far it got.
template <class Work>
bool while_memory_lasts(const Work& work) {
  try {
    work();
    return true;
  } catch (const NoMemory&) {
    return false;
  } catch (const std::bad_alloc&) {
    return false;
  }
}

// Checks a span that must have one element per key. Throws BadParameters naming the field.
[[noreturn]] void refuse_length(const char* field, std::size_t length, std::size_t keys);
inline void check_length(const char* field, std::size_t length, std::size_t keys) {
  if (length != keys) [[unlikely]]
    refuse_length(field, length, keys);
}

// The bytes are not a complete, undamaged snapshot that this build can read.
class CorruptSnapshot : public Error {
 public:
  using Error::Error;
};

// The operating system refused; the message names the file and the system's reason.
class IoError : public Error {
 public:
  IoError(const std::string& what_and_where, int error_number);
  int error_number() const { return error_number_; }

 private:
  int error_number_;
};

// A record that strict mode does not accept; the message names its number and its input.
class BadRecord : public Error {
 public:
  using Error::Error;
};

}  // namespace sluice
