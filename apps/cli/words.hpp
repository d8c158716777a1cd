// The library's messages in the words of the command line: `max_ahead` becomes --max-ahead.
#pragma once

#include <string>
#include <string_view>

namespace sluice::cli {

// For text of the library that is shown by itself. What is thrown, warned or noted goes through
// here already.
std::string in_flags(std::string_view message);

}  // namespace sluice::cli
