// What is wrong with the arguments of the command, in one sentence of our own. CLI11's sentences name
// neither the flag as a person typed it nor what would be right.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

namespace sluice::cli {

// For an option whose value is empty; usage_error() makes the sentence.
inline constexpr const char* kEmptyValue = "its value is empty";

// `app` has just thrown `error` while it parsed.
std::string usage_error(const CLI::App& app, const CLI::ParseError& error);

}  // namespace sluice::cli
