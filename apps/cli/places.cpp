#include "places.hpp"

#include <fmt/format.h>

#include <system_error>

#include "connectors/files/state_file.hpp"
#include "sluice/base/error.hpp"

namespace sluice::cli {

bool same_place(const std::filesystem::path& a, const std::filesystem::path& b) {
  namespace fs = std::filesystem;
  std::error_code ignored;
  return fs::equivalent(a, b, ignored) || fs::weakly_canonical(link_target(a), ignored) ==
                                              fs::weakly_canonical(link_target(b), ignored);
}

void check_output_apart(const std::string& output, const std::vector<std::string>& inputs) {
  if (output == "-")
    throw BadParameters(
        "--output - would be standard output, and this is written to a temporary file and then "
        "renamed: name a file");
  for (const std::string& input : inputs)
    for (const std::filesystem::path& written : files_of_state(output))
      if (same_place(input, written))
        throw BadParameters(fmt::format(
            "--output '{}' would write over the input '{}': write to another file", output, input));
}

}  // namespace sluice::cli
