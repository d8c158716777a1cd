// The arguments of `sluice`: how a command says what it takes, and how they are parsed. The parser
// is CLI11. Only arguments.cpp includes it: a source that does takes seconds longer to compile.
#pragma once

#include <functional>
#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace sluice::cli {

// One command as the parser knows it; a copy is the same command. The names of an option are as in
// "-o,--output", and `type` is what the help prints for its value. The values are written when the
// arguments are parsed, so they must live until then: run()'s function can own them.
class Command {
 public:
  Command(CLI::App& app, int& exit_code) : app_(&app), exit_code_(&exit_code) {}

  Command subcommand(const char* name, const char* summary);
  // One of the subcommands must follow. Any other name is refused: "'NAME' is not `what`".
  void need_subcommand(const char* what);

  // The heading in the help for the options and flags that are added from here on.
  void group(const char* heading);

  void flag(const char* names, bool& value, const char* help);
  // What `value` holds is the default, and is printed in the help unless empty.
  void option(const char* names, std::string& value, const char* help, const char* type);
  // May be repeated, with one value each time: what follows the value is a file.
  void option(const char* names, std::vector<std::string>& values, const char* help,
              const char* type);
  void required_option(const char* names, std::string& value, const char* help, const char* type);

  // An argument that is no option, and required.
  void positional(const char* name, std::string& value, const char* help, const char* type);
  // Any number of them, or between `least` and `most`. The help prints `shown`, as in "FILE ...".
  void positionals(const char* name, std::vector<std::string>& values, const char* help,
                   const char* shown);
  void positionals(const char* name, std::vector<std::string>& values, const char* help,
                   const char* shown, int least, int most);

  // The end of the help.
  void footer(const char* text);
  std::string help() const;

  // What the command does: runs inside guarded() and returns the exit code.
  void run(std::function<int()> body);
  // The same, but the parser stops at the first argument that is none of the command's options:
  // `rest` is that argument and all after it.
  void run_with_rest(std::function<int(const std::vector<std::string>& rest)> body);

 private:
  CLI::App* app_;
  int* exit_code_;
};

// `sluice` itself.
struct Program {
  const char* summary;
  const char* footer;
  std::string (*version)();
  const char* version_help;
  void (*add_commands)(Command& app);
};

// Parses the arguments and runs the command that they name. If they are wrong, says so in one
// sentence on standard error. Returns the exit code.
int parse_and_run(const Program& program, int argc, char** argv);

}  // namespace sluice::cli
