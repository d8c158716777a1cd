#include "sluice/base/error.hpp"

#include <cstring>

namespace sluice {

IoError::IoError(const std::string& what_and_where, int error_number)
    : Error(what_and_where + ": " + std::strerror(error_number)), error_number_(error_number) {}

}  // namespace sluice
