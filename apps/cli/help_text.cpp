#include "help_text.hpp"

#include <algorithm>

namespace sluice::cli {
namespace {

// Where the text of a line begins: after the name of an option, if it is one.
std::size_t text_of(std::string_view line) {
  const std::size_t blanks = std::min(line.find_first_not_of(' '), line.size());
  if (blanks >= kHelpIndent || blanks < 2) return blanks;
  const std::size_t column = kHelpIndent + blanks - 2;
  if (line.size() > column && line[column - 1] == ' ' && line[column] != ' ') return column;
  // Otherwise a name ends with two blanks.
  const std::size_t end = line.find("  ", blanks);
  return end == line.npos ? blanks : line.find_first_not_of(' ', end);
}

void add_line(std::string& to, std::string_view line) {
  const std::string indent(text_of(line), ' ');
  while (line.size() > kHelpColumns) {
    // A word that is longer than a line stays whole.
    std::size_t end = line.rfind(' ', kHelpColumns);
    if (end == line.npos || end < indent.size()) end = line.find(' ', kHelpColumns);
    if (end == line.npos) break;
    to.append(line.substr(0, end)).append("\n");
    line.remove_prefix(end + 1);
    if (line.size() + indent.size() <= kHelpColumns) {
      to.append(indent);
      break;
    }
    const std::string rest = indent + std::string(line);
    return add_line(to, rest);
  }
  to.append(line).append("\n");
}

}  // namespace

std::string fit_to_terminal(std::string_view help) {
  std::string fitted;
  while (!help.empty()) {
    const std::size_t end = std::min(help.find('\n'), help.size());
    // The parser leaves two blank lines between groups.
    if (end > 0 || !fitted.ends_with("\n\n")) add_line(fitted, help.substr(0, end));
    help.remove_prefix(std::min(end + 1, help.size()));
  }
  return fitted;
}

}  // namespace sluice::cli
