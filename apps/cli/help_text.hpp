// Help made to fit a terminal.
#pragma once

#include <string>
#include <string_view>

namespace sluice::cli {

inline constexpr std::size_t kHelpColumns = 80;
// Where the texts of the options begin, in a help that is not indented.
inline constexpr std::size_t kHelpIndent = 30;

// `line` broken at blanks where it is too long, with a newline at its end. All lines but the first
// begin with `indent` blanks.
std::string fit_line(std::string_view line, std::size_t indent);

// `help` with its long lines broken at blanks. What follows is indented like the text that it
// belongs to.
std::string fit_to_terminal(std::string_view help);

}  // namespace sluice::cli
