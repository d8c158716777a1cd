// Compares files independent of their names: an input must not be overwritten.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace sluice::cli {

// Whether two paths lead, or would lead, to one file.
bool same_place(const std::filesystem::path& a, const std::filesystem::path& b);

// Throws BadParameters when `output`, or what is written beside it, is one of the inputs, or when it
// is standard output.
void check_output_apart(const std::string& output, const std::vector<std::string>& inputs);

}  // namespace sluice::cli
