// The arguments of a command as COMMAND DOCS shows them, read from its usage text, so that there is only one
// description of a command.
//
//   key item [item ...]         names; a repeated name in brackets: one or more
//   [AT ms]                     optional; a word in capitals is typed as it is, before a value
//   [EXPECT n | RATE n/s]       one of them
//   count|duration|FOREVER      one of these words
//   [parameter value ...]       optional, any number of times
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace sluice::server {

struct Argument {
  enum class Type { text, integer, real, key, token, one_of, block };

  std::string name = {};
  std::string token = {};  // the word before it, or itself if that is all
  Type type = Type::text;
  bool optional = false, multiple = false;
  std::vector<Argument> parts = {};  // of one_of and block

  friend bool operator==(const Argument&, const Argument&) = default;
};

// An assertion fails on a text that is not written like this.
std::vector<Argument> arguments_of(std::string_view usage);

}  // namespace sluice::server
