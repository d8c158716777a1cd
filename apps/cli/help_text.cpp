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

// Columns on a terminal: one per character. No text of ours has wide or combining ones.
std::size_t columns_of(std::string_view text) {
  return static_cast<std::size_t>(
      std::ranges::count_if(text, [](char byte) { return (byte & 0xc0) != 0x80; }));
}

// The last blank up to which the line fits, or else the first: a word that is longer than a line
// stays whole. Blanks before `indent` do not count.
std::size_t break_of(std::string_view line, std::size_t indent) {
  std::size_t last = line.npos;
  for (std::size_t at = line.find(' ', indent); at != line.npos; at = line.find(' ', at + 1)) {
    if (last != line.npos && columns_of(line.substr(0, at)) > kHelpColumns) break;
    last = at;
  }
  return last;
}

}  // namespace

std::string fit_line(std::string_view line, std::size_t indent) {
  std::string fitted;
  std::string rest(line);
  while (columns_of(rest) > kHelpColumns) {
    const std::size_t end = break_of(rest, indent);
    if (end == rest.npos) break;
    fitted.append(rest, 0, end).append("\n");
    rest = std::string(indent, ' ') + rest.substr(end + 1);
  }
  return fitted + rest + "\n";
}

std::string fit_to_terminal(std::string_view help) {
  std::string fitted;
  while (!help.empty()) {
    const std::size_t end = std::min(help.find('\n'), help.size());
    // The parser leaves two blank lines between groups.
    const std::string_view line = help.substr(0, end);
    if (end > 0 || !fitted.ends_with("\n\n")) fitted += fit_line(line, text_of(line));
    help.remove_prefix(std::min(end + 1, help.size()));
  }
  return fitted;
}

}  // namespace sluice::cli
