#include "sluice/base/error.hpp"

#include <cstring>

namespace sluice {

IoError::IoError(const std::string& what_and_where, int error_number)
    : Error(error_number == 0 ? what_and_where
                              : what_and_where + ": " + std::strerror(error_number)),
      error_number_(error_number) {}

void refuse_length(const char* field, std::size_t length, std::size_t keys) {
  throw BadParameters('`' + std::string(field) + "` has a length of " + std::to_string(length) +
                      ", and there are " + std::to_string(keys) +
                      " keys: give one element for each key");
}

}  // namespace sluice
